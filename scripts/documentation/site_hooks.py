"""What the site needs beyond the pages: it gets, as text, a copy of each file outside docs/ that a page links to."""
import os, re

from mkdocs.structure.files import File

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def outside(file, target):
    """The path below ROOT of what a link of this page leads to, or None if that is a page or no file."""
    path = os.path.normpath(os.path.join(os.path.dirname(file.abs_src_path), target))
    inside = path.startswith(os.path.join(ROOT, "docs") + os.sep)
    return None if inside or not os.path.isfile(path) else os.path.relpath(path, ROOT)


def copy_of(name):
    return f"files/{name}.txt"  # browsers show text, and download other types


def on_files(files, config, **_):
    linked = {name for file in files.documentation_pages() for link in LINK.finditer(file.content_string)
              if (name := outside(file, link[2]))}
    for name in sorted(linked):
        files.append(File.generated(config, copy_of(name), abs_src_path=os.path.join(ROOT, name)))
    return files


def on_page_markdown(markdown, page, **_):
    def replaced(link):
        name = outside(page.file, link[2])
        # What does not exist is for the strict build to find.
        return f"[{link[1]}]({os.path.relpath(copy_of(name), os.path.dirname(page.file.src_uri))})" if name else link[0]

    return LINK.sub(replaced, markdown)
