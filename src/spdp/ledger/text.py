"""A ledger as text: its budget, what was spent, and what is left."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spdp.errors import LedgerError
from spdp.ledger.schema import NOBODY
from spdp.privacy.calibration import gaussian_epsilon, next_below
from spdp.privacy.composition import Balance
from spdp.rendering.html import bar, card, grid

if TYPE_CHECKING:
    from spdp.ledger.ledger import Ledger


State = dict[str, Any]

NEWEST = 8  # entries that a notebook shows


def state_of(ledger: "Ledger") -> State:
    """Budget, what was spent of it, what is left, and the unit; JSON-ready."""
    stated = {name: getattr(ledger, name) for name in ("epsilon", "delta", "unit")}
    told = {name: getattr(ledger, name)() for name in ("spent", "remaining", "acts", "studies")}
    return stated | told


def statement(state: State) -> dict[str, str]:
    """The account, as named facts."""
    spent, left = state["spent"], state["remaining"]
    releases = "1 release" if spent["entries"] == 1 else f"{spent['entries']:,} releases"
    at = f"at δ = {state['delta']:g}"
    gaussian = f"a Gaussian release with ε = {left['epsilon']:.4g} {at}, or "
    pure = f"a pure one with ε = {left['pure_epsilon']:.4g}"
    per = f" per {state['unit']}" if state["unit"] else ""
    rows = {
        "budget": f"ε = {state['epsilon']:g}, δ = {state['delta']:g}{per}",
        "spent": f"ε = {spent['epsilon']:.4g} in {releases} (μ = {spent['mu']:.4g})",
        "left for": (gaussian if state["delta"] > 0 else "") + pure,
    }
    if state["studies"] is not None:
        rows["studies"] = _of_studies(state["studies"])
    return rows


def _of_studies(told: State) -> str:
    """What studies over sites cost if others collude, and what is only reserved."""
    reserved = f"; {told['reserved']} reserved, not answered yet" if told["reserved"] else ""
    charged = "that is charged" if told["trust"] == NOBODY else "that is not charged"
    return (
        f"{told['joined']} over sites{reserved}. If in each of them all other sites collude, "
        f"ε = {told['epsilon_alone']:.4g} is spent: {charged}"
    )


def share_spent(state: State) -> float:
    """Share of ε that is spent, between 0 and 1."""
    return min(1.0, float(state["spent"]["epsilon"] / state["epsilon"]))


def spent_over_time(ledger: "Ledger") -> list[float]:
    """ε spent before the first release of a ledger and after each."""
    history, epsilon, delta = ledger.history(), ledger.epsilon, ledger.delta
    mus, pures = ([entry[name] for entry in history] for name in ("mu", "pure"))
    balances = (Balance(epsilon, delta, mus[:i], pures[:i]) for i in range(len(history) + 1))
    return [balance.spent() for balance in balances]


def statistic_of(entry: dict[str, Any]) -> str:
    """What an entry released; empty where no result was stored."""
    return str((entry["certificate"] or {}).get("statistic", ""))


def epsilon_alone(entry: dict[str, Any], delta: float) -> float:
    """ε that an entry by itself satisfies at δ; that of a pure one holds at any δ.

    These do not add up: composition is by μ (:mod:`spdp.privacy.composition`).
    """
    if entry["pure"] is not None:
        return float(entry["pure"])
    return _epsilon_of(delta, entry["mu"])


@lru_cache(maxsize=1024)  # a history repeats what was asked
def _epsilon_of(delta: float, mu: float) -> float:
    return gaussian_epsilon(next_below(delta), mu)


def columns_of(delta: float) -> tuple[str, ...]:
    """Names of the history's columns, for a ledger's δ."""
    alone = f"ε alone, at δ = {delta:g}" if delta > 0 else "ε alone"
    return "entry", "time (UTC)", "label", "released", "mechanism", "protects", "μ", alone, "state"


def entry_cells(entry: dict[str, Any], delta: float) -> tuple[str, ...]:
    """An entry of the history in the order of :func:`columns_of`."""
    return (
        str(entry["id"]),
        entry["created"][:16].replace("T", " "),
        entry["label"] or "",
        statistic_of(entry),
        entry["mechanism"],
        entry["unit"] or "as stated",
        f"{entry['mu']:.4g}",
        f"{epsilon_alone(entry, delta):.4g}",
        entry["state"],
    )


def html_of(ledger: "Ledger") -> str:
    """A card for notebooks."""
    title = f"Ledger {ledger.path.name}"
    try:
        state, history = state_of(ledger), ledger.history()
    except LedgerError as error:
        return card(title, {"cannot be read": error})
    share = share_spent(state)
    parts = [bar(share, f"{share:.0%} of ε is spent")]
    if history:
        newest = [entry_cells(entry, state["delta"]) for entry in history[-NEWEST:]]
        parts.append(grid(columns_of(state["delta"]), newest))
    older = len(history) - NEWEST
    rows = statement(state) | ({"older entries": f"{older:,}, not shown"} if older > 0 else {})
    return card(title, rows, *parts)
