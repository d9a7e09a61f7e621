"""The set-up's later stages: run when their inputs changed, skipped otherwise, never called done after a failure."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sandbox  # noqa: E402


class PythonStage(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox()
        self.addCleanup(self.box.close)
        self.box.write("first.txt", "torch==1\n")
        self.box.write("second.txt", "numpy==1\n")
        self.venv_python("exit 0")

    def venv_python(self, body):
        self.box.stand_in("python", f'if [[ $1 == -m ]]; then {body}; fi', self.box.root / ".venv" / "bin")

    def installs(self):
        return [call.split(" -r ")[1] for call in self.box.called("python") if " pip install " in call]

    def require(self):
        return self.box.shell("require_python first.txt second.txt")

    def test_second_time_is_skipped_and_a_changed_list_alone_is_installed_again(self):
        self.assertEqual(self.require().returncode, 0)
        self.assertEqual(self.installs(), ["first.txt", "second.txt"])
        self.assertEqual(self.require().returncode, 0)
        self.assertEqual(self.installs(), ["first.txt", "second.txt"])
        self.box.write("second.txt", "numpy==2\n")
        self.assertEqual(self.require().returncode, 0)
        self.assertEqual(self.installs(), ["first.txt", "second.txt", "second.txt"])

    def test_pip_failing_is_one_line_with_its_reason_and_tried_again(self):
        self.venv_python('echo "ERROR: No matching distribution found for torch==1"; exit 1')
        done = self.require()
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"^error: pip could not fill \.venv from first\.txt second\.txt: "
                         r"ERROR: No matching distribution found for torch==1 \(log: ")
        self.assertEqual(list((self.box.root / ".venv").glob(".stamps/*")), [])
        self.venv_python("exit 0")
        self.assertEqual(self.require().returncode, 0)
        self.assertEqual(self.installs(), ["first.txt", "first.txt", "second.txt"])

    def test_a_broken_environment_is_made_anew(self):
        self.require()
        (self.box.root / ".venv" / "bin" / "python").write_text("#!/nonexistent/python\n", encoding="utf-8")
        done = self.box.shell(
            'system_python() { echo fake_python; }\n'
            'fake_python() { if [[ $1 == -m ]]; then mkdir -p .venv/bin; cp_python; fi; }\n'
            'cp_python() { printf "#!/bin/bash\\n" >.venv/bin/python; chmod_it; }\n'
            'chmod_it() { /bin/chmod +x .venv/bin/python; }\n'
            'require_python first.txt')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.box.root / ".venv/.stamps/first.txt").exists())
        self.assertFalse((self.box.root / ".venv/.stamps/second.txt").exists(), "a stamp outlived its environment")


class TextStage(unittest.TestCase):
    SCRIPT = """import pathlib, sys
if "--list-packages" in sys.argv:
    print("text")
    sys.exit(0)
with open("runs.txt", "a") as runs:
    runs.write("run\\n")
if {broken}:
    print("prepare_text.py: package text 2: hash differs", file=sys.stderr)
    sys.exit(3)
pathlib.Path(".data/text/heldout").mkdir(parents=True, exist_ok=True)
"""

    def setUp(self):
        self.box = sandbox.Sandbox()
        self.addCleanup(self.box.close)
        self.box.write("datasets/packages.json", "{}\n")
        self.prepare(broken=False)
        self.version("1")

    def prepare(self, broken):
        self.box.write("datasets/prepare_text.py", self.SCRIPT.replace("{broken}", str(broken)))

    def version(self, version):
        self.box.stand_in("dpkg-query", f'echo "text {version}"')

    def runs(self):
        path = self.box.root / "runs.txt"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def require(self):
        return self.box.shell("require_text")

    def test_runs_once_until_an_input_changes(self):
        for expected in (1, 1):
            self.assertEqual(self.require().returncode, 0)
            self.assertEqual(self.runs(), expected)
        self.box.write("datasets/packages.json", "{ }\n")
        self.require()
        self.assertEqual(self.runs(), 2)
        self.version("2")
        self.require()
        self.assertEqual(self.runs(), 3)
        (self.box.root / ".data/text/heldout").rmdir()
        self.require()
        self.assertEqual(self.runs(), 4)

    def test_a_mismatch_is_an_error_in_its_own_words(self):
        self.prepare(broken=True)
        for _ in range(2):
            done = self.require()
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr.splitlines()[-1],
                             "error: the held-out text could not be prepared: "
                             "prepare_text.py: package text 2: hash differs")
        self.assertEqual(self.runs(), 2)


class StageTimes(unittest.TestCase):
    def test_each_stage_is_listed_with_its_time_and_their_sum(self):
        box = sandbox.Sandbox()
        self.addCleanup(box.close)
        done = box.shell("record_stage one 1.5; record_stage two 20.0; print_stage_times")
        self.assertEqual([line.split() for line in done.stderr.splitlines()],
                         [[], ["Time", "of", "each", "stage:"], ["one", "1.5", "s"], ["two", "20.0", "s"],
                          ["total", "21.5", "s"]])

    def test_a_failed_stage_hands_on_its_exit_code(self):
        box = sandbox.Sandbox()
        self.addCleanup(box.close)
        done = box.shell("bad() { return 7; }\nshown_stage work bad || exit $?")
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, r"^\[work\] failed after [0-9.]+ s \(exit code 7\)$")


if __name__ == "__main__":
    unittest.main()
