"""Pages that a code host shows as they are, and the site with more.

A picture whose file ends in ``-light`` has a twin for dark themes. The site's table of
contents, which would be noise on the first page, is kept beside this file.
"""

import re
from pathlib import Path

CONTENTS = Path(__file__).with_name("contents.md")
PICTURE = re.compile(r"^!\[([^\]]+)\]\((\S+)-light(\.\w+)\)$", re.MULTILINE)


def _both(picture):
    words, file, kind = picture.groups()
    return "\n".join(
        f"```{{image}} {file}-{theme}{kind}\n:alt: {words}\n:class: only-{theme} {name}\n```"
        for theme in ("light", "dark")
        for name in ["start-picture" if kind == ".webp" else "diagram"]
    )


def _read(app, docname, source):
    source[0] = PICTURE.sub(_both, source[0])
    if docname == app.config.root_doc:
        app.env.note_dependency(str(CONTENTS))
        source[0] += CONTENTS.read_text("utf-8")


def setup(app):
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
