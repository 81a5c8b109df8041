"""The contents of a ledger: budget, acts, entries, results; checked when read.

A ledger that takes part in studies over sites has tables of its own for them: what is
reserved for a study, and every answer that was given in it (:mod:`.studies`).

*Enforced.* A book that is opened has a ledger's tables and no others; every number lies
in its range, a pure release costs no less than its ε says, every entry has a result,
and one checksum covers budget, acts, entries and the checksums of results, studies and
answers. What a result, a study or an answer holds is checked when it is read. What is
reserved counts like what is spent. Whatever fails is a :class:`LedgerError`.

*Assumed.* Checksums (SHA-256, without a key) detect accidents and naive edits, not
somebody who computes them anew.
"""

import hashlib
import math
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from spdp.errors import LedgerError
from spdp.ledger.identity import Owner
from spdp.privacy.budget import pure_mu_estimate


def _tables(file: str) -> tuple[str, ...]:
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return tuple(statement.strip() for statement in text.split(";")[:-1])


SCHEMA, STUDY_TABLES = _tables("schema.sql"), _tables("studies.sql")
STUDY, NOBODY = "study", "nobody"  # what a ledger with studies charges: see Joined


class Terms(NamedTuple):
    """The budget, when it was created, and the fingerprint of its data."""

    epsilon: float
    delta: float
    created: str
    fingerprint: str | None


class Entry(NamedTuple):
    """What one release cost; never changed."""

    id: int
    created: str
    label: str | None
    mechanism: str
    mu: float
    pure: float | None
    unit: str | None  # the unit of privacy; None for a stated summary


class Result(NamedTuple):
    """What became of an entry, who holds it, and the hash of that holder's token."""

    id: int
    state: str
    origin: str
    pid: int
    started: int | None
    claim: str
    value: str | None
    certificate: str | None

    @property
    def owner(self) -> Owner:
        """The process that paid."""
        return Owner(self.origin, self.pid, self.started)


class Joined(NamedTuple):
    """A study over sites that the ledger's data are in, and what it costs.

    ``mu`` holds if no more sites collude than the study assumes, ``alone`` if all
    others do. A ledger that trusts nobody is charged the latter.
    """

    study: str
    created: str
    site: str
    terms: str
    card: str
    mu: float
    alone: float
    unit: str
    state: str  # reserved, open, and then closed, ended or left
    sealed: str | None
    entry: int | None


class Answered(NamedTuple):
    """An answer that was given in a round of a study."""

    sealed: str
    round: int
    said: str
    mu: float
    description: bytes
    answer: bytes


class Book:
    """An open ledger: its checked contents, and the changes that can be made."""

    def __init__(self, db: sqlite3.Connection, path: Path, thorough: bool, failed: str) -> None:
        self._db, self._path, self._failed = db, path, failed
        if thorough and (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise self.damaged(found)
        tables = db.execute("SELECT sql FROM sqlite_schema ORDER BY rowid").fetchall()
        self.has_studies = len(tables) > len(SCHEMA)
        known = SCHEMA + STUDY_TABLES if self.has_studies else SCHEMA
        if tables != [(statement,) for statement in known]:
            raise self.damaged("its tables are not those of a ledger")
        budgets = db.execute("SELECT * FROM budget").fetchall()
        if len(budgets) != 1:
            raise self.damaged(f"it has {len(budgets)} budgets")
        self.terms = Terms(*budgets[0][1:-1])
        self.acts = db.execute("SELECT * FROM acts ORDER BY id").fetchall()
        self._rows = db.execute("SELECT * FROM entries ORDER BY id").fetchall()
        self._sum = checksum(self.terms, self.acts, self._rows)
        self._check_ranges()
        self.trust, self.studies = STUDY, list[Joined]()
        if self.has_studies:
            self._read_studies()
        results = self._results()
        if [number for number, _ in results] != [row[0] for row in self._rows]:
            raise self.damaged("its results are not those of its entries")
        # version 0.2 did not count results; the next change does
        if budgets[0][-1] not in (self._total(results), self._sum.hexdigest()):
            raise self.damaged("its checksum does not agree with its contents")

    def _results(self) -> list[tuple[int, str]]:
        """Number and checksum of every result."""
        return self._db.execute("SELECT id, checksum FROM results ORDER BY id").fetchall()

    def _total(self, results: list[tuple[int, str]]) -> str:
        """The checksum of everything that the ledger holds."""
        total = self._sum.copy()
        for row in [*results, *(self._of_studies() if self.has_studies else [])]:
            total.update(_text(row))
        return str(total.hexdigest())

    def _of_studies(self) -> list[tuple[Any, ...]]:
        """Trust, and names and checksums of studies and answers."""
        queries = (
            "SELECT model FROM trust",
            "SELECT study, checksum FROM studies ORDER BY study",
            "SELECT sealed, round, checksum FROM answers ORDER BY sealed, round",
        )
        return [row for query in queries for row in self._db.execute(query)]

    def _read_studies(self) -> None:
        models = self._db.execute("SELECT model FROM trust").fetchall()
        if len(models) != 1:
            raise self.damaged("it does not say whom it trusts")
        self.trust = models[0][0]
        for *row, stored in self._db.execute("SELECT * FROM studies ORDER BY created, study"):
            study = Joined(*row)
            if checksum(study).hexdigest() != stored:
                raise self.damaged(f"the study {study.study[:12]}…")
            if not (_is_positive(study.mu) and _is_positive(study.alone)):
                raise self.damaged(f"the study {study.study[:12]}… costs {study.mu!r}")
            self.studies.append(study)

    def _seal(self) -> None:
        """Store the checksum of the contents as they are now."""
        self._db.execute("UPDATE budget SET checksum = ?", (self._total(self._results()),))

    def damaged(self, what: str) -> LedgerError:
        """The error for a file that is not as it was written."""
        return LedgerError(
            f"{self._path}: damaged or edited ({what}); {self._failed}, and nothing can be "
            "released until a copy that has every entry takes its place"
        )

    def _check_ranges(self) -> None:
        """Check that costs are numbers that can be added up, whoever wrote them."""
        epsilon, delta, *_ = self.terms
        if not (_is_positive(epsilon) and type(delta) is float and 0 <= delta < 1):
            raise self.damaged(f"its budget is epsilon = {epsilon!r}, delta = {delta!r}")
        for place, entry in enumerate(self._rows, start=1):
            number, *_, mu, pure, _ = entry
            if number != place:
                raise self.damaged(f"entry {place} is missing")
            if not (_is_positive(mu) and (pure is None or _is_positive(pure))):
                raise self.damaged(f"entry {place} costs mu = {mu!r}, epsilon = {pure!r}")
        pure_rows = [row for row in self._rows if row[5] is not None]
        if pure_rows:
            least = pure_mu_estimate([row[5] for row in pure_rows]) * (1 - 1e-12)
            for row, mu in zip(pure_rows, least, strict=True):
                if row[4] < mu:
                    raise self.damaged(f"entry {row[0]} costs less than its epsilon")

    @property
    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return [Entry(*row) for row in self._rows]

    @property
    def costs(self) -> tuple[list[float], list[float | None]]:
        """μ of every entry and reservation, and the ε of the pure ones."""
        reserved = [self.charged(s) for s in self.studies if s.state == "reserved"]
        mus, pures = [row[4] for row in self._rows], [row[5] for row in self._rows]
        return mus + reserved, pures + [None] * len(reserved)

    @property
    def costs_alone(self) -> tuple[list[float], list[float | None]]:
        """The same, if in every study all other sites collude."""
        alone = {study.entry: study.alone for study in self.studies}
        mus = [alone.get(row[0], row[4]) for row in self._rows]
        reserved = [s.alone for s in self.studies if s.state == "reserved"]
        return mus + reserved, [row[5] for row in self._rows] + [None] * len(reserved)

    def charged(self, study: Joined) -> float:
        """What a study costs this ledger."""
        return study.alone if self.trust == NOBODY else study.mu

    @property
    def unit(self) -> str | None:
        """The unit of privacy of its entries; None while no entry states one."""
        stated = next((row[6] for row in self._rows if row[6] is not None), None)
        return stated or next((study.unit for study in self.studies), None)

    def pay(
        self,
        mechanism: str,
        label: str | None,
        mu: float,
        pure: float | None,
        unit: str | None,
        claim: str,
    ) -> int:
        """Add an entry, pending, and return its number."""
        last = self._rows[-1][1] if self._rows else ""
        # clocks may differ; the order is that of the numbers
        entry = Entry(len(self._rows) + 1, max(now(), last), label, mechanism, mu, pure, unit)
        self._sum.update(_text(entry))
        self._db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", entry)
        self.conclude(Result(entry.id, "pending", *Owner.current(), claim, None, None))
        return entry.id

    def agree(self, terms: Terms, what: str) -> None:
        """Change the terms: an act of its own, recorded in words."""
        act = (len(self.acts) + 1, now(), what)
        self._db.execute("INSERT INTO acts VALUES (?, ?, ?)", act)
        self._sum = checksum(terms, [*self.acts, act], self._rows)
        self._db.execute(
            "UPDATE budget SET epsilon = ?, delta = ?, created = ?, fingerprint = ?", terms
        )
        self._seal()

    def results(self, where: str = "TRUE", *values: Any) -> list[Result]:
        """What became of the entries, in their order, checked."""
        rows = self._db.execute(f"SELECT * FROM results WHERE {where} ORDER BY id", values)
        results = []
        for *row, stored in rows:
            result = Result(*row)
            if checksum(result).hexdigest() != stored:
                raise self.damaged(f"the result of entry {result.id}")
            results.append(result)
        return results

    # --- studies

    def add_study_tables(self, trust: str = STUDY) -> None:
        """Make the tables of studies; the file's format changes with them."""
        for statement in STUDY_TABLES:
            self._db.execute(statement)
        self._db.execute("INSERT INTO trust VALUES (1, ?)", (trust,))
        self.has_studies, self.trust = True, trust
        self._seal()

    def put_study(self, study: Joined) -> None:
        """Write down a study, in place of what was written of it before."""
        row = (*study, checksum(study).hexdigest())
        self._db.execute(f"REPLACE INTO studies VALUES ({', '.join('?' * len(row))})", row)
        self.studies = [s for s in self.studies if s.study != study.study] + [study]
        self._seal()

    def answers(self, sealed: str) -> list[Answered]:
        """The answers given in a study, round by round, checked."""
        if not self.has_studies:
            return []
        query = "SELECT * FROM answers WHERE sealed = ? ORDER BY round"
        found: list[Answered] = []
        for *row, stored in self._db.execute(query, (sealed,)):
            answer = Answered(*row)
            if checksum(answer).hexdigest() != stored or answer.round != len(found):
                raise self.damaged(f"the answer of round {answer.round}")
            found.append(answer)
        return found

    def put_answer(self, answer: Answered) -> None:
        """Write down an answer; a second one to a round is an error of the database."""
        row = (*answer, checksum(answer).hexdigest())
        self._db.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self._seal()

    def conclude(self, result: Result) -> None:
        """Record what became of an entry."""
        row = (*result, checksum(result).hexdigest())
        self._db.execute("REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._seal()


def now() -> str:
    """The time as it is written into a ledger."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def checksum(first: tuple[Any, ...], *lists: list[Any]) -> Any:
    """SHA-256 of rows, to which more may be added."""
    total = hashlib.sha256(_text(first))
    for rows in lists:
        for row in rows:
            total.update(_text(row))
    return total


def _text(row: tuple[Any, ...]) -> bytes:
    """A row in characters that no locale or Python version writes in another way."""
    return ascii(tuple(row)).encode()


def _is_positive(number: Any) -> bool:
    return type(number) is float and 0 < number < math.inf
