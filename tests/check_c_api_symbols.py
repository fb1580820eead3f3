#!/usr/bin/env python3
"""check_c_api_symbols.py LIBFUSEC MAP HEADER: checks the exported symbols of libfusec.so.

- It exports exactly the symbols that MAP, the linker's version script, lists, with the same versions, and HEADER
  declares them.
- Its SONAME is libfusec.so.MAJOR, and it needs only the C and C++ runtimes."""
import re, subprocess, sys

ALLOWED = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|ld-linux-x86-64)\.so\.\d+")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def listed(path):
    symbols, version = set(), None
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if found := re.fullmatch(r"(\w+) \{", line):
            version = found[1]
        elif found := re.fullmatch(r"(fusec_\w+);", line):
            symbols.add(f"{found[1]}@@{version}")
    return symbols


def exported(library):
    lines = (line.split() for line in output("nm", "-D", "--defined-only", library).splitlines())
    return {words[-1] for words in lines if words[1] != "A"}  # A: the versions themselves


def difference(what, has, should):
    return [f"{what}: {name} is too much" for name in sorted(has - should)] + [
        f"{what}: {name} is missing" for name in sorted(should - has)]


def main():
    library, map_file, header = sys.argv[1:]
    wanted = listed(map_file)
    faults = difference(library, exported(library), wanted)
    with open(header, encoding="utf-8") as file:
        declared = set(re.findall(r"FUSEC_API[^;(]*?\b(fusec_\w+)\(", file.read()))
    faults += difference(header, declared, {name.split("@")[0] for name in wanted})
    dynamic = output("readelf", "-d", library)
    if not re.search(r"SONAME.*\[libfusec\.so\.\d+\]", dynamic):
        faults.append(f"{library} has no SONAME libfusec.so.MAJOR")
    faults += [f"{library} needs {name}" for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic) if not ALLOWED.fullmatch(name)]
    for fault in faults:
        print(fault)
    print(f"{len(wanted)} symbols, {len(faults)} faults")
    sys.exit(1 if faults or len(wanted) < 50 else 0)


main()
