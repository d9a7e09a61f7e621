"""report.html in a browser: stored results of real runs, at the widths of a phone and a desk, light and dark."""

import copy
import html.parser
import json
import math
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "eval" / "cli"))
sys.path.insert(0, str(HERE))
import browser  # noqa: E402
import program  # noqa: E402
from more_arms import add_arms  # noqa: E402

DATA = HERE / "data"
CHECKS = (HERE / "page_checks.js").read_text()
VOID = {"meta", "link", "br", "hr", "img", "input", "base", "col", "embed", "source", "track", "wbr", "area"}
# Drawings that would be cut at the edge of a sheet (A4 at 96 dots an inch, its margins taken off).
TOO_TALL = ("[...document.querySelectorAll('svg')].filter((svg) => svg.getBoundingClientRect().height > 1000)"
            ".map((svg) => svg.id)")
HOSTILE = '<script>alert(1)</script>"\'><img src=x onerror=alert(2)></style></svg></title>&lt;]]>\x01'


def report(folder, *arguments):
    """The path of the report.html that the program writes into `folder`."""
    done = program.call("report", *arguments, "--html", "--output", folder)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return pathlib.Path(folder) / "report.html"


class Elements(html.parser.HTMLParser):
    """The page's elements in order; every one has to be closed, in order, by an end tag of its own."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.faults = [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"{name} is never closed" for name in self.open]

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        keys = [key for key, _ in attributes]
        if len(keys) != len(set(keys)):
            self.faults.append(f"{tag} at {self.getpos()}: an attribute twice")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes something else")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="replayeval-html-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)

    def changed(self, change, name="nemotron-h"):
        results = json.loads((DATA / f"{name}.json").read_text())
        change(results)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        (folder / "results.json").write_text(json.dumps(results))
        return folder

    def hostile(self):
        def change(results):
            text = json.dumps(results).replace('"exact-bf16"', json.dumps(HOSTILE))
            results.clear()
            results.update(json.loads(text))
            results["config"]["name"] = results["checkpoint"]["path"] = HOSTILE
            for workload in results["workloads"]:
                if workload["kind"] in ("recall", "generation"):
                    workload["name"] += HOSTILE
            results["config"].pop("workloads")
        return change

    def page_of(self, change):
        folder = self.changed(change)
        return report(folder, folder).read_text()


class Pages(Case):
    """What the program writes, without a browser."""

    def test_asks_nobody_for_anything(self):
        page = self.page_of(lambda results: None)
        for part in ("http:", "https:", "<script", "src=", "@import", "url("):
            self.assertNotIn(part, page)

    def test_tables_say_what_markdown_says(self):
        folder = self.changed(lambda results: None)
        page = report(folder, folder).read_text()
        done = program.call("report", folder, "--format", "markdown")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in (folder / "report.md").read_text().splitlines() if line.startswith("| `exact-bf16`")]
        self.assertGreater(len(rows), 20)
        for row in rows:
            cells = [cell.strip() for cell in row.replace("\\", "").split("|")[2:-1]]
            for cell in cells:
                self.assertIn(cell.strip("`*").replace("<", "&lt;"), page, row)

    def test_what_was_not_measured_has_no_section(self):
        def strip(results):
            results["workloads"] = [w for w in results["workloads"] if w["name"] == "heldout"]
            results["config"].pop("workloads")
            results.pop("task_families", None)
            workload = results["workloads"][0]
            for key in ("positions", "state_errors", "storage_counts", "kernel_times"):
                workload[key] = []
            workload["divergence"] = {}
            for arm in workload["arms"].values():
                arm.pop("state_bytes", None)
                arm.pop("ring_bytes", None)
        page = self.page_of(strip)
        self.assertIn("<h2>Findings</h2>", page)
        for title in ("Tasks", "Memory", "Decode speed", "Quality against speed"):
            self.assertNotIn(f"<h2>{title}</h2>", page)
        for title in ("By position", "State error", "Divergence", "Stored states"):
            self.assertNotIn(title + " in" if title == "By position" else f">{title}", page)
        self.assertNotIn("<svg", page)

    def test_a_part_of_a_config_says_so(self):
        page = self.page_of(lambda results: results["workloads"].pop(1))
        self.assertIn("recall is not there: this result is of a part of its config.", page)

    def test_runs_side_by_side(self):
        target = self.path / "two"
        page = report(target, DATA / "nemotron-h.json", DATA / "qwen3-next.json").read_text()
        for text in ("<h2>nemotron-h</h2>", "<h2>qwen3-next</h2>", "tiny-nemotron-h", "tiny-qwen3-next", "L = 32"):
            self.assertIn(text, page)
        self.assertEqual(page.count("<h3>heldout</h3>"), 2, "a fold a workload, in the section of its run")
        self.assertEqual([file.name for file in target.iterdir()], ["report.html"], "these cannot be merged")

    def test_runs_are_grouped_by_checkpoint(self):
        def renamed(name):
            return lambda results: results["config"].update(name=name)
        page = report(self.path / "grouped", self.changed(renamed("first"), "qwen3-next"), DATA / "nemotron-h.json",
                      self.changed(renamed("second"), "qwen3-next")).read_text()
        contents = page.split("<nav")[1].split("</nav>")[0]
        groups = contents.split('<li class="group">')[1:]
        self.assertEqual([group.split("</span>")[0] for group in groups],
                         ["<span>tiny-qwen3-next (qwen3_next)", "<span>tiny-nemotron-h (nemotron_h)"])
        self.assertIn('<a href="#run0">first</a>', groups[0])
        self.assertIn('<a href="#run1">second</a>', groups[0])
        self.assertIn('<a href="#run2">nemotron-h</a>', groups[1])
        self.assertIn('<a href="#run2-workload0">heldout</a>', groups[1])
        self.assertLess(contents.index("#summary"), contents.index("#run0"))
        self.assertLess(contents.index("#run2"), contents.index("#provenance"))
        titles = [part.split("</h2>")[0] for part in page.split("<h2>")[1:]]
        self.assertEqual(titles[-4:], ["first", "second", "nemotron-h", "Provenance"])
        self.assertIn('id="verdict">', page.split("<nav")[0], "the verdict is first")
        alone = report(self.path / "alone", DATA / "nemotron-h.json").read_text()
        self.assertNotIn("Summary</h2>", alone)
        self.assertIn("<h2>heldout (perplexity)</h2>", alone, "a single run needs no groups")
        self.assertNotIn('class="part', alone)

    def test_the_summary_counts_what_the_findings_say(self):
        def change(results):
            results["config"]["name"] = "worse"
            for workload in results["workloads"]:
                if workload["kind"] == "perplexity":
                    workload["deltas"]["replay-bf16"]["perplexity_relative"].update(value=0.025, low=0.02, high=0.03)
                    workload["deltas"]["exact-bf16"]["perplexity_relative"].update(value=5e-5, low=4e-5, high=6e-5)
        page = report(self.path / "counted", self.changed(change), DATA / "qwen3-next.json",
                      "--allow-inconsistent").read_text()
        summary = page.split('<section id="summary">')[1].split("</section>")[0]
        self.assertEqual(summary.count("<table"), 2, "one a run")
        own = summary.split("<h3>worse</h3>")[1].split("</table>")[0]
        row = next(row for row in own.split("<tr>") if "heldout (perplexity)</th>" in row)
        self.assertIn('<td class=" bad">2 (1 a trace)</td>', row)
        found = page.split('<section id="findings">')[1].split("</section>")[0].split("<details>")
        self.assertIn("worse, heldout: <strong>replay-bf16</strong>: perplexity rises much", found[0], "beyond noise")
        self.assertLess(found[0].index("replay-bf16"), found[0].index("by a trace"), "the largest first")
        self.assertEqual(len(found), 3, "all of a run's are behind a click")

    def test_runs_of_one_name_are_told_apart_by_their_folders(self):
        target = self.path / "alike"
        for day, seed in (("monday", 1), ("tuesday", 2)):
            results = json.loads((DATA / "qwen3-next.json").read_text())
            results["config"]["seed"] = seed
            (self.path / day).mkdir()
            (self.path / day / "results.json").write_text(json.dumps(results))
        page = report(target, self.path / "monday", self.path / "tuesday").read_text()
        self.assertIn("<h1>ReplayEval: qwen3-next (monday), qwen3-next (tuesday)</h1>", page)
        page = report(self.path / "four", *[self.path / day for day in ("monday", "tuesday")], DATA / "nemotron-h.json",
                      self.changed(lambda results: results["config"].update(name="other"))).read_text()
        names = [json.loads((DATA / f"{name}.json").read_text())["checkpoint"]["path"].split("/")[-1]
                 for name in ("qwen3-next", "nemotron-h")]
        self.assertIn(f"<h1>ReplayEval: 4 runs of {names[0]}, {names[1]}</h1>", page, "of many runs the checkpoints")

    def test_the_lead_has_the_tone_of_what_was_found(self):
        def change(low, high, value):
            def of_all(results):
                workload = results["workloads"][0]
                self.assertEqual(workload["kind"], "perplexity")
                baseline = workload["arms"]["exact-f32"]["metrics"]["mean_log_likelihood"]["value"]
                for arm, deltas in workload["deltas"].items():
                    if arm != "exact-f32-again":  # the control stays what it is
                        mean = baseline - math.log1p(value)
                        workload["arms"][arm]["metrics"] = {"mean_log_likelihood": {"value": mean},
                                                            "perplexity": {"value": math.exp(-mean)}}
                        deltas.clear()
                        deltas["perplexity_relative"] = {"value": value, "low": low, "high": high, "confidence": 0.95,
                                                         "method": "paired bootstrap over 30 documents"}
                        workload["divergence"][arm]["kl_max"]["value"] = 0.5
                workload["positions"] = []
                results["workloads"] = [workload]
                results["config"].pop("workloads")
                results.pop("task_families", None)
            return of_all
        for low, high, value, tone, said in ((-0.02, 0.02, 0.001, "neutral", "Nothing can be said of 2 comparisons"),
                                             (-0.03, -0.02, -0.025, "warning", "2 move it to the better"),
                                             (-1e-4, 1e-4, 1e-5, "good", "2 show no measurable change"),
                                             (0.02, 0.03, 0.025, "bad", "measurable quality in 2 of 2 comparisons")):
            lead = self.page_of(change(low, high, value)).split('id="verdict">')
            self.assertTrue(lead[0].endswith(f'<p class="verdict {tone}" '), lead[0][-40:])
            self.assertIn(said, lead[1].split("</p>")[0])

    def test_parts_of_one_run_become_one(self):
        def keep(names):
            def change(results):
                results["workloads"] = [w for w in results["workloads"] if w["name"] in names]
                results.pop("task_families", None)
            return change
        parts = [self.changed(keep(names)) for names in (["animals"], ["cloze", "heldout"])]
        target = self.path / "parts"
        page = report(target, *parts).read_text()
        self.assertIn("<h1>ReplayEval: nemotron-h</h1>", page)
        self.assertIn("all, by document", page, "tasks of both parts are taken together")
        self.assertTrue((target / "results.json").exists())

    def test_memory_and_benchmarks(self):
        folder = self.changed(lambda results: None)
        page = report(folder, folder, "--memory", "3GiB,1 TiB", "--bench", DATA / "bench-model.json", "--bench",
                      DATA / "bench-kernels.json").read_text()
        workload = json.loads((folder / "results.json").read_text())["workloads"][0]
        arm = workload["arms"]["replay-bf16"]
        held = 3 * 2**30 // (arm["state_bytes"] + arm["ring_bytes"])
        self.assertIn("fit in 3.0 GiB", page)
        self.assertIn("fit in 1.0 TiB", page)
        self.assertIn(f">{held:,}<", page)
        self.assertIn("whole-model decoding, batch 8", page)
        row = json.loads((DATA / "bench-kernels.json").read_text())
        share = row["rows"][0]["exact"]["bytes"] / row["rows"][0]["exact"]["microseconds"] * 1e6
        self.assertIn(f">{100 * share / row['read_bytes_per_second']:.0f} %<", page)

    def test_kernel_benchmarks_of_one_layer_stand_in_one_table(self):
        folder = self.changed(lambda results: None)
        bench = json.loads((DATA / "bench-kernels.json").read_text())
        arguments = []
        for length, form in ((16, "inputs"), (4, "inputs"), (32, "inputs"), (8, "deltas")):
            bench["buffer_len"], bench["ring_form"] = length, form
            rows = [row for row in bench["rows"] if length == 16 or row["batch"] == 4]
            file = self.path / f"kernels-{form}-L{length}.json"
            file.write_text(json.dumps({**bench, "rows": rows}))
            arguments += ["--bench", file]
        page = report(folder, folder, *arguments).read_text()
        headings = [text.split("</h3>")[0] for text in page.split("<h3>Kernels: ")[1:]]
        self.assertEqual(headings, ["mamba2, L = 4, 8, 16, 32, bfloat16 ring of deltas, bfloat16 ring of inputs; "
                                    + bench["device"]])
        section = page.split("<h3>Kernels: ")[1].split("</section>")[0]
        head, body = section.split("</thead>")
        titles = [part.split("</th>")[0] for part in head.split('scope="col">')[1:]]
        self.assertEqual(titles, ["L", "ring", "state", "batch", "exact, µs [min, max]", "of roofline",
                                  "replay, µs [min, max]", "of roofline", "bytes, replay / exact", "speedup",
                                  "mixed positions, µs [min, max]", "speedup, mixed"])
        self.assertEqual([row.split("<")[0] for row in body.split('scope="row">')[1:]],
                         ["8"] * 2 + ["4"] * 2 + ["16"] * 6 + ["32"] * 2)
        row = bench["rows"][0]
        self.assertIn(f">{row['exact']['microseconds'] / row['replay_mixed']['microseconds']:.3f}×<", body)
        self.assertIn("head_dim 64, num_groups 8, num_heads 8, state_size 128", section)
        for id in ("kernels0-speedup", "kernels0-2-speedup", "kernels0-2-lengths"):
            self.assertIn(f'id="{id}"', section)
        self.assertNotIn('id="kernels0-lengths"', section, "one length is no curve")
        self.assertIn("bfloat16 ring of inputs, L = 16", section)
        twice = report(folder, folder, *arguments[:2], *arguments[:2]).read_text()
        self.assertEqual(twice.count("<h3>Kernels: "), 2, "what was measured twice is not mixed up")

    def test_kernel_benchmarks_without_mixed_positions_have_no_column_of_them(self):
        folder = self.changed(lambda results: None)
        bench = json.loads((DATA / "bench-kernels.json").read_text())
        for row in bench["rows"]:
            del row["replay_mixed"]
        (self.path / "older.json").write_text(json.dumps(bench))
        self.assertNotIn("ixed positions", report(folder, folder, "--bench", self.path / "older.json").read_text())

    def test_benchmarks_say_what_timed_them(self):
        folder = self.changed(lambda results: None)
        bench = json.loads((DATA / "bench-kernels.json").read_text())
        bench["tool"] = {"name": "replayeval", "version": "0.1.0", "git": "0123abcd", "build": "release, CUDA"}
        bench["environment"] = {"date": "2026-12-01T03:40:00Z", "gpu": {"name": "x"}}
        file = self.path / "dated.json"
        file.write_text(json.dumps(bench))
        older = self.path / "undated.json"
        older.write_text((DATA / "bench-kernels.json").read_text())
        page = report(folder, folder, "--bench", file, "--bench", older).read_text()
        provenance = page.split('<section id="provenance">')[1]
        for part in ('row">dated.json<', "<code>0123abcd</code>", "<code>release, CUDA</code>",
                     "<code>2026-12-01T03:40:00Z</code>", "kernels, mamba2, L = 16, bfloat16 ring of inputs"):
            self.assertIn(part, provenance)
        self.assertEqual(provenance.split("undated.json")[1].split("</tr>")[0].count(">–<"), 3)
        for key, wrong, message in (("tool", {"git": 3}, "dated.json: /tool/git: expected a text"),
                                    ("environment", 3, "dated.json: /environment: expected an object")):
            file.write_text(json.dumps({**bench, key: wrong}))
            self.refused(message, folder, "--html", "--bench", file)

    def test_only_decode_speed_is_drawn_against_quality(self):
        def scored_alone(results):
            results["workloads"] = [w for w in results["workloads"] if w["kind"] == "perplexity"]
            results["config"].pop("workloads")
            results.pop("task_families", None)
        title, folder = "<h2>Quality against speed</h2>", self.changed(scored_alone)
        self.assertNotIn(title, report(folder, folder).read_text(), "how fast blocks are scored is not decode speed")
        bench = json.loads((DATA / "bench-model.json").read_text())
        file = self.path / "speed.json"

        def page_with(change):
            changed = copy.deepcopy(bench)
            change(changed)
            file.write_text(json.dumps(changed))
            return report(folder, folder, "--bench", file).read_text()

        own = page_with(lambda changed: None)
        self.assertIn("Decode speed: whole-model decoding, batch 8, AMD EPYC.", own)

        def larger(changed):  # another model of the architecture; arms are told by what they are
            changed["parameters"] = 8000000000
            changed["arms"] = [arm for arm in changed["arms"] if arm["name"] in ("exact-f32", "replay-bf16")]
            changed["rows"] = [row for row in changed["rows"] if row["arm"] in ("exact-f32", "replay-bf16")]
            changed["arms"][1]["name"] = "fast"
            for row in changed["rows"]:
                row["arm"] = row["arm"].replace("replay-bf16", "fast")
        page = page_with(larger)
        self.assertIn("whole-model decoding of another nemotron_h of 8,000,000,000 parameters, batch 8, AMD EPYC", page)
        plot = page.split('id="pareto0-0"')[1].split("</figure>")[0]
        self.assertIn("replay-bf16", plot)
        self.assertNotIn("exact-bf16", plot)

        def other_rings(changed):
            for arm in changed["arms"]:
                if "buffer_len" in arm:
                    arm["buffer_len"] = 4
            changed["arms"] = [arm for arm in changed["arms"] if arm["name"] != "exact-bf16"]
        self.assertNotIn(title, page_with(other_rings), "other arms of the same names are others")
        self.assertNotIn(title, page_with(lambda changed: changed.update(model_type="qwen3_next")))

    def test_recall_maps_say_how_many_answers(self):
        page = self.page_of(lambda results: None)
        map_of = page.split('<svg id="run0-workload1-recall0-1"')[1].split("</figure>")[0]
        self.assertRegex(map_of, r"<title>[\d,]+ tokens, (?:depth [\d.]+|anywhere): [-+\d.]+ points \[.*\], "
                         r"of \d+ answers in \d+ documents")
        self.assertRegex(map_of, r"<desc .*faint where the interval holds zero; .*answers a cell")
        self.assertRegex(page.split('<svg id="run0-workload1-recall0-1"')[0].rsplit("<figcaption>", 1)[1],
                         r"Faint: the interval holds zero\. .*nswers a cell")

    def test_a_benchmark_of_a_gpu_is_named_after_it(self):
        folder = self.changed(lambda results: None)
        bench = json.loads((DATA / "bench-model.json").read_text())
        bench["environment"]["gpu"] = {"name": "Some GPU", "memory_bytes": 1}
        (self.path / "gpu.json").write_text(json.dumps(bench))
        self.assertIn("Some GPU", report(folder, folder, "--bench", self.path / "gpu.json").read_text())

    def test_teacher_forced_scoring_has_its_table(self):
        folder = self.changed(lambda results: None)
        bench = json.loads((DATA / "bench-model.json").read_text())
        bench.pop("rows")
        bench["scoring"] = {"sequences": 16, "tokens": 2048, "block": 256, "tokens_per_second": 15752.8,
                            "share": {"mixers": 0.235, "products": 0.637}}
        (self.path / "scoring.json").write_text(json.dumps(bench))
        page = report(folder, folder, "--bench", self.path / "scoring.json").read_text()
        self.assertIn("Teacher-forced scoring: ", page)
        self.assertIn("15,753 tokens/s", page)
        self.assertIn("63.7 %", page)
        bench["scoring"]["share"]["products"] = 1.5
        (self.path / "scoring.json").write_text(json.dumps(bench))
        self.refused("scoring.json: /scoring/share/products: expected a number from 0 to 1", folder, "--html", "--bench",
                     self.path / "scoring.json")

    def test_what_is_refused(self):
        folder = self.changed(lambda results: None)
        before = sorted(folder.iterdir())
        bad = self.path / "bad.json"
        bench = json.loads((DATA / "bench-kernels.json").read_text())
        wrong = copy.deepcopy(bench)
        wrong["rows"][1]["replay"]["microseconds"] = 0
        for text, message in (("{", "bad.json: is not JSON"), ("{}", "bad.json: expected what `bench kernels`"),
                              (json.dumps(wrong), "bad.json: /rows/1/replay/microseconds: expected a number above 0"),
                              (json.dumps({**bench, "rows": 3}), "bad.json: /rows: expected a list"),
                              (json.dumps({"family": "x"}), 'bad.json: /: key "device" is missing')):
            with self.subTest(message):
                bad.write_text(text)
                self.refused(message, folder, "--html", "--bench", bad)
        self.refused("no such file", folder, "--html", "--bench", self.path / "nowhere")
        for memory in ("0", "80 gigs", "-1GiB", "nan", "99999999999999999999GiB", "8GiB,,24GiB", "8GiB,"):
            self.refused("no amount of memory; expected ", folder, "--html", "--memory=" + memory)
        self.refused("expected --output DIR", DATA / "nemotron-h.json", DATA / "qwen3-next.json", "--html")
        self.assertEqual(sorted(folder.iterdir()), before, "nothing may be written")

    def test_formats_add_up(self):
        for arguments in (("--html", "--format", "markdown"), ("--format", "markdown", "--html"), ()):
            folder = self.changed(lambda results: None)
            done = program.call("report", folder, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(file.name for file in folder.glob("report.*")), ["report.html", "report.md"])
        folder = self.changed(lambda results: None)
        program.call("report", folder, "--html")
        self.assertEqual([file.name for file in folder.glob("report.*")], ["report.html"])

    def test_what_only_html_shows_is_said(self):
        folder = self.changed(lambda results: None)
        done = program.call("report", folder, "--format", "markdown", "--bench", DATA / "bench-model.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: --bench: only the HTML report shows it", done.stderr)
        self.assertNotIn("warning", program.call("report", folder, "--html", "--memory", "1GiB").stderr)

    def test_a_stored_baseline_has_its_section(self):
        def change(results):
            workload = results["workloads"][0]
            workload["against"] = [{"arm": "replay-bf16", "stored_arm": "exact-f32",
                                    "deltas": {"perplexity_relative": {"value": 0.0123, "low": 0.0101, "high": 0.0145,
                                                                       "confidence": 0.95, "method": "bootstrap"}},
                                    "divergence": {"kl_mean": {"value": 0.00271}}}]
            workload["data"]["against"] = {"tool": {"git": "abc123"}, "environment": {"date": "2026-11-01"},
                                           "form": "log_probs", "arms": [], "checkpoint": {}, "sha256": "0" * 64}
        page = self.page_of(change)
        self.assertIn("<h3>Against the stored baseline of abc123 (2026-11-01, log-probabilities)</h3>", page)
        self.assertIn("[+1.01, +1.45]", page)
        self.assertNotIn("Against the stored", self.page_of(lambda results: None))

    def refused(self, message, *arguments):
        done = program.call("report", *arguments)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_names_stay_text(self):
        page = self.page_of(self.hostile())
        self.assertNotIn("<script", page)
        self.assertNotIn("<img", page)
        self.assertNotIn("\x01", page)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", page)
        self.assertEqual(page.count("</style>"), 1)

    def test_every_element_is_closed_in_order(self):
        for change in (lambda results: None, self.hostile()):
            page = self.page_of(change)
            self.assertEqual(Elements(page).faults, [])
            drawings = ["<svg" + rest.split("</svg>")[0] + "</svg>" for rest in page.split("<svg")[1:]]
            self.assertGreater(len(drawings), 10)
            for drawing in drawings:
                xml.etree.ElementTree.fromstring(drawing)


@unittest.skipUnless(browser.find(), "needs Chromium")
class InABrowser(Case):
    """Laid out by Chromium."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = cls.enterClassContext(browser.Browser())
        cls.everything = report(cls.path / "everything", DATA / "nemotron-h.json", DATA / "qwen3-next.json", "--bench",
                                DATA / "bench-model.json", "--bench", DATA / "bench-kernels.json")

    def check(self, page, width, dark):
        self.browser.open(page, width, dark)
        self.assertEqual(self.browser.evaluate(CHECKS), [])
        self.assertEqual(self.browser.complaints(), [])

    def test_phone_and_desk_light_and_dark(self):
        for width in (390, 1280):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.check(self.everything, width, dark)
                    ground = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
                    self.assertEqual(ground, "rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")

    def test_every_kind_of_figure_is_there(self):
        self.browser.open(self.everything, 1280)
        ids = self.browser.evaluate("[...document.querySelectorAll('svg')].map((svg) => svg.id)")
        for kind in ("position0", "kl", "dp0", "state-gold", "state-propagated", "heads1", "recall0-0", "recall1-4",
                     "signs", "agreement"):
            self.assertTrue(any(id.endswith("-" + kind) for id in ids), kind)
        for id in ("runs0", "forest0", "pareto0-0", "pareto1-0", "model0-speedup", "kernels0-speedup",
                   "kernels0-roofline"):
            self.assertIn(id, ids)
        titles = self.browser.evaluate("[...document.querySelectorAll('h2')].map((title) => title.textContent)")
        self.assertEqual(titles[:8], ["Summary", "Findings", "What was compared", "Side by side",
                                      "Quality against speed", "Tasks", "Memory", "Decode speed"])
        self.assertEqual(titles[-1], "Provenance")

    def test_the_checks_notice(self):
        """What the checks are for, planted one by one."""
        faults = {
            "the page scrolls sideways": "document.querySelector('main').style.width = '3000px'",
            "too wide": "document.querySelector('h2').style.width = '3000px'",
            "id twice": "document.querySelectorAll('svg')[1].id = document.querySelector('svg').id",
            "no title": "document.querySelector('svg > title').textContent = ''",
            "no desc": "document.querySelector('svg > desc').remove()",
            "empty": "document.querySelectorAll('svg .mark').forEach((mark) => mark.remove())",
            "texts overlap": "document.querySelectorAll('svg text').forEach((text) => text.setAttribute('y', 50))",
            "text outside": "document.querySelector('svg text').setAttribute('x', 355)",
            "a mark outside": "document.querySelector('svg > .mark').setAttribute('transform', 'translate(900 0)')",
            "a level of headings": "document.querySelector('h2').outerHTML = '<h4>x</h4>'",
            "contrast": "document.querySelector('.verdict').style.color = '#999'",
        }
        for complaint, fault in faults.items():
            with self.subTest(complaint):
                self.browser.open(self.everything, 390)
                self.browser.evaluate(fault + "; 0")
                self.assertTrue(any(complaint in said for said in self.browser.evaluate(CHECKS)), complaint)
        self.browser.evaluate("console.error('oh'); fetch('https://nowhere.invalid/').catch(() => 0).then(() => 0)")
        self.assertIn("oh", self.browser.complaints())

    def test_a_link_opens_what_is_folded(self):
        self.browser.open(self.everything, 1280)
        part = "document.getElementById('run1-workload0')"
        self.assertFalse(self.browser.evaluate(part + ".checkVisibility()"))
        self.browser.evaluate("document.querySelector('nav a[href=\"#run1-workload0\"]').click()")
        self.browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.assertTrue(self.browser.evaluate(part + ".checkVisibility()"))
        self.assertLess(abs(self.browser.evaluate(part + ".getBoundingClientRect().top")), 100, "and goes there")

    def test_what_is_folded_is_open_on_paper(self):
        self.browser.open(self.everything, 794)
        hidden = ("[...document.querySelectorAll('main details > :not(summary), main details td')]"
                  ".filter((part) => !part.checkVisibility() || part.getBoundingClientRect().height === 0).length")
        self.assertGreater(self.browser.evaluate(hidden), 100)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.browser.evaluate(hidden), 0)

    def test_paper(self):
        self.browser.open(self.everything, 794, dark=True)  # A4 at 96 dots an inch
        self.browser.call("Emulation.setEmulatedMedia", media="print",
                          features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(self.browser.evaluate(CHECKS), [])
        self.assertEqual(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertEqual(self.browser.evaluate(TOO_TALL), [])

    def test_hostile_names(self):
        folder = self.changed(self.hostile())
        page = report(folder, folder)
        self.check(page, 390, False)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('script, img').length"), 0)
        self.assertIn("<script>alert(1)</script>", self.browser.evaluate("document.querySelector('h1').textContent"))

    def test_long_names_and_many_arms(self):
        def change(results):
            add_arms(results, [(f"{arm['name']}-under-a-rather-long-name-of-its-own-{number}", arm["name"])
                               for arm in results["arms"] for number in range(3)])
            for workload in results["workloads"]:
                workload["name"] += "-with-a-name-that-does-not-break" * 2
            results["config"].pop("workloads")
            results.pop("task_families")
        folder = self.changed(change)
        page = report(folder, folder)
        self.check(page, 390, False)
        self.browser.open(page, 794)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.browser.evaluate(TOO_TALL), [])

    def test_the_browser_has_nothing_to_mend(self):
        self.browser.open(self.everything, 1280)
        seen = self.browser.evaluate("[...document.querySelectorAll('*')].map((element) => element.localName)")
        self.assertEqual([name.lower() for name in seen], Elements(self.everything.read_text()).names)


if __name__ == "__main__":
    unittest.main()
