"""HTML for notebooks: cards that can be read on light and on dark pages.

Nothing has a colour of its own but translucent greys, reds and blues over whatever the
page is; styles stand in the elements, since notebooks drop style sheets. All texts are
escaped here.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["bar", "card", "grid", "note", "shaded", "warning"]

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
