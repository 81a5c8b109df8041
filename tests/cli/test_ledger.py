import csv
import io
import json

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.privacy import gaussian_epsilon

MEAN = ("mean", "data.npy", "--delta", "1e-6", "--radius", "2", "--ledger", "a.ledger")
KEY = "0123456789abcdef"


def test_the_life_of_a_ledger(run, refused, data, ledger, tmp_path, budget):
    refused(5, "exists already", "ledger", "create", ledger, *budget)
    assert run(*MEAN, "--epsilon", "0.8", "--label", "first")[0] == 0
    refused(4, "budget exceeded", *MEAN, "--epsilon", "0.8", "-o", "out")
    code, out, _ = run("ledger", "show", ledger)
    assert code == 0
    assert "ε = 1" in out
    assert "1 release " in out
    assert "█" in out
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["spent"]["entries"] == 1
    assert "first" in run("ledger", "history", ledger)[1]
    assert json.loads(run("ledger", "history", ledger, "--json")[1])[0]["state"] == "done"
    assert run("ledger", "export", ledger)[1].splitlines()[1].startswith("1,")


def test_a_picture_of_the_budget(run, data, ledger, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = run("ledger", "show", ledger, "--plot", "a.png")
    assert code == 0
    assert "wrote a.png" in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_pure_ledger(run, data, tmp_path):
    assert run("ledger", "create", "a.ledger", "--epsilon", "1", "--delta", "0")[0] == 0
    assert run(*MEAN, "--delta", "0", "--epsilon", "0.25")[0] == 0
    code, out, _ = run("ledger", "show", "a.ledger")
    assert code == 0
    assert "a pure one with ε = 0.75" in out
    assert "Gaussian" not in out
    assert "25% of ε" in out


def test_bound_to_its_data(run, refused, data, ledger, tmp_path, random_spd, monkeypatch):
    refused(2, "(set SPDP_LEDGER_KEY)", "ledger", "bind", ledger, data)
    monkeypatch.setenv("SPDP_LEDGER_KEY", "short")
    refused(2, "16 bytes", "ledger", "bind", ledger, data)
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)
    assert run("ledger", "bind", ledger, data)[1] == f"bound {ledger} to data.npy\n"
    assert "bound to data" in run("ledger", "show", ledger)[1]
    assert run(*MEAN, "--epsilon", "0.1")[0] == 0
    monkeypatch.delenv("SPDP_LEDGER_KEY")
    refused(5, "key is needed (set SPDP_LEDGER_KEY)", *MEAN, "--epsilon", "0.1")
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)
    np.save(data, random_spd(50, 3))
    refused(5, "not the data", *MEAN, "--epsilon", "0.1")
    assert Ledger(ledger).spent()["entries"] == 1


def test_recover_writes_a_paid_release_again(run, refused, data, ledger, tmp_path):
    assert run(*MEAN, "--epsilon", "0.5", "--json")[0] == 0
    words = ("ledger", "recover", ledger, "1", "-o")
    code, out, err = run(*words, "again")
    assert (code, err) == (0, "")
    assert "ε = 0.5" in out
    release, entry = Release.load(tmp_path / "again"), Ledger(ledger).history()[0]
    np.testing.assert_array_equal(release.value, entry["value"])
    assert release.certificate == entry["certificate"]
    refused(2, "(pass --force)", *words, "again")
    assert run(*words, "again", "--force", "--report")[0] == 0
    assert (tmp_path / "again" / "report.html").exists()
    assert Ledger(ledger).spent()["entries"] == 1
    refused(5, "no entry 7", "ledger", "recover", ledger, "7", "-o", "x")
    refused(2, "ENTRY", "ledger", "recover", ledger, "0", "-o", "x")


def test_an_entry_without_a_result_cannot_be_recovered(refused, ledger):
    Ledger(ledger).spend(mechanism="tangent-gaussian", mu=0.01)
    refused(5, "no result", "ledger", "recover", ledger, "1", "-o", "x")


HOSTILE = ["[/b]", "\x1b[31mred", "\r\n2,evil", '=HYPERLINK("http://x")', "+1", "-1", "@x", "\t=1"]


def test_hostile_labels_are_shown_and_exported_as_text(run, ledger):
    """Whoever wrote them: the command line, or a program."""
    account = Ledger(ledger)
    for label in HOSTILE:
        account.spend(mechanism="tangent-gaussian", mu=0.01, label=label)
    code, out, _ = run("ledger", "history", ledger)
    assert code == 0
    for label in HOSTILE:
        assert repr(label)[1:-1] in out
    code, out, _ = run("ledger", "export", ledger)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["entry"] for row in rows] == [str(i + 1) for i in range(len(HOSTILE))]
    assert not set(out) & set("\x1b\r\t")
    for row, label in zip(rows, HOSTILE, strict=True):
        escaped = "'" if label[0] in "=+-@\t\r" else ""
        assert row["label"] == escaped + repr(label)[1:-1]
        assert float(row["mu"]) == 0.01


@pytest.mark.parametrize("command", ["show", "history", "export"])
def test_damaged_ledgers(refused, ledger, tmp_path, command):
    refused(5, "spdp ledger create", "ledger", command, "absent.ledger")
    (tmp_path / "damaged").write_bytes(ledger.read_bytes()[:1000])
    refused(5, "damaged", "ledger", command, "damaged")


def test_whose_data_an_entry_protects_is_shown(run, data, ledger, budget):
    """In the history, in what is exported, and beside the budget."""
    words = ("mean", data, "--radius", "2", "--epsilon", "0.5", "--delta", "1e-7")
    assert "per " not in run("ledger", "show", ledger)[1]
    assert run(*words, "--ledger", ledger)[0] == 0
    assert "per record" in run("ledger", "show", ledger)[1]
    shown = run("ledger", "history", ledger)[1]
    assert "protects" in shown
    assert "record" in shown.split("protects")[1]
    head, row = run("ledger", "export", ledger)[1].splitlines()
    assert dict(zip(head.split(","), row.split(","), strict=True))["unit"] == "record"
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["unit"] == "record"


def test_what_was_released_and_its_own_epsilon_are_shown(run, data, ledger, budget):
    """At the ledger's δ, for which the same noise is worth another ε than was asked."""
    words = (data, "--radius", "2", "--epsilon", "0.5", "--delta", "1e-7", "--ledger", ledger)
    assert run("stats", "dispersion", *words)[0] == 0
    account = Ledger(ledger)
    account.spend(mechanism="tangent-gaussian", mu=0.01)
    account.spend(mechanism="riemannian-laplace", pure=0.05)
    code, out, _ = run("ledger", "export", ledger)
    assert code == 0
    done, pending, pure = csv.DictReader(io.StringIO(out))
    alone = gaussian_epsilon(account.delta, float(done["mu"]))
    assert (done["statistic"], pending["statistic"]) == ("dispersion", "")
    assert float(done["epsilon_alone"]) == pytest.approx(alone)
    assert float(done["epsilon_alone"]) != pytest.approx(0.5, rel=0.01)
    assert float(pure["epsilon_alone"]) == 0.05
    assert float(done["at_delta"]) == account.delta
    shown = " ".join(run("ledger", "history", ledger)[1].split())
    assert f"{alone:.4g}" in shown
    assert "dispersion" in shown
    left = account.remaining()["epsilon"]
    shown = " ".join(run("ledger", "show", ledger)[1].split())
    assert f"a Gaussian release with ε = {left:.4g} at δ = {account.delta:g}" in shown
