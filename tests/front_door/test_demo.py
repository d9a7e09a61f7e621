"""`make demo` behind the set-up: both checkpoints are evaluated, and a failure ends it with its exit code."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sandbox  # noqa: E402


class Demo(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox()
        self.addCleanup(self.box.close)
        self.box.write("scripts/setup.sh", ". scripts/lib/stages.sh\nset_up() { :; }\n")
        self.box.stand_in("build.sh", "exit 0", self.box.root / "scripts")

    def demo(self, program):
        self.box.stand_in("replayeval", program, self.box.root / "build" / "release" / "bin")
        return self.box.shell("scripts/demo.sh")

    def test_both_checkpoints(self):
        done = self.demo("exit 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.box.called("replayeval"), ["replayeval run configs/demo.yaml",
                                                         "replayeval run configs/demo-delta-rule.yaml"])

    def test_the_first_failure_is_the_last_word(self):
        done = self.demo("[[ $2 != configs/demo.yaml ]] || exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.box.called("replayeval"), ["replayeval run configs/demo.yaml"])
        self.assertIn("[evaluation] failed", done.stderr)


if __name__ == "__main__":
    unittest.main()
