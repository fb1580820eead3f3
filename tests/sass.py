"""Machine code from NVIDIA's disassembler, found in PATH, in .deps (scripts/setup.sh), or in the Python package
nvidia-cuda-nvdisasm."""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def disassembler():
    candidates = [shutil.which("nvdisasm"), os.path.join(ROOT, ".deps", "nvdisasm", "nvdisasm")]
    candidates += [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia", "*", "bin", "nvdisasm"))]
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def code(fusec, model, options, folder):
    """A model's kernels after ptxas optimizes, as text."""
    cubin = os.path.join(folder, "model.cubin")
    subprocess.run([fusec, model, *options, "-o", cubin], check=True, stderr=subprocess.PIPE)
    return subprocess.run([disassembler(), "-c", cubin], text=True, stdout=subprocess.PIPE, check=True).stdout


def operations(text):
    """The instructions: "LDG.E.128", "FFMA", ..."""
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?\s*([A-Z][A-Z0-9_.]+)", text)
