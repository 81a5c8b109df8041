"""Where records come from: arrays and files, read block by block."""

from spdp.data.opening import open_records
from spdp.data.source import Source, as_source

__all__ = ["Source", "as_source", "open_records"]
