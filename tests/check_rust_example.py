#!/usr/bin/env python3
"""check_rust_example.py FOLDER_OF_LIBFUSEC EXAMPLE: rustc compiles the example, and it runs. Status 77 (skipped)
without rustc."""
import os, shutil, subprocess, sys, tempfile


def main():
    folder, example = map(os.path.abspath, sys.argv[1:])
    rustc = next((r for r in ["/usr/bin/rustc", shutil.which("rustc")] if r and os.path.exists(r)), None)
    if not rustc:
        print("skipped: rustc is missing (Debian's package rustc)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "compile")
        subprocess.run([rustc, "--edition", "2021", example, "-L", folder, "-o", program], check=True,
                       timeout=240)
        run = subprocess.run([program], env=dict(os.environ, LD_LIBRARY_PATH=folder), capture_output=True, text=True,
                             timeout=120)
    print(run.stdout[-2000:] + run.stderr)
    for part in ["1 group", "the largest error is"]:
        if part not in run.stdout:
            sys.exit(f"the example does not print {part!r}")
    sys.exit(run.returncode)


main()
