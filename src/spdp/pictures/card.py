"""A release as a card for notebooks."""

import numpy as np

from spdp.cautions import outside
from spdp.markup import card, shaded, warning
from spdp.pictures.panels import VALUE, Certificate, Values, panels
from spdp.words import facts, heading

__all__ = ["html_of"]

LARGEST, MOST = 10, 4  # size and number of matrices that are shown


def html_of(values: Values, certificate: Certificate) -> str:
    """The main facts, and small matrices on one scale."""
    drawn = [panel for panel in panels(values, certificate) if panel.kind == "matrix"]
    small = [p for p in drawn if p.scale == VALUE and len(p.data) <= LARGEST][:MOST]
    top = max((float(np.abs(p.data).max()) for p in small), default=0.0) or 1.0
    maps = [shaded(p.data.tolist(), p.title, top) for p in small]
    misfit = outside(values, certificate)
    first = "" if misfit is None else warning(f"The domain does not fit: {misfit}")
    return card(heading(certificate), facts(certificate), *maps, first=first)
