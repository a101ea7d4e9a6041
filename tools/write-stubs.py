#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""write-stubs.py LOCUS STUB: write the keywords that schemes declare into the type stub.

Every function with a block between the two comments below gets the tensors and options of its level
(attend or layer, by its name), in the order of `locus schemes --json`.
"""
import json
import re
import subprocess
import sys

BEGIN, END = "    # declared by schemes (tools/write-stubs.py)", "    # end of what schemes declare"


def keywords(schemes, level):
    lines = {}
    for scheme in schemes:
        for tensor in scheme["tensors"]:
            if level in tensor["levels"]:
                lines.setdefault(tensor["name"], f"    {tensor['name']}: _Array | None = None,")
    choices = {}
    for scheme in schemes:
        for option in scheme["options"]:
            if level not in option["levels"]:
                continue
            kind = {"integer": "int", "real": "float"}.get(option["kind"])
            if kind is None:
                named = choices.setdefault(option["name"], [])
                named += [choice for choice in option["choices"] if choice not in named]
                kind = "Literal[" + ", ".join(f'"{choice}"' for choice in named) + "]"
            lines[option["name"]] = f"    {option['name']}: {kind} = ...,"
    return "\n".join(lines.values())


def main():
    program, path = sys.argv[1:]
    schemes = json.loads(subprocess.check_output([program, "schemes", "--json"]))
    text = open(path, encoding="utf-8").read()

    def fill(match):
        level = "layer" if match["name"].startswith("layer") else "attend"
        return f"{match['head']}{BEGIN}\n{keywords(schemes, level)}\n{END}\n"

    block = rf"(?P<head>def (?P<name>\w+)\((?:(?!\ndef ).)*?){re.escape(BEGIN)}\n.*?{re.escape(END)}\n"
    written = re.sub(block, fill, text, flags=re.S)
    if written != text:
        open(path, "w", encoding="utf-8").write(written)


main()
