r"""Where a record may lie: public sets, chosen without looking at the data.

Records are CLIPPED to the domain one by one, so the sensitivity of their mean is
enforced, not assumed: with all vectors in a ball of radius r, replacing one of n
records moves the mean by at most 2r/n (theorem 3). A radius or bounds computed from the
data themselves leak the data; no function here computes one.
"""
