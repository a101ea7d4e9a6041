# SPDX-License-Identifier: Apache-2.0
"""summary.py [PREFIX REPORT.xml STATUS]...: pytest's reports as the last lines of a suite of tests/run.sh; - in
place of a report: there was nothing to run it with."""

import sys
import xml.etree.ElementTree


def read(prefix, path, status, counts):
    prefix = prefix.removeprefix("./")
    if path == "-":
        counts["skipped"] += 1
        print(f"SKIP {prefix}all: no venv with the newest transformers (tools/setup.sh tests makes it)")
        return
    try:
        cases = list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        cases = []  # pytest did not live to write one
    failed = counts["failed"]
    for case in cases:
        name = prefix + f"{case.get('classname')}::{case.get('name')}".removeprefix("bindings.python.tests.")
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            print(f"FAIL {name}")
        elif (skipped := case.find("skipped")) is not None:
            counts["skipped"] += 1
            print(f"SKIP {name}: {skipped.get('message')}".replace("\n", " "))
        else:
            counts["passed"] += 1
    if status != 0 and counts["failed"] == failed:
        counts["failed"] += 1
        print(f"FAIL {prefix}pytest: exit code {status}")


def main(arguments):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for prefix, path, status in zip(*[iter(arguments)] * 3):
        read(prefix, path, int(status), counts)
    print("python: {passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
