#!/usr/bin/env python3
"""Print "N passed, M failed, K skipped" over ctest's JUnit file and the Python tests' counts.

    sum_up_tests.py CTEST_XML PYTHON_JSON

Exit code 1 if a test failed, if a file is missing (its runner never finished) or says that nothing ran.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree


def ctest_counts(path):
    """By case, as the suite's own totals overlap: ctest calls a program that was not built skipped as well."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status, skipped = case.get("status"), case.find("skipped")
        skipped_itself = skipped is not None and skipped.get("message", "").startswith("SKIP_")
        if status == "run":
            counts["passed"] += 1
        elif status == "disabled" or (status == "notrun" and skipped_itself):
            counts["skipped"] += 1
        else:
            counts["failed"] += 1
    return counts


def python_counts(path):
    return json.loads(path.read_text(encoding="utf-8"))


def main():
    total = {"passed": 0, "failed": 0, "skipped": 0}
    complete = True
    for name, read in ((sys.argv[1], ctest_counts), (sys.argv[2], python_counts)):
        path = pathlib.Path(name)
        if not path.exists():
            print(f"error: {path} was not written: its tests did not run", file=sys.stderr)
            complete = False
            continue
        counts = read(path)
        if counts["passed"] + counts["failed"] == 0:
            print(f"error: {path} says that no test ran", file=sys.stderr)
            complete = False
        for word, count in counts.items():
            total[word] += count
    if not complete:
        total["failed"] += 1
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if complete and total["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
