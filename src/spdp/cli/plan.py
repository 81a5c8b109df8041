"""``spdp plan``: how accurate a release would be, from public numbers."""

from math import ceil, sqrt
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdp.choices import Adjacency, Noise
from spdp.cli import options
from spdp.cli.output import console, print_json, say
from spdp.errors import ParameterError

if TYPE_CHECKING:
    from spdp.domain import Domain
    from spdp.statistics.plan import OneShot

__all__ = ["plan"]

SPREADS = (0.5, 0.2, 0.1, 0.05)  # of data, as parts of the domain's radius
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 500.0  # between which a wanted error is sought
REACH = 30.0  # the curve shows n/30 to 30·n

Plan = dict[str, Any]
Size = Annotated[int, typer.Option("--k", min=1, help="Size of the matrices.")]
Number = Annotated[int, typer.Option("--n", min=1, help="Number of records.")]
Wanted = Annotated[
    float | None,
    typer.Option(metavar="ERROR", help="Wanted rms error: what n or ε would reach it?"),
]


def plan(
    k: Size,
    n: Number,
    epsilon: options.Epsilon,
    delta: options.Delta,
    eigenvalues: options.Eigenvalues = None,
    radius: options.Radius = None,
    error: Wanted = None,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Show how accurate a release would be; no data is needed."""
    from spdp.report import plan_picture

    if error is not None and not error > 0:
        raise ParameterError(f"--error must be positive, got {error:g}")
    planner = _Planner(k, n, epsilon, delta, options.domain_from(eigenvalues, radius), adjacency)
    result = planner.result()
    if error is not None:
        result |= planner.needed_for(error)
    if plot is not None:
        plan_picture(plot, *planner.curves(), n)
    if as_json:
        print_json(result)
        return
    _show(result, planner)
    if plot is not None:
        say(f"wrote {plot}")


class _Planner:
    """Predictions for one size, number, budget and domain."""

    def __init__(
        self,
        k: int,
        n: int,
        epsilon: float,
        delta: float,
        domain: "Domain",
        adjacency: Adjacency,
    ) -> None:
        self.k, self.n, self.epsilon, self.delta = k, n, epsilon, delta
        self.domain, self.adjacency = domain, adjacency
        self.best = self._shot(epsilon)
        noises = [Noise.GAUSSIAN] * (delta > 0) + [Noise.LAPLACE] * (epsilon > 0)
        self.shots = {str(noise): self._shot(epsilon, noise) for noise in noises}

    def _shot(self, epsilon: float, mechanism: str = "auto") -> "OneShot":
        from spdp.statistics.plan import plan_one_shot

        return plan_one_shot(
            self.k,
            epsilon=epsilon,
            delta=self.delta,
            domain=self.domain,
            mechanism=mechanism,
            adjacency=self.adjacency,
        )

    def result(self) -> Plan:
        """What is predicted, JSON-ready."""
        from spdp.statistics.plan import choose_method

        radius = self.domain.radius_for(self.k)
        result: Plan = {
            "k": self.k,
            "n": self.n,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": str(self.adjacency),
            "domain": self.domain.describe(),
            "domain_radius": radius,
            "mechanisms": {name: self._errors(shot) for name, shot in self.shots.items()},
            "best": str(self.best.noise),
            "method": choose_method(self.best, self.n, self.epsilon, self.delta, "auto"),
            "hopeless": self.best.expected_squared_error(self.n) > radius**2,
        }
        if self.delta > 0 and self.adjacency is Adjacency.REPLACE_ONE:
            result["adaptive"] = self._adaptive(radius)
        return result

    def _errors(self, shot: "OneShot") -> dict[str, Any]:
        from spdp.privacy.account import NAMES
        from spdp.privacy.laws import mean_of, quantiles

        law = shot.law(self.n)
        return {
            "mechanism": NAMES[shot.noise],
            "rms_error": sqrt(mean_of(law)),
            "error_95": sqrt(quantiles(law)["95%"]),
        }

    def _adaptive(self, radius: float) -> list[dict[str, float]]:
        """Predicted rms noise of the adaptive method, for data of some spreads."""
        from spdp.privacy import gaussian_mu
        from spdp.statistics.search import predict

        d, mu = len(self.best.query.center), gaussian_mu(self.epsilon, self.delta)
        return [
            {"spread": part, "rms_noise": sqrt(predict(self.n, d, mu, radius, part * radius))}
            for part in SPREADS
        ]

    def needed_for(self, error: float) -> Plan:
        """The n, and the ε, that would reach a wanted rms error."""
        return {
            "wanted_error": error,
            "n_needed": ceil(sqrt(self.best.expected_squared_error(1.0)) / error),
            "epsilon_needed": self._epsilon_for(error),
        }

    def _epsilon_for(self, error: float) -> float | None:
        """Smallest ε, to 1 %, that reaches an rms error; None beyond the largest."""

        def reaches(epsilon: float) -> bool:
            return self._shot(epsilon).expected_squared_error(self.n) <= error**2

        low, high = SMALLEST_EPSILON, LARGEST_EPSILON
        if not reaches(high):
            return None
        while high / low > 1.01:
            middle = sqrt(low * high)
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return float(f"{high:.3g}")

    def curves(self) -> tuple[Any, dict[str, Any]]:
        """Numbers of records, and the rms errors of each mechanism."""
        import numpy as np

        from spdp.privacy.account import NAMES

        grid = np.unique(np.geomspace(max(1, self.n / REACH), self.n * REACH, 9).round())
        return grid, {
            NAMES[shot.noise]: np.sqrt([shot.expected_squared_error(m) for m in grid])
            for shot in self.shots.values()
        }


def _show(result: Plan, planner: _Planner) -> None:
    from spdp.report import terminal_curve

    console().print(_table(result))
    if result["hopeless"]:
        text = "The budget is too small: nothing is expected to beat the domain's centre."
        say(text, style="red")
    if "wanted_error" in result:
        say(_needed(result))
    grid, errors = planner.curves()
    best = result["mechanisms"][result["best"]]["mechanism"]
    say("")
    say(f"rms error of {best} in one shot, by number of records (logarithmic bars):")
    for line in terminal_curve(grid, errors[best], "n"):
        say(line)


def _table(result: Plan) -> Any:
    from rich.table import Table

    title = f"n = {result['n']:,}, k = {result['k']}, ε = {result['epsilon']:g}, "
    title += f"δ = {result['delta']:g}, domain radius {result['domain_radius']:.4g}"
    table = Table(
        "mechanism", "rms error", "95 % of releases within", title=title, title_justify="left"
    )
    adaptive = result["method"] == "adaptive"
    for name, row in result["mechanisms"].items():
        style = "bold" if name == result["best"] and not adaptive else ""
        numbers = f"{row['rms_error']:.4g}", f"{row['error_95']:.4g}"
        table.add_row(f"{row['mechanism']}, one shot", *numbers, style=style)
    for row in result.get("adaptive", []):
        text = f"adaptive, spread {row['spread']:.0%} of the radius"
        table.add_row(text, f"{row['rms_noise']:.4g}", "", style="bold" if adaptive else "")
    return table


def _needed(result: Plan) -> str:
    epsilon = result["epsilon_needed"]
    other = f"ε = {epsilon:g}" if epsilon else f"more than ε = {LARGEST_EPSILON:g}"
    return (
        f"rms error {result['wanted_error']:g} in one shot needs n = {result['n_needed']:,} "
        f"at this ε, or {other} at this n"
    )
