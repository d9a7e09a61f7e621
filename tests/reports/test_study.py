#!/usr/bin/env python3
"""reports/h200: its tables are what its results say, and the reports beside them are complete."""

import os
import sys
import unittest

STUDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "reports", "h200")
CONFIGS = os.path.join(STUDY, "..", "..", "configs", "h200")
sys.path.insert(0, STUDY)
import tables  # noqa: E402


class Study(unittest.TestCase):
    def test_every_marked_table_is_what_the_results_say(self):
        for path in tables.FILES:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with self.subTest(path):
                self.assertIn("<!-- table ", text)
                self.assertEqual(text, tables.with_tables(text), "reports/h200/tables.py --write makes them anew")

    def test_a_changed_figure_is_noticed(self):
        with open(tables.FILES[0], encoding="utf-8") as file:
            text = file.read()
        row = tables.TABLES["summary"]().splitlines()[-1]
        self.assertIn(row, text)
        changed = text.replace(row, row.replace("0", "1"))
        self.assertNotEqual(changed, tables.with_tables(changed))

    def test_an_unknown_table_is_refused(self):
        with self.assertRaisesRegex(KeyError, "no table 'none'; expected one of summary"):
            tables.with_tables("<!-- table none -->\n<!-- end -->")

    def published(self):
        return [name for name in os.listdir(STUDY) if os.path.exists(os.path.join(STUDY, name, "results.json"))]

    def test_the_control_moves_by_nothing(self):
        for name in self.published():
            for work in tables.load(name)["workloads"]:
                self.assertTrue(work["deltas"] or work["state_errors"], f"{name} {work['name']} says nothing")
                for metric, delta in work["deltas"].get("exact-f32-again", {}).items():
                    self.assertEqual(delta["value"], 0.0, f"{name} {work['name']} {metric}")
                for error in work["state_errors"]:
                    if (error["arm"], error["depth"]) == ("exact-f32-again", "local"):
                        self.assertEqual(error["relative_frobenius"], 0.0, f"{name} {work['name']}")

    def test_every_run_is_that_of_a_config_on_a_gpu_and_has_its_report(self):
        self.assertTrue(self.published())
        for name in self.published():
            results = tables.load(name)
            self.assertEqual(results["config"]["name"], "h200-" + name)
            self.assertEqual(results["environment"]["device"], "cuda")
            self.assertTrue(os.path.exists(os.path.join(CONFIGS, name + ".yaml")), name)
            self.assertTrue(os.path.exists(os.path.join(STUDY, name, "report.md")), name)

    def test_every_figure_says_what_it_shows(self):
        figures = [os.path.join(folder, name) for folder, _, names in os.walk(STUDY) for name in names
                   if name.endswith(".svg")]
        self.assertTrue(figures)
        for path in figures:
            with open(path, encoding="utf-8") as file:
                head = file.read(4000)
            for part in ('role="img"', '<title id="title">', '<desc id="desc">'):
                self.assertIn(part, head, path)
            for part in ("<title>Gnuplot", "Produced by GNUPLOT"):
                self.assertNotIn(part, head, path)


if __name__ == "__main__":
    unittest.main()
