# SPDX-License-Identifier: Apache-2.0
"""``python -m locus.bench``, at the root of a checkout: the peers beside Locus. The benchmark is bench/python, not in the package."""

import pathlib
import sys

SOURCES = pathlib.Path("bench", "python")


def main() -> int:
    if not (SOURCES / "locus_bench").is_dir():
        print(f"python -m locus.bench: no {SOURCES}/locus_bench in this folder, expected the root of a checkout of Locus", file=sys.stderr)
        return 4
    sys.path.insert(0, str(SOURCES.resolve()))
    from locus_bench.__main__ import main as measure

    return measure()


if __name__ == "__main__":
    sys.exit(main())
