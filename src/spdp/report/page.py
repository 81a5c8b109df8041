"""One self-contained HTML page about a release: no script, nothing to be loaded."""

import json
import re
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import seal_of
from spdp.errors import DataError
from spdp.release import Release
from spdp.report import figures, words

__all__ = ["html_report", "says_the_same"]

MOST = 12  # matrices that are drawn
LEVELS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99)  # of the curve, in percent


def html_report(release: Release) -> str:
    """The matrix, the guarantee in plain words, the error's law and the certificate.

    All texts are escaped by the template; only the pictures drawn here are markup.
    """
    return _page(release, _figures(release))


def says_the_same(page: str, release: Release) -> bool:
    """Whether a page's words are those of a release; its pictures are not compared.

    Words may differ between versions of spdp.
    """
    return re.sub(r"<figure>.*?</figure>\n", "", page, flags=re.DOTALL) == _page(release, [])


def _page(release: Release, pictures: list[tuple[str, str]]) -> str:
    c = release.certificate
    return str(
        _template().render(
            heading=words.heading(c),
            subject=words.subject(c),
            verdict=words.verdict(c),
            accuracy=words.accuracy(c),
            coverage=words.coverage(c),
            facts=words.facts(c) | {"created": c["created"]},
            figures=pictures,
            steps=[_step(step, c["mu"]) for step in c["steps"] or []],
            certificate=json.dumps(c, indent=2, ensure_ascii=False),
            seal=seal_of(release.values, c),
        )
    )


def _template() -> Any:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise DataError(
            "a report needs Jinja2; install it with: pip install 'spdp[report]'"
        ) from None
    text = files(__package__).joinpath("templates", "release.html.j2").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(text)


def _figures(release: Release) -> list[tuple[str, str]]:
    """Pairs (SVG, caption)."""
    value, c = release.value, release.certificate
    drawn = []
    if value.ndim == 3:
        names = [f"Matrix {i}" for i in range(len(value))]
        if c["statistic"] == "class-means":
            names = [f"Mean of class {name}" for name in c["steps"][-1]["classes"]]
        pairs = zip(value[:MOST], names[:MOST], strict=True)
        drawn = [map_ for one, name in pairs for map_ in _maps(one, name)]
    elif value.ndim == 2:
        drawn = _maps(value, "The released matrix")
    real = not np.iscomplexobj(value)
    if real and value.shape in ((2, 2), (3, 3)) and np.linalg.eigvalsh(value)[0] > 0:
        caption = "Its ellipse." if len(value) == 2 else "Its ellipsoid, seen along each axis."
        drawn.append((figures.ellipses(value), caption))
    if c["error_bound"] is not None:
        bounds = {level: release.error_bound(level / 100) for level in LEVELS}
        curve = figures.error_curve(bounds, c["distance"])
        drawn.append((curve, "The error stays below a distance with at least this probability."))
    return drawn


def _maps(matrix: NDArray[Any], name: str) -> list[tuple[str, str]]:
    """The heat map of a matrix; of a complex one, those of its two parts."""
    if not np.iscomplexobj(matrix):
        return [(figures.heat_map(matrix), f"{name}.")]
    parts = {"real": matrix.real, "imaginary": matrix.imag}
    return [(figures.heat_map(part), f"{name}: {kind} part.") for kind, part in parts.items()]


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
