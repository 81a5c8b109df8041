"""The private search for where the data are, and the mean taken there."""

from spdp.privacy.bounds import Bound
from spdp.statistics.search.run import Search
from spdp.statistics.search.state import Found, resolution

__all__ = ["KEEP_BYTES", "Bound", "Found", "Search", "resolution"]

# vectors kept for the search; of more records it looks at every 2nd, 4th, … block
KEEP_BYTES = 160 << 20
