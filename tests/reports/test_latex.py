"""`report --format latex`: a paper's tables and figures from stored results of real runs, made into a document by pdflatex."""

import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/eval/cli"))
sys.path.insert(0, str(ROOT / "tests/reports"))
import program  # noqa: E402
from more_arms import add_arms  # noqa: E402

DATA = ROOT / "tests/reports/data"


class Latex(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-latex-"))
        for name in ("nemotron-h", "qwen3-next"):
            done = program.call("report", DATA / f"{name}.json", "--format", "latex", "--output", cls.folder / name)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def tables(self, name):
        return sorted(path.stem for path in (self.folder / name / "latex").glob("*.tex") if path.stem != "paper")

    def test_each_table_has_its_twins(self):
        for name in ("nemotron-h", "qwen3-next"):
            folder = self.folder / name / "latex"
            self.assertIn("heldout-quality", self.tables(name))
            for table in self.tables(name):
                fragment = (folder / f"{table}.tex").read_text()
                with open(folder / f"{table}.csv", newline="", encoding="utf-8") as file:
                    rows = list(csv.reader(file))
                parts = [part.split("\\bottomrule")[0] for part in fragment.split("\\midrule\n")[1:]]
                shown = sum(part.count("\\\\\n") for part in parts)
                if table != "tasks" and not table.endswith("-generation"):  # of these the paper has a selection
                    self.assertEqual(shown, len(rows) - 1, table)
                else:
                    self.assertLess(shown, len(rows) - 1, table)
                    self.assertGreaterEqual(shown, 4, table)
                markdown = [line for line in (folder / f"{table}.md").read_text().splitlines() if line.startswith("|")]
                self.assertEqual(len(markdown), len(rows) + 1, table)
                self.assertEqual({len(row) for row in rows}, {len(rows[0])}, table)
                if table != "tasks":
                    self.assertRegex(fragment, r"A/A: an arm equal", table)
                self.assertRegex(fragment, r"\d (tokens scored|documents|sequences|answers|checks)", table)

    def test_nothing_else_is_written(self):
        self.assertEqual(sorted(path.name for path in (self.folder / "nemotron-h").iterdir()), ["figures", "latex"])

    def test_a_paper_has_a_row_an_arm(self):
        """Of the tables that have a row a sign and arm, or a task and arm, elsewhere."""
        folder = self.folder / "nemotron-h" / "latex"
        body = (folder / "greedy-generation.tex").read_text().split("\\toprule\n")[1]
        self.assertTrue(body.startswith("arm & length & $\\Delta$ & truncated \\% & $\\Delta$ points & looped"), body)
        self.assertEqual(body.count("\\texttt{replay-bf16}"), 1)
        tasks = (folder / "tasks.tex").read_text()
        self.assertIn("metric & arm & animals & cloze & all, by document", tasks)
        self.assertRegex(tasks, r"animals \(\d+ documents\)")
        body = tasks.split("\\midrule\n")[1].split("\\bottomrule")[0]
        with open(folder / "tasks.csv", newline="", encoding="utf-8") as file:
            pairs = {tuple(row[:2]) for row in list(csv.reader(file))[1:]}
        self.assertEqual(body.count("\\\\\n"), len(pairs))

    def many_arms(self, count):
        """A results file of `count` arms more, under names that are too long for a column."""
        results = json.loads((DATA / "nemotron-h.json").read_text())
        add_arms(results, [(f"replay-state-bfloat16-ring_bfloat16-under-a-name-of-64-{i:02}" + "x" * 15, "replay-bf16")
                           for i in range(count)])
        folder = self.folder / f"{count}-more"
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(results))
        done = program.call("report", folder, "--format", "latex")
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder.name

    @unittest.skipUnless(shutil.which("pdflatex"), "no pdflatex")
    def test_pdflatex_makes_a_document_of_it(self):
        for name in ("nemotron-h", "qwen3-next", self.many_arms(14)):
            folder = self.folder / name / "latex"
            for _ in range(2):
                done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=folder,
                                      capture_output=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stdout.decode("utf-8", "replace")[-2000:])
            log = (folder / "paper.log").read_text(encoding="utf-8", errors="replace")
            self.assertEqual(re.findall(r"^Overfull.*|^LaTeX Warning.*|^Missing character.*", log, re.M), [])
            for table in self.tables(name):
                self.assertIn(f"({table}.tex" if f"({table}.tex" in log else f"(./{table}.tex", log)
            self.assertGreater((folder / "paper.pdf").stat().st_size, 50_000)
            self.assertEqual(log.count("figures/") > 0, any((self.folder / name / "figures").glob("*.pdf")))


if __name__ == "__main__":
    unittest.main()
