"""What a site checks before it signs a study: each rule with a case that breaks it."""

import json
import os
import stat

import msgspec
import numpy as np
import pytest
from consortium import KEY, NAMES, Consortium, Member, terms
from hypothesis import given, settings
from hypothesis import strategies as st

from spdp import BudgetExceeded, Ledger
from spdp.errors import DataError, LedgerError, ParameterError
from spdp.federated import canonical, identity, joining
from spdp.federated.canonical import (
    Packed,
    Refused,
    dumps,
    encode,
    loads,
    packed,
    undouble,
    unpacked,
)
from spdp.federated.drafting import rostered, seal_of, terms_of
from spdp.federated.identity import Identity, words_of
from spdp.federated.masks import KeyFile, rooted
from spdp.federated.study import (
    Card,
    Study,
    Terms,
    agreed,
    check_card,
    check_terms,
    checked,
    sealed_by,
)
from spdp.ledger.studies import Studies


def edited(form, **changes):
    return msgspec.structs.replace(form, **changes)


# --- 1: bytes


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b + b"\n",
        lambda b: b.replace(b",", b", ", 1),
        lambda b: b.replace(b'"k":3', b'"k":3.0'),
        lambda b: b.replace(b'"k":3', b'"k":true'),
        lambda b: b.replace(b'"k":3', b'"k":3,"k":3'),
        lambda b: b.replace(b'"k":3', b'"k":03'),
        lambda b: b.replace(b'"k":3', b'"k":9007199254740992'),
        lambda b: b.replace(b'"k":3', b'"k":"3"'),
        lambda b: b.replace(b'"k":3', b'"k":3,"more":1'),
        lambda b: b.replace(b"mean", b"me\\u0061n"),
        lambda b: b.replace(b"mean", "meän".encode()),
        lambda b: b.replace(b'"options":{}', b'"options":{"a":{"a":{}}}'),
        lambda b: b[:-1],
        lambda b: b'{"version":1,' + b[1:-1].replace(b',"version":1', b"") + b"}",
    ],
)
def test_only_one_way_to_write_a_study_is_read(oneshot, change):
    data = oneshot.study.data
    assert loads(data, Study).data == data
    assert change(data) != data
    with pytest.raises(Refused):
        loads(change(data), Study)


@pytest.mark.parametrize("digits", ["7ff8000000000000", "7ff0000000000000", "fff0000000000000"])
def test_numbers_are_finite(digits):
    with pytest.raises(Refused, match="finite"):
        undouble(digits)
    with pytest.raises(Refused, match="finite"):
        unpacked(Packed([1], encode(bytes.fromhex(digits)[::-1])), (1,))
    with pytest.raises(ValueError, match="finite"):
        canonical.double(float("nan"))


@pytest.mark.parametrize("value", [1.0, True, 2**53, -(2**53), "é", "a\n", float("nan")])
def test_what_cannot_be_written(value):
    assert dumps({"a": [2**53 - 1, "~ ", None]}) == b'{"a":[9007199254740991,"~ ",null]}'
    with pytest.raises(ValueError):
        dumps({"a": value})
    deep = 0
    for _ in range(8):
        deep = [deep]
    assert dumps(deep)
    with pytest.raises(ValueError, match="deep"):
        dumps([deep])


def test_names_that_occur_twice_are_refused_by_name(oneshot):
    with pytest.raises(Refused, match="twice"):
        loads(oneshot.terms.data.replace(b'"k":3', b'"k":3,"k":3'), Terms)


def test_fixed_bytes_of_numbers():
    assert canonical.double(-1.5) == "bff8000000000000"
    assert undouble("3ff0000000000001") == 1 + 2.0**-52
    assert packed(np.array([1.0])).base64 == encode(bytes(6) + b"\xf0\x3f")
    assert packed(np.array([-2])).base64 == encode(b"\xfe" + b"\xff" * 7)
    assert (unpacked(Packed([1], encode(bytes(6) + b"\xf0\x3f")), (1,)) == 1.0).all()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_comes_back_to_the_bit(number):
    back = undouble(canonical.double(number))
    assert np.float64(back).tobytes() == np.float64(number).tobytes()


@settings(max_examples=50)
@given(st.recursive(st.integers(-(2**53) + 1, 2**53 - 1) | st.text(), st.lists, max_leaves=8))
def test_what_can_be_written_is_read_back(value):
    try:
        data = dumps({"a": value})
    except ValueError:
        return
    assert json.loads(data) == {"a": value}
    assert data.isascii()


def test_arrays_have_the_size_that_their_shape_says():
    for wrong in (Packed([2], encode(bytes(8))), Packed([1], encode(bytes(16)))):
        with pytest.raises(Refused):
            unpacked(wrong, tuple(wrong.shape))
    with pytest.raises(Refused, match="shape"):
        unpacked(packed(np.zeros(3)), (4,))
    text = encode(bytes(8))
    for other in (text[:-1], text + "\n", text.replace("A", "_", 1), text[:-2] + "B="):
        with pytest.raises(Refused):
            canonical.decode(other, 8)


@pytest.mark.parametrize("version", [0, 2])
def test_no_other_version_is_negotiated(oneshot, version):
    for form in (oneshot.study, oneshot.seals["alpha"]):
        data = form.data.replace(b'"version":1}', b'"version":%d}' % version)
        assert data != form.data
        with pytest.raises(Refused, match="cannot be read"):
            loads(data, type(form))


def test_files_are_read_no_further_than_their_limit_and_links_are_not_followed(tmp_path):
    (tmp_path / "long").write_bytes(bytes(100))
    with pytest.raises(Refused, match="longer"):
        canonical.read(tmp_path / "long", 99)
    assert canonical.read(tmp_path / "long", 100) == bytes(100)
    os.truncate(tmp_path / "long", 1 << 42)  # four terabytes of nothing
    with pytest.raises(Refused, match="longer"):
        canonical.read(tmp_path / "long", 99)
    os.truncate(tmp_path / "long", 100)
    (tmp_path / "link").symlink_to(tmp_path / "long")
    with pytest.raises(Refused):
        canonical.read(tmp_path / "link", 100)
    os.mkfifo(tmp_path / "pipe")  # opening it must not wait for a writer
    with pytest.raises(Refused, match="not a file"):
        canonical.read(tmp_path / "pipe", 100)


# --- 2, 3: sizes and the roster


def cards(consortium):
    return list(consortium.study.cards)


def test_sizes_of_a_study(oneshot):
    with pytest.raises(Refused, match="2 to 200"):
        rostered(oneshot.terms, cards(oneshot)[:1])
    with pytest.raises(Refused, match="2 to 200"):
        checked(Study(terms=oneshot.terms, cards=cards(oneshot) * 67))
    for colluding in (0, 200):
        with pytest.raises(Refused):
            loads(dumps(edited(oneshot.terms, colluding=colluding)), Terms)


def test_records_have_at_most_65536_numbers(oneshot):
    check_terms(edited(oneshot.terms, k=361))
    with pytest.raises(Refused, match="65536"):
        check_terms(edited(oneshot.terms, k=362))


def test_all_sites_together_have_at_most_two_to_the_32_records(oneshot):
    members = oneshot.members
    for n, right in ((2**30, True), (2**31, False)):
        many = [resigned(card, m.who, n=n) for card, m in zip(cards(oneshot), members, strict=True)]
        if right:
            assert checked(Study(terms=oneshot.terms, cards=many)).n == 3 * 2**30
        else:
            with pytest.raises(Refused, match="exact"):
                checked(Study(terms=oneshot.terms, cards=many))


def test_a_site_that_is_not_in_the_roster(oneshot):
    with pytest.raises(Refused, match="zulu is not in the roster"):
        oneshot.study.place("zulu")


def test_not_all_sites_may_collude(tmp_path):
    with pytest.raises(Refused, match="collude"):
        Consortium(tmp_path / "a", colluding=3)


@pytest.mark.parametrize("name", ["", "Alpha", "a b", "a/b", "../a", "é", "a" * 33, "a\n"])
def test_names_of_sites(oneshot, name):
    with pytest.raises(ParameterError, match="name must be"):
        joining.join(oneshot.terms, name, 5, oneshot.coordinator, KeyFile(oneshot.folder / "k"))
    card = edited(cards(oneshot)[0], name=name)
    with pytest.raises((Refused, ValueError)):
        loads(dumps(card), Card)


def test_names_ascend_and_differ(oneshot):
    a, b, c = cards(oneshot)
    for order in ([b, a, c], [a, a, b]):
        with pytest.raises(Refused, match="ascend|same"):
            checked(Study(terms=oneshot.terms, cards=order))


def resigned(card, who, **changes):
    card = edited(card, identity=who.public, **changes)
    return edited(card, signature=who.sign(identity.CARD, card.signed))


@pytest.mark.parametrize("what", ["identity", "x25519", "mlkem"])
def test_identities_and_keys_differ(oneshot, what):
    a, b, c = cards(oneshot)
    who = oneshot.members[0].who if what == "identity" else oneshot.members[1].who
    same = resigned(b, who, **({} if what == "identity" else {what: getattr(a, what)}))
    with pytest.raises(Refused, match=f"same {what}"):
        checked(Study(terms=oneshot.terms, cards=[a, same, c]))


def test_every_card_is_signed_by_its_identity(oneshot):
    a, b, c = cards(oneshot)
    for bad in (edited(b, n=b.n + 1), edited(b, signature=a.signature)):
        with pytest.raises(Refused, match="not signed"):
            checked(Study(terms=oneshot.terms, cards=[a, bad, c]))
    other = terms(oneshot.coordinator, epsilon=2.0)
    with pytest.raises(Refused, match="other terms"):
        checked(Study(terms=other, cards=[a, b, c]))


# --- 4: the own card


def test_the_own_card_is_in_the_study_byte_for_byte(oneshot, tmp_path):
    member = Member("delta", tmp_path / "delta", oneshot.X[:7])
    card = member.join(oneshot.terms)
    more = resigned(card, member.who, n=8)
    study = rostered(oneshot.terms, [*cards(oneshot)[:2], more])
    with pytest.raises(Refused, match="not the one it made"):
        member.sign(study)
    stranger, _ = Identity.opened_or_made(tmp_path / "stranger")
    study = rostered(oneshot.terms, [*cards(oneshot)[:2], card])
    with pytest.raises(Refused, match="not the one it made"):
        joining.sign(study, stranger, member.keys(study.terms), member.ledger)
    assert member.sign(study).study == study.digest.hex()


def test_a_card_is_signed_in_one_study(oneshot):
    first = oneshot.members[0]
    other = rostered(oneshot.terms, cards(oneshot)[:2])
    with pytest.raises(Refused, match="another study"):
        first.sign(other)
    keys = first.keys(oneshot.terms)  # also with keys from before the signature
    keys.replace(edited(keys.read(), study=None, seal=None, shared=None))
    with pytest.raises(LedgerError, match="another study"):
        first.sign(other)


def test_signing_again_gives_the_same_seal(oneshot):
    first = oneshot.members[0]
    assert first.sign(oneshot.study).data == oneshot.seals["alpha"].data
    assert len(Studies(first.ledger).of_terms(oneshot.terms.digest.hex())) == 1


def test_one_ledger_is_in_a_study_once(oneshot):
    first = oneshot.members[0]
    with pytest.raises(ParameterError, match="joined"):
        first.join(oneshot.terms)
    twin, _ = Identity.opened_or_made(oneshot.folder / "twin")
    keys = KeyFile(oneshot.folder / "twin.keys")  # with other keys, under another name
    card = joining.join(oneshot.terms, "twin", len(first.X), twin, keys)
    study = rostered(oneshot.terms, [*cards(oneshot), card])
    joining.sign(study, twin, keys, first.ledger)
    with pytest.raises(LedgerError, match="already"):
        joining.reserve(study, "alpha", first.ledger)


def test_a_study_needs_a_ledger_bound_to_the_data(oneshot, tmp_path):
    loose = Ledger(tmp_path / "loose.ledger", epsilon=1, delta=1e-5)
    with pytest.raises(LedgerError, match="bound"):
        joining.opened(oneshot.X, oneshot.terms, loose)
    first = oneshot.members[0]
    with pytest.raises(LedgerError, match="not the data"):
        joining.opened(first.X + np.eye(3), oneshot.terms, first.ledger)
    assert joining.opened(first.X, oneshot.terms, first.ledger).n == len(first.X)


def test_number_unit_and_size_are_those_of_the_data(oneshot, tmp_path):
    first = oneshot.members[0]
    small = Ledger(tmp_path / "s.ledger", epsilon=1, delta=1e-5, key=KEY)
    small.bind(first.X[:3])
    data = joining.opened(first.X[:3], oneshot.terms, small)
    with pytest.raises(DataError, match="number on this site's card"):
        first_site(oneshot, data)
    persons = terms(oneshot.coordinator, unit="person")
    with pytest.raises(ParameterError, match="per record"):
        joining.opened(first.X, persons, first.ledger)
    with pytest.raises(ParameterError, match="4×4"):
        joining.opened(first.X, terms(oneshot.coordinator, k=4), first.ledger)


def first_site(consortium, data):
    from spdp.federated.site import Site

    first = consortium.members[0]
    keys = first.keys(consortium.terms)
    return Site(consortium.study, consortium.seals, first.who, keys, first.ledger, data)


# --- 5: others' keys


@pytest.mark.parametrize("u", [0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18])
def test_keys_of_small_order_are_refused(oneshot, u):
    a, b, c = cards(oneshot)
    bad = resigned(b, oneshot.members[1].who, x25519=u.to_bytes(32, "little").hex())
    with pytest.raises(Refused, match="X25519"):
        checked(Study(terms=oneshot.terms, cards=[a, bad, c]))


ONE, MINUS_ONE = 1, identity.P - 1
SMALL_ORDER = [(0, 0), (0, 1), (ONE, 0), (MINUS_ONE, 0)]  # y, and the sign of x
SMALL_ORDER += [(y, sign) for y in (identity.Y8, identity.P - identity.Y8) for sign in (0, 1)]
SECOND_TEXTS = [(ONE, 1), (MINUS_ONE, 1)]
SECOND_TEXTS += [(y, sign) for y in range(identity.P, 2**255) for sign in (0, 1)]


def written(y, sign):
    return (y + (sign << 255)).to_bytes(32, "little").hex()


@pytest.mark.parametrize(("y", "sign"), SMALL_ORDER)
def test_identities_of_small_order_are_refused(oneshot, y, sign):
    """A signature of zeros and an R of small order fits some texts, or all."""
    assert _times_8(y) == 1
    a, b, c = cards(oneshot)
    bad = edited(b, identity=written(y, sign), signature=written(1, 0) + "00" * 32)
    with pytest.raises(Refused, match="anybody"):
        check_card(bad, oneshot.terms)
    with pytest.raises(Refused, match="anybody"):
        checked(Study(terms=oneshot.terms, cards=[a, bad, c]))
    with pytest.raises(Refused, match="anybody"):
        check_terms(edited(oneshot.terms, coordinator=bad.identity))


@pytest.mark.parametrize(("y", "sign"), SECOND_TEXTS)
def test_identities_have_one_text(oneshot, y, sign):
    bad = edited(cards(oneshot)[1], identity=written(y, sign))
    with pytest.raises(Refused, match="anybody"):
        check_card(bad, oneshot.terms)
    with pytest.raises(Refused, match="anybody"):
        check_terms(edited(oneshot.terms, coordinator=bad.identity))


def test_a_signature_that_fits_every_text_is_refused(oneshot):
    """Without a key: the library takes it, and a site does not."""
    forged, signature = written(1, 0), written(1, 0) + "00" * 32
    key = identity.library("asymmetric.ed25519").Ed25519PublicKey
    for text in (b"", b"any", b"other"):
        key.from_public_bytes(bytes.fromhex(forged)).verify(bytes.fromhex(signature), text)
    a, b, c = cards(oneshot)
    bad = edited(b, identity=forged, signature=signature)
    with pytest.raises(Refused, match="anybody"):
        checked(Study(terms=oneshot.terms, cards=[a, bad, c]))
    with pytest.raises(Refused, match="anybody"):
        identity.check(forged, signature, identity.ROUND, bytes(32))
    check_card(b, oneshot.terms)


def _times_8(y):
    """The y of eight times a point of Edwards' curve, by doubling its y alone."""
    p = identity.P
    d = -121665 * pow(121666, -1, p) % p
    for _ in range(3):
        square = y * y % p
        x_square = (square - 1) * pow(d * square + 1, -1, p) % p
        y = (square + x_square) * pow(1 - d * x_square * square, -1, p) % p
    return y


@pytest.mark.parametrize("key", [bytes(1183), bytes(1185), b"\xff" * 1184])
def test_ml_kem_keys_have_their_length_and_load(oneshot, key):
    a, b, c = cards(oneshot)
    bad = resigned(b, oneshot.members[1].who, mlkem=encode(key))
    with pytest.raises(Refused):
        checked(Study(terms=oneshot.terms, cards=[a, bad, c]))


def test_ciphertexts_have_their_length(oneshot):
    seal, _ = seal_of(oneshot.study, "alpha", oneshot.members[0].who)
    short = edited(seal, secrets={**seal.secrets, "bravo": encode(bytes(1087))})
    short = edited(short, signature=oneshot.members[0].who.sign(identity.SEAL, *short.signed))
    with pytest.raises(Refused):
        sealed_by(oneshot.study, oneshot.seals | {"alpha": short})


# --- 6: identities


def test_identities_are_pinned_or_confirmed(oneshot):
    study, asked = oneshot.study, []

    def confirm(name, words):
        asked.append((name, words))
        return True

    pins = {}
    joining.check_identities(study, "alpha", pins, confirm)
    assert asked == [(card.name, words_of(card.identity)) for card in study.cards[1:]]
    joining.check_identities(study, "alpha", pins, lambda *_: pytest.fail("asked again"))
    with pytest.raises(ParameterError, match="not confirmed"):
        joining.check_identities(study, "alpha", {}, lambda *_: False)
    wrong = pins | {"bravo": words_of(study.cards[0].identity)}
    with pytest.raises(ParameterError, match="another identity"):
        joining.check_identities(study, "alpha", wrong, lambda *_: True)


def test_words_are_of_128_bits_of_the_identity(tmp_path):
    key, twin = "00" * 32, "01" + "00" * 31
    assert words_of(key) != words_of(twin)
    assert len(words_of(key).split("-")) * 16 == 128
    assert len({identity._word(number) for number in range(1 << 16)}) == 1 << 16
    identity.write_pins(tmp_path / "pins", {"alpha": words_of(key)})
    assert identity.read_pins(tmp_path / "pins") == {"alpha": words_of(key)}
    for bad in ("alpha\n", f"alpha {words_of(key)}\nalpha {words_of(twin)}\n"):
        (tmp_path / "pins").write_text(bad)
        with pytest.raises(ParameterError, match="line"):
            identity.read_pins(tmp_path / "pins")


def test_identities_are_files_of_their_owner_and_may_have_a_passphrase(tmp_path, monkeypatch):
    monkeypatch.setenv(identity.PASSPHRASE, "long and secret")
    made, new = Identity.opened_or_made(tmp_path / "id")
    assert new
    assert stat.S_IMODE((tmp_path / "id").stat().st_mode) == 0o600
    assert b"ENCRYPTED" in (tmp_path / "id").read_bytes()
    assert Identity.open(tmp_path / "id").public == made.public
    monkeypatch.delenv(identity.PASSPHRASE)
    with pytest.raises(DataError, match=identity.PASSPHRASE):
        Identity.open(tmp_path / "id")


# --- 7: labels


def test_a_signature_of_one_thing_is_none_of_another(oneshot):
    labels = [identity.CARD, identity.SEAL, identity.ROUND, identity.ANSWER, identity.CLOSE]
    who, what = oneshot.coordinator, bytes(32)
    for place, label in enumerate(labels):
        signature = who.sign(label, what)
        identity.check(who.public, signature, label, what)
        for other in labels[:place] + labels[place + 1 :]:
            with pytest.raises(Refused):
                identity.check(who.public, signature, other, what)
    bare = who._key.sign(what).hex()
    for label in labels:
        with pytest.raises(Refused):
            identity.check(who.public, bare, label, what)


# --- 8: the price


def test_only_gaussian_noise_and_replace_one(oneshot):
    space = oneshot.terms.space
    given = {"statistic": "mean", "options": {}, "method": "oneshot", "unit": "record"}
    given |= {"colluding": 1, "coordinator": oneshot.coordinator.public}
    with pytest.raises(ParameterError, match="Laplace"):
        terms_of(space, epsilon=1.0, delta=0.0, **given)
    with pytest.raises(Refused, match="delta above 0"):
        check_terms(edited(oneshot.terms, delta=canonical.double(0.0)))
    for changes in ({"adjacency": "add-remove"}, {"queries": 2}, {"method": "auto"}):
        with pytest.raises(Refused):
            loads(dumps(edited(oneshot.terms, **changes)), Terms)


@pytest.mark.parametrize(
    "changes",
    [
        {"statistic": "difference"},
        {"statistic": "summary"},
        {"options": {"max_records": 3}},
        {"options": {"n_components": 2}},
        {"statistic": "median"},  # has no one shot
        {"metric": "euclid"},
        {"domain": {"type": "EigenvalueBounds", "low": canonical.double(1.0)}},
        {"domain": {"type": "Ball", "radius": canonical.double(2.0**41), "center": None}},
        {"domain": {"type": "Ball", "radius": canonical.double(2.0**-41), "center": None}},
        {"epsilon": canonical.double(-1.0)},
        {"epsilon": canonical.double(1e-101)},
    ],
)
def test_terms_that_no_study_may_have(oneshot, changes):
    check_terms(oneshot.terms)
    with pytest.raises(Refused):
        check_terms(edited(oneshot.terms, **changes))


def test_a_budget_whose_noise_exceeds_the_integers_is_refused(tmp_path):
    with pytest.raises(Refused, match="integer range"):
        Consortium(tmp_path / "a", epsilon=1e-12, delta=1e-12)


def test_signing_reserves_the_price_and_a_full_ledger_refuses(oneshot, tmp_path):
    first, mu = oneshot.members[0], oneshot.terms.mu
    assert first.ledger.spent()["mu"] == mu
    assert first.ledger.spent()["entries"] == 0
    poor = Member("delta", tmp_path / "delta", oneshot.X[:7], budget=0.1)
    study = rostered(oneshot.terms, [*cards(oneshot)[:2], poor.join(oneshot.terms)])
    with pytest.raises(BudgetExceeded):
        poor.sign(study)
    assert poor.ledger.spent()["mu"] == 0


def test_what_is_reserved_can_be_taken_back_before_the_first_answer(oneshot, opened):
    first, second, _ = oneshot.members
    assert joining.leave(oneshot.terms, first.keys(oneshot.terms), first.ledger)
    assert first.ledger.spent()["mu"] == 0
    assert not first.keys(oneshot.terms).exists()
    with second.site(oneshot.study, oneshot.seals) as site:
        site.only_answer()
    assert not joining.leave(oneshot.terms, second.keys(oneshot.terms), second.ledger)
    assert second.ledger.spent()["mu"] == oneshot.terms.mu


def test_what_is_reserved_stays_if_the_keys_are_gone(oneshot):
    """They may have been used beside another copy of the ledger."""
    first = oneshot.members[0]
    first.keys(oneshot.terms).delete()
    assert not joining.leave(oneshot.terms, first.keys(oneshot.terms), first.ledger)
    assert first.ledger.spent() | {"epsilon": 0} == {
        "entries": 1,
        "mu": oneshot.terms.mu,
        "epsilon": 0,
        "delta": 1e-5,
    }


# --- seals


def test_nothing_is_answered_before_all_have_sealed(oneshot):
    first = oneshot.members[0]
    for seals in (
        {n: s for n, s in oneshot.seals.items() if n != "charlie"},
        oneshot.seals | {"charlie": oneshot.seals["bravo"]},
        oneshot.seals | {"delta": oneshot.seals["bravo"]},
        oneshot.seals | {"bravo": edited(oneshot.seals["bravo"], signature="0" * 128)},
    ):
        with pytest.raises(Refused):
            first.site(oneshot.study, seals)
    member = oneshot.members[0]
    last = oneshot.members[2].who
    for changes in ({"study": "0" * 64}, {"site": "bravo"}):  # signed, of something else
        other = edited(oneshot.seals["charlie"], **changes)
        other = edited(other, signature=last.sign(identity.SEAL, *other.signed))
        with pytest.raises(Refused, match="another study"):
            sealed_by(oneshot.study, oneshot.seals | {"charlie": other})
    for secrets in ({}, {"bravo": encode(bytes(1088))}):
        less = edited(oneshot.seals["alpha"], secrets=secrets)
        less = edited(less, signature=member.who.sign(identity.SEAL, *less.signed))
        with pytest.raises(Refused, match="one secret for each"):
            sealed_by(oneshot.study, oneshot.seals | {"alpha": less})
    joined = edited(member.keys(oneshot.terms).read(), seal=None, shared=None)
    with pytest.raises(Refused, match="not signed"):
        rooted(joined, oneshot.study, oneshot.seals)
    another, _ = seal_of(oneshot.study, "alpha", member.who)  # signed, and not the one it made
    with pytest.raises(Refused, match="not the one it made"):
        rooted(member.keys(oneshot.terms).read(), oneshot.study, oneshot.seals | {"alpha": another})


def test_private_keys_are_gone_when_roots_are_made(oneshot, opened):
    opened(oneshot)
    for member in oneshot.members:
        keys = member.keys(oneshot.terms)
        held = keys.read()
        assert (held.x25519, held.mlkem, held.shared, held.seal) == (None,) * 4
        assert len(held.chains) == 2
        assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_both_ends_of_a_pair_have_the_same_chain_and_no_others(oneshot, opened):
    opened(oneshot)
    chains = {m.name: m.keys(oneshot.terms).read().chains for m in oneshot.members}
    for a in NAMES[:3]:
        for b in NAMES[:3]:
            if a != b:
                assert chains[a][b] == chains[b][a]
    assert len({chain for held in chains.values() for chain in held.values()}) == 3


def test_ml_kem_alone_and_x25519_alone_change_the_root(oneshot):
    """Whoever breaks one of the two still lacks the other."""
    from spdp.federated.identity import library
    from spdp.federated.masks import root

    held = oneshot.members[0].keys(oneshot.terms).read()
    mine = library("asymmetric.x25519").X25519PrivateKey.from_private_bytes(
        bytes.fromhex(held.x25519)
    )
    secret, kem = agreed(mine, oneshot.study.cards[1]), bytes.fromhex(held.shared["bravo"])
    honest = rooted(held, oneshot.study, oneshot.seals).chains["bravo"]
    assert root(secret + kem, oneshot.sealed, 0, 1).hex() == honest
    assert root(secret + bytes(32), oneshot.sealed, 0, 1).hex() != honest
    assert root(bytes(32) + kem, oneshot.sealed, 0, 1).hex() != honest
