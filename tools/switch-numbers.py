#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""switch-numbers.py LOCUS MODEL TITLE ABOUT OUT [LOCUS EXPLAIN ARGUMENTS]: the numbers of a page of `locus explain MODEL ... -o
page.html` as a file for the page that computes and the stills of docs/: a title and a line about the model, then the
tokens, terms and heads as they are."""
import json
import os
import re
import subprocess
import sys
import tempfile

locus, model, title, about, out, *arguments = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    page = os.path.join(folder, "page.html")
    subprocess.run([locus, "explain", model, "-o", page] + arguments, check=True, stdout=subprocess.DEVNULL)
    with open(page, encoding="utf-8") as file:
        numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', file.read(), re.S)[1])
numbers.update(title=title, about=about)
with open(out, "w", encoding="utf-8") as file:
    json.dump(numbers, file, ensure_ascii=False, separators=(",", ":"))
    file.write("\n")
