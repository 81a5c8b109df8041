"""Private statistics: which queries, with which shares, and what the answers mean."""
