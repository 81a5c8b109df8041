"""Each operating system's way, as far as it runs here: the same answers."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from spdp import Ledger, system

FORK = multiprocessing.get_context("fork") if system.LINUX else None
WAYS = [system._start_by_psutil, *([system._start_by_proc] if system.LINUX else [])]


# --- processes ------------------------------------------------------------------------


@pytest.mark.parametrize("start_of", WAYS)
def test_a_process_lives_until_it_has_ended(start_of):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = start_of(child.pid)
        assert started > 0
        assert start_of(child.pid) == started  # asking does not harm it
        assert child.poll() is None
        assert start_of(os.getpid()) < started
    assert child.returncode == 1  # the end of its input, and no signal
    assert start_of(child.pid) == system.ENDED


@pytest.mark.skipif(not system.LINUX, reason="needs waitid")
@pytest.mark.parametrize("start_of", WAYS)
def test_a_process_that_nobody_waited_for_has_ended(start_of):
    child = FORK.Process(target=os.getpid)
    child.start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) == system.ENDED
    child.join()


def test_processes_of_one_machine_have_one_origin():
    code = "from spdp.system import origin; print(origin())"
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert said.stdout.strip() == system.origin()


# --- names ----------------------------------------------------------------------------

CLAIMS = [system.give_name, system._claim]


@pytest.mark.parametrize("give_name", CLAIMS)
def test_a_draft_gets_its_name_or_leaves_the_other_file_alone(tmp_path, give_name):
    draft, file = tmp_path / "draft", tmp_path / "file"
    draft.write_text("first")
    give_name(draft, file)
    assert file.read_text() == "first"
    draft.unlink(missing_ok=True)
    draft.write_text("second")
    with pytest.raises(FileExistsError):
        give_name(draft, file)
    assert file.read_text() == "first"
    assert draft.read_text() == "second"


def _try(give_name, folder, n, gate, won):
    draft = folder / f"draft{n}"
    draft.write_text(f"{n}" * 10_000)
    gate.wait()
    try:
        give_name(draft, folder / "file")
    except FileExistsError:
        return
    won.put(n)


@pytest.mark.skipif(FORK is None, reason="needs fork")
@pytest.mark.parametrize("give_name", CLAIMS)
def test_of_many_one_wins(tmp_path, give_name):
    gate, won = FORK.Barrier(6), FORK.Queue()
    children = [
        FORK.Process(target=_try, args=(give_name, tmp_path, n, gate, won)) for n in range(6)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=60)
    winner = won.get(timeout=10)
    assert won.empty()
    assert (tmp_path / "file").read_text() == f"{winner}" * 10_000


@pytest.fixture
def exfat(tmp_path):
    """A real file system without hard links, in a file; mounting it needs rights."""
    image, folder = tmp_path / "image", tmp_path / "exfat"
    folder.mkdir()
    image.write_bytes(bytes(8 << 20))

    def run(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    device = None
    try:
        run("mkfs.exfat", image)
        device = run("losetup", "--find", "--show", image)
        run("mount.exfat-fuse", device, folder)
    except (OSError, subprocess.CalledProcessError):
        if device:
            run("losetup", "--detach", device)
        pytest.skip("exFAT cannot be mounted here")
    yield folder
    run("umount", folder)
    run("losetup", "--detach", device)


def test_a_file_system_without_hard_links(exfat):
    draft, file = exfat / "draft", exfat / "file"
    draft.write_text("first")
    with pytest.raises(OSError):
        os.link(draft, file)
    system.give_name(draft, file)
    assert file.read_text() == "first"
    draft.write_text("second")
    with pytest.raises(FileExistsError):
        system.give_name(draft, file)
    assert file.read_text() == "first"


def test_a_ledger_on_a_file_system_without_hard_links(exfat):
    ledger = Ledger(exfat / "study.ledger", epsilon=1.0, delta=1e-6)
    assert ledger.spend(mechanism="tangent-gaussian", mu=0.01) == 1
    assert Ledger(ledger.path).spent()["entries"] == 1
    assert os.listdir(exfat) == ["study.ledger"]


def test_what_is_synced_is_what_was_written(tmp_path):
    file = tmp_path / "file"
    system.make_private(file)
    file.write_bytes(b"content")
    system.sync(file)
    assert file.read_bytes() == b"content"
    if not system.WINDOWS:
        assert file.stat().st_mode & 0o777 == 0o600
