import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from spdp import Release, cli
from spdp.geometry import distance_logeuclid, mean_logeuclid


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty directory; gives exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["spdp", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def data(tmp_path, random_spd):
    np.save(tmp_path / "data.npy", random_spd(3000, 3, condition=4.0))
    return tmp_path / "data.npy"


BUDGET = ("--epsilon", "1", "--delta", "1e-6")


def test_mean_writes_a_release(run, data, tmp_path):
    code, out, err = run("mean", data, *BUDGET, "--eigenvalues", "0.2", "5", "-o", tmp_path / "out", "--report")
    assert (code, err) == (0, "")
    assert "ε = 1" in out
    release = Release.load(tmp_path / "out")
    assert release.certificate["private"] is True
    assert release.certificate["n"] == 3000
    assert distance_logeuclid(release.value, mean_logeuclid(np.load(data))) < 0.1
    assert (tmp_path / "out" / "report.html").stat().st_size > 3000


def test_mean_json_and_options(run, data, tmp_path):
    code, out, _ = run("mean", data, *BUDGET, "--radius", "2", "--json", "--mechanism", "gaussian", "--adjacency", "add-remove")
    assert code == 0
    result = json.loads(out)
    assert np.array(result["value"]).shape == (3, 3)
    assert result["certificate"]["adjacency"] == "add-remove"
    np.save(tmp_path / "center.npy", 1.1 * np.eye(3))
    code, out, _ = run("mean", data, *BUDGET, "--radius", "2", "--center", tmp_path / "center.npy")
    assert code == 0
    assert "[[" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--radius", "2", "--eigenvalues", "1", "2"], "either --eigenvalues"),
        ([], "leak"),
        (["--radius", "-2"], "radius"),
        (["--eigenvalues", "2", "1"], "low must be smaller"),
        (["--eigenvalues", "1", "2", "--center", "c.npy"], "goes with --radius"),
        (["--radius", "2", "--center", "none.npy"], "none.npy"),
        (["--radius", "2", "--report"], "add -o"),
        (["--radius", "2", "-o", "data.npy"], "not a directory"),
        (["--radius", "2", "--order", "fsl"], "NIfTI"),
        (["--radius", "2", "--delta", "2"], "delta"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, data, tmp_path, words, message):
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = run("mean", data, *BUDGET, *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_bad_data_writes_nothing(run, tmp_path):
    X = np.stack([np.eye(2)] * 5)
    X[3, 0, 0] = -1.0
    np.save(tmp_path / "bad.npy", X)
    code, _, err = run("mean", "bad.npy", *BUDGET, "--radius", "1", "-o", "out")
    assert code == 2
    assert "matrix 3 is not positive definite: smallest eigenvalue -1" in err
    assert not (tmp_path / "out").exists()
    assert run("mean", "bad.npy", *BUDGET, "--radius", "1", "-o", "out", "--on-invalid", "center")[0] == 0
    assert run("mean", "absent.npy", *BUDGET, "--radius", "1")[0] == 2


def test_debug_shows_the_traceback(run, tmp_path):
    from spdp.errors import DataError

    with pytest.raises(DataError, match="absent.npy"):
        run("--debug", "mean", "absent.npy", *BUDGET, "--radius", "1")
    assert run("mean", "absent.npy", *BUDGET, "--radius", "1")[0] == 2


def test_plan(run, tmp_path):
    pytest.importorskip("matplotlib")
    words = ("plan", "--k", "9", "--n", "5000", *BUDGET, "--eigenvalues", "1e-3", "10")
    code, out, _ = run(*words, "--error", "0.05", "--plot", "plan.png")
    assert code == 0
    assert "tangent-gaussian" in out
    assert "█" in out
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    result = json.loads(run(*words, "--error", "0.05", "--json")[1])
    assert result["best"] == "gaussian"
    enough = json.loads(run("plan", "--k", "9", "--n", result["n_needed"], *words[5:], "--json")[1])
    assert enough["mechanisms"]["gaussian"]["rms_error"] == pytest.approx(0.05, rel=1e-3)
    words = ("plan", "--k", "9", "--n", "5000", "--epsilon", result["epsilon_needed"], "--delta", "1e-6", "--eigenvalues", "1e-3", "10")
    assert json.loads(run(*words, "--json")[1])["mechanisms"]["gaussian"]["rms_error"] == pytest.approx(0.05, rel=0.02)
    assert (
        json.loads(run("plan", "--k", "2", "--n", "100", "--epsilon", "1", "--delta", "0", "--radius", "1", "--json")[1])["best"]
        == "laplace"
    )
    assert run("plan", "--k", "2", "--n", "100", *BUDGET, "--radius", "1", "--error", "-1")[0] == 2


def test_demo_and_the_installed_command(tmp_path):
    spdp = shutil.which("spdp", path=f"{sys.prefix}/bin")
    result = subprocess.run([spdp, "demo", "-o", "out"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "realised error" in result.stdout
    assert Release.load(tmp_path / "out").certificate["private"] is True


def test_importing_spdp_is_light():
    code = "import sys, spdp; assert not {'scipy', 'sklearn', 'opendp', 'matplotlib', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
