#!/usr/bin/env python3
"""Runs the Python examples of README.md, each in a process of its own, as a reader would.

Examples of a package that is missing (PyTorch, ONNX) are skipped by name.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONAL = ("torch", "onnx")


class Examples(unittest.TestCase):
    def test_readme(self):
        found = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(found), 3)
        for text in found:
            first = text.splitlines()[0]
            missing = [p for p in OPTIONAL if re.search(rf"\b{p}\b", first) and not importlib.util.find_spec(p)]
            if missing:
                print(f"skipped: {first!r} needs {', '.join(missing)}")
                continue
            with self.subTest(first), tempfile.TemporaryDirectory() as folder:
                ran = subprocess.run(
                    [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=250
                )
                self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
                self.assertTrue(ran.stdout, "it prints nothing")


if __name__ == "__main__":
    unittest.main()
