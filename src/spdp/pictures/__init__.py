"""Pictures of releases: which there are, and how they are drawn with matplotlib.

Everything here is computed from released numbers and their certificate.
"""

from spdp.pictures.card import html_of
from spdp.pictures.painting import plot
from spdp.pictures.panels import Panel, panels

__all__ = ["Panel", "html_of", "panels", "plot"]
