"""scripts/check_arrows.py on small trees: what it lets pass and what it catches."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CLEAN = {
    "kernels/types.h": "#include <cstddef>\n",
    "kernels/mamba2/exact.cpp": '#include "kernels/types.h"\n',
    "reference/mamba2.cpp": "#include <Eigen/Core>\n",
    "datasets/text.cpp": '#include "datasets/text.h"\n',
    "reports/results.cpp": '#include "reports/results.h"\n',
    "eval/npy.cpp": '#include "reports/atomic_file.h"\n',
    "eval/model/layers.cpp": '#include <ATen/ATen.h>\n#include "eval/checkpoint/checkpoint.h"\n',
    "eval/cli/main.cpp": '#include "eval/comparator/run.h"\n#include "build_info.h"\n',
}


class CheckArrows(unittest.TestCase):
    def check(self, **changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changes.get("files", {})}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, str(ROOT / "scripts/check_arrows.py"), folder], text=True,
                                  capture_output=True, check=False)

    def assert_caught(self, name, text, message):
        done = self.check(files={name: text})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines(), [message])

    def test_downward_includes_pass(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout, f"arrows point down in {len(CLEAN)} files\n")

    def test_upward_includes_are_caught(self):
        for floor in ("kernels", "reference", "datasets", "reports"):
            self.assert_caught(f"{floor}/up.h", '// a line\n  #  include "eval/model/model.h"\n',
                               f"{floor}/up.h:2: {floor}/ may not include eval/model/model.h")
        self.assert_caught("eval/model/up.cpp", '#include "eval/comparator/run.h"\n',
                           "eval/model/up.cpp:1: eval/model/ may not include eval/comparator/run.h")
        self.assert_caught("eval/checkpoint/up.cpp", '#include "eval/executors/arm.h"\n',
                           "eval/checkpoint/up.cpp:1: eval/checkpoint/ may not include eval/executors/arm.h")

    def test_sideways_includes_are_caught(self):
        self.assert_caught("reports/side.cpp", '#include "kernels/types.h"\n',
                           "reports/side.cpp:1: reports/ may not include kernels/types.h")
        self.assert_caught("datasets/side.cpp", '#include "reports/results.h"\n',
                           "datasets/side.cpp:1: datasets/ may not include reports/results.h")

    def test_tests_are_nobodys_floor(self):
        self.assert_caught("kernels/borrow.cu", '#include "tests/kernels/device_buffer.h"\n',
                           "kernels/borrow.cu:1: kernels/ may not include tests/kernels/device_buffer.h")

    def test_libtorch_below_eval_is_caught(self):
        self.assert_caught("kernels/tensor.h", "#include <ATen/core/Tensor.h>\n",
                           "kernels/tensor.h:1: kernels/ knows no LibTorch, but includes <ATen/core/Tensor.h>")

    def test_a_folder_without_a_place_is_caught(self):
        self.assert_caught("eval/new_room/a.h", "\n",
                           "eval/new_room/a.h: its folder has no place in scripts/check_arrows.py")

    def test_an_empty_tree_is_not_clean(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(ROOT / "scripts/check_arrows.py"), folder], text=True,
                                  capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)

    def test_this_repository(self):
        done = subprocess.run([sys.executable, str(ROOT / "scripts/check_arrows.py")], text=True, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
