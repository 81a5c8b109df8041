"""The page of a release, its card in a notebook, and its picture.

All of them are computed from the released values and their certificate; a page may also
cite the ledger's entry.
"""

import json
import re
from collections.abc import Sequence
from html import unescape
from typing import Any

import numpy as np

from spdp.errors import ParameterError
from spdp.release.board import About, in_field_units, promise, stages
from spdp.release.files import CERTIFICATE, seal_of
from spdp.release.release import Release
from spdp.release.summary import Summary, check_names
from spdp.release.verify import NOT_PROVEN
from spdp.rendering.figures import error_curve
from spdp.rendering.html import Figure, card, panel_figures, render, shaded, warning
from spdp.rendering.panels import VALUE, Panel, everything, paint

LEVELS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99)  # of the curve, in percent
LONGEST = 8  # numbers of a row that are written out
LARGEST, MOST = 10, 4  # size and number of matrices that a card shows
# The sentence of a page about a ledger's entry (`_entry`), which is not in the release.
LEDGER = re.compile(
    r"<p>Paid for in a ledger: entry \d+ of [^<]*, \d{4}-\d\d-\d\d \d\d:\d\d UTC, cost [με] = "
    r"[-+.e\d]+( per \w+)?\.</p>\n"
)
# What such a page says of the ledger's whole budget (`_balance`).
BALANCE = re.compile(
    r'<div class="bar" .*</div>\n<p>Of the budget ε = ([-+.e\d]+) at δ = ([-+.e\d]+), '
    r"ε = ([-+.e\d]+) was spent when .*</p>\n"
)


def panels(release: Release) -> list[Panel]:
    """The pictures of a release, the main one first, shapes of matrices last."""
    told = Summary(release.certificate)
    whole = release.values.keys() >= told.c.arrays.keys()
    drawn = told.declaration.panels(told.c, release.values) if whole else everything(release.values)
    return sorted(drawn, key=lambda panel: panel.kind == "solid")


def plot(release: Release, axes: Any = None, names: Sequence[str] | None = None) -> Any:
    """Draw a release; see :meth:`spdp.Release.plot`."""
    rows = release.row_names if names is None else names
    return paint(panels(release), axes, check_names(rows, release.certificate["k"]))


def card_of(release: Release) -> str:
    """A card for notebooks: the main facts, and small matrices on one scale."""
    told = Summary(release.certificate)
    drawn = [panel for panel in panels(release) if panel.kind == "matrix"]
    small = [p for p in drawn if p.scale == VALUE and len(p.data) <= LARGEST][:MOST]
    top = max((float(np.abs(p.data).max()) for p in small), default=0.0) or 1.0
    maps = [shaded(p.data.tolist(), p.title, top) for p in small]
    mismatch = told.mismatch(release.values)
    first = [] if told.uninformative is None else [f"{told.uninformative}."]
    first += [] if mismatch is None else [f"The domain does not fit: {mismatch}"]
    first += [f"Caution: {caution}" for caution in told.cautions]
    return card(told.heading, told.rows(), *maps, first="".join(map(warning, first)))


def html_report(
    release: Release,
    *,
    names: Sequence[str] | None = None,
    entry: dict[str, Any] | None = None,
    about: About | None = None,
) -> str:
    """What a board reads, pictures, the error's law and the certificate.

    ``names`` are those of the matrices' rows, by default the records' own. ``entry`` is
    the entry of the ledger that paid, as in its history, with the ledger's name and, if
    its state is to be shown, ``balance``: the budget's ε and δ and what was spent.
    ``about`` says whose page it is; like names and entry, it is taken as stated.
    """
    c, told = release.certificate, Summary(release.certificate)
    rows = check_names(release.row_names if names is None else names, c["k"])
    stated = About() if about is None else about
    balance = None if entry is None else entry.get("balance")
    return render(
        "release.html.j2",
        told=told,
        heading=stated.title or told.heading,
        what=told.heading,
        about=stated.stated(),
        subject=told.subject,
        promise=promise(told.c),
        units=in_field_units(told, release.values),
        stages=stages(told),
        misfit=told.mismatch(release.values),
        facts=told.rows() | {"created": c["created"]},
        numbers=_numbers(release),
        entry=None if entry is None else _entry(entry),
        balance="" if balance is None else _balance(*(f"{x:.4g}" for x in balance)),
        names=rows,
        figures=_figures(release, rows),
        steps=[_step(step, c["mu"]) for step in c["steps"]],
        seal=seal_of(release.values, c),
        not_proven=NOT_PROVEN,
        file=CERTIFICATE,
        certificate=json.dumps(_folded(c), indent=2, ensure_ascii=False),
    )


def says_the_same(page: str, release: Release) -> bool:
    """Whether a page belongs to a release: written again, it is the same in every byte.

    Names of rows, whose page it is and what it says of a ledger are not checked. Words
    may differ between versions of spdp, pictures between versions of matplotlib.
    """
    try:
        again = html_report(release, names=_names_in(page), about=_about_in(page))
    except (ParameterError, ValueError, TypeError):
        return False
    own = LEDGER.sub("", page, count=1)
    found = BALANCE.search(own)
    if found is not None and found[0] == _balance(*found.groups()):
        own = own.replace(found[0], "", 1)
    return own == again


def _names_in(page: str) -> list[str] | None:
    """The names of rows that a page was drawn with."""
    found = re.search(r'<h2 data-rows="([^"]*)">', page)
    return None if found is None else [str(name) for name in json.loads(unescape(found[1]))]


def _about_in(page: str) -> About:
    """Whose page it is, as its writer stated it."""
    found = re.search(r'<header data-about="([^"]*)">', page)
    return About() if found is None else About.of(**json.loads(unescape(found[1])))


def _balance(budget: str, delta: str, spent: str) -> str:
    """A ledger's budget as a bar and a sentence, from its numbers as written."""
    share = f"{100 * min(max(float(spent) / float(budget), 0.0), 1.0):.1f}"
    return (
        f'<div class="bar" role="img" aria-label="{share} % of the budget is spent">'
        f'<i style="width:{share}%"></i></div>\n'
        f"<p>Of the budget ε = {budget} at δ = {delta}, ε = {spent} was spent when this page was "
        "written, this release included.</p>\n"
    )


def _figures(release: Release, names: list[str] | None) -> list[Figure]:
    drawn = panel_figures(panels(release), names)
    if release.certificate["error_bound"] is not None:
        bounds = {level: release.error_bound(level / 100) for level in LEVELS}
        curve = error_curve(bounds, release.certificate["distance"])
        drawn.append((curve, "The error stays below a distance with at least this probability."))
    return drawn


def _numbers(release: Release) -> dict[str, str]:
    """Released numbers, and short rows of them, that are written out."""
    short = {name: a for name, a in release.values.items() if a.ndim < 2 and a.size <= LONGEST}
    return {
        name.replace("_", " "): ", ".join(f"{value:.4g}" for value in np.atleast_1d(array))
        for name, array in short.items()
    }


def _entry(entry: dict[str, Any]) -> str:
    label = f", “{entry['label']}”" if entry["label"] else ""
    unit = f" per {entry['unit']}" if entry["unit"] else ""
    cost = f"μ = {entry['mu']:.4g}" if entry["pure"] is None else f"ε = {entry['pure']:.4g}"
    when = entry["created"][:16].replace("T", " ")
    return f"entry {entry['id']} of {entry['ledger']}{label}, {when} UTC, cost {cost}{unit}"


def _step(step: dict[str, Any], total: float | None) -> dict[str, str]:
    """A row of the table of steps; shares are of μ², which is what adds up."""
    mu = step.get("mu")  # Laplace noise has none
    released = {name: value for name, value in step.items() if name not in ("step", "mu")}
    return {
        "name": step["step"],
        "mu": "" if mu is None else f"{mu:.4g}",
        "share": "" if mu is None or not total else f"{(mu / total) ** 2:.1%}",
        "released": ", ".join(f"{name}: {_brief(value)}" for name, value in released.items()),
    }


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} numbers"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _folded(content: Any) -> Any:
    """Plain data with long lists replaced by their length."""
    if isinstance(content, dict):
        return {name: _folded(value) for name, value in content.items()}
    if not isinstance(content, list):
        return content
    long = _is_plain(content) and _count(content) > LONGEST
    return f"… {_count(content):,} numbers" if long else [_folded(part) for part in content]


def _count(content: Any) -> int:
    return sum(map(_count, content)) if isinstance(content, list) else 1


def _is_plain(content: Any) -> bool:
    """Whether a list holds nothing but numbers, or lists of them."""
    if isinstance(content, list):
        return all(map(_is_plain, content))
    return isinstance(content, int | float)
