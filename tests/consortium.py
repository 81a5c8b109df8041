"""Sites that take part in a study, each with its own ledger, keys and data."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from spdp import EigenvalueBounds, Ledger
from spdp.charts import chart_of
from spdp.datasets import synthetic_spd
from spdp.domain.base import Space
from spdp.federated import identity, joining
from spdp.federated.canonical import digest_of
from spdp.federated.drafting import rostered, terms_of
from spdp.federated.identity import Identity
from spdp.federated.masks import KeyFile
from spdp.federated.messages import described, transcript
from spdp.federated.rounds import Coordinator
from spdp.federated.site import Site
from spdp.federated.study import sealed_by
from spdp.queries.sums import Frame, VectorSum, whole_domain_sum

SIGNATURE = identity.SIGNATURE
KEY = b"a key of sixteen bytes, or more"
NAMES = (
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "echo",
    "foxtrot",
    "golf",
    "hotel",
    "india",
    "juliet",
)
DOMAIN = EigenvalueBounds(1e-2, 1e2)


def terms(coordinator, k=3, **given):
    """Terms of a study."""
    space = Space.of(chart_of(given.pop("metric", "logeuclid")), given.pop("domain", DOMAIN), k)
    asked = {"statistic": "mean", "options": {}, "method": "oneshot", "epsilon": 1.0}
    asked |= {"delta": 1e-6, "unit": "record", "colluding": 1}
    return terms_of(space, **asked | given, coordinator=coordinator.public)


@dataclass
class Member:
    """A site: its folder, its data, and what it has made so far."""

    name: str
    folder: Path
    X: np.ndarray
    budget: float = 10.0
    made: dict = field(default_factory=dict)

    def __post_init__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger_file = self.folder / "data.ledger"
        self.ledger = Ledger(self.ledger_file, epsilon=self.budget, delta=1e-5, key=KEY)
        self.ledger.bind(self.X)
        self.who, _ = Identity.opened_or_made(self.folder / f"{self.name}.identity")

    def keys(self, terms):
        return KeyFile.beside(self.ledger_file, terms.digest)

    def join(self, terms):
        return joining.join(terms, self.name, len(self.X), self.who, self.keys(terms))

    def sign(self, study):
        return joining.sign(study, self.who, self.keys(study.terms), self.ledger)

    def site(self, study, seals):
        data = joining.opened(self.X, study.terms, self.ledger)
        keys, log = self.keys(study.terms), self.folder / "log"
        return Site(study, seals, self.who, keys, self.ledger, data, log)


class Consortium:
    """A study that all its sites have signed."""

    def __init__(self, folder, sites=3, n=60, k=3, seed=1, **given):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        X = synthetic_spd(n, k, random_state=seed)
        parts = np.array_split(X, sites)
        self.coordinator, _ = Identity.opened_or_made(self.folder / "coordinator.pem")
        self.terms = terms(self.coordinator, k, **given)
        self.members = [
            Member(name, self.folder / name, part)
            for name, part in zip(NAMES[:sites], parts, strict=True)
        ]
        self.X = X
        self.study = rostered(self.terms, [member.join(self.terms) for member in self.members])
        self.seals = {member.name: member.sign(self.study) for member in self.members}
        self.sealed = sealed_by(self.study, self.seals)

    def site(self, member):
        return member.site(self.study, self.seals)

    def sites(self):
        return [self.site(member) for member in self.members]

    def asker(self, transport):
        return Coordinator(self.study, self.sealed, who=self.coordinator, transport=transport)


class InProcess:
    """A transport whose sites are in this process."""

    def __init__(self, sites):
        self.sites, self.down, self.up = sites, 0, 0

    def ask(self, number, message):
        answers = {site.name: site.answer(message) for site in self.sites}
        self.down += len(message)
        self.up += max(map(len, answers.values()))
        return answers


def central(X, study):
    """Exact total of all records, as one curator has it."""
    records = joining._records(X, study.terms, None, "center")
    return records.gather().total(whole_domain_sum(study.terms.space.region))


class Asking:
    """A coordinator that can say anything, and signs it."""

    def __init__(self, consortium):
        self.c, self.history = consortium, []
        region = consortium.terms.space.region
        self.frame, self.radius = Frame.plain(region.center), float(region.radius)

    def query(self):
        return VectorSum("center", self.frame, self.radius)

    def description(self, query=None, mu=None, turn=None, **changes):
        before, digests = self.c.sealed, []
        for said, answers in self.history:
            digests = [digest_of(one[SIGNATURE:]).hex() for one in answers]
            before = transcript(before, said.digest, digests)
        made = described(
            query or self.query(),
            mu or 0.1 * self.c.terms.mu,
            self.c.study,
            sealed=self.c.sealed,
            number=len(self.history),
            before=before,
            digests=digests,
            turn=turn,
        )
        return msgspec.structs.replace(made, **changes)

    def message(self, description, who=None):
        who = who or self.c.coordinator
        signature = who.sign(identity.ROUND, self.c.sealed, description.digest)
        return bytes.fromhex(signature) + description.data

    def ask(self, sites, description):
        """A whole round."""
        answers = [site.answer(self.message(description)) for site in sites]
        self.history.append((description, answers))
        return answers
