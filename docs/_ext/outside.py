"""Pages made of files outside docs, and links to those files led to the pages.

A page that is one ``include`` of a Markdown file stands for that file: its text is read
here, so that links in it, which are right where the file lies, can be made right in the
site. Files in docs keep links that are right in the repository.
"""

import os
import re
from pathlib import Path

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/|<)([^)\s#]+)(#[^)\s]*)?(?=\))")
INCLUDE = re.compile(r"\A```\{include\} (\S+)\n```\s*\Z")


def _pages(docs):
    """Which page stands for which file outside docs."""
    found = {}
    for page in docs.rglob("*.md"):
        include = INCLUDE.match(page.read_text("utf-8"))
        if include:
            found[(page.parent / include[1]).resolve()] = page
    return found


def _read(app, docname, source):
    docs = Path(app.srcdir)
    here = (docs / docname).parent
    include = INCLUDE.match(source[0])
    if include:
        file = (here / include[1]).resolve()
        app.env.note_dependency(str(file))
        source[0], here = file.read_text("utf-8"), file.parent
    if docname in app.env.found_docs and (docs / f"{docname}.md").exists():
        pages = app.pages_outside
        source[0] = LINK.sub(lambda link: _target(link, here, docs, pages), source[0])


def _target(link, here, docs, pages):
    file = Path(os.path.normpath(here / link[1]))
    if file.is_dir():
        file = file.with_suffix(".md")
    file = pages.get(file, file)
    if file == docs.parent / "examples.md":
        file = next((docs / "gallery").glob("index.*"))
    return f"/{os.path.relpath(file, docs)}{link[2] or ''}" if file.exists() else link[0]


def setup(app):
    app.pages_outside = _pages(Path(app.srcdir))
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
