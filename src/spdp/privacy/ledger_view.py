"""What a ledger says: its budget, what was spent, and the releases it keeps.

*Enforced.* Nothing here writes: by asking, nothing is spent and nothing is drawn.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from spdp.errors import LedgerError
from spdp.plain import array_of
from spdp.privacy.balance import Balance
from spdp.privacy.costs import Budget
from spdp.privacy.ledger_book import Book, Result
from spdp.privacy.ledger_file import LedgerFile

__all__ = ["LedgerView", "balance_of"]


class LedgerView:
    """The questions that a ledger's file answers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LedgerFile(path)

    @property
    def epsilon(self) -> float:
        """ε of the total budget."""
        return self._balance().epsilon

    @property
    def delta(self) -> float:
        """δ of the total budget."""
        return self._balance().delta

    @property
    def unit(self) -> str | None:
        """Whose data its releases protect, a record's, voxel's or person's.

        None until the first release that says it.
        """
        with self._file.open() as book:
            return book.unit

    def _balance(self) -> Balance:
        with self._file.open() as book:
            return balance_of(book)

    def spent(self) -> dict[str, Any]:
        """What was spent: entries, total μ, and the smallest ε at the ledger's δ.

        Gaussian histories are exact. With pure entries, the smallest of the valid
        bounds; dp-accounting's privacy loss distributions, where installed (extra
        ``accounting``), are used for the history as it is.
        """
        balance = self._balance()
        return {
            "entries": len(balance.mus),
            "mu": balance.mu,
            "epsilon": balance.spent(),
            "delta": balance.delta,
        }

    def remaining(self, delta: float | None = None) -> dict[str, float]:
        """What is left: μ, and the largest ε that would fit.

        ``epsilon`` of a Gaussian release at ``delta`` (default: the ledger's), or
        ``pure_epsilon`` of a pure one.
        """
        balance = self._balance()
        return {
            "mu": balance.mu_left,
            "epsilon": balance.largest_gaussian(balance.delta if delta is None else delta),
            "pure_epsilon": balance.largest_pure(),
        }

    def would_fit(self, epsilon: float, delta: float) -> bool:
        """Whether a replace-one release at (ε, δ) would be accepted; pure if δ = 0."""
        pure = delta == 0
        budget = Budget.pure(epsilon) if pure else Budget.gaussian(epsilon, delta)
        return self._balance().affords(budget)

    def curve(self, deltas: Iterable[float] | None = None) -> list[tuple[float, float]]:
        """(δ, ε) pairs that the history satisfies."""
        balance = self._balance()
        grid = np.geomspace(1e-12, 1e-2, 11) if deltas is None else deltas
        return [(float(delta), balance.at(float(delta))) for delta in grid]

    def history(self) -> list[dict[str, Any]]:
        """All entries, oldest first, with values and certificates where stored."""
        with self._file.open() as book:
            entries, results = book.entries, book.results()
            if [entry.id for entry in entries] != [result.id for result in results]:
                raise book.damaged("its results are not those of its entries")
        return [
            {
                **entry._asdict(),
                "state": result.state,
                "value": _parsed(result.value),
                "certificate": _parsed(result.certificate),
            }
            for entry, result in zip(entries, results, strict=True)
        ]

    def acts(self) -> list[dict[str, str]]:
        """Everything that was done to the ledger besides spending."""
        with self._file.open() as book:
            return [{"created": created, "what": what} for _, created, what in book.acts]

    def recover(self, entry: int) -> tuple[Any, dict[str, Any]]:
        """Value (or values by name) and certificate of a release that was stored."""
        with self._file.open() as book:
            result = self._result(book, entry)
        if result.value is None or result.certificate is None:
            raise LedgerError(
                f"{self.path}: entry {entry} is {result.state}: it was paid for, but no result "
                "was stored"
            )
        return array_of(json.loads(result.value)), json.loads(result.certificate)

    def _result(self, book: Book, entry: int) -> Result:
        number = int(entry)
        if 1 <= number <= len(book.entries):  # SQLite knows no integers beyond 64 bits
            for result in book.results("id = ?", number):
                return result
        raise LedgerError(f"{self.path}: no entry {entry}; it has {len(book.entries)}")


def balance_of(book: Book) -> Balance:
    """Budget and costs that a book states."""
    return Balance(book.terms.epsilon, book.terms.delta, *book.costs)


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
