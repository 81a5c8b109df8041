"""What the page says of a ledger, and how it creates one; it knows no page."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from spdp.errors import DataError, LedgerError, ParameterError
from spdp.ledger import Ledger
from spdp.ledger.ledger import LedgerView
from spdp.wizard.recipe import Recipe, explained

WHY = "How large an ε is left depends on the δ that goes with it."


@dataclass(frozen=True)
class LedgerState:
    """What was spent of a ledger, as a share and in words."""

    share: float
    text: str


def ledger_state(recipe: Recipe, paid: bool = False) -> LedgerState | str:
    """What the recipe's ledger has left, or why it cannot pay for this release.

    Where the release is ``paid``, the ledger does not have to pay for it once more.
    """
    file = Path(recipe.ledger or "")
    if not recipe.ledger or not file.exists():
        return f"{file.name or 'The ledger'} does not exist yet: create it."
    try:
        view = LedgerView(file)
        spent, left = view.spent(), view.remaining(recipe.delta or None)
        fits = view.would_fit(recipe.epsilon, recipe.delta)
    except (LedgerError, ParameterError, DataError) as error:
        return explained(error)
    most = left["epsilon"] if recipe.delta else left["pure_epsilon"]
    if not fits and not paid:
        return (
            f"{file.name} has not enough left for ε = {recipe.epsilon:.3g}: at most "
            f"{most:.3g} at δ = {recipe.delta:g}. Choose a smaller ε, or ask who keeps the ledger."
        )
    entries = spent["entries"]
    releases = f"{entries} release" if entries == 1 else f"{entries} releases"
    first = "This release is paid. " if paid else ""
    return LedgerState(
        min(1.0, spent["epsilon"] / view.epsilon) if view.epsilon else 1.0,
        f"{first}{file.name}: {spent['epsilon']:.3g} of ε = {view.epsilon:g} is spent (at δ = "
        f"{view.delta:g}) in {releases}. Left for one more release at δ = {recipe.delta:g}: "
        f"ε = {most:.3g}. {WHY}",
    )


def create_ledger(
    file: Path,
    epsilon: float,
    delta: float,
    recipe: Recipe,
    own: dict[Path, tuple[float, float]],
) -> str:
    """Create a ledger, and say so, or why it is not created.

    ``own`` are the ledgers that this wizard made: a second click asks for nothing new.
    """
    made = f"Created {file.name}: ε = {epsilon:g}, δ = {delta:g} in all."
    if file.exists():
        if own.get(file) == (epsilon, delta):
            return made
        return (
            f"{file.name} exists already: a ledger is created once. Choose “They have a ledger "
            "already”, or another name."
        )
    try:
        if not _pays(recipe, epsilon, delta):
            return (
                f"Not created: a total of ε = {epsilon:g}, δ = {delta:g} cannot pay for this "
                f"release of ε = {recipe.epsilon:.3g}, δ = {recipe.delta:g}. Enter a larger total, "
                "or choose a smaller ε."
            )
        Ledger(file, epsilon=epsilon, delta=delta)
    except (LedgerError, ParameterError, OSError) as error:
        return explained(error)
    own[file] = (epsilon, delta)
    return made


def _pays(recipe: Recipe, epsilon: float, delta: float) -> bool:
    """Whether a new ledger of these totals would pay for a release."""
    with tempfile.TemporaryDirectory(prefix="spdp-ledger-") as scratch:
        file = Path(scratch) / "trial.ledger"
        Ledger(file, epsilon=epsilon, delta=delta)
        return LedgerView(file).would_fit(recipe.epsilon, recipe.delta)
