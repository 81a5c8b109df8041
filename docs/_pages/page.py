"""Run a page's blocks of code, first to last: `python page.py PAGE FOLDER`.

In the folder that it is called in, which should be empty. Results are printed as JSON,
a list for each block of what it printed and drew; figures are written to FOLDER. Python
shows what a notebook would: what is printed, and the value of a last line that is an
expression. Warnings are errors, but for the two that made-up data bring about.
"""

import ast
import io
import json
import os
import re
import shlex
import sys
import textwrap
import warnings
from contextlib import redirect_stderr, redirect_stdout
from glob import glob
from pathlib import Path

from blocks import blocks, entries

WIDTH = 80  # columns of a terminal


class PageError(Exception):
    """A block that fails, or a figure without words."""


def argv(entry):
    """The words of a command that calls spdp, patterns expanded; of another, None."""
    words = shlex.split(entry.removeprefix("$ ").replace("\\\n", " "), comments=True)
    if words[:1] != ["spdp"]:
        return None
    return ["spdp", *(file for word in words[1:] for file in (sorted(glob(word)) or [word]))]


def command(words):
    """Call spdp as from a terminal, in this process."""
    from spdp.cli import main

    before, sys.argv = sys.argv, words
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise PageError(f"exit code {end.code}: {shlex.join(words)}") from None
    finally:
        sys.argv = before


def python(block, page, namespace):
    tree = ast.parse("\n" * block.line + block.code, str(page))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(page), "exec"), namespace)
    if last:
        value = eval(compile(ast.Expression(last.value), str(page), "eval"), namespace)
        if value is not None and not _is_left_out(value):
            print(value if isinstance(value, str) else repr(value))


def _is_left_out(value):
    """Where `save` wrote, and parts of a figure that is shown."""
    drawn = re.match(r"(array\()?\[*<(matplotlib\.|Axes)", repr(value))
    return isinstance(value, Path) or drawn is not None


def wrapped(text):
    """Lines of words broken where a terminal would break them; tables stay."""
    for line in text.splitlines():
        if len(line) <= WIDTH + 4 or line[:1] in "│┃┏┡└├":
            yield line.rstrip()
        else:
            yield from textwrap.wrap(line, WIDTH, subsequent_indent="  ")


def figures(block, name, folder):
    """Save and close what was drawn; a figure has words, and words have a figure."""
    plt = sys.modules.get("matplotlib.pyplot")
    numbers = plt.get_fignums() if plt else []
    if len(numbers) != bool(block.picture):
        if plt:
            plt.close("all")
        raise PageError(f"line {block.line}: {len(numbers)} figures, words: {block.picture!r}")
    for number in numbers:
        plt.figure(number).savefig(folder / name, dpi=110, bbox_inches="tight")
        plt.close(number)
    return [name for _ in numbers]


def parts(block):
    """What is run of a block, one after the other; None is shown only."""
    if block.language == "python":
        return [(block.code, lambda page, names: python(block, page, names))]
    return [
        (entry, words and (lambda page, names, words=words: command(words)))
        for entry in entries(block.code)
        for words in [argv(entry)]
    ]


def run(page, folder):
    """For each block that is run, its parts: code, what it printed, and figures."""
    namespace = {"__name__": "__main__"}
    found = []
    for number, block in enumerate(blocks(Path(page).read_text("utf-8"))):
        if block.language not in ("python", "console"):
            continue
        shown = []
        for code, action in parts(block):
            text = io.StringIO()
            try:
                with redirect_stdout(text), redirect_stderr(text):
                    if action:
                        action(page, namespace)
                drawn = figures(block, f"{Path(page).stem}-{number}.png", folder)
            except BaseException as error:
                raise PageError(
                    f"{page}: line {block.line}: {error!r}\n{text.getvalue()}"
                ) from error
            printed = "\n".join(wrapped(text.getvalue().replace(f"{os.getcwd()}/", "")))
            shown.append({"code": code, "text": printed, "figures": drawn})
        found.append({"language": block.language, "parts": shown})
    return found


def main():
    import spdp

    os.environ |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "Agg"}
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", spdp.errors.DomainMismatch)
    warnings.simplefilter("ignore", spdp.errors.UninformativeRelease)
    page, folder = map(Path, sys.argv[1:])
    found = run(page, folder)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
