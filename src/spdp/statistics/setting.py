"""What every statistic starts with: records, chart, domain, and an account to pay from.

*Enforced.* All options are checked, and a ledger's data, before records are read;
records are read before anything is paid; whatever leaves is asked through the account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, chart_of
from spdp.choices import Adjacency, OnInvalid, choose, real
from spdp.data.columns import beside
from spdp.data.source import Source, as_source
from spdp.domain import Domain, check_domain
from spdp.engines import Engine, Held, engine_for
from spdp.errors import ParameterError, named
from spdp.kernels import Region
from spdp.privacy.account import Account, Seed
from spdp.privacy.costs import Budget
from spdp.privacy.ledger import Ledger
from spdp.queries import RECORD_NORM
from spdp.statistics.search.state import Outside, check_reach

__all__ = ["Setting", "prepare"]


@dataclass(frozen=True)
class Setting:
    """A dataset in its chart and domain, and the account of one release of it."""

    source: Source
    chart: Chart
    domain: Domain
    region: Region
    engine: Engine
    policy: OnInvalid
    account: Account

    @property
    def private_count(self) -> bool:
        """Whether the number of records (or persons) is protected too."""
        return self.account.adjacency is Adjacency.ADD_REMOVE

    def gather(
        self,
        classes: Sequence[Any] | None = None,
        ranges: NDArray[np.float64] | None = None,
    ) -> Held:
        """Vectors of all records, or persons, with their class or covariates."""
        task = self.engine.task(self.source, self.chart, self.region, self.policy, classes, ranges)
        return self.engine.gather(
            self.source, task._replace(key=self.account.key), self.private_count
        )

    def facts(self, outside: Outside | None, n: float, size: float) -> dict[str, Any]:
        """What certificates of all statistics say alike.

        ``outside`` tells of records at the domain's edge. The last answer is a sum over
        n records, public or estimated, of lattice points of length 2³⁰ at most, which
        stands for ``size``.
        """
        last, step = self.account.steps[-1], size / RECORD_NORM
        return {
            **self.chart.describe(),
            "k": self.source.k,
            "domain": self.domain.describe(),
            "outside": None if outside is None else outside.describe(),
            "n": None if self.private_count else int(n),
            "n_estimate": float(n) if self.private_count else None,
            "sensitivity": last["sensitivity"] * step / n,
            "sigma": last["scale"] * step / n,
            "lattice_step": step,
        }


def prepare(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | str | None = None,
    classes_of: Any = None,
    covariates: Any = None,
    reference_point: Any = None,
) -> Setting:
    """Check the options that statistics of Gaussian noise share.

    They are named as in :func:`spdp.private_mean`; ``classes_of`` and ``covariates``
    stand beside the records.
    """
    policy = choose(OnInvalid, on_invalid, "on_invalid")
    neighbours = choose(Adjacency, adjacency, "adjacency")
    if not real("delta", delta) > 0:
        raise ParameterError(
            f"this statistic needs Gaussian noise: {named('delta')} must be positive"
        )
    source = beside(as_source(X), person=groups, label=classes_of, x=covariates)
    chart = chart_of(metric, reference_point, source.parts)
    region = check_domain(domain).region(source.k, chart)
    check_reach(region)
    chosen = engine_for(source, engine)
    account = Account(
        Budget.gaussian(epsilon, delta),
        neighbours,
        ledger=ledger,
        label=label,
        random_state=random_state,
        unit=source.unit,
    )
    if ledger is not None:
        chosen.check_data(source, ledger)
    return Setting(source, chart, domain, region, chosen, policy, account)
