r"""A budget that cannot be overspent: the account of one protected dataset, in an SQLite file.

*Enforced.* A release's cost is committed durably (one IMMEDIATE transaction in WAL mode, fsync'd) before any noise is drawn, and refused if
the total would exceed the budget. A crash afterwards loses budget, never privacy: an entry without a stored result is marked lost when the
ledger is next opened, and nothing is ever drawn for an existing entry. The budget is fixed at creation; changing it is a separate, logged
act.

*Composition.* An entry is μ_i-GDP. A Gaussian release is so exactly; a pure ε_i-DP release is dominated by μ_i = 2Φ⁻¹(e^ε_i/(1 + e^ε_i)),
because the trade-off curve of ε-DP is the two chords through the point where that Gaussian curve meets the diagonal (Dong, Roth, Su 2022).
The condition Σ μ_i² ≤ μ²(ε, δ), compared in exact arithmetic, is a valid filter for releases whose parameters were chosen after earlier
results were seen (Smith and Thakurta 2022). So is Σ ε_i ≤ ε when every entry is pure (Rogers et al. 2016), and so is accepting either:
outcomes of the second kind have privacy loss at most ε and add nothing to δ.

*Adjacency.* The budget is for replacement of one record. A release under add-remove adjacency costs twice its μ, or twice its pure ε: a
replacement is a removal and an addition (group privacy of two; Dong, Roth, Su 2022). A mechanism with a stated sensitivity is charged as
stated.

*Assumed.* Every release of the dataset goes through its ledger; the file is not rolled back to an earlier copy.
"""

import hashlib
import hmac
import json
import math
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from spdp.accounting import at_most, cost, pld_epsilon, pure_mu, root_of_squares
from spdp.errors import DataError, ParameterError
from spdp.privacy import check_budget, check_positive, gaussian_epsilon, gaussian_mu
from spdp.records import Records, as_records

__all__ = ["BudgetExceeded", "Ledger", "LedgerError"]

VERSION = 1
APPLICATION = 0x53504450  # "SPDP"
PATIENCE = 120.0  # seconds to wait for another process's transaction
SCHEMA = """
CREATE TABLE budget (epsilon REAL NOT NULL, delta REAL NOT NULL, created TEXT NOT NULL, fingerprint TEXT);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, created TEXT NOT NULL, label TEXT, mechanism TEXT NOT NULL,
    mu REAL NOT NULL, pure REAL, state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'lost')),
    host TEXT NOT NULL, pid INTEGER NOT NULL, value TEXT, certificate TEXT);
CREATE TABLE acts (id INTEGER PRIMARY KEY AUTOINCREMENT, created TEXT NOT NULL, what TEXT NOT NULL);
"""


class LedgerError(DataError):
    """The ledger file is unusable; the message names it. No release was made."""


class BudgetExceeded(ParameterError):
    """A release would exceed the ledger's budget; nothing was spent and nothing was drawn.

    Attributes
    ----------
    fits : float
        Largest ε that would still fit, at the δ that was asked for (0 for pure releases).
    """

    def __init__(self, message: str, fits: float) -> None:
        super().__init__(message)
        self.fits = fits


class Ledger:
    """The budget of one dataset and what was spent of it.

    Parameters
    ----------
    path : path
        The ledger's file. Created if it does not exist and a budget is given.
    epsilon, delta : float, optional
        Total budget. Needed to create a ledger; for an existing one they may be left out and must otherwise agree with it.
    key : bytes, optional
        Key of the data's fingerprint, kept by the curator; needed when the ledger is bound to data.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, epsilon: float | None = None, delta: float | None = None, key: bytes | None = None
    ) -> None:
        self.path = Path(path)
        self._key = key
        if (epsilon is None) != (delta is None):
            raise ParameterError("a ledger's budget has both epsilon and delta")
        if not self.path.exists():
            if epsilon is None or delta is None:
                raise LedgerError(f"{self.path}: no such ledger; give epsilon and delta to create it")
            if float(delta) == 0.0:
                check_positive("epsilon", epsilon)
            else:
                check_budget(check_positive("epsilon", epsilon), delta)
            self._create(float(epsilon), float(delta))
        self._load()
        if epsilon is not None and delta is not None and (self.epsilon, self.delta) != (float(epsilon), float(delta)):
            raise ParameterError(
                f"{self.path}: its budget is epsilon = {self.epsilon:g}, delta = {self.delta:g}, not {epsilon:g}, {delta:g}; "
                "a budget changes only by change_budget"
            )
        self._recover()

    # --- the file ----------------------------------------------------------------------------------------------------
    @contextmanager
    def _open(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection; with ``write``, inside one durable transaction that waits its turn."""
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = FULL")
                if not write:
                    yield db
                    return
                db.execute("BEGIN IMMEDIATE")
                try:
                    yield db
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path}: {error}; nothing was released") from None

    def _create(self, epsilon: float, delta: float) -> None:
        """Make the file under another name and link it into place: it appears whole, and only one of several creators wins."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(SCHEMA)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")
                db.execute("INSERT INTO budget VALUES (?, ?, ?, NULL)", (epsilon, delta, _now()))
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with suppress(FileExistsError):  # another process created it at the same time; the budgets are compared next
                os.link(draft, self.path)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{self.path}: cannot be created ({error})") from None
        finally:
            for leftover in (draft, *(Path(f"{draft}{end}") for end in ("-wal", "-shm"))):
                leftover.unlink(missing_ok=True)

    def _load(self) -> None:
        with self._open() as db:
            if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise LedgerError(f"{self.path}: not a ledger")
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > VERSION:
                raise LedgerError(f"{self.path}: written by a newer version of spdp (format {found}, this one reads {VERSION})")
            damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if damage != "ok":
                raise LedgerError(f"{self.path}: damaged ({damage})")
            row = db.execute("SELECT epsilon, delta, created, fingerprint FROM budget").fetchone()
        self.epsilon, self.delta, self.created, self._fingerprint = float(row[0]), float(row[1]), str(row[2]), row[3]

    def _recover(self) -> None:
        """Mark as lost the pending entries of processes of this machine that are no more."""
        with self._open() as db:
            pending = db.execute("SELECT id, pid FROM entries WHERE state = 'pending' AND host = ?", (_host(),)).fetchall()
        dead = [entry for entry, pid in pending if not _alive(pid)]
        if dead:
            with self._open(write=True) as db:
                db.executemany("UPDATE entries SET state = 'lost' WHERE id = ? AND state = 'pending'", [(entry,) for entry in dead])

    # --- the account -------------------------------------------------------------------------------------------------
    def _costs(self, db: sqlite3.Connection) -> tuple[list[float], list[float | None]]:
        rows = db.execute("SELECT mu, pure FROM entries ORDER BY id").fetchall()
        return [row[0] for row in rows], [row[1] for row in rows]

    @property
    def _limit(self) -> float:
        """Total μ; a ledger with δ = 0 takes pure entries only."""
        return 0.0 if self.delta == 0 else gaussian_mu(self.epsilon, math.nextafter(self.delta, 0.0))

    def _fits(self, mus: list[float], pures: list[float | None]) -> bool:
        if all(p is not None for p in pures) and at_most([p for p in pures if p is not None], self.epsilon, 1):
            return True
        return self.delta > 0 and at_most(mus, self._limit, 2)

    def spent(self) -> dict[str, Any]:
        """What was spent: entries, total μ, and the smallest ε that the history satisfies at the ledger's δ.

        Gaussian histories are exact. With pure entries, the smallest of the valid bounds; dp-accounting's privacy loss distributions,
        where installed (extra ``accounting``), are used for the history as it is.
        """
        with self._open() as db:
            mus, pures = self._costs(db)
        return {"entries": len(mus), "mu": root_of_squares(mus), "epsilon": self._epsilon(mus, pures), "delta": self.delta}

    def _epsilon(self, mus: list[float], pures: list[float | None]) -> float:
        if not mus:
            return 0.0
        pure = [p for p in pures if p is not None]
        options = []
        if len(pure) == len(mus):
            options.append(math.nextafter(math.fsum(pure), math.inf))
        if self.delta > 0:
            options.append(gaussian_epsilon(self.delta, root_of_squares(mus)))
            if pure:
                options += pld_epsilon(root_of_squares([m for m, p in zip(mus, pures, strict=True) if p is None]), pure, self.delta)
        return min(options) if options else math.inf

    def remaining(self, delta: float | None = None) -> dict[str, float]:
        """What is left: μ, and the largest ε of a Gaussian release at ``delta`` (default: the ledger's) or of a pure one that would fit."""
        with self._open() as db:
            mus, pures = self._costs(db)
        return self._left(mus, pures, self.delta if delta is None else delta)

    def _left(self, mus: list[float], pures: list[float | None], delta: float) -> dict[str, float]:
        square = max(0.0, self._limit**2 * (1 - 1e-12) - math.fsum(m * m for m in mus))
        mu = math.sqrt(square)
        gaussian = gaussian_epsilon(delta, mu) * (1 - 1e-9) if mu > 0 and delta > 0 else 0.0
        pure = 0.0
        if all(p is not None for p in pures):
            pure = max(0.0, (self.epsilon - math.fsum(p for p in pures if p is not None)) * (1 - 1e-12))
        if mu > 0:  # the pure ε whose μ is what is left
            from scipy.special import log_ndtr

            pure = max(pure, float(log_ndtr(mu / 2) - log_ndtr(-mu / 2)) * (1 - 1e-9))
        return {"mu": mu, "epsilon": gaussian, "pure_epsilon": pure}

    def would_fit(self, epsilon: float, delta: float) -> bool:
        """Whether a release at (ε, δ) would be accepted now; δ = 0 for a pure one."""
        mu, pure = cost(epsilon, delta)
        with self._open() as db:
            mus, pures = self._costs(db)
        return self._fits([*mus, mu], [*pures, pure])

    def curve(self, deltas: Any = None) -> list[tuple[float, float]]:
        """(δ, ε) pairs that the history satisfies."""
        with self._open() as db:
            mus, _ = self._costs(db)
        mu = root_of_squares(mus)
        grid = np.geomspace(1e-12, 1e-2, 11) if deltas is None else deltas
        return [(float(d), gaussian_epsilon(float(d), mu) if mu > 0 else 0.0) for d in grid]

    def history(self) -> list[dict[str, Any]]:
        """All entries, oldest first, as plain dicts; values and certificates included where they were stored."""
        names = ("id", "created", "label", "mechanism", "mu", "pure", "state", "value", "certificate")
        with self._open() as db:
            rows = db.execute(f"SELECT {', '.join(names)} FROM entries ORDER BY id").fetchall()
        entries = [dict(zip(names, row, strict=True)) for row in rows]
        for entry in entries:
            for name in ("value", "certificate"):
                entry[name] = None if entry[name] is None else json.loads(entry[name])
        return entries

    def acts(self) -> list[dict[str, Any]]:
        """Everything that was done to the ledger besides spending."""
        with self._open() as db:
            return [{"created": row[0], "what": row[1]} for row in db.execute("SELECT created, what FROM acts ORDER BY id")]

    def change_budget(self, epsilon: float, delta: float, reason: str) -> None:
        """Change the total budget: a separate act, recorded with its reason. The new budget must cover what was spent."""
        check_budget(check_positive("epsilon", epsilon), delta)
        if not reason.strip():
            raise ParameterError("a change of budget needs a reason")
        old = (self.epsilon, self.delta)
        with self._open(write=True) as db:
            mus, pures = self._costs(db)
            self.epsilon, self.delta = float(epsilon), float(delta)
            if not self._fits(mus, pures):
                self.epsilon, self.delta = old
                raise BudgetExceeded(f"{self.path}: more than epsilon = {epsilon:g}, delta = {delta:g} was spent already", 0.0)
            text = f"budget changed from {old} to {(self.epsilon, self.delta)}: {reason.strip()}"
            db.execute("UPDATE budget SET epsilon = ?, delta = ?", (self.epsilon, self.delta))
            db.execute("INSERT INTO acts (created, what) VALUES (?, ?)", (_now(), text))

    # --- spending ----------------------------------------------------------------------------------------------------
    def spend(self, *, mechanism: str, label: str | None = None, mu: float | None = None, pure: float | None = None) -> int:
        """Commit the cost of a release and return its entry's number; to be called before any noise is drawn."""
        if (mu is None) == (pure is None):
            raise ParameterError("a cost is either mu, of a Gaussian release, or pure, the epsilon of a pure one")
        price = check_positive("mu", mu) if mu is not None else pure_mu(float(pure or 0.0))
        with self._open(write=True) as db:
            # another process may have changed the budget meanwhile
            self.epsilon, self.delta = map(float, db.execute("SELECT epsilon, delta FROM budget").fetchone())
            mus, pures = self._costs(db)
            if not self._fits([*mus, price], [*pures, pure]):
                raise self._exceeded(mus, pures, mu, pure)
            last = db.execute("SELECT MAX(created) FROM entries").fetchone()[0] or ""
            row = (max(_now(), last), label, mechanism, price, pure, _host(), os.getpid())  # clocks may differ; order is by number
            sql = "INSERT INTO entries (created, label, mechanism, mu, pure, state, host, pid) VALUES (?, ?, ?, ?, ?, 'pending', ?, ?)"
            return int(db.execute(sql, row).lastrowid or 0)

    def _exceeded(self, mus: list[float], pures: list[float | None], mu: float | None, pure: float | None) -> BudgetExceeded:
        delta = self.delta if mu is not None else 0.0
        left = self._left(mus, pures, self.delta)
        if mu is not None:
            wanted = f"mu = {mu:.4g}" + (f" (epsilon = {gaussian_epsilon(self.delta, mu):.4g} at delta = {delta:g})" if delta else "")
        else:
            wanted = f"epsilon = {pure:.4g} (pure)"
        fits = left["epsilon"] if mu is not None else left["pure_epsilon"]
        budget = f"epsilon = {self.epsilon:g}, delta = {self.delta:g}"
        offer = f"a release with epsilon <= {fits:.4g} would still fit" if fits > 0 else "nothing is left"
        message = f"{self.path}: budget exceeded: asked for {wanted} of {budget}; left is mu = {left['mu']:.4g}; {offer}"
        return BudgetExceeded(message, fits)

    def store(self, entry: int, value: Any, certificate: dict[str, Any]) -> None:
        """Keep a release with its entry and mark it done; released values are public, so they may be stored."""
        text = (json.dumps(np.asarray(value).tolist()), json.dumps(certificate), entry)
        with self._open(write=True) as db:
            changed = db.execute("UPDATE entries SET state = 'done', value = ?, certificate = ? WHERE id = ? AND state = 'pending'", text)
            if changed.rowcount != 1:
                raise LedgerError(f"{self.path}: entry {entry} is not pending; its result was not stored")

    # --- identity of the data ----------------------------------------------------------------------------------------
    def bind(self, X: Any) -> None:
        """Bind the ledger to this data by a keyed fingerprint, once; spending on other data is then refused."""
        if self._key is None:
            raise ParameterError("binding a ledger needs a key: Ledger(path, key=...)")
        mark = fingerprint(as_records(X), self._key)
        with self._open(write=True) as db:
            old = db.execute("SELECT fingerprint FROM budget").fetchone()[0]
            if old is not None and old != mark:
                raise LedgerError(f"{self.path}: bound to other data already")
            db.execute("UPDATE budget SET fingerprint = ?", (mark,))
            db.execute("INSERT INTO acts (created, what) VALUES (?, 'bound to data')", (_now(),))
        self._fingerprint = mark

    def check_data(self, records: Records) -> None:
        """Refuse data that are not those the ledger is bound to."""
        if self._fingerprint is None:
            return
        if self._key is None:
            raise LedgerError(f"{self.path}: bound to its data; the fingerprint's key is needed to spend: Ledger(path, key=...)")
        if not records.again:
            raise LedgerError(f"{self.path}: bound to its data, but {records.name} can be read only once and cannot be checked first")
        if not hmac.compare_digest(fingerprint(records, self._key), str(self._fingerprint)):
            raise LedgerError(f"{self.path}: {records.name} is not the data this ledger is bound to")


def fingerprint(records: Records, key: bytes) -> str:
    """HMAC-SHA256 of the records in order, as float64; the same for any block size."""
    mark = hmac.new(key, f"spdp records k={records.k}".encode(), hashlib.sha256)
    for block in records.blocks():
        mark.update(np.ascontiguousarray(block, dtype="<f8").tobytes())
    return mark.hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _host() -> str:
    return socket.gethostname()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
