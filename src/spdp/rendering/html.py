"""HTML: cards for notebooks, and pages that load nothing and run no script.

Cards can be read on light and on dark pages: they use translucent greys, reds and blues
over the colours of the page. Styles are inline, since notebooks drop style sheets. All
texts are escaped, here or by the templates of pages; only pictures drawn here are
inserted as markup.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from spdp.errors import need
from spdp.rendering import figures
from spdp.rendering.panels import Panel, top_of

LINE = "1px solid rgba(128,128,128,.35)"
CELL = f"text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border:0;border-top:{LINE}"
WORDS = f"{CELL};overflow-wrap:anywhere;white-space:normal"
TABLE = "border-collapse:collapse;border:0;margin:0;background:transparent;color:inherit"
PLAIN_ROW = ' style="background:transparent"'  # notebooks paint stripes and hovers


def card(title: str, rows: Mapping[str, object], *parts: str, first: str = "") -> str:
    """A title, named facts, and HTML: ``parts`` below them, ``first`` above."""
    body = "".join(
        f'<tr{PLAIN_ROW}><th scope="row" style="{CELL};opacity:.75;font-weight:normal">'
        f'{escape(str(name))}</th><td style="{WORDS}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    facts = f'<table style="{TABLE}"><tbody>{body}</tbody></table>' if rows else ""
    return (
        f'<div style="border:{LINE};border-radius:6px;padding:.7em 1em;max-width:56em;'
        f'color:inherit;overflow-x:auto"><div style="font-weight:600;margin-bottom:.4em">'
        f"{escape(title)}</div>{first}{facts}{''.join(parts)}</div>"
    )


def grid(
    columns: Sequence[str], rows: Iterable[Sequence[object]], marked: Iterable[int] = ()
) -> str:
    """A table with a header; the rows in places ``marked`` are bold."""
    bold = set(marked)
    head = "".join(f'<th scope="col" style="{CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr style="background:transparent{";font-weight:600" if i in bold else ""}">'
        + "".join(f'<td style="{WORDS}">{escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for i, row in enumerate(rows)
    )
    table = f'<table style="{TABLE};margin-top:.8em">'
    return f"{table}<thead><tr{PLAIN_ROW}>{head}</tr></thead><tbody>{body}</tbody></table>"


def note(text: str) -> str:
    """A sentence."""
    return f'<div style="margin-top:.6em">{escape(text)}</div>'


def warning(text: str) -> str:
    """A sentence that must not be overlooked."""
    return (
        '<div style="margin:.4em 0;padding:.4em .8em;border-left:4px solid rgb(214,69,65);'
        f'background:rgba(214,69,65,.15)">{escape(text)}</div>'
    )


def bar(share: float, text: str) -> str:
    """How much of something is used up, from 0 to 1."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<div role="img" aria-label="{escape(text)}" style="margin-top:.8em;height:.7em;'
        f'border:{LINE};border-radius:4px;overflow:hidden"><div style="height:100%;'
        f'width:{width:.1f}%;background:rgba(33,120,200,.8)"></div></div>'
        f'<div style="opacity:.75">{escape(text)}</div>'
    )


def shaded(matrix: Sequence[Sequence[float]], title: str, top: float) -> str:
    """A matrix of numbers, red above zero and blue below, deepest at ``top``."""
    rows = "".join(
        f"<tr{PLAIN_ROW}>{''.join(_cell(value, top) for value in row)}</tr>" for row in matrix
    )
    caption = f'<caption style="text-align:left;color:inherit">{escape(title)}</caption>'
    return (
        f'<table style="{TABLE};margin:.8em 1.2em 0 0;display:inline-table">'
        f"{caption}<tbody>{rows}</tbody></table>"
    )


def _cell(value: float, top: float) -> str:
    ground = "214,69,65" if value > 0 else "49,124,206"
    share = 0.55 * abs(value) / top  # so that text in any ink can be read on it
    return (
        f'<td style="border:0;padding:.15em .5em;text-align:right;background:'
        f'rgba({ground},{share:.2f});font-variant-numeric:tabular-nums">{value:.3g}</td>'
    )


# --- pages

Figure = tuple[str, str]  # SVG, caption


def render(template: str, **content: Any) -> str:
    """A page from a template and its content."""
    jinja2 = need("jinja2", "report", "a report", "Jinja2")
    folder = files(__package__).joinpath("templates")
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(template).render(**content))


def panel_figures(panels: list[Panel], names: list[str] | None) -> list[Figure]:
    """Panels as SVG; those of one kind and scale share their range."""
    return [_figure(panel, panels, i, names) for i, panel in enumerate(panels)]


def _figure(panel: Panel, panels: list[Panel], i: int, names: list[str] | None) -> Figure:
    alike = [p.data for p in panels if (p.kind, p.scale) == (panel.kind, panel.scale)]
    name = f"{panel.kind}{i}"
    if panel.kind == "bars":
        return figures.bars(panel, name), f"{panel.title}."
    if panel.kind == "solid":
        reach = 1.1 * max(float(np.sqrt(np.diagonal(M).max())) for M in alike)
        seen = "" if len(panel.data) == 2 else ", seen along each axis"
        return figures.ellipses(panel.data, name, reach), f"{panel.title}{seen}."
    svg = figures.heat_map(panel.data, top_of(alike), names, name)
    shared = " All on one scale of colours." if len(alike) > 1 and panel.data is alike[0] else ""
    return svg, f"{panel.title}.{shared}"
