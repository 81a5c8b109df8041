"""Certificates that detect edits."""

import copy
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from spdp import (
    Ball,
    EigenvalueBounds,
    Release,
    RiemannianLaplace,
    TangentGaussian,
    private_difference,
    private_mean,
)
from spdp.errors import DataError
from spdp.privacy.account import laplace_scale_exact, lattice_scale
from spdp.release.certificate import Certificate
from spdp.release.files import seal_of
from spdp.release.verify import checks

X = np.stack([np.diag([1.0, 2.0, 0.5 + i / 400]) for i in range(400)])
BOUNDS = EigenvalueBounds(0.1, 10.0)
WAYS = {
    "one shot": lambda: private_mean(
        X, epsilon=0.5, delta=1e-6, domain=BOUNDS, method="oneshot", mechanism="gaussian"
    ),
    "pure": lambda: private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0)),
    "add-remove": lambda: private_mean(
        X, epsilon=0.5, delta=1e-6, domain=BOUNDS, adjacency="add-remove", mechanism="gaussian"
    ),
    "pure add-remove": lambda: private_mean(
        X, epsilon=0.5, delta=0, domain=BOUNDS, adjacency="add-remove"
    ),
    "adaptive": lambda: private_mean(
        X, epsilon=3.0, delta=1e-6, domain=Ball(8.0), method="adaptive"
    ),
    "classical": lambda: TangentGaussian(0.1, 0.5, 1e-6, "classical").release(np.eye(2)),
    "analytic": lambda: TangentGaussian(0.1, 0.5, 1e-6).release(np.eye(2)),
    "laplace": lambda: RiemannianLaplace(0.1, 0.5).release(np.eye(2)),
}


@pytest.fixture(params=WAYS)
def release(request):
    return WAYS[request.param]()


def failed(release):
    return [check for check in release.verify() if not check.ok]


def test_honest_releases_verify(release, tmp_path):
    assert failed(release) == []
    loaded = Release.load(release.save(tmp_path / "r"))
    assert failed(loaded) == []
    assert len(loaded.verify()) >= 6


def edits(c):
    """The certificate with one number changed, for every number it states."""
    for name in ("epsilon", "delta", "mu", "sigma", "sensitivity", "n", "lattice_step"):
        if c["method"] is None and name in ("sigma", "sensitivity", "lattice_step"):
            continue  # stated by the caller: there is nothing to recompute them from
        if c[name]:
            yield name, {**copy.deepcopy(c), name: type(c[name])(c[name] * 2)}
    for name in ("mu", "scale", "sensitivity", "epsilon"):
        if name in c["steps"][0]:
            edited = copy.deepcopy(c)
            edited["steps"][0][name] = type(edited["steps"][0][name])(
                edited["steps"][0][name] * 0.5
            )
            yield f"step's {name}", edited
        if name in ("mu", "scale") and name in c["steps"][0]:
            edited = copy.deepcopy(c)
            edited["steps"][0][name] *= -1
            yield f"step's {name}, below zero", edited
    edited = copy.deepcopy(c)
    edited["error_bound"]["95%"] *= 0.5
    yield "bound", edited
    yield "seed", {**copy.deepcopy(c), "seed": 7}
    yield "private", {**copy.deepcopy(c), "private": False}
    if c["squared_error_law"] is not None:
        edited = copy.deepcopy(c)
        edited["squared_error_quantiles"]["95%"] *= 0.5
        yield "quantile", edited
        edited = copy.deepcopy(c)
        edited["squared_error_quantiles"]["100%"] = 1.0
        yield "another quantile", edited
        yield "expected error", {**copy.deepcopy(c), "expected_squared_error": 0.5}
    if c["method"] is not None:
        other = "add-remove" if c["adjacency"] == "replace-one" else "replace-one"
        yield "adjacency", {**copy.deepcopy(c), "adjacency": other}
        yield "unit", {**copy.deepcopy(c), "unit": "person"}
        yield "mechanism", {**copy.deepcopy(c), "mechanism": "rounding"}
        yield "domain", {**copy.deepcopy(c), "domain": {"type": "nonsense"}}
        method = {"oneshot": "adaptive", "adaptive": "oneshot"}[c["method"]]
        yield "method", {**copy.deepcopy(c), "method": method}


def forge(c):
    """A million times less noise, with every number made to agree: only Δ tells."""
    edited = copy.deepcopy(c)
    for step in edited["steps"]:
        step["sensitivity"] = max(1, step["sensitivity"] >> 20)
        if "mu" in step:
            step["scale"] = lattice_scale(step["sensitivity"], step["mu"])
        else:
            step["scale"] = float(laplace_scale_exact(step["sensitivity"], c["epsilon"]))
    return edited


def test_edited_numbers_are_found_by_recomputing(release):
    for name, edited in edits(release.certificate):
        if name == "step's epsilon":
            continue  # it repeats the certificate's, which is what counts
        assert not all(check.ok for check in checks(edited)), name


def test_forged_noise_is_found(release):
    if release.certificate["method"] is None:
        pytest.skip("the sensitivity of a stated summary is the caller's word")
    assert not all(check.ok for check in checks(forge(release.certificate)))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_honest_releases_of_all_sizes_verify(k, adjacency, mechanism):
    data = np.stack([np.eye(k) * 1.5] * 30)
    options = {"mechanism": mechanism, "adjacency": adjacency, "method": "oneshot"}
    options["anyway"] = True
    release = private_mean(data, epsilon=1.0, delta=1e-6, domain=BOUNDS, **options)
    assert failed(release) == []


def test_text_that_others_read_differently_is_refused(tmp_path):
    """A name twice in the certificate, bytes after the matrix: two readings."""
    path = WAYS["one shot"]().save(tmp_path / "r")
    text = (path / "certificate.json").read_text()
    (path / "certificate.json").write_text(text.replace("{", '{"epsilon": 0.001,', 1))
    with pytest.raises(DataError, match="twice"):
        Release.load(path)
    for nonsense in (text.replace("0.5", "NaN", 1), text.replace("0.5", "5" * 400, 1)):
        (path / "certificate.json").write_text(nonsense)
        with pytest.raises(DataError, match=str(path)):
            Release.load(path)
    (path / "certificate.json").write_text(text)
    data = (path / "mean.npy").read_bytes()
    (path / "mean.npy").write_bytes(data + b"and more")
    with pytest.raises(DataError, match="edited or damaged"):
        Release.load(path)


def test_any_edit_of_a_file_is_found_by_the_seal(release, tmp_path):
    path = release.save(tmp_path / "r")
    good = (path / "certificate.json").read_text()
    content = json.loads(good)
    for name in Certificate.__struct_fields__:
        edited = copy.deepcopy(content)
        told = content.get(name)  # trust: where sites share the noise
        edited[name] = "x" if not isinstance(told, str) else told + "x"
        (path / "certificate.json").write_text(json.dumps(edited))
        with pytest.raises(DataError, match=str(path)):
            Release.load(path)
    (path / "certificate.json").write_text(good)
    value = release.value.copy()
    value[0, 0] = np.nextafter(value[0, 0], 2.0)
    np.save(path / "mean.npy", value)
    with pytest.raises(DataError, match="edited or damaged"):
        Release.load(path)


def test_the_seal_covers_value_shape_and_every_field(release):
    seal = seal_of(release.values, release.certificate)
    assert seal != seal_of({"mean": release.value.ravel()}, release.certificate)
    for name, edited in edits(release.certificate):
        assert seal != seal_of(release.values, edited), name


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", "<script>alert(1)</script>"), ("epsilon", True), ("k", 2.5), ("steps", {}), ("mu", [])],
)
def test_types_are_checked_on_loading(tmp_path, field, value):
    """Also where the seal was computed anew by whoever edited the file."""
    release = WAYS["one shot"]()
    path = release.save(tmp_path / "r")
    content = release.certificate | {field: value}
    content["sha256"] = seal_of(release.values, content)
    content["signature"] = None
    (path / "certificate.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"cannot be read: Expected .* at `\$\.{field}`"):
        Release.load(path)


def test_unknown_and_missing_fields_and_other_schemas(tmp_path):
    release = WAYS["one shot"]()
    good = release.certificate
    for wrong, message in [
        (good | {"extra": 1}, "unknown field `extra`"),
        ({k: v for k, v in good.items() if k != "n"}, "lacks field 'n'"),
        (good | {"schema": 9}, "schema 9"),
        (good | {"arrays": {"mean": 1.5}}, r"Expected `array`, got `float` - at `\$\.arrays"),
        (
            good | {"error_bound": {"95%": "x"}},
            r"got `str` - at `\$\.error_bound",
        ),
        (good | {"outside": {}}, r"missing required field `share` - at `\$\.outside`"),
        (good | {"parts": -1}, r"Expected `int` >= 1 - at `\$\.parts`"),
        ([], "JSON object"),
    ]:
        with pytest.raises(DataError, match=message):
            Certificate.read(wrong)


def flips(tmp_path, count, seed):
    """Flip one byte of a release's files at a time; give how many were refused."""
    rng = np.random.default_rng(seed)
    path = WAYS["adaptive"]().save(tmp_path / "r")
    original = Release.load(path)
    refused = 0
    for _ in range(count):
        file = path / ("mean.npy" if rng.random() < 0.3 else "certificate.json")
        data = file.read_bytes()
        place, bit = int(rng.integers(len(data))), 1 << int(rng.integers(8))
        file.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        try:
            loaded = Release.load(path)
            assert loaded.certificate == original.certificate
            np.testing.assert_array_equal(loaded.value, original.value)
        except DataError:
            refused += 1
        file.write_bytes(data)
    return refused


def test_flipped_bytes_are_refused_or_change_nothing(tmp_path):
    assert flips(tmp_path, 150, 1) > 100


@pytest.mark.audit
def test_five_hundred_flipped_bytes(tmp_path):
    refused = flips(tmp_path, 500, 2)
    print(f"500 byte flips of certificates and values: {refused} refused, the rest harmless")
    assert refused > 400


# --- certificates that ask for more than there is


LONG = [0.1] * 150_000  # about a megabyte
MANY = {"family": "weighted-chi2", "weights": [1.0] + [1e-9] * 150_000}


def with_noise(release, name, law):
    """The edit that gives another law to the noise in a stated bound."""
    stated = release.certificate[name]
    if name == "error_bound_parts":
        return {name: stated | {"noise": law}}
    return {name: stated | {"parts": stated["parts"] | {"noise": law}}}


@pytest.mark.parametrize("way", ["one shot", "adaptive"])
@pytest.mark.parametrize(
    "edit",
    [
        {"k": 6000},
        {"k": 20_000},
        {"k": 10**9},
        {"parts": 10**7},
        {"k": 20_000, "arrays": {"mean": [20_000, 20_000]}},
        {"squared_error_law": {"df": 10**9, "scale": 1.0}},
        {"reference_point": [LONG]},
        {"steps": [{"step": "center", "center": LONG}]},
    ],
    ids=lambda edit: "-".join(edit) + f"-{next(iter(edit.values()))!s:.12}",
)
def test_a_small_certificate_cannot_ask_for_much(way, edit, tmp_path):
    """Shapes are compared first: 300 MB suffice for a certificate of a megabyte."""
    release = WAYS[way]()
    content = json.loads(json.dumps(release.certificate)) | edit
    tracemalloc.start()
    try:
        assert not all(check.ok for check in checks(content, release.values))
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ("mean", "error_bound_parts"),
        ("mean", "error_bound_within"),
        ("dispersion", "error_bound_population"),
    ],
)
def test_a_law_of_more_weights_than_numbers_is_refused_unread(kept, name):
    release = Release.load(Path(__file__).parent / "golden" / "0.3" / kept)
    content = release.certificate | with_noise(release, name, MANY)
    failed = [check.name for check in checks(content, release.values) if not check.ok]
    assert failed == ["weights"]


@pytest.mark.parametrize("way", ["classical", "analytic", "laplace"])
def test_a_stated_summary_of_many_matrices_is_refused_by_its_shape(way):
    release = WAYS[way]()
    content = release.certificate | {"parts": 10**9}
    failed = [check.name for check in checks(content, release.values) if not check.ok]
    assert failed == ["arrays"]


# --- signatures
# ------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path):
    """Two Ed25519 key pairs, as PEM files."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives import serialization as s

    pairs = []
    for name in ("mine", "theirs"):
        key = ed25519.Ed25519PrivateKey.generate()
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        private.write_bytes(
            key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        )
        public.write_bytes(
            key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
        )
        pairs.append((private, public))
    return pairs


def test_signatures(keys, tmp_path):
    (private, public), (_, other) = keys
    release = WAYS["one shot"]()
    signed = Release.load(release.save(tmp_path / "signed", sign=private))
    plain = Release.load(release.save(tmp_path / "plain"))
    assert signed.verify(public)[-1].ok
    assert signed.verify()[-1].ok
    assert not signed.verify(other)[-1].ok
    assert not plain.verify(public)[-1].ok
    content = json.loads((tmp_path / "signed" / "certificate.json").read_text())
    moved = json.loads((tmp_path / "plain" / "certificate.json").read_text())
    moved["created"] = "2000-01-01T00:00:00+00:00"
    signature = content["signature"]
    body = {k: v for k, v in moved.items() if k not in ("sha256", "signature")}
    moved |= {"sha256": seal_of(release.values, body), "signature": signature}
    (tmp_path / "plain" / "certificate.json").write_text(json.dumps(moved))
    assert not Release.load(tmp_path / "plain").verify(public)[-1].ok


def test_a_signature_that_states_another_key_is_refused(keys, tmp_path):
    """Whoever reads the certificate would take that key for the signer's."""
    (private, public), (_, other) = keys
    path = WAYS["one shot"]().save(tmp_path / "signed", sign=private)
    content = json.loads((path / "certificate.json").read_text())
    from cryptography.hazmat.primitives import serialization as s

    theirs = s.load_pem_public_key(other.read_bytes())
    raw = theirs.public_bytes(s.Encoding.Raw, s.PublicFormat.Raw)
    for stated in (raw.hex(), "00" * 32, "", content["signature"]["public_key"] + "00"):
        content["signature"]["public_key"] = stated
        (path / "certificate.json").write_text(json.dumps(content))
        for key in (public, other, None):
            assert not Release.load(path).verify(key)[-1].ok


def test_keys_that_are_none(keys, tmp_path):
    (_, public), _ = keys
    release = WAYS["one shot"]()
    with pytest.raises(DataError, match="not an Ed25519|cannot be read"):
        release.save(tmp_path / "a", sign=public)
    with pytest.raises(DataError, match=r"absent\.pem"):
        release.save(tmp_path / "a", sign=tmp_path / "absent.pem")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["edge", "distance"])
def test_steps_of_other_names_fail_by_name(name):
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(4.0), "classes": ["a", "b"]}
    release = private_difference(X, ["a", "b"] * 200, **options)
    c = release.certificate
    c["steps"][-1]["step"] = name
    assert failed(Release(release.values, c))
