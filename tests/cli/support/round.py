# SPDX-License-Identifier: Apache-2.0
"""Numbers with a point in what comes in, to three places: what all instruction sets agree on."""

import re
import sys


def rounded(match):
    return "%.3f" % (float(match.group()) + 0.0)


sys.stdout.write(re.sub(r"-?\d+\.\d+(?:e[-+]\d+)?", rounded, sys.stdin.read()))
