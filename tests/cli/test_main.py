"""What all commands share: help, errors in one line, exit codes, text shown as text."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points, version
from importlib.util import find_spec

import numpy as np
import pytest
import typer

from spdp import cli
from spdp.cli.commands import EXAMPLES
from spdp.cli.statistics import example
from spdp.errors import DataError
from spdp.kernels import backend, instruction_set
from spdp.statistics import STATISTICS, find

HEAVY = {"numpy", "scipy", "sklearn", "opendp", "matplotlib", "rich", "sqlite3", "dask"}
FORMER = {"classes", "spread", "regress", "compare", "plan", "mean"}  # of stats, hidden
COMMANDS = {
    **dict.fromkeys(("mean", "plan", "reference", "sum", "merge", "verify"), ()),
    **dict.fromkeys(("demo", "describe", "reproduce", "report", "disclose", "bids"), ()),
    **dict.fromkeys(("start", "help", "wizard", "run"), ()),
    "ledger": {"create", "show", "history", "export", "bind", "recover"},
    "stats": set(STATISTICS) - {"mean"},
    "study": {"create", "seal", "merge", "run", "publish"},
    "site": {"join", "sign", "sum", "serve", "close", "leave"},
}


def tree():
    """All commands, those too that are made when they are called."""
    command = typer.main.get_command(cli.app)
    for name in command.late:
        command.load(name)
    return command


def test_help_lists_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    listed = out.split("Commands:")[1].split("Exit codes:")[0]
    assert set(re.findall(r"^  (\w+)", listed, re.MULTILINE)) == set(COMMANDS)
    assert "..." not in listed  # no sentence is cut off
    assert run() == (0, out, "")
    for name in ("stats", "ledger", "study", "site"):
        listed = run(name, "--help")[1].split("Commands:")[1]
        assert set(re.findall(r"^  ([\w-]+)", listed, re.MULTILINE)) == COMMANDS[name]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_that_is_loaded_late_has_the_help_that_stood_for_it(name):
    """The table's words are what ``spdp --help`` shows; its own must agree."""
    command = typer.main.get_command(cli.app)
    before = command.commands[name].get_short_help_str(limit=1000)
    command.load(name)
    after = command.commands[name]
    assert before == after.get_short_help_str(limit=1000) == cli.COMMANDS[name][1]
    assert after.help.startswith(cli.COMMANDS[name][1])


def test_former_names_of_statistics_work_and_are_not_listed(run):
    found = tree().commands["stats"].commands
    assert {name for name, command in found.items() if command.hidden} == FORMER
    for name in FORMER:
        assert run("stats", name, "--help")[0] == 0


def test_help_of_each_command_explains_every_option(run):
    """From the declared parameters, so that a new one cannot be left out."""
    paths = [(name,) for name in COMMANDS]
    paths += [(name, part) for name, parts in COMMANDS.items() for part in parts]
    for path in paths:
        code, out, _ = run(*path, "--help")
        assert code == 0
        command = tree()
        for name in path:
            command = command.commands[name]
        for option in command.params:
            assert option.help, (path, option.name)
            spelling = option.opts[-1] if option.opts[-1].startswith("-") else option.metavar
            assert spelling in out, (path, option.name)


def test_help_speaks_of_options_that_a_command_has(run):
    """The directory of a comparison holds no mean.npy; public data need no --groups."""
    for words in (("reference",), ("ledger", "bind"), ("stats", "difference")):
        out = run(*words, "--help")[1]
        assert "mean.npy" not in out
        named = set(re.findall(r"--groups\b(?!-)", out))
        assert not named or re.search(r"^ *--groups ", out, re.M)


def test_files_that_are_not_there_are_named_in_words(refused, data, ledger, budget):
    pytest.importorskip("cryptography")
    words = ("mean", data, *budget, "--radius", "2", "--ledger", ledger, "-o", "out")
    for option in ("--reference", "--sign", "--center"):
        err = refused(3, "absent", *words, option, "absent")
        assert "(No such file or directory)" in err
        assert "Errno" not in err


def test_delta_may_be_zero(refused, data, budget):
    words = ("mean", data, "--epsilon", "1", "--radius", "2", "--delta", "1.5")
    refused(2, "--delta must lie between 0 and 1, and above 0 for Gaussian noise, got 1.5", *words)


def test_an_array_that_holds_no_matrices_has_the_shape_it_has(refused, tmp_path, budget):
    np.save(tmp_path / "flat.npy", np.zeros((30, 36)))
    words = ("mean", "flat.npy", *budget, "--radius", "2")
    refused(3, "flat.npy: array of shape (30, 36); expected (n, k, k)", *words)


def test_help_names_every_format_and_order(run):
    from spdp.data.formats import SUFFIXES
    from spdp.data.formats.nifti import TENSOR_ORDERS

    text = " ".join(run("mean", "--help")[1].split())
    for suffix in SUFFIXES:
        assert re.search(rf"{re.escape(suffix)}[,.] ", text), suffix
    for order in TENSOR_ORDERS:
        assert re.search(rf"image: .*\b{order}\b.* --mask", text), order


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['spdp', '--help']\n"
        "from spdp import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        f"print('heavy:', *({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1].strip() == "heavy:"


def test_importing_spdp_is_light():
    code = f"import sys, spdp; assert not {HEAVY!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_command_is_installed():
    (script,) = entry_points(group="console_scripts", name="spdp")
    assert script.load() is cli.main


def test_version_and_module(run, shell):
    text = f"spdp {version('spdp')}, {backend()} kernels ({instruction_set()})\n"
    assert run("--version") == (0, text, "")
    done = shell("--version", env={"SPDP_KERNELS": "numpy"})
    plain = f"spdp {version('spdp')}, numpy kernels (nothing compiled)\n"
    assert (done.returncode, done.stdout.decode()) == (0, plain)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("spdp me", {"mean", "merge"}),
        ("spdp ledger re", {"recover"}),
        ("spdp mean --eps", {"--epsilon"}),
    ],
)
def test_the_shell_completes_commands_and_options(run, monkeypatch, line, found):
    """As a shell asks: through the environment, answered before anything runs."""
    monkeypatch.setenv("_SPDP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert set(run()[1].split()) == found


EXAMPLE = re.compile(r"\n  Example:\n((?:    .*\n)+)$")


def commands(command, path=()):
    """Every command with its path, from the tree itself."""
    if not hasattr(command, "commands"):
        return [path]
    below = [(name, sub) for name, sub in command.commands.items() if not sub.hidden]
    return [found for name, sub in below for found in commands(sub, (*path, name))]


def examples():
    """The example of each command, those first that write what others read."""
    of_statistics = {
        name if name == "mean" else f"stats {name}": example(find(name)) for name in STATISTICS
    }
    return {"mean": of_statistics.pop("mean"), **EXAMPLES, **of_statistics}


def test_every_help_ends_with_an_example_that_runs(run, tmp_path, random_spd, monkeypatch):
    """All of them in their order, in one folder, as a reader would try them."""
    X = random_spd(4000, 3)
    np.save(tmp_path / "matrices.npy", X)
    np.save(tmp_path / "public.npy", X[:500])
    np.save(tmp_path / "ages.npy", np.linspace(20, 80, 4000))
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(0, 255, (3, 8, 8), np.uint8))
    (tmp_path / "labels.txt").write_text("a\nb\n" * 2000)
    (tmp_path / "plan.yaml").write_text(
        "files: [matrices.npy]\nk: 3\nn: 4000\ninstrument: {kind: other, radius: 3.0}\n"
    )
    assert {" ".join(path) for path in commands(tree())} == set(examples())
    for name, call in examples().items():
        shown = EXAMPLE.search(run(*name.split(), "--help")[1]).group(1)
        assert shown.replace("\\\n", " ").split() == call.split()
        # those with tests of their own
        if name.split()[0] in ("reproduce", "demo", "start", "study", "site", "wizard", "bids"):
            continue
        if name == "run" and find_spec("yaml") is None:  # the extra wizard
            continue
        before, words = call.split("spdp ", 1)
        for part in before.split():
            monkeypatch.setenv(*part.split("="))
        if name == "ledger recover":  # of a release that was paid for there
            release = examples()["mean"].removeprefix("spdp ").replace("-o release --report", "")
            assert run(*release.split(), "--ledger", "budget.ledger")[0] == 0
        code, _, err = run(*words.split(" > ")[0].split())
        assert (code, err) == (0, ""), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["maen"], "No such command 'maen'. Did you mean 'mean'? (see spdp --help)"),
        (["mean"], "Missing argument 'DATA' (see spdp mean --help)"),
        (["mean", "x.npy", "--epsilon", "1"], "Missing option '--delta' (see spdp mean --help)"),
        (["mean", "x.npy", "--epsilon", "much", "--delta", "0"], "'--epsilon'"),
        (["mean", "x.npy", "--rho", "1"], "--rho"),
        (["plan", "--k", "0"], "'--k'"),
        (["ledger", "burn"], "No such command 'burn' (see spdp ledger --help)"),
        (["mean", "x.npy", "--mechanism", "x", "--epsilon", "1", "--delta", "0"], "laplace"),
    ],
)
def test_mistakes_of_usage_are_one_line(refused, words, message):
    assert refused(2, message, *words).startswith("spdp: ")


def test_exit_codes_are_documented_and_distinct(run, refused, data, ledger, budget):
    mean = ("mean", data, "--radius", "2", "--delta", "1e-6")
    assert run(*mean, "--epsilon", "1")[0] == 0
    refused(2, "epsilon", *mean, "--epsilon", "-1")
    refused(3, "absent.npy: no such file", "mean", "absent.npy", *budget, "--radius", "1")
    refused(4, "budget exceeded", *mean, "--epsilon", "3", "--ledger", ledger)
    refused(5, "no such ledger", *mean, "--epsilon", "1", "--ledger", "absent.ledger")
    refused(7, "uninformative", *mean, "--epsilon", "0.0001")
    data.write_bytes(b"not a ledger" * 1000)
    refused(5, "data.npy", "ledger", "show", data)
    shown = re.findall(r"^ {4,6}(\d+)  ", run("--help")[1], re.MULTILINE)
    assert shown == ["0", "2", "3", "4", "5", "6", "7", "130", "1"]


def test_debug_shows_the_traceback(monkeypatch, tmp_path, refused, budget):
    words = ("mean", "absent.npy", *budget, "--radius", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["spdp", "--debug", *words])
    with pytest.raises(DataError, match="absent.npy"):
        cli.main()
    refused(3, "absent.npy", *words)


def test_options_are_spelt_as_here_not_as_in_python(refused, run, tmp_path, data, random_spd):
    X = random_spd(5, 3)
    np.savez(tmp_path / "two.npz", a=X, b=X)
    mean = ("--epsilon", "1", "--delta", "1e-6", "--radius", "2")
    assert "=..." not in refused(3, "(pass --key)", "mean", "two.npz", *mean)
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.ones((2, 2, 2, 6), np.float32), np.eye(4))
    nibabel.save(image, tmp_path / "image.nii")
    assert "=..." not in refused(3, "(pass --order)", "mean", "image.nii", *mean)
    assert run("ledger", "create", "l", "--epsilon", "1", "--delta", "0")[0] == 0
    assert "Ledger(" not in refused(2, "(set SPDP_LEDGER_KEY)", "ledger", "bind", "l", data)


HOSTILE = {
    "markup": "a[bold][blink].npy",
    "escape": "a\x1b[31mred\x1b]0;title\x07.npy",
    "lines": "a\nspdp: all is well\r.npy",
    "direction": "a\u202eyp.exe.npy",
    "not UTF-8": os.fsdecode(b"a\xff\xfe.npy"),
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_are_shown_as_text(run, refused, tmp_path, random_spd, budget, name, ledger):
    """In errors, in a ledger's history and in what is written, found or not."""
    words = ("mean", name, *budget, "--radius", "2")
    error = refused(3, "no such file", *words)
    spelt = ascii(name)[1:-1].replace("\\'", "'")
    assert spelt in error
    np.save(os.path.join(tmp_path, name), random_spd(40, 2))
    code, out, err = run(*words, "--ledger", ledger, "-o", name.removesuffix(".npy"))
    assert (code, err) == (0, "")
    assert f"wrote {spelt.removesuffix('.npy')}" in out
    code, history, _ = run("ledger", "history", ledger)
    assert spelt in history
    assert not set(out + history) & set("\x1b\x07\r\u202e")


def test_hostile_names_in_a_process_of_its_own(shell, tmp_path, random_spd, budget):
    """Standard streams that know ASCII only, and a name that is not even UTF-8."""
    name, output = os.fsdecode(b"a\xff.npy"), os.fsdecode(b"out\xff")
    np.save(os.path.join(tmp_path, name), random_spd(40, 2))
    words = ("mean", name, *budget, "--radius", "2", "-o", output)
    for _ in range(2):
        done = shell(*words, env={"PYTHONIOENCODING": "ascii"})
        assert b"Traceback" not in done.stderr
        assert b"out\\udcff" in done.stdout + done.stderr
    assert done.returncode == 2  # it is there already


def test_what_nobody_expected_is_one_line_too(refused, data, budget, monkeypatch):
    """A fault of the installation, not of the user: its exit code is another one."""
    monkeypatch.setitem(sys.modules, "spdp.cli.statistics", None)
    refused(1, "unexpected ModuleNotFoundError", "mean", data, *budget, "--radius", "2")
