"""The private search for where the data are, and the mean taken there."""

from spdp.privacy.bounds import Bound
from spdp.statistics.search.run import Search
from spdp.statistics.search.state import Found, resolution

__all__ = ["Bound", "Found", "Search", "resolution"]
