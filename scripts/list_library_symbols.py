#!/usr/bin/env python3
"""list_library_symbols.py: writes ir/library_symbols.txt anew, the names that no launcher of a custom op may have.

A launcher is declared and called under its own name, so a model that names it `system` would call the C library's.
The file lists what libc, libm, libstdc++, libcudart, libcuda, cuBLASLt and NCCL export, one name a line, sorted.
Names that begin with _, cuda, cublas or nccl are left out: ir/reserved_words.cpp refuses those by their beginning.

What the file lists already stays in it, since other versions of the libraries export other names. So the script can
be run on several systems, one after the other. A library that this system lacks is named on standard error.
Needs nm and gcc (or $CC); $CUDA_HOME is the toolkit, by default /usr/local/cuda."""

import os
import re
import subprocess
import sys

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ir", "library_symbols.txt")
SYSTEM = ["libc.so.6", "libc_nonshared.a", "libm.so.6", "libstdc++.so.6"]
CUDA = ["libcudart.so", "libcublasLt.so", "libnccl.so", "stubs/libcuda.so"]
LINKER = {"edata", "end", "etext"}  # the linker defines these itself
REFUSED_BY_BEGINNING = ("_", "cuda", "cublas", "nccl")


def libraries():
    for name in SYSTEM:
        found = subprocess.run(
            [os.environ.get("CC", "gcc"), "-print-file-name=" + name], capture_output=True, text=True, check=True
        )
        yield found.stdout.strip()
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for name in CUDA:
        yield os.path.join(toolkit, "lib64", name)


def exported(library):
    """The functions and variables that a shared library or an archive defines, without their versions."""
    dynamic = [] if library.endswith(".a") else ["-D"]
    rows = subprocess.run(
        ["nm", *dynamic, "--defined-only", "--extern-only", "--format=posix", library],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    fields = [row.split() for row in rows if row and not row.endswith(":")]
    return {name.split("@")[0] for name, kind, *_ in fields if kind != "A"}  # A: the name of a version


def main():
    names = set(LINKER)
    if os.path.exists(FILE):
        with open(FILE, encoding="ascii") as f:
            names |= set(f.read().split())
    for library in libraries():
        if os.path.isfile(library):
            names |= exported(library)
        else:
            print(f"note: {library} is not here; its names stay as they are in the file", file=sys.stderr)
    kept = sorted(n for n in names if re.fullmatch(r"[A-Za-z]\w*", n) and not n.startswith(REFUSED_BY_BEGINNING))
    with open(FILE, "w", encoding="ascii") as f:
        f.write("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
