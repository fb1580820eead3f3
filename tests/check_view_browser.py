#!/usr/bin/env python3
"""check_view_browser.py FUSEC [--screenshots=FOLDER] [--chromium=PROGRAM] [MODEL...]: the page of --emit=html in
headless Chromium, which runs a script in a copy of the page and returns the document.

All elements exist, clicks have the right effects, and the console has no errors, at the size of a screen and of a
phone. With --screenshots, writes a PNG of each MODEL at both sizes. Status 77 without Chromium."""
import json, os, re, shutil, subprocess, sys, tempfile
from html import unescape
from pathlib import Path

from check_view import layers

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
SIZES = {"screen": (1400, 900), "phone": (390, 844)}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=60000",
         "--disable-background-networking", "--no-first-run", "--allow-file-access-from-files"]

# Runs first and records errors.
WATCH = """<script>
window.errors = [];
window.addEventListener("error", (e) => window.errors.push(String(e.message)));
for (const level of ["error", "warn"]) console[level] = (...what) => window.errors.push(what.join(" "));
</script>"""

# Runs last: checks and clicks. `report` becomes the test's result.
ASK = """<script>
{
  const all = (q) => [...document.querySelectorAll(q)];
  const text = (q) => document.querySelector(q)?.textContent ?? "";
  const click = (e) => e.dispatchEvent(new MouseEvent("click", { bubbles: true, view: window }));
  const shown = (e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.right > 0 && r.bottom > 0 && r.left < innerWidth && r.top < innerHeight; };
  const report = {};
  try { STEPS } catch (e) { window.errors.push("steps: " + e.message + " " + e.stack); }
  report.errors = window.errors;
  const pre = document.createElement("pre");
  pre.id = "report";
  pre.textContent = JSON.stringify(report);
  document.body.append(pre);
}
</script>"""

STEPS_SMALL = """
report.headline = text("#headline");
report.groups = all(".box.group").map((e) => e.dataset.group);
report.visible = all(".box.group").every(shown);
report.bars = all(".bar .name").map((e) => e.textContent);
click(document.querySelector(".box.group"));
report.selected = text("#content h2");
report.nodes = all(".nodes li").map((e) => e.dataset.node);
report.facts = Object.fromEntries(all("#content .facts dt").map((e) => [e.textContent, e.nextSibling.textContent]));
report.refused = text(".whynot li");
report.forms = all(".forms option").length;
report.lines = all(".source .line").length;
report.highlighted = all(".source .hljs-comment").length;
click(all(".nodes li").find((e) => e.dataset.node === "h"));
report.marked = all(".source .line.marked").map((e) => e.textContent.trim());
click(all(".source .line").find((e) => e.textContent.includes("act = silu(gate)")));
report.marked_node = all(".nodes li.marked").map((e) => e.dataset.node);
click(document.querySelector(".link"));
report.link = text("#content");
click(document.querySelector("[data-tab=memory]"));
report.memory = all(".arena rect").map((e) => e.dataset.value);
click(document.querySelector("[data-tab=whynot]"));
report.whynot = all(".whynot li").length;
document.querySelector("#search").value = "silu";
document.querySelector("#search").dispatchEvent(new Event("input"));
report.found = text("#found");
document.querySelector("#search").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
report.gone_to = text("#content h2");
click(document.querySelector("[data-strategy=none]"));
report.unfused = all(".box.group").length;
report.strategy = text("[aria-checked=true]");
"""

STEPS_LAYERS = """
const blocks = all(".box.block");
report.blocks = blocks.map((e) => [e.classList.contains("open"), e.querySelector(".title").textContent]);
if (!blocks[0].classList.contains("open")) click(blocks[0].querySelector(".toggle"));
report.open = all(".box.group").length;
report.copy = all(".copies .footer").map((e) => e.textContent);
click(all(".copies .toggle")[1]);
report.next = all(".copies .footer").map((e) => e.textContent);
report.names = all(".box.group .row").map((e) => e.textContent);
click(all(".box.block > .toggle")[0]);
report.closed = all(".box.group").length;
document.querySelector("#search").value = "a4";
document.querySelector("#search").dispatchEvent(new Event("input"));
document.querySelector("#search").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
report.gone_to = all(".nodes li").map((e) => e.dataset.node);
report.at_copy = all(".copies .footer").map((e) => e.textContent);
report.seen = all(".box.group.selected").some(shown);
"""

STEPS_MANY = """
click(document.querySelector("[data-strategy=none]"));
click(document.querySelector("[data-tab=whynot]"));
report.first = all(".whynot li").length;
report.button = text("button.more");
click(document.querySelector("button.more"));
report.all = all(".whynot li").length;
report.told = text("#content h3");
report.buttons = all("button.more").length;
"""

failures = []


def check(what, holds, found=""):
    if not holds:
        failures.append(what)
        print("FAILED:", what, found)


def page_of(fusec, model):
    run = subprocess.run([fusec, str(model), "--emit=html", "--no-nvrtc", "--arch=sm_90a"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{model}: {run.stderr}")
    return run.stdout


def in_browser(chromium, page, size, *options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page)
        if size[0] < 500 and "--screenshot" in str(options):  # a window cannot be this narrow, but a frame can
            frame = f'<body style="margin:0"><iframe src="page.html" width="{size[0]}" height="{size[1]}" style="border:0">'
            file = Path(folder) / "frame.html"
            file.write_text(frame)
        command = [chromium, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", *options, file.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=240).stdout


def asked(chromium, page, steps, size):
    page = page.replace("<head>", "<head>" + WATCH, 1).replace("</body>\n</html>", ASK.replace("STEPS", steps) + "</body>\n</html>", 1)
    found = re.search(r'<pre id="report">(.*?)</pre>', in_browser(chromium, page, size, "--dump-dom"), re.S)
    return json.loads(unescape(found[1])) if found else {"errors": ["the page gave no report"]}


def check_small(chromium, page, size):
    r = asked(chromium, page, STEPS_SMALL, SIZES[size])
    check(f"{size}: no errors", r["errors"] == [], r["errors"])
    if len(r) == 1:
        return
    expected = ["fused_linear_silu_linear_mul", "linear"]
    check(f"{size}: the headline says what was fused and saved", re.search(r"swiglu_mlppredicted 1\.16× faster5 → 2 launches", r["headline"]), r["headline"])
    check(f"{size}: boxes", r["groups"] == expected and r["visible"], r["groups"])
    check(f"{size}: bars", r["bars"] == expected, r["bars"])
    check(f"{size}: a click on a group shows it", r["selected"] == expected[0] and r["nodes"] == ["gate", "act", "up", "h"], r["selected"])
    check(f"{size}: its facts", all(k in r["facts"] for k in ("predicted", "memory", "schedule", "grid", "block", "shared memory")), r["facts"])
    check(f"{size}: why not", "h" in r["refused"] and "what helps" in r["refused"], r["refused"])
    check(f"{size}: source", r["lines"] > 100 and r["highlighted"] > 3 and r["forms"] == 2, [r["lines"], r["highlighted"], r["forms"]])
    check(f"{size}: a click on a node marks its lines", any("h_v" in line or "h = mul" in line for line in r["marked"]), r["marked"])
    check(f"{size}: a click on a line marks its node", r["marked_node"] == ["act"], r["marked_node"])
    check(f"{size}: a click on an edge says why", "Why is this edge not fused?" in r["link"] and "would save" in r["link"], r["link"])
    check(f"{size}: memory", r["memory"] == ["h"], r["memory"])
    check(f"{size}: the list of refused edges", r["whynot"] == 1, r["whynot"])
    check(f"{size}: search", r["found"] == "1 group" and r["gone_to"] == expected[0], [r["found"], r["gone_to"]])
    check(f"{size}: another strategy", r["unfused"] == 5 and r["strategy"] == "none", [r["unfused"], r["strategy"]])


def check_layers(chromium, page, size):
    r = asked(chromium, page, STEPS_LAYERS, SIZES[size])
    check(f"layers, {size}: no errors", r["errors"] == [], r["errors"])
    if len(r) == 1:
        return
    check("one block with its count", [t for _, t in r["blocks"]] == ["× 6"], r["blocks"])
    check("it opens to one copy", r["open"] > 1 and r["copy"] == ["1 of 6"], [r["open"], r["copy"]])
    check("the next copy", r["next"] == ["2 of 6"] and any(n.startswith("a1 = ") for n in r["names"]), [r["next"], r["names"]])
    check("it closes", r["closed"] == 0, r["closed"])
    check("search opens the copy that holds a node", "a4" in r["gone_to"] and r["at_copy"] == ["5 of 6"] and r["seen"], [r["gone_to"], r["at_copy"], r["seen"]])


def check_many(chromium, page, size):
    """The tab of refused edges begins with the first ones, and a click shows all."""
    r = asked(chromium, page, STEPS_MANY, SIZES[size])
    check(f"many edges, {size}: no errors", r["errors"] == [], r["errors"])
    if r["errors"]:
        return
    check("the first edges", r["first"] == 200 and r["button"] == f"show all {r['all']}", [r["first"], r["button"]])
    check("a click shows all edges", r["told"] == f"Not fused: {r['all']} edges" and r["buttons"] == 0,
          [r["told"], r["all"], r["buttons"]])


def screenshots(chromium, fusec, folder, models):
    os.makedirs(folder, exist_ok=True)
    for model in models:
        page = page_of(fusec, model)
        for size in SIZES:
            file = os.path.abspath(os.path.join(folder, f"{Path(model).stem}.{size}.png"))
            in_browser(chromium, page, SIZES[size], f"--screenshot={file}")
            print("wrote", file)


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not names:
        sys.exit(__doc__)
    chromium = options.get("chromium") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("skipped: Chromium is missing (apt-get install chromium)")
        sys.exit(77)
    if "screenshots" in options:
        return screenshots(chromium, names[0], options["screenshots"], names[1:])
    page = page_of(names[0], EXAMPLES / "swiglu_mlp.json")
    for size in SIZES:
        check_small(chromium, page, size)
    with tempfile.TemporaryDirectory() as folder:
        check_layers(chromium, page_of(names[0], layers(6, folder)), "screen")
        check_many(chromium, page_of(names[0], layers(50, folder)), "screen")
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
