"""Exact sums that travel."""

import json
import os

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, private_mean
from spdp.errors import DataError, ParameterError
from spdp.lattice import exact_sum
from spdp.statistics import partial_sums as sums
from spdp.statistics.partial_sums import LatticeSum, release_sum

DOMAIN = EigenvalueBounds(0.01, 100.0)


def test_sums_merge_exactly(random_spd, tmp_path):
    X = random_spd(300, 4)
    parts = [LatticeSum.of(X[:100], DOMAIN), LatticeSum.of(X[100:], DOMAIN)]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"{i}.sum")
    merged = LatticeSum.load(tmp_path / "0.sum") + LatticeSum.load(tmp_path / "1.sum")
    assert (merged.n, merged.k) == (300, 4)
    np.testing.assert_array_equal(merged.total, exact_sum(X, DOMAIN))
    options = {"epsilon": 1.0, "delta": 1e-6, "random_state": 5, "mechanism": "gaussian"}
    whole = private_mean(X, domain=DOMAIN, method="oneshot", **options)
    np.testing.assert_array_equal(release_sum(merged, **options).value, whole.value)
    assert "NOT PRIVATE" in (tmp_path / "0.sum").read_text()
    with pytest.raises(ParameterError, match="different domains"):
        _ = parts[0] + LatticeSum.of(X, Ball(1.0))
    with pytest.raises(ParameterError, match="4×4 and 2×2"):
        _ = parts[0] + LatticeSum.of(random_spd(5, 2), DOMAIN)
    with_center = LatticeSum.of(X, Ball(2.0, 2 * np.eye(4)))
    assert LatticeSum.load(with_center.save(tmp_path / "c.sum")).domain == with_center.domain


def test_damaged_sum_files(random_spd, tmp_path):
    file = LatticeSum.of(random_spd(10, 2), DOMAIN).save(tmp_path / "a.sum")
    content = json.loads(file.read_text())
    for name, change, message in [
        ("tampered", {"n": 11}, "checksum"),
        ("newer", {"version": 9}, "has format 9"),
        ("other", {"format": "x"}, "not a sum file"),
    ]:
        (tmp_path / name).write_text(json.dumps({**content, **change}))
        with pytest.raises(DataError, match=f"{name}.*{message}"):
            LatticeSum.load(tmp_path / name)
    (tmp_path / "cut").write_text(file.read_text()[:50])
    with pytest.raises(DataError, match=r"cut: cannot be read"):
        LatticeSum.load(tmp_path / "cut")
    with pytest.raises(DataError, match="absent"):
        LatticeSum.load(tmp_path / "absent")


def test_the_same_records_cannot_be_merged_twice(random_spd, tmp_path):
    """A copied or linked file, or a sum that is part of another, is the same people
    again.
    """
    a, b = (LatticeSum.of(random_spd(20, 2, seed=i), DOMAIN) for i in range(2))
    file = a.save(tmp_path / "a.sum")
    (tmp_path / "copy.sum").write_bytes(file.read_bytes())
    os.link(file, tmp_path / "link.sum")
    for name in ("copy.sum", "link.sum"):
        twin = LatticeSum.load(tmp_path / name)
        for left, right in ((a, twin), (a + b, twin), (twin, a + b), (twin, twin)):
            with pytest.raises(ParameterError, match="count twice"):
                _ = left + right
    assert (a + b).n == 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, r"\$\.n"),
        ({"n": 2**33}, r"\$\.n"),
        ({"n": 2.5}, r"\$\.n"),
        ({"n": True}, r"\$\.n"),
        ({"k": 3}, "6 coordinates"),
        ({"k": "2"}, r"\$\.k"),
        ({"total": [1, 2]}, "3 coordinates"),
        ({"total": [2**36, 0, 0]}, "too large for 10 records"),
        ({"total": [2**33] * 3}, "too large for 10 records"),
        ({"k": 10**6}, "500000500000 coordinates"),
        ({"parts": 10**9}, "3000000000 coordinates"),
        ({"total": [0.5, 0, 0]}, r"\$\.total"),
        ({"metric": "wasserstein"}, "metric must be"),
        ({"metric": "riemann"}, "flat metric"),
        ({"domain": {"type": "Ball", "radius": -1.0, "center": None}}, "radius"),
        ({"domain": {"type": "Cube"}}, "unknown kind of domain"),
        ({"domain": 3}, r"\$\.domain"),
        ({"readings": []}, r"\$\.readings"),
        ({"readings": ["short"]}, r"\$\.readings"),
        ({"unit": "year"}, r"\$\.unit"),
        ({"parts": 0}, r"\$\.parts"),
    ],
)
def test_impossible_sums_are_refused_although_their_checksum_agrees(
    random_spd, tmp_path, change, message
):
    file = LatticeSum.of(random_spd(10, 2), DOMAIN).save(tmp_path / "a.sum")
    content = json.loads(file.read_text()) | change
    content["sha256"] = sums._digest({name: content[name] for name in sums._Body.__struct_fields__})
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"a\.sum: .*{message}"):
        LatticeSum.load(file)


def flips(file, count, seed):
    """Flip one byte at a time; give how many were refused."""
    rng, data, good = np.random.default_rng(seed), file.read_bytes(), LatticeSum.load(file)
    refused = 0
    for _ in range(count):
        place, bit = int(rng.integers(len(data))), 1 << int(rng.integers(8))
        file.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        try:
            loaded = LatticeSum.load(file)
            np.testing.assert_array_equal(loaded.total, good.total)
            assert (loaded.n, loaded.k, loaded.readings) == (good.n, good.k, good.readings)
        except DataError:
            refused += 1
    return refused


def test_flipped_bytes_are_refused_or_change_nothing(random_spd, tmp_path):
    file = LatticeSum.of(random_spd(50, 5), DOMAIN).save(tmp_path / "a.sum")
    assert flips(file, 150, 0) > 100


@pytest.mark.audit
def test_five_hundred_flipped_bytes(random_spd, tmp_path):
    file = LatticeSum.of(random_spd(50, 5), DOMAIN).save(tmp_path / "a.sum")
    refused = flips(file, 500, 1)
    print(f"500 byte flips of sum files: {refused} refused, the rest harmless")
    assert refused > 350


def test_files_are_for_their_owner_and_never_overwritten_by_accident(random_spd, tmp_path):
    total = LatticeSum.of(random_spd(10, 2), DOMAIN)
    previous = os.umask(0)
    try:
        file = total.save(tmp_path / "a.sum")
    finally:
        os.umask(previous)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(DataError, match="exists already"):
        total.save(file)
    target = tmp_path / "elsewhere"
    (tmp_path / "link.sum").symlink_to(target)
    with pytest.raises(DataError, match="exists already"):
        total.save(tmp_path / "link.sum")
    assert not target.exists()
    total.save(file, force=True)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_misspelt_policy_is_refused(random_spd):
    bad = random_spd(5, 2)
    bad[1] = np.nan
    with pytest.raises(ParameterError, match="on_invalid .*'center'"):
        LatticeSum.of(bad, DOMAIN, "rais")
