"""cmake/Cuda.cmake on a machine whose nvcc is too old: a CPU build that says why, or an error where CUDA is asked for."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.28)
project(choice LANGUAGES NONE)
include("{root}/cmake/Cuda.cmake")
message(STATUS "with CUDA: ${{REPLAYEVAL_WITH_CUDA}} (${{REPLAYEVAL_CUDA_REASON}})")
"""


class CudaChoice(unittest.TestCase):
    def configure(self, release, cuda):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            nvcc = folder / "nvcc"
            nvcc.write_text(f'#!/bin/sh\necho "Cuda compilation tools, release {release}, V{release}.1"\n',
                            encoding="utf-8")
            nvcc.chmod(0o755)
            (folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT), encoding="utf-8")
            return subprocess.run([str(ROOT / ".venv/bin/cmake"), "-S", name, "-B", f"{name}/build", "-G", "Ninja",
                                   f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DREPLAYEVAL_CUDA={cuda}"],
                                  text=True, capture_output=True, timeout=60, check=False)

    def test_an_old_nvcc_makes_a_cpu_build_that_says_why(self):
        done = self.configure("12.9", "AUTO")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"with CUDA: OFF \(no nvcc of CUDA 13\.0 or newer, \S*/nvcc is of CUDA 12\.9\)")

    def test_an_old_nvcc_is_an_error_where_cuda_is_asked_for(self):
        done = self.configure("12.9", "ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no nvcc of CUDA 13.0 or newer", " ".join(done.stderr.split()))

    def test_a_release_of_two_digits_is_compared_as_a_number(self):
        self.assertIn("is of CUDA 9.2", self.configure("9.2", "AUTO").stdout)

    def test_a_new_enough_nvcc_is_taken(self):
        done = self.configure("13.0", "AUTO")
        # The stand-in cannot compile, so CMake's own try of it fails; that it was tried is what counts.
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("no nvcc", done.stdout + done.stderr)
        self.assertIn("CUDA", done.stderr)


if __name__ == "__main__":
    unittest.main()
