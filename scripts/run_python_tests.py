#!/usr/bin/env python3
"""Run every tests/**/test_*.py (or the files given after RESULT) with unittest and write the counts to RESULT.

Exit code 1 if a test failed or none ran.
"""

import importlib.util
import json
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]


class CountingResult(unittest.TextTestResult):
    """Prints each test's duration, and remembers how many ran to success."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        self.stream.writeln(f"    {time.monotonic() - self.started:.2f} s")


def load(path):
    """The tests of one file, under a module name of its own: two folders may hold files of the same name."""
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Helper modules beside a test are imported by bare name; those of the folder before must not answer for them.
    before = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        return unittest.defaultTestLoader.loadTestsFromModule(module)
    finally:
        sys.path = [entry for entry in sys.path if entry != str(path.parent)]
        for helper in set(sys.modules) - before:
            origin = getattr(sys.modules[helper], "__file__", None)
            if origin and pathlib.Path(origin).parent == path.parent:
                del sys.modules[helper]


def main():
    result_file = pathlib.Path(sys.argv[1])
    paths = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or sorted(ROOT.glob("tests/**/test_*.py"))
    suite = unittest.TestSuite(load(path) for path in paths)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=CountingResult).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    counts = {"passed": result.passed, "failed": failed, "skipped": len(result.skipped)}
    result_file.write_text(json.dumps(counts) + "\n", encoding="utf-8")
    return 0 if failed == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
