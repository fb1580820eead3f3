"""The package and the example are typed: mypy's strict mode passes over them, and _core.pyi is what the extension has."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import fusec

PACKAGE = os.path.dirname(os.path.realpath(fusec.__file__))
ROOT = os.path.dirname(os.path.dirname(PACKAGE))


def has(module):
    return importlib.util.find_spec(module) is not None


class Typing(unittest.TestCase):
    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_strict(self):
        with tempfile.TemporaryDirectory() as cache:
            ran = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={cache}",
                 "--config-file", os.path.join(ROOT, "pyproject.toml"), PACKAGE,
                 os.path.join(ROOT, "examples", "compile_in_python.py")],
                capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)})
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    @unittest.skipUnless(has("nanobind"), "nanobind is not installed")
    def test_the_stub_is_current(self):
        with tempfile.TemporaryDirectory() as folder:
            stub = os.path.join(folder, "_core.pyi")
            subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "fusec._core", "-o", stub],
                           check=True)
            with open(stub) as made, open(os.path.join(PACKAGE, "_core.pyi")) as kept:
                self.assertEqual(made.read(), kept.read(), "python -m nanobind.stubgen -m fusec._core -o python/fusec/_core.pyi")

    def test_everything_public_is_documented(self):
        for name in fusec.__all__:
            self.assertTrue(getattr(fusec, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
