"""Masks cancel where all sites were told the same, and are uniform everywhere else."""

import hashlib
import hmac
import itertools
import os
import struct

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from scipy import stats

from spdp.federated import masks

D, ROUNDS = 32, 100
ALARM = 1e-6  # rate of false alarms of one χ² test; there are some 90 here
BROKEN = 1e-30


def bytes_are_uniform(vectors):
    """p-value of a χ² test of all bytes of vectors of 64-bit numbers."""
    found = np.frombuffer(np.concatenate(vectors).astype("<u8").tobytes(), np.uint8)
    return stats.chisquare(np.bincount(found, minlength=256)).pvalue


def roots(sites):
    return {pair: os.urandom(32) for pair in itertools.combinations(range(sites), 2)}


def answer(place, total, keys, said, sites):
    chains = {chr(97 + j): keys[min(place, j), max(place, j)] for j in range(sites) if j != place}
    return np.frombuffer(masks.masked(total, chr(97 + place), chains, said), "<u8")


def answers(sites, told, total):
    """Answers of sites that were told something each, over many rounds."""
    keys, found = roots(sites), []
    for number in range(ROUNDS):
        said = [hashlib.sha256(f"{number} {what}".encode()).digest() for what in told]
        found.append([answer(i, total, keys, said[i], sites) for i in range(sites)])
        keys = {pair: masks.onward(chain) for pair, chain in keys.items()}
    return found


TOTAL = np.full(D, 12345, np.uint64)  # small: nothing but masks makes its bytes uniform


def subset_sums(found, some):
    return [sum((one[i] for i in some[1:]), one[some[0]]) for one in found]


def test_masks_cancel_in_the_sum_over_all_sites():
    for number in answers(4, "xxxx", TOTAL):
        assert (sum(number[1:], number[0]) == 4 * 12345).all()


@pytest.mark.parametrize(
    "some", [s for r in (1, 2, 3) for s in itertools.combinations(range(4), r)]
)
def test_all_answers_but_some_are_uniform(some):
    assert bytes_are_uniform(subset_sums(answers(4, "xxxx", TOTAL), some)) > ALARM


@pytest.mark.parametrize("told", ["xxxy", "xyxx", "xxyy", "xyxy", "wxyz"])
def test_sites_that_were_told_different_things_are_uniform_in_every_group(told):
    found = answers(4, told, TOTAL)
    for r in (1, 2, 3, 4):
        for some in itertools.combinations(range(4), r):
            assert bytes_are_uniform(subset_sums(found, some)) > ALARM, some


def test_that_test_fails_if_the_description_is_left_out_of_the_key(monkeypatch):
    honest = masks.pair_mask
    monkeypatch.setattr(masks, "pair_mask", lambda chain, said, d: honest(chain, b"", d))
    found = answers(4, "xxyy", TOTAL)
    assert bytes_are_uniform(subset_sums(found, (0, 1, 2, 3))) < BROKEN


# --- keys that give the same X25519 secrets

P, A = 2**255 - 19, 486662


def inverse(x):
    return pow(x, P - 2, P)


def root_of(a):
    x = pow(a, (P + 3) // 8, P)
    if (x * x - a) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return x if (x * x - a) % P == 0 else None


def height(u):
    return root_of((u**3 + A * u * u + u) % P)


def plus(p, q):
    """The sum of two points of Curve25519, of different u."""
    (x, y), (u, v) = p, q
    slope = (v - y) * inverse(u - x) % P
    w = (slope * slope - A - x - u) % P
    return w, (slope * (x - w) - y) % P


# u of points of order 2, 4 and 8
SMALL = {
    2: 0,
    4: 1,
    8: 325606250916557431795983626356110631294008115727848805560023387167927233504,
}


def disguises(public):
    """Other keys that give the same secrets with every key."""
    yield "top bit", public[:31] + bytes([public[31] | 0x80])
    u = int.from_bytes(public, "little")
    for order, small in SMALL.items():
        found, _ = plus((u, height(u)), (small, height(small)))
        yield f"order {order}", found.to_bytes(32, "little")


def test_disguised_keys_give_the_same_secret():
    victim, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    public = other.public_key().public_bytes_raw()
    secret = victim.exchange(other.public_key())
    found = dict(disguises(public))
    assert list(found) == ["top bit", "order 2", "order 4", "order 8"]
    for name, key in found.items():
        assert key != public, name
        assert victim.exchange(X25519PublicKey.from_public_bytes(key)) == secret, name


def victims(disguise):
    """Answers of the middle site; its neighbours' cards hold one key, disguised."""
    found, total = [], TOTAL
    for _ in range(ROUNDS):
        victim, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        key = dict(disguises(other.public_key().public_bytes_raw()))[disguise]
        sealed, kem = os.urandom(32), os.urandom(32)  # a colluder may repeat its ML-KEM secret
        first = victim.exchange(other.public_key()) + kem
        third = victim.exchange(X25519PublicKey.from_public_bytes(key)) + kem
        chains = {"a": masks.root(first, sealed, 0, 1), "c": masks.root(third, sealed, 1, 2)}
        said = os.urandom(32)
        found.append(np.frombuffer(masks.masked(total, "b", chains, said), "<u8"))
    return found


@pytest.mark.parametrize("disguise", ["top bit", "order 2", "order 4", "order 8"])
def test_a_card_with_anothers_key_leaves_the_victims_answer_uniform(disguise):
    assert bytes_are_uniform(victims(disguise)) > ALARM


@pytest.mark.parametrize("disguise", ["top bit", "order 2", "order 4", "order 8"])
def test_that_test_fails_if_the_pair_is_left_out_of_the_key(disguise, monkeypatch):
    honest = masks.root
    monkeypatch.setattr(masks, "root", lambda secret, sealed, i, j: honest(secret, sealed, 0, 1))
    assert bytes_are_uniform(victims(disguise)) < BROKEN


# --- exactly these bytes


def expanded(key, info):
    """HKDF-Expand to 32 bytes, by RFC 5869."""
    return hmac.new(key, info + b"\x01", hashlib.sha256).digest()


def test_roots_and_chains_are_those_of_rfc_5869():
    secret, sealed = bytes(range(64)), bytes(range(100, 132))
    extracted = hmac.new(sealed, secret, hashlib.sha256).digest()
    root = masks.root(secret, sealed, 2, 5)
    assert root == expanded(extracted, b"spdp pair 1" + struct.pack(">HH", 2, 5))
    assert masks.onward(root) == expanded(root, b"spdp next 1")
    with pytest.raises(ValueError, match="ascend"):
        masks.root(secret, sealed, 5, 2)


def test_fixed_vectors():
    root = masks.root(bytes(range(64)), bytes(range(100, 132)), 2, 5)
    said = bytes(range(32))
    assert root.hex() == "bdf20c6e17a1cf5f501da0c1fa973f19f5512f146f619b6c4f8c15130e2557ef"
    assert (
        masks.onward(root).hex()
        == "876ab7db058b33ea286300067647228703bbf2cdaee6e92b0ba4154cf3ec8fdd"
    )
    assert (
        masks.pair_mask(root, said, 3).tobytes().hex()
        == "69b13ae1e2267e0be21699d334f5e57bb673bf99e0c9383c"
    )
    chains = {"a": root, "c": masks.onward(root)}
    answer = masks.masked(np.array([1, 2**64 - 1, 2**63], np.uint64), "b", chains, said)
    assert answer.hex() == "eb1d154d7284b74379fd4117cd66aa94be3f19a4a6187993"


def test_sums_are_exact_up_to_two_to_the_62():
    keys, said, sites = roots(4), bytes(32), 4
    values = [np.array([s * 2**62, s * (2**60 + 1), s], np.int64) for s in (1, -1, 1, -1)]
    values[3][0] = 0
    found = [answer(i, v.view(np.uint64), keys, said, sites) for i, v in enumerate(values)]
    total = masks.unmasked([one.tobytes() for one in found])
    assert total.tolist() == [2**62, 0, 0]
    assert total.dtype == np.int64


# --- the file of keys


@pytest.fixture
def held(oneshot, opened):
    """The key file of a site whose study is sealed."""
    opened(oneshot)
    return oneshot.members[0].keys(oneshot.terms)


def test_keys_of_a_finished_round_are_gone(held):
    before = held.read()
    held.replace(before.moved_on())
    after = held.read()
    assert after.round == before.round + 1
    for name, chain in before.chains.items():
        assert after.chains[name] == masks.onward(bytes.fromhex(chain)).hex()
        assert chain.encode() not in held.path.read_bytes()


def test_keys_are_replaced_whole_and_synced(held, monkeypatch):
    before, synced = held.path.read_bytes(), []
    fsync, replace = os.fsync, os.replace

    def seen(where):
        name = os.path.basename(os.readlink(f"/proc/self/fd/{where}"))
        synced.append((name, os.fstat(where).st_size))
        fsync(where)

    def moved(old, new):
        synced.append("replaced")
        assert held.path.read_bytes() == before  # until then the former keys are there
        replace(old, new)

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "replace", moved)
    held.replace(held.read().moved_on())
    size = held.path.stat().st_size
    file, then, (folder, _) = synced
    assert (file, then) == ((f".{held.path.name}.draft", size), "replaced")
    assert folder == held.path.parent.name
    monkeypatch.undo()

    def full(where):
        raise OSError("no space left")

    before = held.path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        held.replace(held.read().moved_on())
    assert held.path.read_bytes() == before


def test_deleted_keys_are_overwritten(held, tmp_path):
    os.link(held.path, tmp_path / "same")  # another name of the same bytes on the disk
    held.delete()
    assert not held.exists()
    assert not any((tmp_path / "same").read_bytes())
