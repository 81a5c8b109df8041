r"""How many records a release needs at least, to be informative.

A sum over the whole domain, a ball of radius r, has sensitivity 2r under replace-one.
If all of the budget goes into it, the mean of n records has noise of scale 2r/(n·μ), or
2r/(n·ε) with Laplace noise, and no statistic that starts from the domain has less. The
domain's centre, which needs no data, is within r of any mean.

- *Not shrunk*: uninformative where the noise's 95 % quantile, which the certificate
  would state as its bound, is not below r.
- *Shrunk* toward the centre (a search that finds nothing returns a mean shrunk by James
  and Stein's factor): noise of expected square s² leaves an error of about
  a·s/√(a² + s²) where the mean is at distance a from the centre. The centre itself errs
  by a. Uninformative where the first is not a tenth smaller, even at a = r.

The radius cancels. *Therefore* the answer is a function of d, the budget and whether a
mean is shrunk. These are public, so that a refusal tells nothing of the records.
"""

from functools import lru_cache
from math import sqrt

from spdp.error.laws import mean_law, quantiles

UNINFORMATIVE = 0.9  # over the error of the domain's centre: less than a tenth better


@lru_cache(maxsize=256)  # asked before every release
def informative_from(d: int, price: float, laplace: bool, shrunk: bool) -> float:
    """The least n: with fewer records a release is known to be uninformative.

    ``price`` is ε of Laplace noise, and μ of Gaussian noise.
    """
    law = mean_law(laplace, d, (2.0 / price) ** 2, 0.0)  # of one record, over r²
    if shrunk:
        return sqrt(law.mean() * (1.0 - UNINFORMATIVE**2)) / UNINFORMATIVE
    return sqrt(quantiles(law)["95%"])
