"""``spdp stats``: statistics beyond the mean, one command each."""

from spdp.cli.examples import group, register
from spdp.cli.stats import classes, compare, median, pca, plan, regress, spread

__all__ = ["app"]

app = group("Statistics beyond the mean, each for one budget.")
register(
    app,
    classes.classes,
    spread.spread,
    pca.pca,
    median.median,
    regress.regress,
    compare.compare,
    plan.plan,
    under="stats",
)
