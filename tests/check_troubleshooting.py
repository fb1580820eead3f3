#!/usr/bin/env python3
"""check_troubleshooting.py FUSEC: docs/troubleshooting.md shows the program's messages. Every mistake on the page is
made in the page's model, and the message must equal the one on the page."""
import os
import re
import subprocess
import sys
import tempfile

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "troubleshooting.md")
MODEL = re.compile(r"```json\n(.*?)```", re.S)
SECTION = re.compile(r"^## (.+?)\n\n(.+?):\n\n```text\n(.*?)```", re.S | re.M)
CHANGE = re.compile(r"`([^`]+)` in place of `([^`]+)`")
COMMAND = re.compile(r"`fusec model\.json ([^`]+)`")


def answer(fusec, model, mistake):
    options = COMMAND.findall(mistake)
    for written, meant in CHANGE.findall(mistake):
        if meant not in model:
            raise SystemExit(f"the page's model has no {meant}")
        model = model.replace(meant, written)
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "model.json"), "w", encoding="utf-8") as f:
            f.write(model)
        run = subprocess.run([fusec, "model.json", *options], cwd=folder, capture_output=True, text=True, timeout=60,
                             env=environment)
    return run.returncode, run.stderr


def main():
    fusec = os.path.abspath(sys.argv[1])
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    model = MODEL.search(page).group(1)
    sections = SECTION.findall(page)
    failures = 0
    for title, mistake, shown in sections:
        status, told = answer(fusec, model, mistake)
        if status not in (1, 2) or told != shown:
            failures += 1
            print(f"{title}: exit status {status}, the program says\n{told}the page says\n{shown}")
    status, told = answer(fusec, model, "")
    if status != 0:
        failures += 1
        print(f"the page's model is refused: {told}")
    print(f"{len(sections)} mistakes, {failures} answered otherwise than the page says")
    return 1 if failures or len(sections) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
