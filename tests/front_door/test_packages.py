"""The set-up's first stage: which packages are missing, and what is said where they cannot be installed."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sandbox  # noqa: E402

LIST = "# comment\nalpha-dev   /nonexistent/alpha.h\nbeta        bash   # a command that is there\n\ngamma-dev  /nonexistent/gamma.h\n"


class Packages(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox()
        self.addCleanup(self.box.close)
        self.box.write("list.txt", LIST)

    def require(self, *more):
        return self.box.shell("require_packages list.txt" + (" -- " + " ".join(more) if more else ""))

    def test_nothing_missing_installs_nothing(self):
        self.box.installed("alpha-dev", "beta", "gamma-dev", "text")
        self.box.stand_in("apt-get", "exit 1")
        done = self.require("text")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.box.called("apt-get"), [])

    def test_without_root_the_missing_ones_are_named_in_one_command(self):
        self.box.installed("beta")
        self.box.stand_in("apt-get", "exit 0")
        self.box.stand_in("id", "echo 1000")
        done = self.require("text")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.splitlines(), [
            "error: missing packages, and only root can install them. "
            "Run: sudo apt-get install -y --no-install-recommends alpha-dev gamma-dev text"])
        self.assertEqual(self.box.called("apt-get"), [])

    def test_without_apt_the_missing_ones_are_named(self):
        self.box.installed("alpha-dev", "beta")
        done = self.require()
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertRegex(done.stderr, r"no apt-get here .*: gamma-dev$")

    def test_without_dpkg_files_and_commands_are_looked_for(self):
        done = self.require()
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r": alpha-dev gamma-dev$")

    def test_a_removed_package_that_left_its_configuration_is_missing(self):
        self.box.stand_in("dpkg-query", 'printf "%s\\n" "alpha-dev installed" "beta config-files" "gamma-dev installed"')
        done = self.require()
        self.assertRegex(done.stderr, r": beta$")

    def test_root_installs_just_the_missing_ones(self):
        self.box.installed("beta")
        self.box.stand_in("apt-get", "exit 0")
        self.box.stand_in("id", "echo 0")
        done = self.require("text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^\[setup\] packages +… [0-9.]+ s$")
        self.assertEqual(self.box.called("apt-get"), [
            "apt-get update", "apt-get install -y --no-install-recommends alpha-dev gamma-dev text"])

    def test_a_stage_of_another_name(self):
        self.box.installed("alpha-dev", "beta", "gamma-dev")
        self.box.stand_in("apt-get", "exit 0")
        self.box.stand_in("id", "echo 0")
        done = self.box.shell('require_packages list.txt; require_packages --stage "text packages" list.txt -- text; '
                              "print_stage_times")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^\[setup\] text packages … [0-9.]+ s$")
        self.assertRegex(done.stderr, r"(?m)^  packages +0\.0 s$")
        self.assertRegex(done.stderr, r"(?m)^  text packages +[0-9.]+ s$")
        self.assertTrue((self.box.root / ".cache" / "logs" / "text-packages.log").exists())

    def test_format_without_clang_format_says_how_to_get_it(self):
        self.box.installed()
        self.box.stand_in("apt-get", "exit 0")
        self.box.stand_in("id", "echo 1000")
        done = self.box.shell("scripts/format.sh")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertRegex(done.stderr, r"^error: missing packages.*apt-get install .*clang-format")

    def test_format_formats_what_is_tracked(self):
        for tool in ("git", "xargs"):
            (self.box.bin / tool).symlink_to(f"/usr/bin/{tool}")
        self.box.stand_in("clang-format", "exit 0")
        self.box.write("new.cpp", "")
        self.box.write("old.cpp", "")
        done = self.box.shell("git init -q . && git add old.cpp && scripts/format.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.box.called("clang-format"), ["clang-format -i old.cpp"])

    def test_apt_failing_is_an_error_that_shows_why(self):
        self.box.installed("beta")
        self.box.stand_in("apt-get", 'if [[ $1 == install ]]; then echo "E: Unable to locate package alpha-dev"; exit 100; fi')
        self.box.stand_in("id", "echo 0")
        done = self.require()
        self.assertEqual(done.returncode, 3)
        self.assertIn("Unable to locate package alpha-dev", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"^error: apt-get could not install: alpha-dev gamma-dev")

    def test_the_projects_own_lists_have_a_probe_for_each_package(self):
        for name in ("packages.txt", "packages-lint.txt", "packages-test.txt"):
            lines = (sandbox.ROOT / "scripts" / name).read_text(encoding="utf-8").splitlines()
            entries = [line.split("#")[0].split() for line in lines if line.split("#")[0].strip()]
            self.assertTrue(entries)
            for entry in entries:
                self.assertEqual(len(entry), 2, f"{name}: {entry}")


if __name__ == "__main__":
    unittest.main()
