"""What the site needs beyond the pages: links out of docs/ become names of files, since the site has those pages alone."""
import os, re

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def on_page_markdown(markdown, page, **_):
    folder = os.path.dirname(page.file.abs_src_path)

    def replaced(match):
        text, target = match.group(1), match.group(2)
        path = os.path.normpath(os.path.join(folder, target))
        inside = path.startswith(os.path.join(ROOT, "docs") + os.sep)
        if "://" in target or not os.path.exists(path) or (inside and os.path.isfile(path)):
            return match.group(0)  # what does not exist is for the strict build to find
        name = os.path.relpath(path, ROOT)
        return f"`{name}`" if text.strip("`") in (name, target) else f"{text} (`{name}`)"

    return LINK.sub(replaced, markdown)
