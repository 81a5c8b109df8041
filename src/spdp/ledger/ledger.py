r"""A budget that cannot be overspent: the account of one protected dataset, in a file.

*Enforced.* A release's cost is committed, on disk, before any noise is drawn, and
refused if the total would exceed the budget (:mod:`spdp.privacy.composition`: the
composition and why it holds). A crash afterwards loses budget, never privacy: an entry
whose process ended without storing a result is marked lost, and nothing is ever drawn
for an existing entry. The budget is fixed at creation; changing it is a separate,
logged act. A damaged file is refused (:mod:`spdp.ledger.schema`).

*Adjacency.* The budget is for replacement of one record. What a release under another
adjacency costs is computed where its queries are known, by the
:class:`~spdp.privacy.account.Account`: Δ_replace/Δ of the query, times μ or ε, for a
release of one query; twice μ for one of several, as a replacement is a removal and an
addition. A mechanism with a stated sensitivity is charged as stated.

*Assumed.* Every release of the dataset goes through its ledger; the file is not rolled
back to an earlier copy, and nobody who can write it means to deceive.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from spdp.errors import BudgetExceeded, LedgerError, ParameterError, named
from spdp.kernels.arrays import array_of, plain
from spdp.ledger.file import LedgerFile
from spdp.ledger.identity import checked_key, fingerprint, without_number
from spdp.ledger.schema import NOBODY, STUDY, Book, Result
from spdp.options import positive
from spdp.privacy.budget import Budget, pure_mu
from spdp.privacy.composition import Balance, total_budget


class LedgerView:
    """What can be read from a ledger's file; reading spends nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LedgerFile(path)

    @property
    def file(self) -> LedgerFile:
        """The ledger's file."""
        return self._file

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
        """The unit that its releases protect: "record", "voxel" or "person".

        None until the first release that states one.
        """
        with self._file.open() as book:
            return book.unit

    def _balance(self) -> Balance:
        with self._file.open() as book:
            return balance_of(book)

    def spent(self) -> dict[str, Any]:
        """What was spent: entries, total μ, and the smallest ε at the ledger's δ.

        For Gaussian releases alone ε is exact. With pure ones it is the smallest of the
        valid bounds; where dp-accounting is installed (extra ``accounting``), privacy
        loss distributions give one more.
        """
        with self._file.open() as book:
            balance, entries = balance_of(book), len(book.entries)
        return {
            "entries": entries,
            "mu": balance.mu,
            "epsilon": balance.spent(),
            "delta": balance.delta,
        }

    def studies(self) -> dict[str, Any] | None:
        """Studies over sites: how many, and ε spent if in each all others collude.

        None for a ledger that was in no study.
        """
        with self._file.open() as book:
            terms, costs, joined, trust = book.terms, book.costs_alone, book.studies, book.trust
        if not joined:
            return None
        return {
            "joined": len(joined),
            "reserved": sum(study.state == "reserved" for study in joined),
            "epsilon_alone": Balance(terms.epsilon, terms.delta, *costs).at(terms.delta),
            "trust": trust,
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
            raise LedgerError(f"{self.path}: entry {entry} is {result.state}: no result was stored")
        return array_of(json.loads(result.value)), json.loads(result.certificate)

    def _result(self, book: Book, entry: int) -> Result:
        number = int(entry)
        if 1 <= number <= len(book.entries):  # SQLite knows no integers beyond 64 bits
            for result in book.results("id = ?", number):
                return result
        raise LedgerError(f"{self.path}: no entry {entry}; it has {len(book.entries)}")


class Ledger(LedgerView):
    """The budget of one dataset and what was spent of it.

    Pickling keeps the path only: neither the key nor what a running release holds.

    Parameters
    ----------
    path : path
        The ledger's file. Created if it does not exist and a budget is given.
    epsilon, delta : float, optional
        Total budget. Needed to create a ledger; for an existing one they may be left
        out and must otherwise agree with it. With ``delta=0`` it takes pure releases
        only.
    key : bytes, optional
        Key of the data's fingerprint, at least 16 bytes, kept by the curator; needed
        when the ledger is bound to data.
    trust : "study" or "nobody"
        What a new ledger is charged for studies over sites: their price as long as no
        more sites collude than a study assumes, or the price if all others collude.

    Examples
    --------
    >>> import numpy as np
    >>> import tempfile
    >>> from pathlib import Path
    >>> from spdp import EigenvalueBounds, Ledger, private_mean
    >>> file = Path(tempfile.mkdtemp()) / "study.ledger"
    >>> ledger = Ledger(file, epsilon=1.0, delta=1e-5)
    >>> X, domain = np.stack([np.eye(4)] * 100), EigenvalueBounds(0.5, 2.0)
    >>> half = {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian"}
    >>> release = private_mean(X, domain=domain, ledger=ledger, **half)
    >>> len(ledger.history()), ledger.would_fit(0.5, 1e-6), ledger.would_fit(2.0, 1e-6)
    (1, True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        key: bytes | None = None,
        trust: str = STUDY,
    ) -> None:
        self._attach(_resolved(path), checked_key(key))
        if trust not in (STUDY, NOBODY):
            raise ParameterError(f"{named('trust')} must be 'study' or 'nobody', got {trust!r}")
        if (epsilon is None) != (delta is None):
            raise ParameterError("a ledger's budget has both epsilon and delta")
        wanted = None if epsilon is None or delta is None else total_budget(epsilon, delta)
        if wanted is not None and not self._file.exists():
            self._file.create(*wanted, trust)
        with self._file.open(thorough=True) as book:
            found = (book.terms.epsilon, book.terms.delta)
            pending = book.results("state = 'pending'")
            asked = {study.entry for study in book.studies}  # what they release is public later
            gone = [r.id for r in pending if r.id not in asked and r.owner.is_gone()]
        if wanted is not None and wanted != found:
            raise ParameterError(
                f"{self.path}: its budget is epsilon = {found[0]:g}, delta = {found[1]:g}, not "
                f"{wanted[0]:g}, {wanted[1]:g}; a budget changes only by change_budget"
            )
        if trust == NOBODY != book.trust:
            raise ParameterError(f"{self.path}: whom a ledger trusts is settled at its creation")
        if gone:
            with suppress(LedgerError):  # a file that cannot be written can still be read
                self._mark_lost(gone)

    def _attach(self, path: Path, key: bytes | None) -> None:
        super().__init__(path)
        self._key = key
        self._tokens: dict[int, str] = {}  # prove that an entry was paid for by this object
        self._claims: list[str] = []  # of all entries that this object tried to pay for

    def _mark_lost(self, entries: list[int]) -> None:
        with self._file.open(write=True) as book:
            for result in book.results("state = 'pending'"):
                if result.id in entries:
                    book.conclude(result._replace(state="lost"))

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def _repr_html_(self) -> str:
        from spdp.ledger.text import html_of

        return html_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reattached, (self.path,)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ledger":
        """The same file, with the key: a copy stays in this process's memory."""
        return _reattached(self.path, self._key)

    # --- spending ---------------------------------------------------------------------
    def change_budget(self, epsilon: float, delta: float, reason: str) -> None:
        """Change the total budget: a separate act, recorded with its reason.

        The new budget must cover what was spent.
        """
        total = total_budget(epsilon, delta)
        if not isinstance(reason, str) or not reason.strip():
            raise ParameterError("a change of budget needs a reason, in words")
        with self._file.open(write=True) as book:
            if not Balance(*total, *book.costs).fits():
                raise BudgetExceeded(
                    f"{self.path}: more than epsilon = {epsilon:g}, delta = {delta:g} was "
                    "spent already"
                )
            old = (book.terms.epsilon, book.terms.delta)
            terms = book.terms._replace(epsilon=total[0], delta=total[1])
            book.agree(terms, _written(f"budget changed from {old} to {total}: {reason.strip()}"))

    def spend(
        self,
        *,
        mechanism: str,
        label: str | None = None,
        mu: float | None = None,
        pure: float | None = None,
        delta: float | None = None,
        factor: float = 1.0,
        unit: str | None = None,
    ) -> int:
        """Commit the cost of a release and return its entry's number.

        To be called before any noise is drawn.

        Parameters
        ----------
        mechanism, label : str
            What the history calls the release.
        mu, pure : float
            Its cost to this ledger: μ if its noise is Gaussian, or the ε of a pure one.
        delta : float, optional
            δ that was asked for, of a Gaussian release; for the message of a refusal.
        factor : float
            How many times its own μ, or ε, the release costs this ledger; for the
            message of a refusal.
        unit : "record", "voxel", "person" or None
            The unit of privacy. A ledger is for one unit: what protects records need
            not protect a person who has several.
        """
        if (mu is None) == (pure is None):
            raise ParameterError("a cost is mu, of a Gaussian release, or pure, an epsilon")
        pure = None if pure is None else positive("pure", pure)
        price = positive("mu", mu) if pure is None else pure_mu(pure)
        names = _written(mechanism), None if label is None else _written(label)
        token, entry = secrets.token_hex(), None
        self._claims.append(claim_of(token))  # before the commit, which may be interrupted
        with self._file.open(write=True) as book:
            balance = balance_of(book)
            if None not in (unit, book.unit) and unit != book.unit:
                raise LedgerError(
                    f"{self.path}: its budget is per {book.unit}, this release is per {unit}; "
                    "keep a ledger for each"
                )
            if balance.plus(price, pure).fits():
                entry = book.pay(*names, price, pure, unit, claim_of(token))
        if entry is None:
            raise balance.refusal(str(self.path), price, pure, delta, positive("factor", factor))
        self._tokens[entry] = token
        return entry

    def store(self, entry: int, value: Any, certificate: dict[str, Any]) -> None:
        """Keep a release with its entry and mark it done; what is released is public.

        ``value`` is an array, or several by name.

        Only the Ledger object that paid may do so, and once; also when its entry was
        marked lost meanwhile.
        """
        texts = json.dumps(plain(value)), json.dumps(certificate)
        failed = f"entry {entry} was paid for, and its result was not stored"
        with self._file.open(write=True, failed=failed) as book:
            result = self._result(book, entry)
            if result.state == "done":
                raise LedgerError(f"{self.path}: entry {entry} has its result already")
            if not hmac.compare_digest(claim_of(self._tokens.get(entry, "")), result.claim):
                raise LedgerError(f"{self.path}: entry {entry} was not paid for here; not stored")
            book.conclude(result._replace(state="done", value=texts[0], certificate=texts[1]))
        del self._tokens[entry]

    def paid(self) -> dict[int, str]:
        """Entries that this object paid for, with their states; read from the file.

        So it tells of an entry whose payment was interrupted, too.
        """
        if not self._claims:
            return {}
        with self._file.open() as book:
            return {r.id: r.state for r in book.results() if r.claim in self._claims}

    # --- identity of the data ---------------------------------------------------------
    def bind(self, X: Any) -> None:
        """Bind the ledger to these data by a keyed fingerprint, once.

        ``X`` is an array (n, k, k), a list of matrices, or an iterable of such blocks.
        """
        if self._key is None:
            raise ParameterError("binding a ledger needs a key", ask="ledger_key")
        self.bind_mark(fingerprint(X, self._key))

    def bind_mark(self, mark: str) -> None:
        """Bind the ledger to data by their fingerprint, computed elsewhere."""
        with self._file.open(write=True) as book:
            bound = book.terms.fingerprint
            if bound is not None and without_number(bound) != mark:
                raise LedgerError(f"{self.path}: bound to other data already")
            if bound is None:
                book.agree(book.terms._replace(fingerprint=mark), "bound to data")

    def _fingerprint(self) -> str | None:
        with self._file.open() as book:
            mark = book.terms.fingerprint
        return None if mark is None else without_number(mark)

    @property
    def is_bound(self) -> bool:
        """Whether the ledger is bound to data."""
        return self._fingerprint() is not None

    @property
    def key(self) -> bytes:
        """Key of the fingerprint."""
        if self._key is None:
            raise LedgerError(f"{self.path}: bound to its data; a key is needed", ask="ledger_key")
        return self._key

    def check_mark(self, mark: str, name: str) -> None:
        """Refuse data other than those the ledger is bound to."""
        if not hmac.compare_digest(mark, str(self._fingerprint())):
            raise LedgerError(f"{self.path}: {name} is not the data this ledger is bound to")


def check_ledger(ledger: Any) -> Ledger | None:
    """The ledger a release is given, if any, or an error that says how to open one.

    A path is not opened implicitly: a ledger is opened once, with its key.
    """
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    raise ParameterError(
        f"{named('ledger')} must be a Ledger, got {ledger!r}: open its file with "
        "spdp.Ledger(path), or create one with spdp.Ledger(path, epsilon=..., delta=...)"
    )


def _reattached(path: Path, key: bytes | None = None) -> Ledger:
    """A ledger that opens its file when it is first used."""
    ledger = Ledger.__new__(Ledger)
    ledger._attach(path, key)
    return ledger


def _resolved(path: str | os.PathLike[str]) -> Path:
    """The path as it is now: a later chdir must not change the account."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise LedgerError(f"{path!r}: not a usable path ({error})") from None


def _written(text: str) -> str:
    """``text`` if it can be written down."""
    if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParameterError(f"{text!r} is not text")
    return str(text)  # no subclass, which may print in another way


def claim_of(token: str) -> str:
    """What an entry keeps of the token that proves who paid."""
    return hashlib.sha256(token.encode()).hexdigest()


def balance_of(book: Book) -> Balance:
    """Budget and costs that a book states."""
    return Balance(book.terms.epsilon, book.terms.delta, *book.costs)


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
