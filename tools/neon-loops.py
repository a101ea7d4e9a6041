#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""neon-loops.py BUILD

Looks at the register tiles of the NEON kernels in the disassembly of BUILD (made with cmake/aarch64.cmake):
every innermost loop that keeps 24 sums. Says for each how much of the peak of multiply-adds
llvm-mca models on three processors; the peak is what the same model gives for products that wait for nothing. Exit code
1 where a loop keeps a vector on the stack, or stays below 85 %. Needs aarch64-linux-gnu-objdump and llvm-mca
of LLVM 16 or later, whose models know these processors."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

CPUS = ("neoverse-n1", "neoverse-v1", "apple-m1")
LEAST, TURNS = 0.85, 200
BRANCH = re.compile(r"(?:b\.?\w*|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+([0-9a-f]+) <")


def loops(path):
    """(function, instructions without the branch) of every innermost loop of a file"""
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True).stdout
    for part in re.split(r"\n\n(?=[0-9a-f]{16} <)", text):
        head = re.match(r"\s*[0-9a-f]+ <([^>]+)>:", part)
        if not head:
            continue
        lines = [(int(a, 16), i.split("//")[0].strip()) for a, i in re.findall(r"^\s+([0-9a-f]+):\s+(.*)$", part, re.M)]
        at = {address: k for k, (address, _) in enumerate(lines)}
        ends = [(at.get(int(b.group(1), 16)), k) for k, (_, i) in enumerate(lines) if (b := BRANCH.match(i))]
        back = [(first, last) for first, last in ends if first is not None and first <= last]
        for first, last in back:
            if not any((f, l) != (first, last) and first <= f and l <= last for f, l in back):
                yield head.group(1), [i for _, i in lines[first:last]]


def cycles(mca, cpu, instructions):
    run = subprocess.run([mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={TURNS}"],
                         input="\n".join(instructions) + "\n", capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    if not found:
        sys.exit(f"neon-loops: {mca} knows no {cpu}: {run.stderr.strip()[:200]}")
    return int(found.group(1)) / TURNS


def main():
    names = [f"llvm-mca-{n}" for n in range(21, 15, -1)] + ["llvm-mca"]
    mca = next((n for n in names if shutil.which(n)), None)
    if len(sys.argv) != 2 or mca is None:
        sys.exit(__doc__)
    peak = {cpu: 24 / cycles(mca, cpu, [f"fmul v{k}.4s, v30.4s, v31.4s" for k in range(24)]) for cpu in CPUS}
    folder = Path(sys.argv[1]) / "CMakeFiles/locus-objects.dir/src/kernels/isa"
    count = bad = 0
    print(f"{'loop of':<28}{'fmla':>5}{'stack':>6}" + "".join(f"{cpu:>13}" for cpu in CPUS))
    for file in ("neon.c.o", "neon_linear.c.o"):
        for name, body in loops(folder / file):
            products = sum(i.startswith("fmla") for i in body)
            sums = {i.split()[1] for i in body if i.startswith("fmla")}
            # Others hold more than sums of products, branches or functions, or are the tiles of fewer rows.
            if len(sums) < 24 or any(re.match(r"f(add|sub|mul|cm)|b\W|bl|cb|tb", i) for i in body):
                continue
            spills = sum(bool(re.match(r"(ld|st)\w+\s+[qdv]\d.*\[sp", i)) for i in body)
            share = {cpu: products / cycles(mca, cpu, body) / peak[cpu] for cpu in CPUS}
            count += 1
            wrong = spills > 0 or min(share.values()) < LEAST
            bad += wrong
            print(f"{name:<28}{products:>5}{spills:>6}" + "".join(f"{share[cpu]:>13.1%}" for cpu in CPUS)
                  + ("  bad" if wrong else ""))
    print(f"{count} loops, {bad} of them bad")
    return bad > 0 or count == 0


sys.exit(main())
