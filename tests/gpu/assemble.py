"""Every kernel of the GPU suite is PTX that NVIDIA's own assembler takes.

  python3 assemble.py COMPARE_GPU PTXAS

Exits with 77 where ptxas is missing.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    compare, ptxas = sys.argv[1], shutil.which(sys.argv[2])
    if ptxas is None:
        print("skipped: ptxas is missing")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([compare, f"--dump={folder}"], check=True)
        files = sorted(Path(folder).glob("*.ptx"))
        for file in files:
            arch = file.stem.split("_", 1)[1]
            made = subprocess.run([ptxas, f"-arch={arch}", str(file), "-o", os.devnull], capture_output=True, text=True)
            if made.returncode != 0:
                failed += 1
                print(file.name, made.stdout, made.stderr)
        print(f"{len(files)} kernels, {failed} refused")
    return 1 if failed or not files else 0


sys.exit(main())
