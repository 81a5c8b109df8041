"""A ledger in words: what its budget is, what was spent, and what is left."""

from typing import TYPE_CHECKING, Any

from spdp.errors import LedgerError
from spdp.markup import bar, card, grid

if TYPE_CHECKING:
    from spdp.privacy.ledger import Ledger

__all__ = ["COLUMNS", "entry_cells", "html_of", "share_spent", "state_of", "statement"]

State = dict[str, Any]

COLUMNS = ("entry", "time (UTC)", "label", "mechanism", "protects", "μ", "state")
NEWEST = 8  # entries that a notebook shows


def state_of(ledger: "Ledger") -> State:
    """Budget, what was spent of it, what is left, and for whom; JSON-ready."""
    return {
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "unit": ledger.unit,
        "spent": ledger.spent(),
        "remaining": ledger.remaining(),
        "acts": ledger.acts(),
    }


def statement(state: State) -> dict[str, str]:
    """The account, as named facts."""
    spent, left = state["spent"], state["remaining"]
    releases = "1 release" if spent["entries"] == 1 else f"{spent['entries']:,} releases"
    gaussian = f"a Gaussian release with ε = {left['epsilon']:.4g}, or "
    pure = f"a pure one with ε = {left['pure_epsilon']:.4g}"
    per = f" per {state['unit']}" if state["unit"] else ""
    return {
        "budget": f"ε = {state['epsilon']:g}, δ = {state['delta']:g}{per}",
        "spent": f"ε = {spent['epsilon']:.4g} in {releases} (μ = {spent['mu']:.4g})",
        "left for": (gaussian if state["delta"] > 0 else "") + pure,
    }


def share_spent(state: State) -> float:
    """Of ε, between 0 and 1."""
    return min(1.0, float(state["spent"]["epsilon"] / state["epsilon"]))


def entry_cells(entry: dict[str, Any]) -> tuple[str, ...]:
    """An entry of the history in the order of :data:`COLUMNS`."""
    time, label = entry["created"][:16].replace("T", " "), entry["label"] or ""
    unit = entry["unit"] or "as stated"
    cost = f"{entry['mu']:.4g}"
    return str(entry["id"]), time, label, entry["mechanism"], unit, cost, entry["state"]


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
        parts.append(grid(COLUMNS, [entry_cells(entry) for entry in history[-NEWEST:]]))
    older = len(history) - NEWEST
    rows = statement(state) | ({"older entries": f"{older:,}, not shown"} if older > 0 else {})
    return card(title, rows, *parts)
