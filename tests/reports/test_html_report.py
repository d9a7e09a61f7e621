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
        for text in ("<h2>nemotron-h: heldout (perplexity)</h2>", "<h2>qwen3-next: heldout (perplexity)</h2>",
                     "tiny-nemotron-h", "tiny-qwen3-next", "L = 32"):
            self.assertIn(text, page)
        self.assertEqual([file.name for file in target.iterdir()], ["report.html"], "these cannot be merged")

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
        for id in ("runs0", "forest0", "pareto0-0", "pareto1-0", "bench0-speedup", "bench1-speedup", "bench1-roofline"):
            self.assertIn(id, ids)
        titles = self.browser.evaluate("[...document.querySelectorAll('h2')].map((title) => title.textContent)")
        self.assertEqual(titles[:6], ["What was compared", "Findings", "Side by side", "Quality against speed", "Tasks",
                                      "Memory"])
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
            "contrast": "document.querySelector('.verdict').style.color = '#999'",
        }
        for complaint, fault in faults.items():
            with self.subTest(complaint):
                self.browser.open(self.everything, 390)
                self.browser.evaluate(fault + "; 0")
                self.assertTrue(any(complaint in said for said in self.browser.evaluate(CHECKS)), complaint)
        self.browser.evaluate("console.error('oh'); fetch('https://nowhere.invalid/').catch(() => 0).then(() => 0)")
        self.assertIn("oh", self.browser.complaints())

    def test_paper(self):
        self.browser.open(self.everything, 794, dark=True)  # A4 at 96 dots an inch
        self.browser.call("Emulation.setEmulatedMedia", media="print",
                          features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(self.browser.evaluate(CHECKS), [])
        self.assertEqual(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

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
        self.check(report(folder, folder), 390, False)

    def test_the_browser_has_nothing_to_mend(self):
        self.browser.open(self.everything, 1280)
        seen = self.browser.evaluate("[...document.querySelectorAll('*')].map((element) => element.localName)")
        self.assertEqual([name.lower() for name in seen], Elements(self.everything.read_text()).names)


if __name__ == "__main__":
    unittest.main()
