import json
import re
import shutil

import numpy as np
import pytest

from spdp import Ball, Release, private_mean
from spdp.release.report import html_report


@pytest.fixture
def published(run, data, tmp_path, budget):
    words = ("mean", data, *budget, "--radius", "2", "-o", "out")
    assert run(*words)[0] == 0
    return tmp_path / "out"


def test_a_release_as_it_was_written(run, published):
    code, out, err = run("verify", "out")
    assert (code, err) == (0, "")
    assert "FAILED" not in out
    assert "Not proven" in out
    checks = json.loads(run("verify", "out", "--json")[1])
    assert checks
    signature = {"check": "signature", "ok": None, "detail": checks[-1]["detail"]}
    assert checks[-1] == signature  # a fact: nothing was checked
    assert all(check["ok"] for check in checks[:-1])
    (line,) = [line for line in out.splitlines() if "signature" in line]
    assert "not signed: nothing says who made the release" in line
    assert "ok" not in line


EDITS = {
    "epsilon": 0.01,
    "delta": 1e-9,
    "n": 10_000,
    "private": False,
    "estimand": "the mean of everybody",
    "sigma": 1e-9,
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_certificate_fails(run, published, field):
    file = published / "certificate.json"
    content = json.loads(file.read_text())
    assert content[field] != EDITS[field]
    file.write_text(json.dumps({**content, field: EDITS[field]}))
    code, out, err = run("verify", "out")
    assert (code, err) == (6, "")
    assert "FAILED (seal): do not rely" in out
    assert "Not proven" not in out
    assert run("verify", "out", "--json")[0] == 6


def test_what_failed_is_shown_first_and_by_name(run, data, published, tmp_path):
    """Of what passed a summary tells; --all and --json list it all."""
    checks = json.loads(run("verify", "out", "--json")[1])
    lines = run("verify", "out")[1].splitlines()
    assert len(lines) < 20 < len(checks)
    assert any(f"{len(checks) - 2} more" in line and "--all lists them" in line for line in lines)
    every = run("verify", "out", "--all")[1]
    assert all(check["check"] in every for check in checks)
    X = np.load(data)
    release = private_mean(X, epsilon=1.0, delta=1e-6, domain=Ball(2.0), random_state=0)
    fields = dict(release.certificate) | {"delta": 1e-5, "private": True}
    Release(release.values, fields).save(tmp_path / "forged")
    code, out, _ = run("verify", tmp_path / "forged")
    assert code == 6
    names = re.search(r"Verification FAILED \((.*?)\): do not rely", " ".join(out.split()))[1]
    assert {"private", "delta"} <= set(names.split(", "))
    shown = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    marks = [mark for mark in shown if mark]
    failed = marks.count("FAILED")
    assert marks[:failed] == ["FAILED"] * failed  # before what passed, and what is a fact
    assert sorted(marks[failed:]) == ["ok", "ok", "–"]


def test_another_matrix_fails(run, published):
    np.save(published / "mean.npy", np.load(published / "mean.npy") * 1.0000001)
    assert run("verify", "out")[0] == 6


def test_a_page_that_says_something_else_fails(run, data, budget, tmp_path):
    """The seal does not cover the page beside a release: its words are compared."""
    assert run("mean", data, *budget, "--radius", "2", "-o", "out", "--report")[0] == 0
    code, out, _ = run("verify", "out")
    assert code == 0
    assert "report.html" in out
    page = tmp_path / "out" / "report.html"
    text = page.read_text()
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["sha256"] in text
    for edited in (text.replace("ε = 1", "ε = 0.01"), text.replace("</main>", "ε = 0.01</main>")):
        assert edited != text
        page.write_text(edited)
        code, out, _ = run("verify", "out")
        assert code == 6
        assert "certificate.json" in out
        assert run("verify", "out", "--json")[0] == 6


LIE = "<h1>ε = 0.01</h1>"
PAGES = {
    "a figure that is a style": lambda t: t.replace(
        "<body>", f"<body><figure><style>main{{display:none}}</style>{LIE}</figure>"
    ),
    "other words in a picture": lambda t: t.replace("</svg>", f"<text>{LIE}</text></svg>", 1),
    "a caption": lambda t: t.replace("<figcaption>", f"<figcaption>{LIE}", 1),
    "another curve": lambda t: t.replace('<path d="M ', '<path d="M 1 1 L ', 1),
    "a ledger of other words": lambda t: t.replace(
        "<p>Run <code>", "<p>Paid for in a ledger: ε = 0.01 was approved</p>\n<p>Run <code>"
    ),
    "names of no rows": lambda t: t.replace("<h2>Pic", '<h2 data-rows="[&#34;ε&#34;]">Pic'),
    "names that are none": lambda t: t.replace("<h2>Pic", '<h2 data-rows="ε = 0.01">Pic'),
}


@pytest.fixture(scope="module")
def with_page(tmp_path_factory, random_spd):
    """A release beside its page, for all edits of it."""
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(2.0)}
    release = private_mean(random_spd(3000, 3, condition=4.0), **options)
    folder = release.save(tmp_path_factory.mktemp("page") / "out")
    (folder / "report.html").write_text(html_report(release), encoding="utf-8")
    return folder


@pytest.mark.parametrize("edit", [None, *PAGES])
def test_a_page_with_other_pictures_fails(run, with_page, tmp_path, edit):
    """Pictures are drawn anew: what stands in them is compared like the words."""
    shutil.copytree(with_page, tmp_path / "out")
    page = tmp_path / "out" / "report.html"
    text = page.read_text(encoding="utf-8")
    edited = text if edit is None else PAGES[edit](text)
    assert (edited != text) == (edit is not None)
    page.write_text(edited, encoding="utf-8")
    assert run("verify", "out")[0] == (0 if edit is None else 6)


def test_pages_with_names_and_of_ledgers_are_those_of_their_release(run, data, budget, ledger):
    words = ("mean", data, *budget, "--radius", "2", "--ledger", ledger, "--label", "<pilot>")
    assert run(*words, "-o", "out", "--report", "--names", "a<&>,\"b',c")[0] == 0
    code, out, _ = run("verify", "out")
    assert code == 0
    assert "written again" in " ".join(out.split())


def test_texts_of_a_certificate_are_no_markup_and_no_escapes(run, published):
    file = published / "certificate.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "mechanism": "[/b]\x1b[2Jok", "\x1b[1m": "[/]"}))
    code, out, _ = run("verify", "out")
    assert code == 6
    assert "\x1b" not in out


def test_where_there_is_no_release(refused, published, tmp_path):
    refused(3, "does not hold a release", "verify", "absent")
    (published / "mean.npy").unlink()
    refused(3, "mean.npy is missing", "verify", "out")


@pytest.fixture
def keys(tmp_path):
    """Files of two pairs of keys."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for name in ("ours", "theirs"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (tmp_path / f"{name}.pem").write_bytes(private)
        (tmp_path / f"{name}.pub").write_bytes(public)


def test_a_signature_says_whose_release_it_is(run, data, keys, budget, published):
    words = ("mean", data, *budget, "--radius", "2", "-o", "signed", "--sign", "ours.pem")
    code, _, err = run(*words)
    assert (code, err) == (0, "")
    assert run("verify", "signed", "--key", "ours.pub")[0] == 0
    assert run("verify", "signed", "--key", "theirs.pub")[0] == 6
    assert run("verify", "out", "--key", "ours.pub")[0] == 6  # it has no signature


def test_pins_are_of_a_study_over_sites(run, published, tmp_path):
    """A release of one curator has no sites that could be the pinned ones."""
    (tmp_path / "pins").write_text(f"lumc {'-'.join(['babab'] * 8)}\n")
    code, out, _ = run("verify", "out", "--pins", "pins")
    assert code == 6
    assert "FAILED (identities): do not rely" in " ".join(out.split())


def test_a_key_that_is_none_costs_nothing(run, refused, data, keys, ledger, tmp_path, budget):
    (tmp_path / "text.pem").write_text("no key")
    words = ("mean", data, *budget, "--radius", "2", "-o", "signed", "--ledger", ledger, "--sign")
    refused(3, "text.pem", *words, "text.pem")
    refused(3, "absent.pem", *words, "absent.pem")
    assert json.loads(run("ledger", "history", ledger, "--json")[1]) == []


def test_a_simulation_does_not_verify_as_a_private_release(run, tmp_path):
    X = np.stack([np.eye(2)] * 20)
    release = private_mean(X, epsilon=1.0, delta=1e-6, domain=Ball(2.0), random_state=0)
    release.save(tmp_path / "simulated")
    code, out, _ = run("verify", tmp_path / "simulated")
    assert code == 6
    assert "NOT private" in out
