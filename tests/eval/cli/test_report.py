"""`replayeval report`: from results.json alone to a report and a table."""

import copy
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

METHOD = "paired bootstrap over 30 documents"
WORKLOAD = {
    "name": "prose",
    "kind": "perplexity",
    "data": {"sources": [{"name": "novel", "path": "novel.txt", "documents": 30, "bytes": 9000, "sha256": "a" * 64}],
             "context": 256, "stride": 256, "mode": "stepwise", "prompt": "decode", "tokens_scored": 2000,
             "documents": 30},
    "arms": {name: {"metrics": {"perplexity": {"value": value, "n": 2000}}, "seconds": 2.0, "tokens_per_second": 500.0}
             for name, value in (("exact", 20.0), ("half", 20.5))},
    "deltas": {"half": {"perplexity_relative": {"value": 0.025, "low": 0.02, "high": 0.03, "confidence": 0.95,
                                                "method": METHOD}}},
    "divergence": {"half": {"kl_mean": {"value": 0.001}, "kl_max": {"value": 0.5}, "same_top1": {"value": 0.99}}},
    "positions": [],
    "state_errors": [{"arm": "half", "depth": "gold", "layer": 0, "position": position, "relative_frobenius": 0.01,
                      "max_abs": 0.1, "cosine": 0.9999, "output_relative_error": 0.02, "head_relative_frobenius": [0.01]}
                     for position in (64, 256)],
    "storage_counts": [],
    "kernel_times": [],
    "seconds": 9.0,
}
RESULTS = {
    "schema_version": 1,
    "tool": {"name": "replayeval", "version": "0.1.0", "git": "abc", "build": "release"},
    "environment": {"cpu": "one", "cores": 2, "os": "Debian", "torch": "2.11.0", "date": "2026-01-01T00:00:00Z"},
    "config": {"name": "small", "seed": 1},
    "checkpoint": {"path": "somewhere", "sha256": "b" * 64, "model_type": "nemotron_h"},
    "numerics": {"compute_dtype": "float32"},
    "arms": [{"name": "exact", "executor": "exact", "state_storage": {"dtype": "float32", "overflow": "infinity"}},
             {"name": "half", "executor": "exact", "state_storage": {"dtype": "float16", "overflow": "saturate"}}],
    "baseline": "exact",
    "workloads": [WORKLOAD],
}


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="replayeval-report-")
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def result(self, name, change=lambda results: None):
        results = copy.deepcopy(RESULTS)
        change(results)
        (self.path / name).mkdir()
        (self.path / name / "results.json").write_text(json.dumps(results))
        return self.path / name

    def expect_refused(self, message, *arguments):
        before = sorted(self.path.rglob("*"))
        done = program.call("report", *arguments)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(self.path.rglob("*")), before, "nothing may be written")

    def test_table_and_report(self):
        result = self.result("r")
        done = program.call("report", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("perplexity rises much: ΔPPL +2.50 % [+2.00, +3.00] (95 %)", " ".join(done.stdout.split()))
        report = (result / "report.md").read_text()
        self.assertIn(METHOD, report)
        self.assertIn("figures/prose-state_error_gold.svg", report)
        self.assertIn("<svg", (result / "figures" / "prose-state_error_gold.svg").read_text())

    def test_a_file_or_its_folder(self):
        result = self.result("r")
        table = program.call("report", result).stdout
        (result / "report.md").unlink()
        self.assertEqual(program.call("report", result / "results.json").stdout, table)
        self.assertTrue((result / "report.md").exists())

    def test_output_elsewhere(self):
        result = self.result("r")
        self.assertEqual(program.call("report", result, "--output", self.path / "new" / "place").returncode, 0)
        self.assertTrue((self.path / "new" / "place" / "report.md").exists())
        self.assertFalse((result / "report.md").exists())

    def test_parts_of_one_run_are_merged(self):
        first = self.result("first")
        second = self.result("second", lambda results: results["workloads"][0].update(name="poetry"))
        merged = self.path / "merged"
        done = program.call("report", first, second, "--output", merged)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [workload["name"] for workload in json.loads((merged / "results.json").read_text())["workloads"]]
        self.assertEqual(names, ["prose", "poetry"])
        self.assertIn("## poetry", (merged / "report.md").read_text())

    def test_parts_come_in_the_order_of_the_config(self):
        def part(name):
            def change(results):
                results["config"]["workloads"] = [{"name": "poetry"}, {"name": "prose"}, {"name": "lists"}]
                results["workloads"][0]["name"] = name
            return self.result(name, change)

        parts = [part(name) for name in ("lists", "prose", "poetry")]
        self.assertEqual(program.call("report", *parts, "--output", self.path / "merged").returncode, 0)
        merged = json.loads((self.path / "merged" / "results.json").read_text())["workloads"]
        self.assertEqual([workload["name"] for workload in merged], ["poetry", "prose", "lists"])

    def test_parts_of_a_renamed_config_are_merged(self):
        first = self.result("first")

        def rename(results):
            results["config"]["name"] = "renamed"
            results["workloads"][0]["name"] = "poetry"

        done = program.call("report", first, self.result("second", rename), "--output", self.path / "merged")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_output_that_cannot_be_written(self):
        for more in ((), ("--json",)):
            with open("/dev/full", "w") as full:
                done = program.call("report", self.result("r" + "".join(more)), *more, stdout=full)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr.splitlines()[-1],
                             "replayeval: standard output: cannot be written: No space left on device")

    def test_what_cannot_be_merged(self):
        first = self.result("first")
        second = self.result("second", lambda results: results["workloads"][0].update(name="poetry"))
        other = self.result("other", lambda results: results["config"].update(seed=2))
        self.expect_refused("expected --output DIR", first, second)
        self.expect_refused("config differs at 'config/seed'", first, other, "--output", self.path / "merged")
        self.expect_refused("workload 'prose' is in both", first, first, "--output", self.path / "merged")
        (first / "identity.json").write_text("{}")  # as a run leaves it
        for parts in ((first, second), (second,)):
            before = {path: path.read_bytes() for path in first.iterdir()}
            self.expect_refused("first: is the result folder of a run; expected another one", *parts, "--output", first)
            self.assertEqual({path: path.read_bytes() for path in first.iterdir()}, before)
        self.assertEqual(program.call("report", first, "--output", first).returncode, 0)

    def test_runs_that_are_no_parts_of_one_another(self):
        """Two runs of one checkpoint with other workloads: a page of both, and a folder a run of what is of one run."""
        first = self.result("first", lambda results: results["config"].update(name="texts"))
        other = self.result("other", lambda results: results["config"].update(name="more texts", seed=2))
        target = self.path / "both"
        done = program.call("report", first, other, "--format", "latex,markdown", "--html", "--output", target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in target.iterdir()), ["more_texts", "report.html", "texts"])
        for name in ("texts", "more_texts"):
            self.assertIn("## prose", (target / name / "report.md").read_text())
            self.assertIn("prose-quality", (target / name / "latex" / "paper.tex").read_text())
            self.assertIn("<svg", (target / name / "figures" / "prose-state_error_gold.svg").read_text())
        said = next(line for line in done.stderr.splitlines() if "not parts of one run" in line)
        self.assertIn("config differs at 'config/seed'; each run is reported in a folder of its own in", said)
        self.expect_refused("config differs at 'config/seed'; with --format (html, markdown, latex) several runs are",
                            first, other, "--output", self.path / "none")
        self.expect_refused("config differs at 'config/seed'; --json prints one", first, other, "--json", "--format",
                            "latex", "--output", self.path / "none")

    def test_folders_of_runs_side_by_side_are_their_own(self):
        def named(name, seed):
            return lambda results: results["config"].update(name=name, seed=seed)
        first, alike = self.result("first", named("a b", 1)), self.result("alike", named("a_b", 2))
        self.expect_refused("a_b: the folder of both a b and a_b; expected runs whose configs have other names", first,
                            alike, "--format", "latex", "--output", self.path / "both")
        other = self.result("other", named("third", 3))
        taken = self.result("third", named("unlike", 4))
        (taken / "identity.json").write_text("{}")  # as a run leaves it
        self.expect_refused("third: is the result folder of another run; expected another --output", first, other,
                            "--format", "latex", "--output", self.path)

    def test_bad_results(self):
        self.expect_refused("no such file", self.path / "absent")
        (self.path / "empty").mkdir()
        self.expect_refused("holds no results.json", self.path / "empty")
        (self.path / "odd" / "results.json").mkdir(parents=True)
        self.expect_refused("results.json: is a folder; expected a JSON file", self.path / "odd")
        self.expect_refused("/dev/zero: is a device, pipe or socket; expected a JSON file", "/dev/zero")
        for key, value, said in (("warnings", 5, "found 5, expected array"), ("documents", "x", 'found "x", expected integer'),
                                 ("metrics", [5], "/0: found 5, expected object"),
                                 ("answers", {"arm": {"acc": 5}}, "/arm/acc: found 5, expected object"),
                                 ("temperature", [], "found [], expected number"),
                                 ("equivalence", {"arm": {"acc": {}}}, 'key "equivalent" is missing')):
            odd = self.result("odd-" + key, lambda results, k=key, v=value: results["workloads"][0]["data"].update({k: v}))
            self.expect_refused(f"/workloads/0/data/{key}", odd)
            self.expect_refused(said, odd)
        broken = self.result("broken", lambda results: results["workloads"][0].pop("seconds"))
        self.expect_refused('/workloads/0: key "seconds" is missing', broken)
        newer = self.result("newer", lambda results: results.update(schema_version=2))
        self.expect_refused("/schema_version: found 2, this program reads 1", newer)

    def test_json(self):
        printed = json.loads(program.call("report", self.result("r"), "--json").stdout)
        self.assertEqual(printed, RESULTS)

    def test_a_hand_edited_delta_is_refused(self):
        edited = self.result("r", lambda results: results["workloads"][0]["deltas"]["half"]["perplexity_relative"].update(
            value=0.001, low=0.0, high=0.002))
        said = (f"{edited}: /workloads/0/deltas/half/perplexity_relative/value: found 0.001, expected 0.0249")
        for options in ((), ("--json",), ("--html",), ("--format", "latex"), ("--output", self.path / "new")):
            self.expect_refused(said, edited, *options)
            self.expect_refused("--allow-inconsistent reports them with that warning", edited, *options)
        other = self.result("other", lambda results: results["workloads"][0].update(name="poetry"))
        self.expect_refused(said, other, edited, "--output", self.path / "merged")

    def test_a_hand_edited_delta_may_be_asked_for(self):
        def edit(results):
            results["workloads"][0]["deltas"]["half"]["perplexity_relative"].update(value=0.001, low=0.0, high=0.002)

        allowed = ("--allow-inconsistent", "--format", "markdown,html,latex", "--output")
        for change, warned in ((edit, True), (lambda results: None, False)):
            folder = self.result(f"warned-{warned}", change)
            out = self.path / f"out-{warned}"
            done = program.call("report", folder, *allowed, out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("replayeval: warning: " + str(folder) + ": /workloads/0/deltas" in done.stderr, warned)
            tables = [table for table in (out / "latex").glob("*.tex") if table.name != "paper.tex"]
            self.assertTrue(tables)
            for file in [out / "report.md", out / "report.html", *tables, *(out / "latex").glob("*.md")]:
                text = " ".join(file.read_text().split()).lower()
                self.assertEqual("do not rely on th" in text, warned, file)
                self.assertEqual("found 0.001, expected 0.0249" in text, warned, file)
        page = (self.path / "out-True" / "report.html").read_text()
        self.assertLess(page.index("Do not rely on this page"), page.index('id="verdict"'), "it stands above the verdict")

    def test_unwritable_output(self):
        (self.path / "file").write_text("")
        self.expect_refused("cannot be made", self.result("r"), "--output", self.path / "file" / "sub")


if __name__ == "__main__":
    unittest.main()
