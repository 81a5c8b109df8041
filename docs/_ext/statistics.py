"""Directives that list the statistics, from the table that the package itself uses.

``spdp-functions`` lists the function of each, with a page for it; ``spdp-statistics``
is a table of functions, commands and released arrays. A statistic that is added to
``spdp.statistics.STATISTICS`` appears in both.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.ext.autosummary import Autosummary
from sphinx.ext.autosummary.generate import generate_autosummary_docs

from spdp.statistics import every

GENERATED = "generated"  # folder beside the page, as in the other lists of the reference
COLUMNS = ("function", "command", "releases")


def _functions():
    return [f"private_{statistic.name.replace('-', '_')}" for statistic in every()]


class Functions(Autosummary):
    """``spdp-functions``: an autosummary of the statistics' functions."""

    has_content = False

    def run(self):
        self.options |= {"toctree": GENERATED, "nosignatures": True}
        self.content = StringList(_functions(), "spdp.statistics")
        return super().run()


def _write_pages(app):
    """Pages of the functions; autosummary itself finds only names in source files."""
    lines = [".. currentmodule:: spdp", "", ".. autosummary::", f"   :toctree: {GENERATED}", ""]
    with TemporaryDirectory() as folder:
        source = Path(folder, "statistics.rst")
        source.write_text("\n".join([*lines, *(f"   {name}" for name in _functions()), ""]))
        output = app.srcdir / "api" / GENERATED
        generate_autosummary_docs([str(source)], output_dir=output, app=app, imported_members=True)


class Table(Directive):
    """``spdp-statistics``: function, command and released arrays of each statistic."""

    def run(self):
        group = nodes.tgroup(cols=len(COLUMNS))
        group += [nodes.colspec(colwidth=1) for _ in COLUMNS]
        group += nodes.thead("", _row(*(nodes.Text(name) for name in COLUMNS)))
        group += nodes.tbody("", *(_row(*_cells(statistic)) for statistic in every()))
        return [nodes.table("", group)]


def _cells(statistic):
    name = statistic.name
    command = f"spdp {name}" if name == "mean" else f"spdp stats {name}"
    yield nodes.literal(text=f"private_{name.replace('-', '_')}")
    yield nodes.literal(text=command)
    yield nodes.Text(", ".join(statistic.releases))


def _row(*cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def setup(app):
    app.add_directive("spdp-functions", Functions)
    app.add_directive("spdp-statistics", Table)
    app.connect("builder-inited", _write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
