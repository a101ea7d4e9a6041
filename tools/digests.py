#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""digests.py LOCUS > cli/digests.inc

Stores what `locus demo --digest` computes here, with fused multiply-add and without, when results are
meant to have other bits. A processor that has no fused multiply-add is refused."""
import json
import os
import subprocess
import sys


def digests(locus, isa):
    environment = {k: v for k, v in os.environ.items() if k != "LOCUS_ISA"} | ({"LOCUS_ISA": isa} if isa else {})
    run = subprocess.run([locus, "demo", "--digest", "--json"], capture_output=True, text=True, env=environment)
    if run.returncode not in (0, 1):
        sys.exit(f"digests.py: {locus} demo ended with {run.returncode}: {run.stderr.strip()}")
    found = json.loads(run.stdout)
    return found["isa"], {d["name"]: d["digest"] for d in found["digests"]}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    isa, fused = digests(sys.argv[1], None)
    if isa == "generic":
        sys.exit("digests.py: this processor has no fused multiply-add that Locus uses")
    portable = digests(sys.argv[1], "generic")[1]
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Written by tools/digests.py: bits with fused multiply-add, bits of portable C. */")
    print("/* clang-format off */")
    for name in fused:
        print(f'LOCUS_DIGEST("{name}", 0x{fused[name]}, 0x{portable[name]})')


main()
