"""What a site answers, refuses and survives: each rule with a case that breaks it."""

import os
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from consortium import DOMAIN, SIGNATURE, Asking, Consortium, InProcess, central
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spdp import Ledger
from spdp.engines.store import ArrayStore
from spdp.errors import DataError
from spdp.federated import identity, joining, masks
from spdp.federated import site as sites_
from spdp.federated.canonical import (
    Packed,
    Refused,
    digest_of,
    double,
    encode,
    loads,
    packed,
    undouble,
)
from spdp.federated.drafting import seal_of
from spdp.federated.messages import Description, only_round, transcript, understood
from spdp.federated.rounds import released, sum_of
from spdp.federated.site import REFUSAL, Ended
from spdp.ledger.studies import Studies
from spdp.privacy import account as accounts
from spdp.privacy.account import share_scale
from spdp.queries import Rows
from spdp.queries.moments import CorrelationSum, MomentSum, SquaredNormSum
from spdp.queries.sums import (
    AbsoluteSum,
    ClippingBias,
    DirectionSum,
    DistanceSum,
    EdgeCount,
    Frame,
    Histogram,
    VectorSum,
    whole_domain_sum,
)


def edited(form, **changes):
    return msgspec.structs.replace(form, **changes)


@pytest.fixture
def asking(adaptive):
    return Asking(adaptive)


@pytest.fixture
def untouched(monkeypatch):
    """Fails the test if records are added up or noise is drawn."""

    def touch(*_, **__):
        raise AssertionError("records were touched")

    monkeypatch.setattr(accounts.Account, "share_of", touch)


def refused(site, message, why=None):
    """A refusal is one text, before anything is spent or written."""
    before = site.studies.answers(site.sealed.hex()), site._keys.read()
    with pytest.raises(Refused, match=why):
        site.answer(message)
    assert site.reply(message) == REFUSAL
    assert (site.studies.answers(site.sealed.hex()), site._keys.read()) == before


# --- the sum


def test_the_sum_without_noise_is_the_central_sum_to_the_bit(oneshot, opened, monkeypatch):
    draws = iter(np.random.default_rng(0).integers(-(2**40), 2**40, (3, 6)))
    drawn = []

    def recorded(total, scale, rng):
        assert not total.any()  # drawn for zeros
        assert rng is None
        drawn.append(next(draws))
        return drawn[-1]

    monkeypatch.setattr(accounts.noise, "gaussian", recorded)
    sites = opened(oneshot)
    answers = [site.only_answer() for site in sites]
    said = only_round(oneshot.study, oneshot.sealed)
    total = sum_of(oneshot.study, oneshot.sealed, said, answers)
    assert (total - sum(drawn) == central(oneshot.X, oneshot.study)).all()


@pytest.mark.parametrize("sites", [2, 7])
def test_noise_has_the_stated_variance_and_not_that_of_one_more_honest_site(tmp_path, sites):
    """The sum of the honest sites' shares, over 4000 draws: false alarm below 1e-6."""
    account = accounts.Account(accounts.Budget.gaussian(1.0, 1e-6))
    query = whole_domain_sum(DOMAIN.region(3))

    class Zeros:
        n = m = 1

        def total(self, query, subsampled=False):
            return np.zeros(4000, np.int64)

    honest, mu = sites - 1, account.mu
    shares = [
        accounts.Account(account.budget).share_of(query, Zeros(), mu, honest) for _ in range(honest)
    ]
    total = sum(s.view(np.int64).astype(float) for s in shares)
    wanted = (Fraction(query.sensitivity(account.adjacency)) / Fraction(mu)) ** 2 + 16
    ratio = float(np.mean(total**2) / float(wanted))
    slack = 5 * np.sqrt(2 / 4000)  # of a mean of 4000 squares
    assert abs(ratio - 1) < slack
    if honest < 4:
        assert abs(ratio * (honest + 1) / honest - 1) > slack
    assert honest * Fraction(share_scale(2**31, mu, honest)) ** 2 >= (2**31 / Fraction(mu)) ** 2


def test_a_share_wraps_and_never_saturates():
    account = accounts.Account(accounts.Budget.gaussian(1.0, 1e-6))

    class Huge:
        n = m = 1

        def total(self, query, subsampled=False):
            return np.full(200, 2**63 - 1, np.int64)

    query = whole_domain_sum(DOMAIN.region(3))
    share = account.share_of(query, Huge(), account.mu, 2).view(np.int64)
    assert (share < 0).any()  # beyond the end, it goes on at the other
    assert (np.abs(share) < 2**63 - 1).all()


def test_a_seeded_account_draws_no_share():
    account = accounts.Account(accounts.Budget.gaussian(1.0, 1e-6), random_state=1)
    with pytest.raises(ValueError, match="never seeded"):
        account.share_of(whole_domain_sum(DOMAIN.region(3)), None, 0.1, 2)


# --- 9: seals and signatures


def test_only_the_coordinator_asks(asking, adaptive, opened, untouched):
    site = opened(adaptive)[0]
    said = asking.description()
    refused(site, asking.message(said, adaptive.members[1].who), "not signed")
    refused(site, bytes(SIGNATURE) + said.data, "not signed")
    refused(site, asking.message(said) + b" ", "not signed")
    bare = adaptive.coordinator._key.sign(said.digest)
    refused(site, bare + said.data, "not signed")
    refused(site, b"")
    refused(site, bytes(1 << 21), "too long")


def test_another_study_or_other_seals(asking, adaptive, opened, untouched):
    site = opened(adaptive)[0]
    refused(site, asking.message(asking.description(sealed="0" * 64)), "another study")


def test_one_shot_studies_have_no_rounds_and_others_no_sums(oneshot, adaptive, opened):
    with pytest.raises(Refused, match="no rounds"):
        opened(oneshot)[0].answer(b"")


def test_adaptive_studies_have_no_single_sum(adaptive, opened, untouched):
    with pytest.raises(Refused, match="serve"):
        opened(adaptive)[0].only_answer()


# --- 10: rounds in their order


def test_the_same_question_gets_the_same_bytes_and_another_none(asking, adaptive, opened):
    sites = opened(adaptive)
    first = asking.description()
    answers = asking.ask(sites, first)
    assert [site.answer(asking.message(first)) for site in sites] == answers
    asking.history.clear()
    other = asking.description(mu=0.2 * adaptive.terms.mu)
    for site in sites:
        refused(site, asking.message(other), "answered to another")
    assert sites[0].answer(asking.message(first)) == answers[0]


def test_rounds_come_one_after_the_other(asking, adaptive, opened, untouched):
    site = opened(adaptive)[0]
    refused(site, asking.message(asking.description(round=1)), "not the next")


def test_the_past_is_the_sites_own(asking, adaptive, opened, monkeypatch):
    sites = opened(adaptive)
    answers = asking.ask(sites, asking.description())
    monkeypatch.setattr(accounts.Account, "share_of", lambda *_: pytest.fail("touched"))
    site, (said, _) = sites[0], asking.history[0]
    refused(site, asking.message(asking.description(before="0" * 64)), "not the rounds")
    refused(site, asking.message(asking.description(digests=[])), "one digest")
    asking.history[0] = said, [answers[1], answers[1], answers[2]]
    refused(site, asking.message(asking.description()), "not in the transcript")


def test_no_digests_come_before_the_first_round(asking, adaptive, opened, untouched):
    site = opened(adaptive)[0]
    refused(site, asking.message(asking.description(digests=["0" * 64] * 3)), "before the first")


def test_the_transcript_is_of_all_that_was_said_and_answered():
    before, said, digests = bytes(32), bytes(range(32)), ["aa" * 32, "bb" * 32]
    wanted = digest_of(b"spdp transcript 1" + before + said + b"\xaa" * 32 + b"\xbb" * 32)
    assert transcript(before, said, digests) == wanted


def test_a_study_has_at_most_256_rounds(asking):
    loads(asking.description(round=255).data, Description)
    with pytest.raises(Refused, match="cannot be read"):
        loads(asking.description(round=256).data, Description)


def test_an_answer_of_the_round_before_does_not_fit_the_next(asking, adaptive, opened):
    """Two questions that are the same but for their place in the study."""
    sites = opened(adaptive)
    earlier = asking.ask(sites, asking.description())
    said = asking.description()
    answers = asking.ask(sites, said)
    assert len(sum_of(adaptive.study, adaptive.sealed, said, answers)) == said.d
    with pytest.raises(Refused, match="not signed"):
        sum_of(adaptive.study, adaptive.sealed, said, [earlier[0], *answers[1:]])


def test_sites_with_another_past_do_not_cancel(tmp_path):
    """One site was told another first round: the second round's sum is uniform."""
    c = Consortium(tmp_path / "a", n=30, method="adaptive")
    asking, mu = Asking(c), 0.1 * c.terms.mu
    with c.site(c.members[0]) as a, c.site(c.members[1]) as b, c.site(c.members[2]) as d:
        first, lie = asking.description(mu=mu), asking.description(mu=2 * mu)
        one = [a.answer(asking.message(first)), b.answer(asking.message(first))]
        one.append(d.answer(asking.message(lie)))
        asking.history.append((first, one))
        second = asking.description(mu=mu)
        assert len(a.answer(asking.message(second))) == SIGNATURE + 48
        refused(d, asking.message(second), "not the rounds")


# --- 11: queries


def bad_queries(asking):
    """Queries out of range, in descriptions that are right in everything else."""
    frame, r = asking.frame, asking.radius
    far = packed(frame.center + 2.0**11 * r)

    def bad(label, query, d=None, /, **changes):
        good = asking.description(query)
        asked = edited(good.query, **changes)
        return label, edited(good, query=asked, d=good.d if d is None else d)

    query = asking.query()
    yield bad("unknown kind", query, kind="ShareSum")
    yield bad("a private class", query, kind="_Centred")
    yield bad("not a query", query, kind="Frame")
    yield bad("no centre", query, center=None)
    yield bad("no width", query, width=None)
    yield bad("no radius", query, number=None)
    yield bad("edges of a sum", query, edges=packed(np.ones(3)))
    yield bad("short centre", query, center=packed(frame.center[:-1]))
    yield bad("a matrix for a centre", query, center=packed(np.zeros((6, 1))))
    yield bad("a far centre", query, center=far)
    yield bad("no numbers", query, center=packed(np.full(6, np.nan)))
    for name, value in (("zero", 0.0), ("negative", -1.0), ("tiny", r * 2.0**-51)):
        yield bad(f"{name} width", query, width=packed(np.array([1.0] * 5 + [value])))
        yield bad(f"{name} radius", query, number=double(value))
    yield bad("a huge width", query, width=packed(np.full(6, r * 2.0**51)))
    yield bad("a huge radius", query, number=double(r * 2.0**51))
    yield bad("infinite", query, number="7ff0000000000000")
    yield bad("name", query, name="A")
    tail = Histogram("tail", frame, np.array([1.0, 2.0]))
    yield bad("falling edges", tail, edges=packed(np.array([2.0, 1.0])))
    yield bad("a negative edge", tail, edges=packed(np.array([-1.0, 1.0])))
    yield bad("no edges", tail, 1, edges=packed(np.zeros(0)))
    yield bad("a table of edges", tail, 3, edges=packed(np.ones((2, 2))))
    yield bad("many edges", tail, 5001, edges=packed(np.ones(5000)))
    bias = ClippingBias("clipping bias", frame, r, (r, r), (1 << 29, 1 << 29))
    yield bad("heavy weights", bias, weights=[1 << 30, 1 << 30])
    yield bad("no weight", bias, weights=[0, 1 << 29])
    yield bad("three weights", bias, 3, weights=[1, 1, 1])
    yield bad("powers", bias, powers=[3, 1])
    yield bad("no reach", bias, reaches=[double(0.0), double(r)])
    whole = whole_domain_sum(asking.c.terms.space.region)
    yield bad("another domain", whole, number=double(0.5 * r))
    yield bad("another centre", whole, center=packed(frame.center + 1e-3))
    squares = SquaredNormSum("squared norms", frame, r)
    yield bad("squares in units", squares, width=packed(np.full(6, 2.0)))


def test_queries_out_of_range_are_refused(asking, adaptive, opened, untouched):
    site, found = opened(adaptive)[0], dict(bad_queries(asking))
    assert len(found) == 34
    for name, said in found.items():
        try:
            refused(site, asking.message(said))
        except BaseException as error:
            raise AssertionError(name) from error
        assert "not those of the query" not in (adaptive.members[0].folder / "log").read_text()


def queries(asking):
    frame, r = asking.frame, asking.radius
    region = asking.c.terms.space.region
    yield whole_domain_sum(region)
    yield VectorSum("center", frame, r)
    yield AbsoluteSum("deviation", frame, r)
    yield DistanceSum("distance", frame, r)
    yield Histogram("tail", frame, np.array([1.0, 2.0]))
    yield EdgeCount("edge", asking.c.terms.space.chart, region)
    yield DirectionSum("direction", frame.center, 0.5 * r)
    yield ClippingBias("clipping bias", frame, r, (r, r), (1 << 29, 1 << 29), (1, 2))
    yield CorrelationSum("correlation", frame, r)
    yield SquaredNormSum("squared norms", frame, r)
    yield MomentSum("moments", frame, r, second="full")


def test_every_query_of_the_list_is_answered_with_its_length(asking, adaptive, opened):
    sites, found = opened(adaptive), list(queries(asking))
    from spdp.federated.messages import KINDS

    assert {type(query).__name__ for query in found} == set(KINDS)
    for query in found:
        description = asking.description(query)
        for answer in asking.ask(sites, description):
            assert len(answer) == SIGNATURE + 8 * description.d
        exact = sum(site._store.total(query) for site in sites)
        assert len(exact) == description.d


@pytest.mark.parametrize("scale", [0.5, 2.0, 1 + 1e-6, -3.0, 1e200, 0.0])
def test_axes_are_orthonormal(asking, adaptive, opened, untouched, scale):
    site = opened(adaptive)[0]
    refused(site, asking.message(asking.description(turn=scale * np.eye(6))), "orthonormal")


def test_answers_have_at_most_65536_numbers(tmp_path):
    c = Consortium(tmp_path / "a", n=12, k=27, method="adaptive")
    asking, center = Asking(c), c.terms.space.region.center
    assert understood(asking.description(), c.study, center).d == 378
    query = CorrelationSum("correlation", asking.frame, asking.radius)
    with pytest.raises(Refused, match="too long"):
        understood(asking.description(query), c.study, center)


def test_axes_of_another_shape_or_without_numbers(asking, adaptive, opened, untouched):
    site, said = opened(adaptive)[0], asking.description(turn=np.eye(6))
    for turn in (packed(np.eye(5)), packed(np.full((6, 6), np.nan)), Packed([6, 6], "")):
        refused(site, asking.message(edited(said, turn=turn)))


DOUBLES = st.sampled_from(
    [5e-324, 1e-320, 1e-300, 1e-200, 1e-12, 1.0, 4.0, 1e12, 1e200, 1e308, -1.0, -1e308, 0.0]
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(DOUBLES, min_size=13, max_size=13), st.sampled_from(range(9)), st.floats())
def test_no_description_makes_a_site_fail(numbers, which, mu):
    """Whatever a coordinator says is answered or refused; the study goes on."""
    c, asking, sites = shared()
    *vectors, number = numbers
    center, width = np.array(vectors[:6]), np.array(vectors[6:])
    frame = Frame(center, width)
    made = [
        VectorSum("center", frame, number),
        AbsoluteSum("deviation", frame, number),
        DistanceSum("distance", frame, number),
        Histogram("tail", frame, np.sort(np.abs(center))),
        DirectionSum("direction", center, number),
        ClippingBias("clipping bias", frame, number, (number, number), (1 << 29, 1 << 29)),
        CorrelationSum("correlation", frame, number),
        SquaredNormSum("squared norms", Frame.plain(center), number),
        MomentSum("moments", frame, number, second="full"),
    ][which]
    price = mu if 0 < mu < 1e-3 else 1e-3 * c.terms.mu
    try:
        said = asking.description(made, price)
    except ValueError:
        return
    replies = {site.reply(asking.message(said)) for site in sites}
    assert None not in replies
    if REFUSAL in replies:
        assert replies == {REFUSAL}  # a refusal depends on the message alone
    else:
        asking.history.append((said, [site.reply(asking.message(said)) for site in sites]))
        if len(asking.history) > 200:
            shared.made = None


def shared():
    """Sites that many examples ask; made anew before their rounds are used up."""
    import tempfile

    if getattr(shared, "made", None) is None:
        c = Consortium(tempfile.mkdtemp(), n=30, method="adaptive")
        sites = [site.__enter__() for site in c.sites()]
        shared.made = c, Asking(c), sites
    return shared.made


# --- 12, 13: noise and price


@pytest.mark.parametrize(
    "changes",
    [
        {"sensitivity": 2**31 - 1},
        {"sensitivity": 2**31 + 1},
        {"scale": double(1e9)},
        {"d": 5},
        {"d": 7},
    ],
)
def test_sensitivity_noise_and_length_are_computed_here(
    asking, adaptive, opened, untouched, changes
):
    refused(opened(adaptive)[0], asking.message(asking.description(**changes)), "not those of")


def test_prices_are_positive_and_within_the_budget(asking, adaptive, opened):
    site, mu = opened(adaptive)[0], adaptive.terms.mu
    good = asking.description(mu=mu)
    for bad in (0.0, -mu, 2 * mu, np.nextafter(mu, 1), 1e-300, 5e-324):
        refused(site, asking.message(edited(good, mu=double(bad))))
    refused(site, asking.message(edited(good, mu="7ff8000000000000")), "finite")


def test_the_sum_of_squared_prices_is_kept_exactly(asking, adaptive, opened):
    sites, mu = opened(adaptive), adaptive.terms.mu
    part = mu / 2
    for _ in range(3):
        asking.ask(sites, asking.description(mu=part))
    rest = np.sqrt(mu**2 - 3 * part**2)
    while Fraction(rest) ** 2 + 3 * Fraction(part) ** 2 <= Fraction(mu) ** 2:
        rest = np.nextafter(rest, 1)
    refused(sites[0], asking.message(asking.description(mu=float(rest))), "budget")
    least = float(np.nextafter(rest, 0))
    while Fraction(least) ** 2 + 3 * Fraction(part) ** 2 > Fraction(mu) ** 2:
        least = float(np.nextafter(least, 0))
    asking.ask(sites, asking.description(mu=least))
    refused(sites[0], asking.message(asking.description(mu=1e-8)))


def test_a_restarted_site_knows_what_it_has_spent(asking, adaptive):
    mu = adaptive.terms.mu
    with adaptive.site(adaptive.members[0]) as site:
        said = asking.description(mu=0.9 * mu)
        asking.history.append((said, [site.answer(asking.message(said))] * 3))
    with adaptive.site(adaptive.members[0]) as site:
        said = asking.description(mu=0.9 * mu)
        with pytest.raises(Refused, match="transcript|budget"):
            site.answer(asking.message(said))
        assert not site._account.affords(0.9 * mu)
        assert site._account.affords(0.4 * mu)


def test_noise_beyond_the_integers_is_refused(asking, adaptive, opened, untouched):
    site, tiny = opened(adaptive)[0], 2.0**31 / 2.0**57
    refused(site, asking.message(asking.description(mu=tiny)), "integer range")


# --- 14: rollback, and one process at a time


def files(member, terms):
    return member.ledger_file, member.keys(terms).path


def rounds(asking, sites, number):
    for _ in range(number):
        asking.ask(sites, asking.description(mu=0.05 * asking.c.terms.mu))


@pytest.mark.parametrize("restored", ["ledger", "keys"])
@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_restored_file_ends_the_study(asking, adaptive, tmp_path, restored, behind):
    member = adaptive.members[0]
    ledger, keys = files(member, adaptive.terms)
    copies = []
    for _ in range(4):
        stack = [adaptive.site(m) for m in adaptive.members]
        sites = [site.__enter__() for site in stack]
        copies.append((ledger.read_bytes(), keys.read_bytes()))
        rounds(asking, sites, 1)
        for site in sites:
            site.__exit__(None, None, None)
    said = asking.history[-1][0]
    old = copies[-behind][restored == "keys"]
    (ledger if restored == "ledger" else keys).write_bytes(old)
    if restored == "keys" and behind == 1:  # as if killed between journal and keys
        with adaptive.site(member) as site:
            assert site.answer(asking.message(said)) == asking.history[-1][1][0]
        return
    with pytest.raises(Ended, match="restored"), adaptive.site(member) as site:
        site.answer(asking.message(said))
    assert not keys.exists()
    with pytest.raises(Ended), adaptive.site(member):
        pass
    assert member.ledger.spent()["mu"] >= adaptive.terms.mu  # what was paid stays paid


def test_a_ledger_from_before_the_first_answer_is_charged(asking, adaptive, opened):
    """It does not know that something was answered; the keys do."""
    member = adaptive.members[0]
    ledger, _ = files(member, adaptive.terms)
    before = ledger.read_bytes()
    with adaptive.site(member) as site:
        site.answer(asking.message(asking.description()))
    ledger.write_bytes(before)
    assert member.ledger.spent()["entries"] == 0
    with pytest.raises(Ended), adaptive.site(member):
        pass
    assert member.ledger.spent()["entries"] == 1


def test_leaving_with_a_restored_ledger_refunds_nothing(asking, adaptive):
    member = adaptive.members[0]
    ledger, _ = files(member, adaptive.terms)
    before = ledger.read_bytes()
    with adaptive.site(member) as site:
        site.answer(asking.message(asking.description()))
    ledger.write_bytes(before)
    assert not joining.leave(adaptive.terms, member.keys(adaptive.terms), member.ledger)
    assert member.ledger.spent()["entries"] == 1


def test_one_process_uses_the_keys_at_a_time(asking, adaptive):
    member = adaptive.members[0]
    with adaptive.site(member) as site:
        with pytest.raises(DataError, match="another process"), adaptive.site(member):
            pass
        assert len(site.answer(asking.message(asking.description()))) == SIGNATURE + 48


def test_a_process_that_another_one_overtook_asks_nothing_more(asking, adaptive, opened):
    """Its account knows nothing of what the other one spent."""
    stale, mu = opened(adaptive)[0], adaptive.terms.mu
    other = adaptive.site(adaptive.members[0])  # as where a file system knows no locks
    other._resume()
    said = asking.description(mu=0.9 * mu)
    asking.history.append((said, [other.answer(asking.message(said))] * 3))
    for price in (0.9, 0.1):
        refused(stale, asking.message(asking.description(mu=price * mu)), "another process")
    assert stale.answer(asking.message(said)) == asking.history[0][1][0]  # nothing is asked
    spent = [Fraction(row.mu) for row in stale.answered()]
    assert sum(price**2 for price in spent) <= Fraction(mu) ** 2
    assert "another process" in (adaptive.members[0].folder / "log").read_text()
    with pytest.raises(Refused, match="budget"):
        other.answer(asking.message(asking.description(mu=0.9 * mu)))


def test_a_process_whose_round_another_one_answered_asks_nothing_more(
    asking, adaptive, opened, monkeypatch
):
    """As many rounds in the journal as were charged, and others."""
    stale, mu = opened(adaptive)[0], adaptive.terms.mu
    other = adaptive.site(adaptive.members[0])
    other._resume()
    dear, cheap = (asking.description(mu=price * mu) for price in (0.9, 0.1))
    answers, journal = [], stale.studies.journal

    def overtaken(study, row):
        answers.append(other.answer(asking.message(dear)))
        return journal(study, row)

    monkeypatch.setattr(stale.studies, "journal", overtaken)
    assert stale.answer(asking.message(cheap)) == answers[0]
    asking.history.append((dear, answers * 3))
    refused(stale, asking.message(asking.description(mu=0.9 * mu)), "another process")


def test_keys_that_are_gone_end_the_study(adaptive):
    member = adaptive.members[0]
    member.keys(adaptive.terms).delete()
    with pytest.raises(Ended, match="gone"), adaptive.site(member):
        pass
    assert Studies(member.ledger).find(adaptive.study.digest.hex()).state == "ended"


def test_keys_from_before_the_first_answer_end_the_study(asking, adaptive):
    member = adaptive.members[0]
    keys = member.keys(adaptive.terms)
    before = keys.path.read_bytes()
    with adaptive.site(member) as site:
        site.answer(asking.message(asking.description()))
    keys.path.write_bytes(before)
    with pytest.raises(Ended, match="before the first answer"), adaptive.site(member):
        pass
    assert not keys.exists()


def test_keys_of_another_study_are_not_used(adaptive):
    first, second = adaptive.members[:2]
    mine, theirs = first.keys(adaptive.terms), second.keys(adaptive.terms)
    mine.path.write_bytes(theirs.path.read_bytes())
    with pytest.raises(Refused, match="not those of the study"), adaptive.site(first):
        pass
    mine.replace(edited(theirs.read(), card=adaptive.study.cards[0], study="0" * 64))
    with pytest.raises(Refused, match="not those of the study"), adaptive.site(first):
        pass


def test_a_second_set_of_seals_is_refused(asking, adaptive):
    """A site that seals twice lets a coordinator give sites different sets."""
    first, second = adaptive.members[:2]
    again, _ = seal_of(adaptive.study, "bravo", second.who)
    others = adaptive.seals | {"bravo": again}
    with adaptive.site(first):  # roots are made
        pass
    with pytest.raises(Refused, match="made for other seals"), first.site(adaptive.study, others):
        pass
    with adaptive.site(first) as site:
        site.answer(asking.message(asking.description()))
    with pytest.raises(Refused, match="under other seals"), first.site(adaptive.study, others):
        pass


def test_a_site_answers_with_its_own_identity_and_reservation(adaptive, tmp_path):
    first, second = adaptive.members[:2]
    data = joining.opened(first.X, adaptive.terms, first.ledger)
    keys = first.keys(adaptive.terms)
    parts = adaptive.study, adaptive.seals
    with (
        pytest.raises(Refused, match="not the one it made"),
        sites_.Site(*parts, second.who, keys, first.ledger, data),
    ):
        pass
    empty = Ledger(tmp_path / "empty.ledger", epsilon=1, delta=1e-5)
    with (
        pytest.raises(Refused, match="nothing reserved"),
        sites_.Site(*parts, first.who, keys, empty, data),
    ):
        pass
    Studies(first.ledger).end(adaptive.study.digest.hex())
    with pytest.raises(Ended, match="ended at this site"), adaptive.site(first):
        pass
    assert not keys.exists()


def test_nothing_is_signed_once_a_study_began(adaptive):
    first = adaptive.members[0]
    with adaptive.site(first):
        pass
    with pytest.raises(Refused, match="began already"):
        first.sign(adaptive.study)


def test_keys_that_are_a_year_old_are_deleted(adaptive, monkeypatch):
    member = adaptive.members[0]

    class Later(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(UTC) + timedelta(days=366)

    monkeypatch.setattr(sites_, "datetime", Later)
    with pytest.raises(Ended, match="year"), adaptive.site(member):
        pass
    assert not member.keys(adaptive.terms).exists()


# --- 16, 17: nothing twice, and silence


def test_the_journal_gives_stored_bytes_where_a_round_was_answered_meanwhile(
    asking, adaptive, opened
):
    sites = opened(adaptive)
    (answer, *_) = asking.ask(sites, asking.description())
    studies = Studies(adaptive.members[0].ledger)
    (row,) = studies.answers(adaptive.sealed.hex())
    other = row._replace(answer=bytes(len(answer)))
    assert studies.journal(adaptive.study.digest.hex(), other) == answer
    assert studies.answers(adaptive.sealed.hex()) == [row]


def test_an_answer_is_written_down_before_keys_move_on(asking, adaptive, opened, monkeypatch):
    site, done = opened(adaptive)[0], []
    journal, replace = site.studies.journal, masks.KeyFile.replace

    def written(*args):
        done.append("journal")
        return journal(*args)

    def moved(*args):
        done.append("keys")
        replace(*args)

    monkeypatch.setattr(site.studies, "journal", written)
    monkeypatch.setattr(masks.KeyFile, "replace", moved)
    site.answer(asking.message(asking.description()))
    assert done == ["journal", "keys"]


@pytest.mark.parametrize("place", ["share_of", "masked", "sign", "journal", "replace", "length"])
def test_a_failure_once_records_are_touched_ends_the_study_in_silence(
    asking, adaptive, opened, monkeypatch, place
):
    site, member = opened(adaptive)[0], adaptive.members[0]

    def fail(*_, **__):
        raise MemoryError("record 17 is to blame")

    where = {
        "share_of": (accounts.Account, "share_of", fail),
        "masked": (sites_, "masked", fail),
        "sign": (identity.Identity, "sign", fail),
        "journal": (Studies, "journal", fail),
        "replace": (masks.KeyFile, "replace", fail),
        "length": (accounts.Account, "share_of", lambda *_: np.zeros(5, np.uint64)),
    }
    message = asking.message(asking.description())
    monkeypatch.setattr(*where[place])
    with pytest.raises(Ended) as ended:
        site.reply(message)
    monkeypatch.undo()
    assert ended.value.__cause__ is None
    assert not member.keys(adaptive.terms).exists()
    with pytest.raises(Ended):
        site.reply(message)
    found = Studies(member.ledger).find(adaptive.study.digest.hex())
    assert (found.state, found.entry) == ("ended", 1)
    assert "failed" in (member.folder / "log").read_text()


# --- 18: refusals


def test_refusals_are_one_text_and_details_stay_in_the_own_log(asking, adaptive, opened):
    site, member = opened(adaptive)[0], adaptive.members[0]
    for message in (
        b"",
        asking.message(asking.description(round=5)),
        asking.message(asking.description(d=5)),
        asking.message(asking.description(before="0" * 64)),
    ):
        assert site.reply(message) == REFUSAL
    log = (member.folder / "log").read_text()
    assert log.count("refused:") == 4
    assert os.stat(member.folder / "log").st_mode & 0o777 == 0o600


def test_refusals_do_not_depend_on_the_records(tmp_path):
    """Sites that differ in every record refuse and answer the same messages."""
    verdicts = []
    for scale in (1.0, 1e3, np.nan):
        c = Consortium(tmp_path / str(scale), n=30, method="adaptive")
        asking = Asking(c)
        data = joining.Opened(ArrayStore(Rows(np.full((10, 6), scale))), 10)
        member = c.members[0]
        keys, told = member.keys(c.terms), []
        site = sites_.Site(c.study, c.seals, member.who, keys, member.ledger, data)
        with site:
            told += [site.reply(asking.message(said)) for _, said in bad_queries(asking)]
            for query in queries(asking):
                said = asking.description(query, 0.1 * c.terms.mu)
                reply = site.reply(asking.message(said))
                told.append(len(reply))
                asking.history.append((said, [reply] * 3))
        verdicts.append(told)
    assert verdicts[0] == verdicts[1] == verdicts[2]


# --- a whole search


def test_a_search_is_resumed_where_sites_and_coordinator_stopped(tmp_path):
    c = Consortium(tmp_path / "a", n=3000, method="adaptive")

    class Stops(InProcess):
        left = 5

        def ask(self, number, message):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().ask(number, message)

    sites = [site.__enter__() for site in c.sites()]
    with pytest.raises(KeyboardInterrupt):
        released(c.asker(Stops(sites)))
    for site in sites:
        site.__exit__(None, None, None)
    answered = [len(Studies(m.ledger).answers(c.sealed.hex())) for m in c.members]
    assert answered == [5, 5, 5]
    sites = [site.__enter__() for site in c.sites()]
    asker = c.asker(InProcess(sites))
    release = released(asker)
    assert len(asker.sums) > 5
    assert all(check.ok for check in release.verify())
    for member in c.members:
        assert member.ledger.spent()["entries"] == 1
    again = released(c.asker(InProcess(sites)))
    assert (again.value == release.value).all()
    for site in sites:
        site.__exit__(None, None, None)


def test_axes_are_taken_up_again_after_a_restart(asking, adaptive):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    member = adaptive.members[0]
    with adaptive.site(member) as site:
        said = asking.description(turn=turn)
        asking.history.append((said, [site.answer(asking.message(said))] * 3))
        center, total = site._center, site._store.total(asking.query())
    with adaptive.site(member) as site:
        assert np.array_equal(site._center, center)
        assert np.array_equal(site._store.total(asking.query()), total)


def test_descriptions_are_bytes_that_come_back(asking, adaptive):
    for query in queries(asking):
        said = asking.description(query)
        assert loads(said.data, Description) == said
        assert undouble(said.mu) == 0.1 * adaptive.terms.mu
    assert encode(b"") == ""
