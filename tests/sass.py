"""Machine code from NVIDIA's disassembler, found in PATH, in .deps (scripts/setup.sh), or in the Python package
nvidia-cuda-nvdisasm; and ptxas's advice, where there is one."""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def program(name):
    candidates = [shutil.which(name), os.path.join(ROOT, ".deps", name, name)]
    candidates += [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia", "*", "bin", name))]
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def disassembler():
    return program("nvdisasm")


def advice(ptx, target):
    """What ptxas says of wgmma (C7510 to C7519: products that it serialized or added to), where there is a ptxas."""
    if program("ptxas") is None:
        return []
    said = subprocess.run([program("ptxas"), "-v", "-arch=" + target, "-o", os.devnull, "-"], input=ptx, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout
    return re.findall(r"\(C751\d\).*", said)


def code(fusec, model, options, folder):
    """A model's kernels after ptxas optimizes, as text."""
    cubin = os.path.join(folder, "model.cubin")
    subprocess.run([fusec, model, *options, "-o", cubin], check=True, stderr=subprocess.PIPE)
    return subprocess.run([disassembler(), "-c", cubin], text=True, stdout=subprocess.PIPE, check=True).stdout


def operations(text):
    """The instructions: "LDG.E.128", "FFMA", ..."""
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?\s*([A-Z][A-Z0-9_.]+)", text)
