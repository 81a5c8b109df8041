"""``spdp study`` and ``spdp site``: sites as processes of their own."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.cli.commands import EXAMPLES
from spdp.datasets import synthetic_spd
from spdp.federated.identity import Identity, words_of
from spdp.federated.study import read_study
from spdp.federated.transcript import read_rounds

pytest.importorskip("cryptography", minversion="47")

KEY = "sixteen-letters-or-more"
SITES = ("charite", "inselspital", "lumc")
DOMAIN = ("--eigenvalues", "1e-2", "1e2")
BUDGET = ("--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def consortium(run, monkeypatch, tmp_path):
    """Make a study and let its sites join; each has its data and its ledger."""
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)

    def make(*options, k=3, n=400, until="signed", budget=3.0):
        assert run("study", "create", "dti.study", "--k", k, *DOMAIN, *BUDGET, *options)[0] == 0
        for seed, site in enumerate(SITES):
            np.save(f"{site}.npy", synthetic_spd(n + seed, k, random_state=seed))
            ledger = Ledger(f"{site}.ledger", epsilon=budget, delta=1e-5, key=KEY.encode())
            ledger.bind(np.load(f"{site}.npy"))
            assert run(*join(site))[0] == 0
        assert run("study", "seal", "dti.study", *(f"{site}.card" for site in SITES))[0] == 0
        pin(tmp_path)
        if until == "signed":
            for site in SITES:
                assert run(*sign(site))[0] == 0

    return make


def join(site):
    ledger = ("--name", site, "--ledger", f"{site}.ledger")
    return ("site", "join", "dti.study", f"{site}.npy", *ledger, "-o", f"{site}.card")


def sign(site):
    ledger = ("--ledger", f"{site}.ledger", "-o", f"{site}.seal")
    return ("site", "sign", "dti.study", *ledger, "--pins", "pins", "--yes")


def pin(folder):
    words = (words_of(Identity.open(folder / f"{site}.identity").public) for site in SITES)
    lines = (f"{site} {word}\n" for site, word in zip(SITES, words, strict=True))
    (folder / "pins").write_text("".join(lines))


def sum_(site):
    ledger = ("--ledger", f"{site}.ledger", "-o", f"{site}.masked")
    return ("site", "sum", "dti.study", f"{site}.npy", *ledger)


def process(tmp_path, *words):
    command = [sys.executable, "-m", "spdp", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, env=os.environ)


def ended(processes):
    for one in processes:
        _, err = one.communicate(timeout=180)
        assert one.returncode == 0, err.decode()


def test_one_shot_by_files_of_processes(consortium, run, tmp_path):
    consortium()
    ended([process(tmp_path, *sum_(site)) for site in SITES])
    masked = {site: (tmp_path / f"{site}.masked").read_bytes() for site in SITES}
    for site in SITES:  # again: the same bytes, and nothing is paid twice
        (tmp_path / f"{site}.masked").unlink()
        assert run(*sum_(site))[0] == 0
        assert (tmp_path / f"{site}.masked").read_bytes() == masked[site]
        assert Ledger(f"{site}.ledger").spent()["entries"] == 1
    files = [f"{site}.masked" for site in SITES]
    code, out, err = run("study", "merge", "dti.study", *files, "-o", "draft")
    assert (code, err) == (0, "")
    assert "answers.json" in out
    for site in SITES:
        words = ("site", "close", "draft", "--ledger", f"{site}.ledger", "-o", f"{site}.close")
        assert run(*words)[0] == 0
        assert Ledger(f"{site}.ledger").history()[0]["state"] == "done"
    closes = [f"{site}.close" for site in SITES]
    assert run("study", "publish", "draft", *closes, "-o", "published")[0] == 0
    code, out, _ = run("verify", "published")
    assert code == 0
    assert "closing signatures" in out
    assert sorted(os.listdir("published")) == [
        "certificate.json",
        "closes.json",
        "mean.npy",
        "rounds.json",
    ]
    release = Release.load("published")
    assert release.certificate["n"] == 1203
    assert "3 sites" in run("verify", "published", "--all")[1]
    assert "all other sites collude" in run("ledger", "show", "lumc.ledger")[1]
    check_identities_of_what_is_published(run, tmp_path)


def check_identities_of_what_is_published(run, tmp_path):
    """Without pins the words are shown, and nothing says that they were compared."""
    lines = (tmp_path / "pins").read_text().splitlines()
    code, out, _ = run("verify", "published")
    assert code == 0
    assert "compare the words above with what each site says" in " ".join(out.split())
    for line in lines:
        site, words = line.split()
        (shown,) = [row for row in out.splitlines() if words in row]
        assert f"│ –  │ words of {site}" in shown
    found = {c["check"]: c["ok"] for c in json.loads(run("verify", "published", "--json")[1])}
    assert found["identities"] is None
    code, out, _ = run("verify", "published", "--pins", "pins")
    assert code == 0
    assert "of 3 sites, as they are pinned" in out
    assert "compare the words" not in out
    other = lines[1].split()[1]
    (tmp_path / "other").write_text("\n".join([f"{SITES[0]} {other}", *lines[1:]]))
    code, out, _ = run("verify", "published", "--pins", "other")
    assert code == 6
    assert f"FAILED (identity of {SITES[0]}): do not rely" in " ".join(out.split())
    (tmp_path / "two").write_text("\n".join(lines[:2]))
    assert f"FAILED (identity of {SITES[2]})" in " ".join(
        run("verify", "published", "--pins", "two")[1].split()
    )
    code, out, err = run("verify", "published", "--pins", "absent")
    assert (code, out) == (3, "")
    assert "absent: no such file" in err


def test_no_answer_is_left_out_and_none_is_of_another_study(consortium, run, refused, tmp_path):
    consortium()
    for site in SITES:
        assert run(*sum_(site))[0] == 0
    files = [f"{site}.masked" for site in SITES]
    merge = ("study", "merge", "dti.study")
    refused(3, "lumc are missing", *merge, *files[:2], "-o", "draft")
    refused(3, "second sum", *merge, *files, files[0], "-o", "draft")
    text = (tmp_path / files[0]).read_text()
    (tmp_path / files[0]).write_text(text.replace('"answer":"', '"answer":"AAAA'))
    refused(3, "charite", *merge, *files, "-o", "draft")
    (tmp_path / files[0]).write_text(text)
    seal = (tmp_path / "lumc.seal").read_text()
    (tmp_path / "lumc.seal").unlink()
    refused(3, "lumc.seal missing", *merge, *files, "-o", "draft")
    (tmp_path / "lumc.seal").write_text(seal)
    assert run(*merge, *files, "-o", "draft")[0] == 0
    refused(2, "exists already", *merge, *files, "-o", "draft")


def test_what_a_malicious_site_or_coordinator_hands_in_is_refused(
    consortium, run, refused, tmp_path
):
    """Of a draft, sites sign what follows; of signatures, all are of this draft."""
    consortium()
    for site in SITES:
        assert run(*sum_(site))[0] == 0
    files = [f"{site}.masked" for site in SITES]
    assert run("study", "merge", "dti.study", *files, "-o", "draft")[0] == 0
    value = np.load("draft/mean.npy")
    np.save("draft/mean.npy", 1.01 * value)
    close = ("site", "close", "draft", "--ledger", "lumc.ledger", "-o", "lumc.close")
    refused(3, "", *close)
    assert not os.path.exists("lumc.close")
    np.save("draft/mean.npy", value)
    for site in SITES:
        words = ("site", "close", "draft", "--ledger", f"{site}.ledger", "-o", f"{site}.close")
        assert run(*words)[0] == 0
    publish = ("study", "publish", "draft")
    closes = [f"{site}.close" for site in SITES]
    refused(3, "not signed by lumc", *publish, *closes[:2], "-o", "published")
    refused(3, "twice", *publish, *closes[:2], closes[0], "-o", "published")
    good = (tmp_path / closes[2]).read_text()
    for name in ("sums", "signature"):
        other = json.loads(good)
        other[name] = other[name][::-1]
        text = json.dumps(other, sort_keys=True, separators=(",", ":"))
        (tmp_path / closes[2]).write_text(text)
        refused(3, "signed", *publish, *closes, "-o", "published")
    assert not os.path.exists("published")


@pytest.mark.audit
def test_a_search_over_a_folder_of_processes_that_are_killed(consortium, run, tmp_path):
    """A site and the coordinator are killed, started again, and the study ends."""
    consortium("--method", "adaptive", n=900)
    (tmp_path / "shared").mkdir()
    ledger = {site: ("--ledger", f"{site}.ledger") for site in SITES}
    serve = {
        site: ("site", "serve", "dti.study", f"{site}.npy", *ledger[site], "--folder", "shared")
        for site in SITES
    }
    ask = ("study", "run", "dti.study", "--folder", "shared", "-o", "published")
    sites = {site: process(tmp_path, *words) for site, words in serve.items()}
    coordinator = process(tmp_path, *ask)
    folder = tmp_path / "shared" / read_study(tmp_path / "dti.study").digest.hex()
    wait_for(folder / "ask-002", [*sites.values(), coordinator])
    for one in (sites["lumc"], coordinator):
        one.kill()
        one.communicate()
    sites["lumc"] = process(tmp_path, *serve["lumc"])
    ended([process(tmp_path, *ask), *sites.values()])
    assert run("verify", "published")[0] == 0
    rounds = read_rounds(tmp_path / "published")
    assert len(rounds.descriptions) > 5
    for site in SITES:
        assert Ledger(f"{site}.ledger").spent()["entries"] == 1
        assert not list(tmp_path.glob(f"{site}.ledger.*.keys"))
    first = Release.load("published").value
    os.rename("published", "earlier")  # a coordinator that lost what it published
    assert run(*ask)[0] == 0
    assert (Release.load("published").value == first).all()


def wait_for(file, processes):
    """Until a file is there, as long as all processes run."""
    import time

    while not file.exists():
        assert all(one.poll() is None for one in processes)
        time.sleep(0.05)


def test_signing_asks_for_price_and_identities(consortium, run, monkeypatch, tmp_path):
    consortium(until="joined")
    words = ("site", "sign", "dti.study", "--ledger", "lumc.ledger", "-o", "lumc.seal")

    def answered(text):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return run(*words)

    for text in ("n\n", "y\nn\n", "y\ny\nn\n", "y\n"):
        assert answered(text)[0] != 0
        assert not (tmp_path / "lumc.seal").exists()
        assert Ledger(tmp_path / "lumc.ledger").spent()["mu"] == 0
    code, shown, err = answered("y\ny\ny\n")
    assert code == 0, err
    assert "ε = 1, δ = 1e-06" in shown
    assert "ε = 1.46 if all others do" in shown
    for site in SITES:
        assert words_of(Identity.open(tmp_path / f"{site}.identity").public) in shown
    assert Ledger(tmp_path / "lumc.ledger").spent()["mu"] > 0
    assert (tmp_path / "lumc.ledger.pins").read_text().count("\n") == 2


def test_serving_a_one_shot_study_says_at_once_what_to_run(consortium, refused, tmp_path):
    consortium()
    (tmp_path / "lumc.npy").write_bytes(b"not read")
    serve = ("site", "serve", "dti.study", "lumc.npy", "--ledger", "lumc.ledger")
    refused(2, "a site runs spdp site sum", *serve, "--folder", tmp_path)


def test_a_full_ledger_refuses_to_sign(consortium, run):
    consortium(until="joined", budget=0.5)
    code, _, err = run(*sign("charite"))
    assert code == 4
    assert "budget exceeded" in err
    assert not os.path.exists("charite.seal")


def test_a_pinned_site_with_another_identity_is_refused(consortium, run, tmp_path):
    consortium(until="joined")
    lines = (tmp_path / "pins").read_text().splitlines()
    lines[1] = f"{SITES[1]} {lines[0].split()[1]}"
    (tmp_path / "pins").write_text("\n".join(lines))
    code, _, err = run(*sign("charite"))
    assert code == 2
    assert "another identity" in err
    assert not (tmp_path / "charite.seal").exists()


def test_mistakes_before_a_study(run, refused, tmp_path, monkeypatch):
    create = ("study", "create", "a.study", "--k", "3", *DOMAIN)
    refused(2, "Laplace", *create, "--epsilon", "1", "--delta", "0")
    refused(2, "no labels or covariates", *create, *BUDGET, "--statistic", "difference")
    refused(2, "a study is of mean", *create, *BUDGET, "--statistic", "summary")
    both = ("--folder", ".", "--flare", "kit")
    for words in (("study", "run", "a.study", "-o", "p"), ("site", "serve", "a.study", "x.npy")):
        own = () if words[0] == "study" else ("--ledger", "x.ledger")
        refused(2, "one of --folder and --flare", *words, *own)
        refused(2, "one of --folder and --flare", *words, *own, *both)
    words = ("study", "run", "a.study", "-o", "p", "--flare", "kit")
    refused(2, "--flare needs --flare-admin", *words)
    refused(2, "oneshot or adaptive", *create, *BUDGET, "--method", "auto")
    assert run(*create, *BUDGET)[0] == 0
    refused(2, "exists already", *create, *BUDGET)
    refused(3, "has no sites yet", "site", "sign", "a.study", "--ledger", "x", "-o", "y")
    np.save("x.npy", synthetic_spd(10, 3, random_state=0))
    Ledger("x.ledger", epsilon=1, delta=1e-5)
    join = ("site", "join", "a.study", "x.npy", "--ledger", "x.ledger", "-o", "x.card")
    refused(5, "spdp ledger bind", *join, "--name", "x")
    refused(2, "--name", *join, "--name", "../x")


def test_joining_tells_the_site_alone_of_its_records(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)
    X = synthetic_spd(50, 3, random_state=0)
    X[3], X[4] = -np.eye(3), 1e6 * np.eye(3)
    np.save("charite.npy", X)
    Ledger("charite.ledger", epsilon=3, delta=1e-5, key=KEY.encode()).bind(X)
    assert run("study", "create", "dti.study", "--k", "3", *DOMAIN, *BUDGET)[0] == 0
    code, _, err = run(*join("charite"))
    assert code == 0
    assert "matrix 3" in err
    assert "1 of 50 records lie outside" in err
    card = json.loads((tmp_path / "charite.card").read_text())
    assert sorted(card) == ["identity", "mlkem", "n", "name", "signature", "terms", "x25519"]


def test_leaving_gives_the_price_back_before_anything_was_answered(consortium, run):
    consortium()
    assert Ledger("lumc.ledger").spent()["mu"] > 0
    assert "nothing is reserved" in run("site", "leave", "dti.study", "--ledger", "lumc.ledger")[1]
    assert Ledger("lumc.ledger").spent()["mu"] == 0
    assert run(*sum_("charite"))[0] == 0
    left = run("site", "leave", "dti.study", "--ledger", "charite.ledger")[1]
    assert "not refunded" in left
    assert Ledger("charite.ledger").spent()["mu"] > 0


def test_a_ledger_that_trusts_nobody_is_charged_more(run, monkeypatch, consortium):
    assert run("ledger", "create", "x.ledger", "--epsilon", "3", "--delta", "1e-5",
               "--trust", "nobody")[0] == 0  # fmt: skip
    assert Ledger("x.ledger").studies() is None
    assert run("ledger", "create", "y.ledger", "--epsilon", "3", "--delta", "1e-5",
               "--trust", "me")[0] == 2  # fmt: skip


def test_the_examples_of_the_help_are_those_of_a_consortium(consortium, run, tmp_path):
    """In their order, for one of the sites; the others do the same."""
    consortium(until="joined")
    called = {
        name: words for name, words in EXAMPLES.items() if name.split()[0] in ("site", "study")
    }
    assert len(called) == 11
    os.rename("charite.npy", "tensors.npy")
    for site in SITES[1:]:
        assert run(*sign(site))[0] == 0
    os.rename("pins", "charite.ledger.pins")

    def example(name, *more):
        code, _, err = run(*called[name].split()[1:], *more)
        assert (code, err) == (0, ""), name

    example("site sign", "--yes")
    example("site sum")
    for site in SITES[1:]:
        assert run(*sum_(site))[0] == 0
    example("study merge")
    example("site close")
    for site in SITES[1:]:
        words = ("site", "close", "draft", "--ledger", f"{site}.ledger", "-o", f"{site}.close")
        assert run(*words)[0] == 0
    example("study publish")
    example("site leave")
