"""What a coordinator adds up, what is published, and what anybody finds in it."""

import json
import os
import shutil
import warnings
from contextlib import ExitStack

import msgspec
import numpy as np
import pytest
from consortium import SIGNATURE, Asking, Consortium, InProcess

from spdp import Release
from spdp.adaptive import preconditioner
from spdp.adaptive import search as search_module
from spdp.adaptive.search import Search
from spdp.errors import DataError, LedgerError, ParameterError
from spdp.federated import checks, closing, identity, rounds
from spdp.federated.canonical import Refused, digest_of, dumps, encode
from spdp.federated.checks import check_published
from spdp.federated.folder import Folder, put
from spdp.federated.identity import words_of
from spdp.federated.messages import most_bytes, spoken
from spdp.federated.rounds import Collected, FarStore, StudyAccount, released
from spdp.federated.transcript import (
    ANSWERS,
    CLOSES,
    ROUNDS,
    Answers,
    Closes,
    check_answers,
    check_close,
    closed,
    read_answers,
    read_rounds,
    rounds_of,
    write_draft,
    write_published,
)
from spdp.ledger.studies import Studies
from spdp.queries.sums import Frame, ShareSum, VectorSum, whole_domain_sum
from spdp.release.files import seal_of


def edited(form, **changes):
    return msgspec.structs.replace(form, **changes)


class Done:
    """A study that was run to its draft."""

    def __init__(self, folder, **given):
        self.folder = folder
        self.c = Consortium(folder / "study", **given)
        with ExitStack() as stack:
            sites = [stack.enter_context(site) for site in self.c.sites()]
            if self.c.terms.method == "oneshot":
                answers = {site.name: site.only_answer() for site in sites}
                self.asker = Collected(self.c.study, self.c.sealed, given=answers)
            else:
                self.asker = self.c.asker(InProcess(sites))
            self.release = released(self.asker)
        self.rounds = rounds_of(self.asker, self.c.seals, self.release)
        self.draft = folder / "draft"
        write_draft(self.draft, self.asker, self.rounds, self.release)

    def closes(self):
        return [closing.close(self.draft, m.who, m.ledger) for m in self.c.members]

    def published(self, rounds=None, closes=None, release=None, name="published"):
        """Write what is published, or something else in its place; and check it."""
        rounds, release = rounds or self.rounds, release or self.release
        if closes is None:
            closes = [closed(rounds, m.name, m.who) for m in self.c.members]
        write_published(self.folder / name, rounds, closes, release)
        found = check_published(self.folder / name, Release.load(self.folder / name))
        return {check.name for check in found if not check.ok}


@pytest.fixture(scope="module")
def oneshot(tmp_path_factory):
    return Done(tmp_path_factory.mktemp("oneshot"))


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    return Done(tmp_path_factory.mktemp("search"), n=3000, method="adaptive")


# --- the coordinator's account


def test_nothing_exact_is_where_a_coordinator_is(oneshot):
    store = FarStore(10, 6)
    query = whole_domain_sum(oneshot.c.terms.space.region)
    with pytest.raises(TypeError, match="no exact total"):
        store.total(query)
    with pytest.raises(TypeError, match="asks its sites"):
        StudyAccount(oneshot.asker).ask(query, oneshot.c.site(oneshot.c.members[0])._store)


def test_queries_outside_the_list_are_not_said(oneshot):
    region = oneshot.c.terms.space.region
    frame = whole_domain_sum(region).frame
    for query in (
        ShareSum("mean", frame, 1.0, 5),
        VectorSum("mean", frame, 1.0, 5),
        VectorSum("mean", frame.__class__(frame.center, frame.width, np.eye(6)), 1.0),
    ):
        with pytest.raises(TypeError):
            spoken(query)


def test_the_search_is_told_how_much_larger_its_noise_is(search):
    account = StudyAccount(search.asker)
    assert account.spread == pytest.approx(np.sqrt(3 / 2))
    scales = [step["scale"] for step in search.release.certificate["steps"]]
    for said, scale in zip(search.rounds.descriptions, scales, strict=True):
        per_site = float(np.frombuffer(bytes.fromhex(said.scale), ">f8")[0])
        assert scale == pytest.approx(np.sqrt(3) * per_site)


def test_a_study_cannot_ask_more_than_its_budget(search):
    account = StudyAccount(search.asker)
    account.charge(account.mu)
    with pytest.raises(ValueError, match="more than its budget"):
        account.ask(whole_domain_sum(search.c.terms.space.region), FarStore(10, 6), 0.5)


# --- 20: adding up


def given(done):
    return dict(zip(done.c.study.names, done.asker.answers[0], strict=True))


def collected(done, answers):
    return released(Collected(done.c.study, done.c.sealed, given=answers))


@pytest.mark.parametrize("who", ["alpha", "bravo", "charlie"])
def test_one_answer_of_each_site_signed_and_of_its_length(oneshot, who):
    answers = given(oneshot)
    assert (collected(oneshot, answers).value == oneshot.release.value).all()
    less = {name: one for name, one in answers.items() if name != who}
    flipped = bytearray(answers[who])
    flipped[-8] ^= 1  # the last number by one: a sum that records can give
    for bad in (
        less,
        answers | {"zulu": answers[who]},
        answers | {who: bytes(flipped)},
        answers | {who: answers[who][:-8]},
        answers | {who: answers[who] + bytes(8)},
        answers | {who: answers["bravo" if who != "bravo" else "alpha"]},
    ):
        with pytest.raises((Refused, DataError)):
            collected(oneshot, bad)


def resigned(done, who, data, number=0):
    """An answer that a malicious site signs."""
    said = done.rounds.descriptions[number].digest
    member = next(m for m in done.c.members if m.name == who)
    parts = done.c.sealed, number.to_bytes(4, "big"), said, digest_of(data)
    return bytes.fromhex(member.who.sign(identity.ANSWER, *parts)) + data


def test_a_signed_answer_of_another_length_is_refused(oneshot):
    answers = given(oneshot)
    for data in (answers["bravo"][SIGNATURE:-8], answers["bravo"][SIGNATURE:] + bytes(8), b""):
        with pytest.raises(Refused, match="another length"):
            collected(oneshot, answers | {"bravo": resigned(oneshot, "bravo", data)})


def test_files_of_a_one_shot_study_answer_its_only_question(oneshot):
    asker = Collected(oneshot.c.study, oneshot.c.sealed, given=given(oneshot))
    query = whole_domain_sum(oneshot.c.terms.space.region)
    other = asker.describe(query, 0.5 * oneshot.c.terms.mu, None)
    with pytest.raises(DataError, match="another question"):
        asker.put(other, query)


def test_a_sum_that_no_records_give_is_void(oneshot):
    answers = given(oneshot)
    lie = np.frombuffer(answers["bravo"][SIGNATURE:], "<u8") + np.uint64(2**62)
    with pytest.raises(Refused, match="no records give"):
        collected(oneshot, answers | {"bravo": resigned(oneshot, "bravo", lie.tobytes())})


def test_a_lie_within_the_bound_changes_the_result_and_nothing_else(oneshot):
    """A malicious site can spoil the result; it is named by its signature."""
    answers = given(oneshot)
    lie = np.frombuffer(answers["bravo"][SIGNATURE:], "<u8") + np.uint64(2**34)
    false = collected(oneshot, answers | {"bravo": resigned(oneshot, "bravo", lie.tobytes())})
    assert (false.value != oneshot.release.value).any()


def test_an_answer_of_another_round_or_description_does_not_fit(search):
    first, second = search.asker.answers[0][0], search.asker.answers[1]
    said = search.rounds.descriptions[1]
    with pytest.raises(Refused):
        rounds.sum_of(search.c.study, search.c.sealed, said, [first, *second[1:]])
    cut = first[:SIGNATURE] + second[0][SIGNATURE:]
    with pytest.raises(Refused, match="not signed"):
        rounds.sum_of(search.c.study, search.c.sealed, said, [cut, *second[1:]])


# --- certificates


def test_certificates_say_who_trusted_whom(oneshot, search):
    for done in (oneshot, search):
        trust = done.release.certificate["trust"]
        assert trust["model"] == "distributed"
        assert trust["study"] == done.c.study.digest.hex()
        assert (trust["sites"], trust["colluding"]) == (3, 1)
        assert trust["noise_factor"] == pytest.approx(1.2247, abs=1e-4)
        assert 1.45 < trust["epsilon_if_all_others_collude"] <= 1.46
        assert "ML-KEM-768" in trust["computational"]
        assert done.release.certificate["mechanism"] == "distributed-gaussian"
        assert all(check.ok for check in done.release.verify())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("study", "0" * 63),
        ("sites", 4),
        ("colluding", 2),
        ("noise_per_site", 1.0),
        ("noise_factor", 1.0),
        ("epsilon_if_all_others_collude", 1.0),
        ("computational", "none"),
    ],
)
def test_forged_trust_is_found(oneshot, name, value):
    certificate = oneshot.release.certificate
    certificate["trust"] = certificate["trust"] | {name: value}
    assert not all(check.ok for check in Release(oneshot.release.values, certificate).verify())


def test_trust_is_neither_added_nor_taken_away(oneshot):
    certificate = oneshot.release.certificate
    trust = certificate.pop("trust")
    certificate["mechanism"] = "tangent-gaussian"
    assert not all(check.ok for check in Release(oneshot.release.values, certificate).verify())
    from spdp import private_mean
    from spdp.datasets import synthetic_spd

    X = synthetic_spd(60, 3, random_state=1)
    given = {"epsilon": 1.0, "delta": 1e-6, "domain": oneshot.c.terms.space.domain}
    central = private_mean(X, **given, method="oneshot", mechanism="gaussian")
    assert "trust" not in central.certificate
    forged = central.certificate | {"trust": trust, "mechanism": "distributed-gaussian"}
    assert not all(check.ok for check in Release(central.values, forged).verify())


# --- closing


def test_sites_check_and_sign_and_forget_their_keys(tmp_path):
    done = Done(tmp_path)
    closes = done.closes()
    assert done.published(closes=closes) == set()
    for member in done.c.members:
        assert not member.keys(done.c.terms).exists()
        (entry,) = member.ledger.history()
        assert entry["state"] == "done"
        assert entry["mechanism"] == "distributed-gaussian"
        assert (np.array(entry["value"]) == done.release.value).all()
    assert done.closes() == closes  # asked again, after a lost message
    assert not (tmp_path / "published" / ANSWERS).exists()


def test_a_site_signs_one_release_of_a_study(tmp_path):
    """A second one may differ where rounding may, and in its date."""
    done = Done(tmp_path)
    later = f"2099{done.release.certificate['created'][4:]}"
    values = {name: value * (1 + 1e-8) for name, value in done.release.values.items()}
    for number, other in enumerate(
        (
            Release(values, done.release.certificate),
            Release(done.release.values, done.release.certificate | {"created": later}),
        )
    ):
        seal = seal_of(other.values, other.certificate)
        second = rewritten(done, f"{number}", edited(done.rounds, release=seal), release=other)
        first, last = done.c.members[0], done.c.members[-1]
        made = closing.close(done.draft, first.who, first.ledger)
        with pytest.raises(Refused) as refusal:
            closing.close(second, first.who, first.ledger)
        assert refusal.value.message == closing.ANOTHER
        assert closing.close(done.draft, first.who, first.ledger) == made
    closing.close(second, last.who, last.ledger)  # what it refuses could be signed
    with pytest.raises(Refused, match="another release"):
        closing.close(done.draft, last.who, last.ledger)


def test_a_site_that_left_vouches_for_nothing(tmp_path):
    done = Done(tmp_path)
    first = done.c.members[0]
    Studies(first.ledger).end(done.c.study.digest.hex())
    with pytest.raises(LedgerError, match="vouch"):
        closing.close(done.draft, first.who, first.ledger)


def rewritten(done, name, rounds=None, answers=None, release=None):
    """A draft that a malicious coordinator made."""
    folder = done.folder / name
    release = release or done.release
    rounds = rounds or done.rounds
    release.save(folder)
    (folder / ROUNDS).write_bytes(rounds.data)
    found = answers if answers is not None else done.asker.answers
    text = Answers(answers=[[encode(one) for one in each] for each in found])
    (folder / ANSWERS).write_bytes(text.data)
    return folder


def test_a_site_signs_only_what_it_answered(oneshot):
    member, (answers,) = oneshot.c.members[0], oneshot.asker.answers
    other = resigned(oneshot, "alpha", answers[0][SIGNATURE:-8] + bytes(8))
    for name, given in (
        ("another answer", [[other, *answers[1:]]]),
        ("one less", [answers[:2]]),
        ("no rounds", []),
        ("swapped", [[answers[0], answers[2], answers[1]]]),
    ):
        draft = rewritten(oneshot, name, answers=given)
        with pytest.raises(Refused):
            closing.close(draft, member.who, member.ledger)
    assert member.keys(oneshot.c.terms).exists()
    assert read_answers(oneshot.draft) == [answers]


def test_a_site_signs_its_own_answers_also_where_all_else_agrees(oneshot):
    """A draft of another answer, signed with its identity: whoever has that made it."""
    answers, (own, *_) = given(oneshot), oneshot.asker.answers[0]
    data = np.frombuffer(own[SIGNATURE:], "<u8") + np.uint64(2**30)
    other = answers | {"alpha": resigned(oneshot, "alpha", data.tobytes())}
    asker = Collected(oneshot.c.study, oneshot.c.sealed, given=other)
    release = released(asker)
    found = rounds_of(asker, oneshot.c.seals, release)
    check_answers(found, asker.answers, "alpha", [other["alpha"]])
    with pytest.raises(Refused, match="this site's answer of round 1 is not among"):
        check_answers(found, asker.answers, "alpha", [own])


def test_a_site_signs_only_the_sum_of_the_answers(oneshot):
    member, total = oneshot.c.members[0], oneshot.asker.sums[0]
    from spdp.federated.canonical import packed

    false = edited(oneshot.rounds, sums=[packed(total + 1)])
    with pytest.raises(Refused, match="replay|sum"):
        closing.close(rewritten(oneshot, "false", false), member.who, member.ledger)


def test_a_site_signs_only_a_release_that_follows(oneshot):
    member = oneshot.c.members[0]
    other = Release({"mean": 1.01 * oneshot.release.value}, oneshot.release.certificate)
    seal = seal_of(other.values, other.certificate)
    draft = rewritten(oneshot, "other", edited(oneshot.rounds, release=seal), release=other)
    with pytest.raises(Refused, match="replay|in the domain"):
        closing.close(draft, member.who, member.ledger)


# --- what is published


def test_what_is_published_verifies(oneshot, search):
    assert oneshot.published(name="good") == set()
    assert search.published(name="good") == set()


def test_a_release_without_all_signatures_says_so(oneshot):
    closes = [closed(oneshot.rounds, m.name, m.who) for m in oneshot.c.members]
    assert oneshot.published(closes=closes[:2], name="two") == {"closing signatures"}
    assert oneshot.published(closes=[*closes[:2], closes[0]], name="twice") == {
        "closing signatures"
    }
    forged = edited(closes[2], signature=closes[1].signature)
    assert oneshot.published(closes=[*closes[:2], forged], name="forged") == {"closes"}
    (oneshot.folder / "two" / CLOSES).unlink()
    found = check_published(oneshot.folder / "two", oneshot.release)
    assert not all(check.ok for check in found)


def test_seals_and_signatures_are_one_of_each_site_in_the_studys_order(oneshot):
    a, b, c = oneshot.rounds.seals
    closes = [closed(oneshot.rounds, m.name, m.who) for m in oneshot.c.members]
    forged = edited(a, signature=b.signature)
    assert oneshot.published(closes=closes, name="seals") == set()
    for seals in ([b, a, c], [a, b, c, c], [forged, a, b, c]):
        other = edited(oneshot.rounds, seals=seals)
        (oneshot.folder / "seals" / ROUNDS).write_bytes(other.data)
        found = check_published(oneshot.folder / "seals", oneshot.release)
        assert "study" in [check.name for check in found if not check.ok]
    (oneshot.folder / "seals" / ROUNDS).write_bytes(oneshot.rounds.data)
    first, second, third = closes
    for signed in ([second, first, third], [*closes, first]):
        (oneshot.folder / "seals" / CLOSES).write_bytes(Closes(closes=signed).data)
        found = check_published(oneshot.folder / "seals", oneshot.release)
        assert [check.name for check in found if not check.ok] == ["closing signatures"]


def test_invented_sites_are_not_those_that_are_pinned(oneshot, tmp_path):
    """Whoever publishes can make up everything that lies beside a release."""
    pins = {card.name: words_of(card.identity) for card in oneshot.c.study.cards}
    assert oneshot.published(name="pinned") == set()
    found = check_published(oneshot.folder / "pinned", oneshot.release, pins=pins)
    assert all(check.ok for check in found)
    assert [check.name for check in found if "ident" in check.name] == ["identities"]
    forged = Done(tmp_path)  # the same names, and keys of one person
    assert forged.published() == set()
    for known, why in ((pins, "other words"), ({}, "not pinned"), ({"zulu": "x"}, "not pinned")):
        found = check_published(tmp_path / "published", forged.release, pins=known)
        failed = [check for check in found if not check.ok]
        assert [check.name for check in failed] == [f"identity of {n}" for n in pins]
        assert all(why in check.detail for check in failed)
    one = pins | {"bravo": pins["alpha"]}
    found = check_published(oneshot.folder / "pinned", oneshot.release, pins=one)
    assert [check.name for check in found if not check.ok] == ["identity of bravo"]


def test_a_site_signs_in_its_own_name_alone(search, tmp_path):
    """A folder may give the coordinator one site's signature twice."""
    folder = Folder(tmp_path, search.c.study, patience=0.5)
    folder.path.mkdir()
    closes = [closed(search.rounds, m.name, m.who) for m in search.c.members]
    for name, close in zip(search.c.study.names, closes, strict=True):
        put(folder.path / f"close-{name}", close.data)
    assert folder.closes(search.rounds) == closes
    put(folder.path / "close-alpha", closes[1].data)
    with pytest.raises(Refused, match="close-alpha is the signature of bravo"):
        folder.closes(search.rounds)


def test_a_release_without_its_rounds_says_so(oneshot, tmp_path):
    oneshot.release.save(tmp_path / "bare")
    (check,) = check_published(tmp_path / "bare", oneshot.release)
    assert (check.name, check.ok) == ("rounds", False)


def test_a_coordinator_that_publishes_something_else_is_found(search):
    other = Release({"mean": 1.001 * search.release.value}, search.release.certificate)
    seal = seal_of(other.values, other.certificate)
    failed = search.published(edited(search.rounds, release=seal), release=other, name="other")
    assert "replay of mean" in failed
    honest = [closed(search.rounds, m.name, m.who) for m in search.c.members]
    assert "closes" in search.published(
        edited(search.rounds, release=seal), closes=honest, release=other, name="other2"
    )
    with pytest.raises(Refused, match="signed something else"):
        check_close(honest[0], edited(search.rounds, release=seal))


def test_altered_rounds_are_found(search):
    from spdp.federated.canonical import double, packed

    good = search.rounds
    said = good.descriptions
    changed = [packed(total) for total in search.asker.sums]
    changed[2] = packed(search.asker.sums[2] + 2**40)
    longer = [edited(said[0], mu=double(0.9 * search.c.terms.mu)), *said[1:]]
    for name, other in {
        "a sum": edited(good, sums=changed),
        "a price": edited(good, descriptions=longer),
        "a round less": edited(good, descriptions=said[:-1], sums=good.sums[:-1]),
        "rounds swapped": edited(good, descriptions=[said[1], said[0], *said[2:]]),
        "other digests": edited(good, last=["0" * 64] * 3),
        "a seal less": edited(good, seals=good.seals[:2]),
    }.items():
        if name == "other digests":  # nobody but the sites knows the answers
            signed = [closed(good, m.name, m.who) for m in search.c.members]
            assert search.published(other, closes=signed, name=name), name
        else:
            signed = [] if name == "a seal less" else None
            assert search.published(other, closes=signed, name=name), name


def why(done, rounds=None):
    """What running the statistic again says of rounds."""
    found = checks._tried(checks._replay, rounds or done.rounds, done.release)
    return " ".join(check.detail for check in found if not check.ok)


def test_a_coordinator_that_asks_other_questions_is_found(tmp_path, monkeypatch):
    """Sites answer any query of the list; that the search asks it is checked later."""
    honest = Search.ask_distance
    monkeypatch.setattr(
        Search,
        "ask_distance",
        lambda self, frame, cap, share: honest(self, frame, 0.9 * cap, share),
    )
    done = Done(tmp_path, n=3000, method="adaptive")
    monkeypatch.undo()
    assert "asks something else" in why(done)
    assert "replay" in done.published()


def test_a_coordinator_that_turns_to_other_axes_is_found(tmp_path, monkeypatch):
    honest = search_module.principal_frame

    def other(*args):
        frame = honest(*args)
        return Frame(frame.center, frame.width, np.roll(frame.axes, 1, axis=1))

    monkeypatch.setattr(search_module, "principal_frame", other)
    done = Done(tmp_path, n=6000, method="adaptive")
    monkeypatch.undo()
    assert any(said.turn is not None for said in done.rounds.descriptions)
    assert "turns to other axes" in why(done)


def test_rounds_that_are_missing_or_not_turned_are_found(tmp_path):
    done = Done(tmp_path, n=6000, method="adaptive")
    said, good = list(done.rounds.descriptions), done.rounds
    assert why(done) == ""
    less = edited(good, descriptions=said[:-1], sums=good.sums[:-1])
    assert "more rounds than there were" in why(done, less)
    turned = next(i for i, one in enumerate(said) if one.turn is not None)
    said[turned] = edited(said[turned], turn=None)
    assert "turns its axes" in why(done, edited(good, descriptions=said))


def test_digests_are_those_of_the_answers(oneshot):
    name, own = "alpha", [oneshot.asker.answers[0][0]]
    check_answers(oneshot.rounds, oneshot.asker.answers, name, own)
    other = edited(oneshot.rounds, last=[oneshot.rounds.last[0], *["0" * 64] * 2])
    with pytest.raises(Refused, match="other digests"):
        check_answers(other, oneshot.asker.answers, name, own)


def test_the_sum_is_that_of_the_answers(oneshot):
    from spdp.federated.canonical import packed

    own, false = [oneshot.asker.answers[0][0]], [packed(oneshot.asker.sums[0] + 1)]
    with pytest.raises(Refused, match="not that of the answers"):
        check_answers(edited(oneshot.rounds, sums=false), oneshot.asker.answers, "alpha", own)


def test_digests_between_rounds_are_those_of_the_transcript(search):
    """Signatures are of the last transcript; those in between follow from it."""
    said = list(search.rounds.descriptions)
    said[2] = edited(said[2], digests=["0" * 64] * 3)
    signed = [closed(search.rounds, m.name, m.who) for m in search.c.members]
    other = edited(search.rounds, descriptions=said)
    assert search.published(other, closes=signed, name="digests")


def test_only_the_sites_own_identity_closes(oneshot):
    first, second = oneshot.c.members[:2]
    with pytest.raises(Refused, match="another identity"):
        closing.close(oneshot.draft, second.who, first.ledger)


def test_certificates_that_state_another_study_are_found(oneshot, tmp_path):
    other = Done(tmp_path, epsilon=2.0)
    failed = oneshot.published(
        edited(other.rounds, release=oneshot.rounds.release),
        closes=[closed(other.rounds, m.name, m.who) for m in other.c.members],
        name="mixed",
    )
    assert {"budget of the study", "trust"} <= failed


def test_machines_that_find_other_axes_still_agree(tmp_path, monkeypatch):
    """Eigenvectors differ in signs, and where eigenvalues are equal."""
    honest = preconditioner._eigh

    def elsewhere(C):
        values, V = honest(C)
        flipped = V * np.where(np.arange(len(V)) % 2, -1.0, 1.0)
        same = np.isclose(values, values[0], rtol=1e-9)
        if same.sum() > 1:
            turn = np.linalg.qr(np.random.default_rng(0).standard_normal((same.sum(),) * 2))[0]
            flipped[:, same] = flipped[:, same] @ turn
        return values, flipped

    monkeypatch.setattr(preconditioner, "_eigh", elsewhere)
    done = Done(tmp_path, n=6000, k=3, method="adaptive")
    assert any(said.turn is not None for said in done.rounds.descriptions)
    monkeypatch.undo()
    assert done.published() == set()
    turned = [i for i, said in enumerate(done.rounds.descriptions) if said.turn is not None]
    from spdp.federated.canonical import packed, unpacked

    said = list(done.rounds.descriptions)
    axes = unpacked(said[turned[0]].turn, (6, 6))
    wrong = np.roll(axes, 1, axis=1)
    said[turned[0]] = edited(said[turned[0]], turn=packed(wrong))
    assert done.published(edited(done.rounds, descriptions=said), name="wrong axes")


@pytest.mark.parametrize(
    ("statistic", "options"),
    [("median", {}), ("dispersion", {}), ("pca", {"n_components": 2})],
)
def test_every_statistic_that_only_sums_runs_over_sites(tmp_path, statistic, options):
    given = {"statistic": statistic, "options": options, "method": "adaptive"}
    done = Done(tmp_path, n=3000, **given)
    assert all(check.ok for check in done.release.verify())
    closes = done.closes()
    assert done.published(closes=closes) == set()
    assert done.closes() == closes  # asked again, after a lost message


# --- a malicious folder


def test_files_of_a_folder_are_named_by_checked_names_and_not_followed(tmp_path):
    c = Consortium(tmp_path / "study", n=12, method="adaptive")
    (tmp_path / "shared").mkdir()
    folder = Folder(tmp_path / "shared", c.study, patience=0.5)
    folder.path.mkdir()
    (tmp_path / "secret").write_bytes(b"x" * 100)
    (folder.path / "ask-000").symlink_to(tmp_path / "secret")
    assert folder._message(0) is None
    with c.site(c.members[0]) as site, pytest.raises(DataError, match="nothing for"):
        folder.serve(site)
    assert [file.name for file in folder.path.iterdir()] == ["ask-000"]


@pytest.mark.parametrize("linked", ["the study", "the draft"])
def test_folders_of_a_folder_are_not_links(search, tmp_path, linked):
    (tmp_path / "shared").mkdir()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(search.draft, elsewhere)
    folder = Folder(tmp_path / "shared", search.c.study, patience=0.5)
    if linked == "the draft":
        folder.path.mkdir()
        (folder.path / "draft").symlink_to(elsewhere)
    else:
        folder.path.symlink_to(elsewhere)
    before = sorted(file.name for file in elsewhere.iterdir())
    member = search.c.members[0]

    def close(draft):
        return closing.close(draft, member.who, member.ledger)

    with search.c.site(member) as site:
        for use in (
            lambda: folder.serve(site),
            lambda: folder.sign(member.name, close),
            lambda: folder.ask(0, b"anything"),
            lambda: folder.closes(search.rounds),
            lambda: folder.drafted(Replayed.of(search), search.c.seals),
        ):
            with pytest.raises(DataError, match="a link, which is not followed"):
                use()
    assert sorted(file.name for file in elsewhere.iterdir()) == before


class Replayed(checks.Replay):
    """Asks nobody: the sums are known."""

    @classmethod
    def of(cls, done):
        return cls(done.c.study, done.c.sealed, rounds=done.rounds)


def test_a_one_shot_study_needs_no_folder(oneshot, tmp_path):
    with pytest.raises(ParameterError, match="a site runs spdp site sum"):
        Folder(tmp_path, oneshot.c.study, patience=0.5)


def test_a_refusal_in_a_folder_is_one_text(tmp_path):
    c = Consortium(tmp_path / "study", n=12, method="adaptive")
    (tmp_path / "shared").mkdir()
    folder = Folder(tmp_path / "shared", c.study, patience=4.0)
    folder.path.mkdir()
    put(folder.path / "ask-000", b"anything")
    with c.site(c.members[0]) as site, pytest.raises(DataError, match="nothing for"):
        folder.serve(site)
    assert (folder.path / "refusal-000-alpha").read_bytes() == b"spdp refused 1"
    with pytest.raises(DataError, match="alpha refused"):
        folder._all_in(0)
    with pytest.raises(DataError, match="something else"):
        folder.ask(0, b"a longer message than that")


def test_answers_leave_at_whole_multiples_of_two_seconds(monkeypatch):
    from spdp.federated import folder

    waited = []
    monkeypatch.setattr(folder.time, "time", lambda: 1000.7)
    monkeypatch.setattr(folder.time, "sleep", waited.append)
    folder.at_pace()
    assert waited == [pytest.approx(1.3)]


def test_nothing_leaves_for_a_folder_before_the_pace(tmp_path, monkeypatch):
    from spdp.federated import folder as module

    c = Consortium(tmp_path / "study", n=12, method="adaptive")
    (tmp_path / "shared").mkdir()
    folder, done = Folder(tmp_path / "shared", c.study, patience=0.5), []
    folder.path.mkdir()
    monkeypatch.setattr(module, "at_pace", lambda: done.append("pace"))
    monkeypatch.setattr(module, "put", lambda path, data: done.append(path.name))
    asking = Asking(c)
    (folder.path / "ask-000").write_bytes(asking.message(asking.description()))
    with c.site(c.members[0]) as site:
        with pytest.raises(DataError, match="nothing for"):
            folder.serve(site)
        assert done == ["pace", "answer-000-alpha"]
        (folder.path / "ask-000").write_bytes(b"another question in this round")
        with pytest.raises(DataError, match="nothing for"):
            folder.serve(site)
    assert done[2:] == ["pace", "refusal-000-alpha"]


def test_a_question_in_a_folder_is_read_no_further_than_its_limit(tmp_path):
    c = Consortium(tmp_path / "study", n=12, method="adaptive")
    (tmp_path / "shared").mkdir()
    folder = Folder(tmp_path / "shared", c.study, patience=0.5)
    folder.path.mkdir()
    most = SIGNATURE + most_bytes(c.terms.d)
    with (folder.path / "ask-000").open("wb") as file:
        file.truncate(most)
        assert len(folder._message(0)) == most
        file.truncate(most + 1)
    assert folder._message(0) is None


def test_only_known_files_of_a_draft_are_copied(search, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "copy").mkdir()
    folder = Folder(tmp_path / "shared", search.c.study, patience=0.5)
    shutil.copytree(search.draft, folder.path / "draft")
    (folder.path / "draft" / "more.npy").write_bytes(b"x")
    copied = folder._copied(tmp_path / "copy")
    names = {"mean.npy", "certificate.json", ROUNDS, ANSWERS}
    assert {file.name for file in copied.iterdir()} == names


def test_a_draft_with_pickled_objects_runs_nothing(oneshot):
    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(oneshot.folder / "ran"),)

    member, draft = oneshot.c.members[0], rewritten(oneshot, "pickled")
    np.save(draft / "mean.npy", np.array([Runs()], object), allow_pickle=True)
    with pytest.raises((DataError, Refused)):
        closing.close(draft, member.who, member.ledger)
    assert not (oneshot.folder / "ran").exists()


def test_bytes_up_and_down(tmp_path):
    """At d = 45: at most 60 kB down and 15 kB up per site and search."""
    c = Consortium(tmp_path / "study", n=3000, k=9, method="adaptive")
    with ExitStack() as stack:
        transport = InProcess([stack.enter_context(site) for site in c.sites()])
        asker = c.asker(transport)
        released(asker)
    assert any(said.turn is not None for said in asker.descriptions)  # the largest message
    assert transport.down <= 60_000
    assert transport.up <= 15_000


def test_rounds_hold_no_answer(search):
    """What is published has digests of the answers, and not the answers."""
    text = (search.draft / ROUNDS).read_bytes()
    for answers in search.asker.answers:
        for one in answers:
            assert encode(one[SIGNATURE:]).encode() not in text
            assert one[SIGNATURE:].hex().encode() not in text
    assert read_rounds(search.draft).data == search.rounds.data
    assert json.loads(text)["format"] == "spdp-rounds"
    assert dumps(Closes(closes=[]))


# --- accuracy


def errors(runs, sites, n, tmp_path, method):
    """Squared errors over sites, and of one curator, of the same records."""
    from consortium import central

    from spdp import private_mean

    c = Consortium(tmp_path / f"{sites}", sites=sites, n=n, method=method)
    region, space = c.terms.space.region, c.terms.space
    query = whole_domain_sum(region)
    truth = region.center + central(c.X, c.study) * (query.step / n)
    given = {"epsilon": 1.0, "delta": 1e-6, "domain": space.domain, "method": method}
    found = []
    for _ in range(runs):
        far = released(Drawing(c.study, c.sealed, c))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            near = private_mean(c.X, mechanism="gaussian", **given)
        found.append([np.sum((space.chart.vector(r.value) - truth) ** 2) for r in (far, near)])
    return np.array(found).T


class Drawing(rounds.Asker):
    """Sites in this process, without masks: totals and shares of the noise."""

    def __init__(self, study, sealed, consortium):
        super().__init__(study, sealed)
        from spdp.federated import joining

        self.stores = [joining.opened(m.X, study.terms, m.ledger).store for m in consortium.members]

    @classmethod
    def of(cls, folder, sites):
        c = Consortium(folder, sites=sites, n=300)
        return cls(c.study, c.sealed, c)

    def put(self, description, query):
        from spdp.federated.canonical import undouble, unpacked
        from spdp.privacy.account import Account

        if description.turn is not None:
            turn = unpacked(description.turn, (self.study.terms.d,) * 2)
            self.stores = [store.rotated(turn) for store in self.stores]
        mu, honest = undouble(description.mu), self.study.honest
        total = np.zeros(description.d, np.uint64)
        for store in self.stores:
            total = total + Account(self.study.terms.budget).share_of(query, store, mu, honest)
        self.descriptions.append(description)
        self.digests.append(["0" * 64] * self.study.sites)
        return total.view(np.int64)


@pytest.mark.parametrize("sites", [3, pytest.param(5, marks=pytest.mark.audit)])
def test_one_shot_errs_as_its_certificate_says_and_not_as_one_curator(tmp_path, sites):
    """600 runs of 6 coordinates: false alarm below 1e-6 on either side."""
    far, near = errors(600, sites, 300, tmp_path, "oneshot")
    slack = 5 * np.sqrt(2 / (6 * 600))
    expected = released(Drawing.of(tmp_path / "again", sites)).certificate["expected_squared_error"]
    assert abs(far.mean() / expected - 1) < slack
    assert abs(near.mean() / expected - 1) > slack
    assert near.mean() * sites / (sites - 1) == pytest.approx(expected, rel=slack)


@pytest.mark.audit
@pytest.mark.parametrize("sites", [3, 5])
def test_a_search_over_sites_errs_by_the_stated_factor(tmp_path, sites):
    """Against one curator, 1000 runs each: the factor to 5 %, and none of 1."""
    far, near = errors(1000, sites, 3000, tmp_path, "adaptive")
    ratio, factor = np.sqrt(far.mean() / near.mean()), np.sqrt(sites / (sites - 1))
    sd = 0.5 * np.sqrt(sum(np.var(e) / np.mean(e) ** 2 / len(e) for e in (far, near)))
    print(f"{sites} sites: {ratio:.3f} of one curator's error, {factor:.3f} expected, ± {sd:.3f}")
    assert abs(ratio / factor - 1) < 0.05 + 2 * sd
    assert ratio - 2 * sd > 1
