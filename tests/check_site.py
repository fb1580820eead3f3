#!/usr/bin/env python3
"""check_site.py: the documentation site builds without a warning: every page is in the navigation, and every link and
anchor exists. Its pages load nothing from the network. Status 77 if mkdocs is missing (scripts/setup.sh docs)."""
import glob, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*rel="(?:stylesheet|preconnect)"[^>]*href="(?:https?:)?//""")


def mkdocs():
    own = os.path.join(ROOT, ".deps", "docs", "bin", "python")
    if os.path.exists(own):
        return [own, "-m", "mkdocs"]
    return [found] if (found := shutil.which("mkdocs")) else None


def main():
    program = mkdocs()
    if not program:
        print("skipped: no mkdocs (scripts/setup.sh docs installs it)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run([*program, "build", "--strict", "--quiet", "--site-dir", folder], cwd=ROOT, encoding="utf-8",
                           env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        pages = glob.glob(os.path.join(folder, "**", "*.html"), recursive=True)
        loading = []
        for page in pages:
            with open(page, encoding="utf-8") as f:
                loading += [f"{os.path.relpath(page, folder)}: {found}" for found in LOADED.findall(f.read())]
    print(p.stdout + "\n".join(loading) + f"{len(pages)} pages, exit status {p.returncode}")
    sys.exit(1 if p.returncode or loading or len(pages) < 15 else 0)


if __name__ == "__main__":
    main()
