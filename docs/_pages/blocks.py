"""Blocks of code in a Markdown page: what the site shows is what the tests run.

A page is plain Markdown, so that it can be read where the repository is. Its ``python``
blocks share one namespace; of a ``console`` block, the commands that call spdp are run.
A block after ``<!-- not run: REASON -->`` is not; one after ``<!-- picture: WORDS -->``
draws a figure, and the words describe it to whoever does not see it.
"""

import re
from textwrap import dedent
from typing import NamedTuple

MARK = r"(?:<!-- (not run|picture): (\w[^>]*?) ?-->\n+)?"
FENCE = re.compile(rf"{MARK}^( *)```([^`\n]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    code: str
    line: int
    picture: str


def blocks(text):
    """The blocks of a page that are run, in order."""
    for found in FENCE.finditer(text):
        mark, words, _, language, code = found.groups()
        if mark != "not run":
            line = text.count("\n", 0, found.start(5))
            yield Block(language, dedent(code), line, words or "")


def entries(code):
    """Entries of a ``console`` block: a command and the lines that belong to it."""
    found = []
    for line in code.splitlines():
        if line.startswith("$ ") or not found:
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    return found
