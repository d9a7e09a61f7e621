"""The runner's own honesty: failures, unfinished runners and empty runs never end in success."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CASE = '<testcase name="{name}" status="{status}">{inside}</testcase>'


def junit(*cases):
    return "<testsuite>" + "".join(CASE.format(name=i, status=status, inside=inside)
                                   for i, (status, inside) in enumerate(cases)) + "</testsuite>"


class SumUp(unittest.TestCase):
    def sum_up(self, ctest, python):
        with tempfile.TemporaryDirectory() as folder:
            xml, counts = pathlib.Path(folder, "ctest.xml"), pathlib.Path(folder, "python.json")
            if ctest is not None:
                xml.write_text(ctest, encoding="utf-8")
            if python is not None:
                counts.write_text(json.dumps(python), encoding="utf-8")
            done = subprocess.run([sys.executable, str(ROOT / "scripts/sum_up_tests.py"), str(xml), str(counts)],
                                  text=True, capture_output=True, check=False)
        return done.returncode, done.stdout.splitlines()[-1]

    GOOD = {"passed": 4, "failed": 0, "skipped": 1}

    def test_counts_of_both_runners_are_added(self):
        cases = junit(("run", ""), ("run", ""), ("notrun", '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'))
        self.assertEqual(self.sum_up(cases, self.GOOD), (0, "6 passed, 0 failed, 2 skipped"))

    def test_a_failure_of_either_fails(self):
        self.assertEqual(self.sum_up(junit(("run", ""), ("fail", "<failure/>")), self.GOOD),
                         (1, "5 passed, 1 failed, 1 skipped"))
        self.assertEqual(self.sum_up(junit(("run", "")), {"passed": 4, "failed": 2, "skipped": 0}),
                         (1, "5 passed, 2 failed, 0 skipped"))

    def test_a_program_that_was_not_built_fails(self):
        self.assertEqual(self.sum_up(junit(("run", ""), ("notrun", '<skipped message="Unable to find executable"/>')), self.GOOD),
                         (1, "5 passed, 1 failed, 1 skipped"))

    def test_a_runner_that_never_finished_fails(self):
        self.assertEqual(self.sum_up(None, self.GOOD)[0], 1)
        self.assertEqual(self.sum_up(junit(("run", "")), None)[0], 1)

    def test_nothing_ran_fails(self):
        self.assertEqual(self.sum_up(junit(), self.GOOD)[0], 1)
        self.assertEqual(self.sum_up(junit(("run", "")), {"passed": 0, "failed": 0, "skipped": 3})[0], 1)


class RunPythonTests(unittest.TestCase):
    def run_tests(self, *bodies):
        """Each body becomes a test file of the same name in a folder of its own, as in the real tree."""
        with tempfile.TemporaryDirectory(dir=ROOT / "tests" / "front_door") as folder:
            files = []
            for i, body in enumerate(bodies):
                path = pathlib.Path(folder, f"part{i}", "test_it.py")
                path.parent.mkdir()
                (path.parent / "helper.py").write_text(f"VALUE = {i}\n", encoding="utf-8")
                path.write_text("import pathlib, sys, unittest\n"
                                "sys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
                                "import helper\n"
                                f"class T(unittest.TestCase):\n    def test_it(self):\n        {body}\n",
                                encoding="utf-8")
                files.append(str(path))
            result = pathlib.Path(folder, "result.json")
            done = subprocess.run([sys.executable, str(ROOT / "scripts/run_python_tests.py"), str(result), *files],
                                  text=True, capture_output=True, check=False)
            return done.returncode, json.loads(result.read_text(encoding="utf-8"))

    def test_helpers_of_the_same_name_do_not_meet(self):
        code, counts = self.run_tests("self.assertEqual(helper.VALUE, 0)", "self.assertEqual(helper.VALUE, 1)")
        self.assertEqual((code, counts), (0, {"passed": 2, "failed": 0, "skipped": 0}))

    def test_failures_and_errors_count(self):
        code, counts = self.run_tests("self.fail()", "raise OSError()", "pass")
        self.assertEqual((code, counts), (1, {"passed": 1, "failed": 2, "skipped": 0}))

    def test_only_skips_is_not_success(self):
        code, counts = self.run_tests("self.skipTest('no')")
        self.assertEqual((code, counts), (1, {"passed": 0, "failed": 0, "skipped": 1}))


if __name__ == "__main__":
    unittest.main()
