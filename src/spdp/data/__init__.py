"""Where records come from.

Sources in pieces, files, images, the datasets of the paper.
"""

from spdp.data.opening import open_records
from spdp.data.source import Source, as_source

__all__ = ["Source", "as_source", "open_records"]
