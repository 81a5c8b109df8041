"""How a site signs the end of a study: it checks everything, and forgets its keys.

*Enforced.* A site signs if the release follows from the sums (:mod:`.checks`), the sums
are those of the answers of all sites, and its own answers are those in its journal.
Then its keys are deleted, and the result is kept with the entry of its ledger. From
then on it signs that very release again, and no other: there are no two signed results
of one study.
"""

from pathlib import Path

from spdp.errors import LedgerError
from spdp.federated.canonical import Refused
from spdp.federated.checks import check_published
from spdp.federated.identity import Identity
from spdp.federated.masks import KeyFile
from spdp.federated.transcript import Close, check_answers, closed, read_answers, read_rounds
from spdp.ledger import Ledger
from spdp.ledger.schema import Joined
from spdp.ledger.studies import Studies
from spdp.release import Release
from spdp.release.files import seal_of

ANOTHER = "this site signed another release of this study, and signs that one alone again"


def joined_of(ledger: Ledger, study: str) -> Joined:
    """What a ledger knows of a study that it has answered in."""
    joined = Studies(ledger).find(study)
    if joined is None or joined.state not in ("open", "closed"):
        raise LedgerError(f"{ledger.path}: has no answers in this study that it could vouch for")
    return joined


def close(draft: Path, who: Identity, ledger: Ledger) -> Close:
    """A site's closing signature of a draft, if all of it is right."""
    rounds, release = read_rounds(draft), Release.load(draft)
    keys = KeyFile.beside(ledger.path, rounds.study.terms.digest)
    with keys.locked():
        joined = joined_of(ledger, rounds.study.digest.hex())
        if joined.state == "closed" and _kept(ledger, joined, release) != rounds.release:
            raise Refused(ANOTHER)
        if rounds.study.cards[rounds.study.place(joined.site)].identity != who.public:
            raise Refused(f"{joined.site} has another identity in this study")
        found = [*release.verify(), *check_published(draft, release, signed=False)]
        failed = [f"{check.name} ({check.detail})" for check in found if not check.ok]
        if failed:
            raise Refused(f"{draft}: not signed, {failed[0]}")
        own = [one.answer for one in Studies(ledger).answers(rounds.sealed.hex())]
        check_answers(rounds, read_answers(draft), joined.site, own)
        values = release.values if len(release.values) > 1 else release.value
        Studies(ledger).close(joined.study, values, release.certificate)
        keys.delete()
        return closed(rounds, joined.site, who)


def _kept(ledger: Ledger, joined: Joined, release: Release) -> str:
    """The seal of the release that a site signed; names of arrays are the draft's."""
    assert joined.entry is not None
    value, certificate = ledger.recover(joined.entry)
    values = value if isinstance(value, dict) else dict.fromkeys(release.values, value)
    return seal_of(values, certificate)
