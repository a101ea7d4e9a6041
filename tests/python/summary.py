# SPDX-License-Identifier: Apache-2.0
"""summary.py REPORT.xml STATUS: pytest's report as the last lines of a suite of tests/run.sh."""

import sys
import xml.etree.ElementTree


def main(path, status):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    try:
        cases = xml.etree.ElementTree.parse(path).iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        cases = []  # pytest did not live to write one
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}".removeprefix("bindings.python.tests.")
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            print(f"FAIL {name}")
        elif (skipped := case.find("skipped")) is not None:
            counts["skipped"] += 1
            print(f"SKIP {name}: {skipped.get('message')}".replace("\n", " "))
        else:
            counts["passed"] += 1
    if status != 0 and counts["failed"] == 0:
        counts["failed"] = 1
        print(f"FAIL pytest: exit code {status}")
    print("python: {passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
