"""`replayeval gate`: exit codes, and the files and lines that CI reads."""

import copy
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
from test_report import RESULTS  # noqa: E402

GATES = program.ROOT / "configs" / "gates"
STUDIES = [program.ROOT / "reports" / "h200" / name for name in ("tiny-nemotron-h", "tiny-qwen3-next")]  # as served


def rule(**keys):
    return {"name": "cost", "metric": "delta.perplexity_relative", "at_most": 0.04, **keys}


class GateTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="replayeval-gate-")
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def result(self, change=lambda results: None, name="r"):
        results = copy.deepcopy(RESULTS)
        results["workloads"][0]["deltas"]["half"]["perplexity_relative"].update(value=0.025)
        change(results)
        (self.path / name).mkdir(exist_ok=True)
        (self.path / name / "results.json").write_text(json.dumps(results))
        return self.path / name

    def policy(self, *rules, **keys):
        file = self.path / "policy.yaml"
        file.write_text(json.dumps({"rules": list(rules), **keys}))  # JSON is YAML
        return file

    def gate(self, policy, *options, result=None, **environment):
        return program.call("gate", result or self.result(), "--policy", policy, *options,
                            env={**os.environ, **environment})

    def expect_refused(self, done, message):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")

    # The delta is +2.5 % [+2, +3].
    def test_exit_codes(self):
        for bound, code, word in ((0.04, 0, "pass"), (0.01, 1, "regression"), (0.026, 2, "inconclusive")):
            done = self.gate(self.policy(rule(at_most=bound)))
            self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
            self.assertEqual(done.stdout.split()[0], word)
            self.assertIn(f"(exit code {code})", done.stdout)
        self.assertEqual(self.gate(self.policy(rule(at_most=0.026), inconclusive="warn")).returncode, 0)
        done = self.gate(self.policy(rule(arms="nobody")))
        self.assertEqual(done.returncode, 3)
        self.assertIn("no arm matches 'nobody'; the results have half", done.stdout)

    def test_inconclusive_says_how_much_would_decide(self):
        done = self.gate(self.policy(rule(at_most=0.026)))
        # ((1.960 + 0.842) / 1.960)² (0.005 / 0.001)² 2000
        self.assertIn("100,161 more tokens (102,161 in all) would decide", done.stdout)

    def test_what_cannot_be_read_is_3(self):
        policy = self.policy(rule())
        self.expect_refused(self.gate(policy, result=self.path / "gone"), "gone: no such file")
        self.expect_refused(self.gate(self.path / "none.yaml"), "none.yaml: cannot be read; expected a YAML file")
        self.expect_refused(self.gate(policy, result=self.result(lambda r: r.update(schema_version=0))),
                            "/schema_version: found 0, this program reads 1; run again, or read them with that version "
                            "(0.1.0, which wrote them)")
        self.expect_refused(self.gate(policy, result=self.result(lambda r: r.update(workloads=[]))),
                            "/workloads is empty: nothing was run")
        (self.path / "r" / "results.json").write_text("{}")
        self.expect_refused(self.gate(policy, result=self.path / "r"), "/schema_version: is missing")
        (self.path / "r" / "results.json").write_text("")
        self.expect_refused(self.gate(policy, result=self.path / "r"), "is not JSON")
        for words, message in ((("", "--policy", policy), "results: empty; expected a result folder or results.json"),
                               ((self.path, "--policy", ""), "--policy: empty; expected a YAML file")):
            done = program.call("gate", *words)
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn(message, done.stderr)
        for change, message in ((lambda c: c.update(workloads=5), "/config/workloads: found 5, expected array"),
                                (lambda c: c.update(workloads=[{"name": 5}]), "/config/workloads/0/name: found 5, expected"),
                                (lambda c: c.update(confidence="x"), '/config/confidence: found "x", expected number')):
            self.expect_refused(self.gate(policy, result=self.result(lambda r, c=change: c(r["config"]))), message)
        self.expect_refused(self.gate(self.policy()), "key 'rules': expected a list of rules, at least one")
        done = program.call("gate", self.path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("--policy is required", done.stderr)

    def test_hand_edited(self):
        def narrowed(results):
            results["workloads"][0]["deltas"]["half"]["perplexity_relative"].update(high=0.021)

        def moved(results):
            results["workloads"][0]["deltas"]["half"]["perplexity_relative"].update(value=0.0201, high=0.021)

        self.expect_refused(self.gate(self.policy(rule()), result=self.result(narrowed)),
                            "/workloads/0/deltas/half/perplexity_relative: value 0.025 lies outside its interval")
        self.expect_refused(self.gate(self.policy(rule()), result=self.result(moved)),
                            "/perplexity_relative/value: found 0.0201, expected 0.0249")
        not_a_number = self.result()
        text = (not_a_number / "results.json").read_text()
        (not_a_number / "results.json").write_text(text.replace("0.025", "NaN"))
        self.expect_refused(self.gate(self.policy(rule()), result=not_a_number), "is not JSON")

    def test_against_a_release(self):
        def other_text(results):
            results["workloads"][0]["data"]["sources"][0]["sha256"] = "c" * 64

        policy = self.policy(rule(against="release", at_most=0.01))
        self.assertEqual(self.gate(policy, "--baseline", self.result(name="old")).returncode, 0)
        self.assertEqual(self.gate(policy).returncode, 3)
        done = self.gate(policy, "--baseline", self.result(other_text, name="old"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("different data: /sources/0/sha256 of workload 'prose' differs", done.stdout)
        self.expect_refused(self.gate(policy, "--baseline", self.path / "gone"), "gone: no such file")

    def test_a_baseline_that_no_rule_looks_at_is_refused(self):
        junit = self.path / "gate.xml"
        self.expect_refused(self.gate(self.policy(rule()), "--baseline", self.result(name="old"), "--junit", junit),
                            "old: no rule of policy 'policy' is `against: release`, so nothing would be compared with it")
        self.assertEqual(xml.etree.ElementTree.parse(junit).getroot().get("errors"), "1")

    def test_a_release_compared_with_itself_passes(self):
        policy = self.policy(rule(against="release", within=0.0001))
        policy.write_text(policy.read_text().replace('"at_most": 0.04, ', ""))
        old = self.result(name="old")
        done = self.gate(policy, "--baseline", old, result=old)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"warning: {old} holds the run's own results: every change since it is 0", done.stderr)
        self.assertIn("change since the release 0 [0, 0] %", self.gate(policy, "--baseline", old, "--explain", result=old).stdout)

    def test_junit_is_xml(self):
        file = self.path / "gate.xml"
        done = self.gate(self.policy(rule(name="a <b> & \"c\"", at_most=0.01), rule(name="fine")), "--junit", file)
        self.assertEqual(done.returncode, 1)
        suites = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual([suites.get(key) for key in ("tests", "failures", "errors")], ["2", "1", "0"])
        cases = suites.findall("testsuite/testcase")
        self.assertEqual(cases[0].get("name"), "a <b> & \"c\" / prose / half / delta.perplexity_relative")
        self.assertIn("expected at most +1 %", cases[0].find("failure").get("message"))
        self.gate(self.policy(rule(at_most=0.026), inconclusive="warn"), "--junit", file)
        suites = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual([suites.get(key) for key in ("tests", "failures", "errors", "skipped")], ["1", "0", "0", "1"])
        self.assertIn("more tokens", suites.find("testsuite/testcase/skipped").get("message"))

    def test_a_gate_that_cannot_run_says_so_to_ci(self):
        junit, summary = self.path / "gate.xml", self.path / "summary.md"
        done = self.gate(self.policy(rule()), "--github", "--junit", junit, result=self.path / "gone",
                         GITHUB_STEP_SUMMARY=str(summary))
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, "^::error title=gate::.*gone")
        self.assertEqual(xml.etree.ElementTree.parse(junit).getroot().get("errors"), "1")
        self.assertIn("gone: no such file", summary.read_text())

    def test_summary_is_appended(self):
        summary = self.path / "summary.md"
        summary.write_text("before\n")
        policy = self.policy(rule())
        self.gate(policy, "--summary", summary)
        self.assertRegex(summary.read_text(), r"^before\n### Gate policy: pass: the only judgement passes \(exit code 0\)\n")
        self.gate(policy, "--github", GITHUB_STEP_SUMMARY=str(summary))
        self.assertEqual(summary.read_text().count("### Gate"), 2)
        self.gate(policy, GITHUB_STEP_SUMMARY=str(summary))
        self.assertEqual(summary.read_text().count("### Gate"), 2, "not without being asked")
        done = self.gate(policy, "--summary", self.path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot be written", done.stderr)

    def test_outputs_that_would_overwrite_something_are_refused(self):
        policy, result = self.policy(rule()), self.result()
        other = self.path / "x.xml"
        for options, what in ((("--junit", policy), "is the policy as well"),
                              (("--summary", result / "results.json"), "is a result as well"),
                              (("--junit", self.path / "r" / ".." / "policy.yaml"), "is the policy as well"),
                              (("--junit", other, "--summary", other), "is what --junit writes as well"),
                              (("--junit", ""), "--junit: empty; expected a file"),
                              (("--summary", ""), "--summary: empty; expected a file"),
                              (("--baseline", ""), "--baseline: empty; expected a result")):
            before = policy.read_bytes(), (result / "results.json").read_bytes()
            self.expect_refused(self.gate(policy, *options, result=result), what)
            self.assertEqual((policy.read_bytes(), (result / "results.json").read_bytes()), before)
        self.assertFalse(other.exists())

    def test_an_output_that_cannot_be_written_is_no_pass(self):
        junit = self.path / "gate.xml"
        done = self.gate(self.policy(rule()), "--junit", junit, "--summary", self.path)
        self.expect_refused(done, "cannot be written")
        self.assertEqual(xml.etree.ElementTree.parse(junit).getroot().get("errors"), "1")

    def test_a_full_disk_behind_stderr_changes_no_exit_code(self):
        with open("/dev/full", "w") as full:
            for words, code in ((("gate", self.path / "gone", "--policy", self.policy(rule())), 3),
                                (("run", self.path / "gone.yaml"), 3), (("report", self.path / "gone"), 3),
                                (("inspect", self.path / "gone"), 3),
                                (("gate", self.result(), "--policy", self.policy(rule()), "--json"), 0)):
                done = subprocess.run([program.program(), *map(str, words)], stdout=subprocess.DEVNULL, stderr=full,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, code, words)

    def test_annotations(self):
        done = self.gate(self.policy(rule(at_most=0.01), rule(name="open", at_most=0.026, inconclusive="warn")),
                         "--github", GITHUB_STEP_SUMMARY="")
        self.assertEqual([line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("::")],
                         ["error title=regression%3A cost", "warning title=inconclusive%3A open"])

    def test_json(self):
        done = self.gate(self.policy(rule(at_most=0.026)), "--json")
        self.assertEqual(done.returncode, 2)
        told = json.loads(done.stdout)
        self.assertEqual(told["exit_code"], 2)
        self.assertEqual(told["judgements"][0]["word"], "inconclusive")
        self.assertEqual(told["judgements"][0]["needed"], 102161)
        self.assertIn("inconclusive", done.stderr, "the text is for people")

    def test_explain(self):
        done = self.gate(self.policy(rule(at_most=0.026)), "--explain")
        self.assertIn("rule: delta.perplexity_relative at most +2.6 %, 95 % confidence, inconclusive: fail", done.stdout)
        self.assertIn("tokens: 2,000; 102,161 decide four times in five", done.stdout)

    def test_parts_of_one_run(self):
        self.result(lambda r: r["config"].update(workloads=[{"name": "prose"}, {"name": "verse"}]))
        part = self.result(lambda r: (r["config"].update(workloads=[{"name": "prose"}, {"name": "verse"}]),
                                      r["workloads"][0].update(name="verse")), name="part")
        policy = self.policy(rule(workloads=["prose", "verse"]))
        self.assertEqual(program.call("gate", self.path / "r", part, "--policy", policy).returncode, 0)
        done = program.call("gate", part, "--policy", policy)
        self.assertEqual(done.returncode, 3)
        self.assertIn("the config has this workload, the results do not: a partial run", done.stdout)


class ReadyFilesTest(unittest.TestCase):
    """What configs/gates/ holds works as it stands."""

    # gate/: results of the demo (each arm's worst state error alone), and of tasks and generations of its checkpoint.
    def test_policies_run_on_real_results(self):
        results = pathlib.Path(__file__).parent / "gate"
        runs = [("demo", results / "demo.json"), ("tasks", results / "tasks.json"),
                ("release", results / "demo.json", "--baseline", results / "demo.json"),
                *(("served", study) for study in STUDIES),
                ("text", results / "demo.json"), ("text", STUDIES[1]),
                *(("release", study, "--baseline", study) for study in STUDIES)]
        self.assertEqual({policy.stem for policy in GATES.glob("*.yaml")}, {policy for policy, *_ in runs})
        for policy, result, *options in runs:
            with self.subTest(policy, result=result):
                done = program.call("gate", result, "--policy", GATES / f"{policy}.yaml", "--json", *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                judgements = json.loads(done.stdout)["judgements"]
                rules = yaml.safe_load((GATES / f"{policy}.yaml").read_text())["rules"]
                self.assertEqual({one["rule"]["name"] for one in judgements}, {rule["name"] for rule in rules})
                if policy == "release":
                    self.assertEqual({one["word"] for one in judgements}, {"pass"}, "nothing has changed")

    def test_the_served_policy_is_for_bfloat16(self):
        for study in STUDIES:
            self.assertEqual(json.loads((study / "results.json").read_text())["numerics"]["compute_dtype"], "bfloat16")
            done = program.call("gate", study, "--policy", GATES / "demo.yaml")
            self.assertEqual(done.returncode, 1, "float32's margins are not those of bfloat16")

    # A state error as of a bfloat16 ring that was meant to be float32; a divergence as of a bfloat16 state of an exact arm.
    def test_the_served_policy_notices(self):
        def numbers(study):
            results = json.loads((study / "results.json").read_text())
            text = next(one for one in results["workloads"] if one["name"] == "text")
            return results, text

        def state(results, text):
            next(one for one in text["state_errors"] if (one["arm"], one["depth"]) == ("replay-f32", "local"))[
                "relative_frobenius"] = 2e-3

        def divergence(results, text):
            text["divergence"]["replay-bf16"] = text["divergence"]["exact-bf16"]

        def overflow(results, text):
            next(one for one in text["storage_counts"] if one["arm"] == "replay-f16")["non_finite"] = 1

        for change, rule_name in ((state, "state error of a float32 state and ring"),
                                  (divergence, "divergence, narrower states"),
                                  (overflow, "values stored as infinity or NaN")):
            with tempfile.TemporaryDirectory() as folder:
                results, text = numbers(STUDIES[0])
                change(results, text)
                file = pathlib.Path(folder) / "results.json"
                file.write_text(json.dumps(results))
                done = program.call("gate", file, "--policy", GATES / "served.yaml")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(f"regression   {rule_name}: ", done.stdout)

    def test_a_stricter_policy_of_the_demo_fails(self):
        policy = (GATES / "demo.yaml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "strict.yaml"
            file.write_text(policy.replace("at_most: 1 %", "at_most: 0.2 %"))
            done = program.call("gate", pathlib.Path(__file__).parent / "gate" / "demo.json", "--policy", file)
            self.assertEqual(done.returncode, 1)
            self.assertIn("of arm 'exact-bf16' on 'heldout': +0.40 [+0.25, +0.62] % (95 %), expected at most +0.2 %",
                          done.stdout)

    def commands(self, node):
        """Every command line that starts the program, from a workflow or job."""
        if isinstance(node, dict):
            node = list(node.values())
        if isinstance(node, list):
            return [line for part in node for line in self.commands(part)]
        return [line for line in str(node).splitlines() if line.startswith("build/release/bin/replayeval")]

    def test_workflows_are_yaml_and_speak_the_program_s_language(self):
        known = set(re.findall(r"--[a-z-]+", program.call("gate", "--help").stdout))
        for name, count in (("github-workflow.yml", 3), ("gitlab-ci.yml", 2)):
            commands = self.commands(yaml.safe_load((GATES / name).read_text()))
            self.assertEqual(len(commands), count, name)
            for command in commands:
                words = shlex.split(command)
                if words[1] == "run":
                    self.assertTrue((program.ROOT / words[2]).is_file(), words[2])
                    continue
                self.assertEqual(words[1], "gate")
                self.assertLessEqual({word for word in words if word.startswith("--")}, known)
                self.assertTrue((program.ROOT / words[words.index("--policy") + 1]).is_file())


if __name__ == "__main__":
    unittest.main()
