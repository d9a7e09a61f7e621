"""`report --format latex`: a paper's tables and figures from stored results of real runs, made into a document by pdflatex."""

import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/eval/cli"))
import program  # noqa: E402

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
                body = fragment.split("\\toprule\n")[1].split("\\bottomrule")[0]
                self.assertEqual(body.count("\\\\\n"), len(rows), table)
                markdown = [line for line in (folder / f"{table}.md").read_text().splitlines() if line.startswith("|")]
                self.assertEqual(len(markdown), len(rows) + 1, table)
                self.assertEqual({len(row) for row in rows}, {len(rows[0])}, table)
                if table != "tasks":
                    self.assertRegex(fragment, r"A/A: an arm equal", table)

    def test_nothing_else_is_written(self):
        self.assertEqual(sorted(path.name for path in (self.folder / "nemotron-h").iterdir()), ["figures", "latex"])

    @unittest.skipUnless(shutil.which("pdflatex"), "no pdflatex")
    def test_pdflatex_makes_a_document_of_it(self):
        for name in ("nemotron-h", "qwen3-next"):
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
