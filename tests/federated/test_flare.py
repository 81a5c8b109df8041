"""Studies over NVIDIA FLARE: kits, their policy, and a real server with three clients.

FLARE pins packages of the web: it has an environment of its own (``make flare``).
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.datasets import synthetic_spd
from spdp.errors import DataError
from spdp.federated import kits
from spdp.federated.identity import Identity, words_of
from spdp.federated.kits import ALLOWED, CONTROLLER, EXECUTOR, Kit, write_job
from spdp.federated.transcript import read_rounds

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-flare" / "bin" / "python"
needs_flare = pytest.mark.skipif(not PYTHON.exists(), reason="make flare builds what this needs")
SITES = ("berlin", "bern", "leiden")
KEY = "sixteen-letters-or-more"


@pytest.fixture
def kit(tmp_path, monkeypatch):
    """A folder in the form of a site's kit."""
    monkeypatch.setattr(kits, "need", lambda *_: None)
    for folder in ("startup", "local"):
        (tmp_path / folder).mkdir()
    client = {"client": {"fqsn": "bern"}}
    (tmp_path / "startup" / "fed_client.json").write_text(json.dumps(client))
    (tmp_path / "startup" / "sub_start.sh").write_text("echo $$ > started; exec sleep 60\n")
    parts = [{"id": "process_launcher"}, {"id": "site_log_streamer"}]
    default = {"class_allow_list": ["*"], "allow_log_streaming": True, "components": parts}
    (tmp_path / "local" / "resources.json.default").write_text(json.dumps(default))
    return Kit(tmp_path)


def test_a_kit_allows_two_classes_no_code_and_no_streaming_of_logs(kit):
    kit.restrict()
    local = kit.path / "local"
    found = json.loads((local / "resources.json").read_text())
    assert found["class_allow_list"] == ALLOWED["client"]
    assert found["class_list_enforcement_mode"] == "enforce"
    assert found["allow_log_streaming"] is False
    assert [part["id"] for part in found["components"]] == ["process_launcher"]
    rights = json.loads((local / "authorization.json").read_text())["permissions"]
    for role, given in rights.items():
        assert role == "member" or (given["byoc"], given["shell_commands"]) == ("none", "none")
    kit.restrict()  # again: it is the same
    for name in ("resources.json", "authorization.json"):
        good = (local / name).read_text()
        (local / name).write_text(good.replace("none", "any").replace("false", "true"))
        with pytest.raises(DataError, match="not the policy of spdp"):
            kit.restrict()
        (local / name).write_text(good)
    (local / "x__resources.json").write_text("{}")
    with pytest.raises(DataError, match="adds to the policy"):
        kit.restrict()


def test_a_folder_that_is_no_kit_is_refused(kit, tmp_path):
    (tmp_path / "startup" / "sub_start.sh").unlink()
    with pytest.raises(DataError, match="not a kit"):
        Kit(tmp_path)
    with pytest.raises(DataError, match="administrator"), kits.submitted(tmp_path, ["a"], tmp_path):
        pass


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_its_process_knows_no_secret_and_ends_with_spdp(kit, monkeypatch):
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)
    with kit.running(kit.folder / "study", "bern"):
        pid = wait_for(kit.path / "started").read_text().strip()
        given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert f"SPDP_FLARE_FOLDER={kit.folder / 'study'}".encode() in given
        assert not [one for one in given if KEY.encode() in one]
    assert not alive(pid)


def test_a_job_names_two_classes_and_brings_no_code(tmp_path):
    job = write_job(tmp_path, ["bern", "leiden"])
    files = {str(file.relative_to(job)) for file in job.rglob("*") if file.is_file()}
    config = {f"app/config/config_fed_{side}.json" for side in ("server", "client")}
    assert files == {"meta.json"} | config
    text = "".join((job / file).read_text() for file in sorted(files))
    assert text.count('"path"') == 2
    assert CONTROLLER in text
    assert EXECUTOR in text


# --- a real server and three clients

PROJECT = """
api_version: 3
name: spdp
description: a study over sites
participants:
  - {{name: localhost, type: server, org: spdp, fed_learn_port: {0}, admin_port: {1}}}
  - {{name: berlin, type: client, org: berlin}}
  - {{name: bern, type: client, org: bern}}
  - {{name: leiden, type: client, org: leiden}}
  - {{name: admin@spdp.org, type: admin, org: spdp, role: project_admin}}
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {{config_folder: config, scheme: grpc}}
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""
# What an administrator of FLARE who is not the study's coordinator may try.
HOSTILE = """
import json, os, sys
from pathlib import Path
from threading import Thread
from nvflare.fuel.flare_api.flare_api import new_secure_session
kit, folder = sys.argv[1:]
session, found = new_secure_session("admin@spdp.org", kit), {}
for job in sorted(Path(folder).iterdir()):
    try:
        number = session.submit_job(str(job))
        session.monitor_job(number, timeout=30)
        found[job.name] = session.get_job_meta(number)["status"]
    except Exception as error:
        found[job.name] = f"refused: {error}"
def shell():
    try:
        found["shell"] = str(session.do_command("pwd bern"))
    except Exception as error:
        found["shell"] = f"refused: {error}"
found["shell"] = "no answer"
asked = Thread(target=shell, daemon=True)
asked.start()
asked.join(30)
Path(folder, "found.json").write_text(json.dumps(found))
os._exit(0)
"""


def wait_for(file, seconds=60.0):
    end = time.monotonic() + seconds
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < end, f"no {file.name}"
        time.sleep(0.05)
    return file


def free_ports():
    import socket

    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("localhost", 0))
        return one.getsockname()[1], two.getsockname()[1]


def processes(kit):
    """Numbers of the processes of a kit's FLARE, without spdp and the script."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"nvflare.private" in word for word in words) and str(kit).encode() in words:
            found.append(int(file.parent.name))
    return found


@pytest.fixture
def consortium(tmp_path, monkeypatch):
    """Three sites that have signed an adaptive study, and their kits."""
    monkeypatch.setenv("SPDP_LEDGER_KEY", KEY)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = subprocess.run(
            [PYTHON, "-m", "spdp", *words], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    budget = ("--epsilon", "1", "--delta", "1e-6", "--method", "adaptive")
    run("study", "create", "dti.study", "--k", "3", "--eigenvalues", "1e-2", "1e2", *budget)
    for seed, site in enumerate(SITES):
        np.save(f"{site}.npy", synthetic_spd(900 + seed, 3, random_state=seed))
        Ledger(f"{site}.ledger", epsilon=3.0, delta=1e-5, key=KEY.encode()).bind(
            np.load(f"{site}.npy")
        )
        own = ("--name", site, "--ledger", f"{site}.ledger", "-o", f"{site}.card")
        run("site", "join", "dti.study", f"{site}.npy", *own)
    run("study", "seal", "dti.study", *(f"{site}.card" for site in SITES))
    words = {site: words_of(Identity.open(Path(f"{site}.identity")).public) for site in SITES}
    Path("pins").write_text("".join(f"{site} {word}\n" for site, word in words.items()))
    for site in SITES:
        own = ("--ledger", f"{site}.ledger", "-o", f"{site}.seal", "--pins", "pins", "--yes")
        run("site", "sign", "dti.study", *own)
    Path("project.yml").write_text(PROJECT.format(*free_ports()))
    subprocess.run(
        [PYTHON.with_name("nvflare"), "provision", "-p", "project.yml", "-w", "ws"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    os.rename("ws/spdp/prod_00", "kits")
    return run


def hostile_jobs(folder, marker):
    """Jobs with a class that is not allowed, and with code of their own."""
    other = folder / "jobs" / "class" / "spdp"
    write_job(other.parent, list(SITES))
    config = other / "app" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace(EXECUTOR, "subprocess.Popen"))
    code = folder / "jobs" / "code" / "spdp"
    write_job(code.parent, list(SITES))
    config = code / "app" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace(EXECUTOR, "evil.Evil"))
    (code / "app" / "custom").mkdir()
    (code / "app" / "custom" / "evil.py").write_text(f"open({str(marker)!r}, 'w').write('ran')\n")
    jobs = folder / "hostile"
    jobs.mkdir()
    for name, job in (("class", other), ("code", code)):
        os.rename(job, jobs / name)
    return jobs


@needs_flare
@pytest.mark.audit
def test_a_search_over_flare_survives_a_killed_client(consortium, tmp_path):
    serve = {
        site: ("site", "serve", "dti.study", f"{site}.npy", "--ledger", f"{site}.ledger")
        for site in SITES
    }

    def started(name, *words):
        with open(f"{name}.out", "wb") as out:
            command = [PYTHON, "-m", "spdp", *words, "--patience", "600"]
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    ask = ("study", "run", "dti.study", "--flare", "kits/localhost")
    ask += ("--flare-admin", "kits/admin@spdp.org", "-o", "published")
    begun = time.monotonic()
    running = {s: started(s, *words, "--flare", f"kits/{s}") for s, words in serve.items()}
    running["coordinator"] = started("coordinator", *ask)
    try:
        study = next(iter(kit_folder(tmp_path / "kits" / "localhost")))
        wait_for(study / "ask-003", 240)
        killed = processes(tmp_path / "kits" / "bern")
        assert len(killed) == 2  # the client, and its job
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        for name, one in running.items():
            assert one.wait(600) == 0, Path(f"{name}.out").read_text()
    finally:
        for one in running.values():
            if one.poll() is None:
                one.send_signal(signal.SIGINT)
                one.wait(60)
    print(f"FLARE: {time.monotonic() - begun:.0f} s with a killed client")
    assert "closing signatures" in consortium("verify", "published")
    assert len(read_rounds(tmp_path / "published").descriptions) > 5
    assert Release.load("published").certificate["n"] == 2703
    for site in SITES:
        assert Ledger(f"{site}.ledger").spent()["entries"] == 1
        assert not list(tmp_path.glob(f"{site}.ledger.*.keys"))
        assert ended(tmp_path / "kits" / site)


def kit_folder(kit):
    """The study's folder of a kit, when it is there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [one for one in (kit / "spdp").glob("*") if one.is_dir()]
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("no folder of the study")


def ended(kit, seconds=30.0):
    """Whether a kit's processes end by themselves, soon after spdp has."""
    end = time.monotonic() + seconds
    while processes(kit) and time.monotonic() < end:
        time.sleep(0.2)
    return not processes(kit)


@needs_flare
@pytest.mark.audit
def test_other_classes_code_and_shell_commands_are_refused(consortium, tmp_path):
    """An administrator of FLARE tries them, while sites wait for questions."""
    marker = tmp_path / "ran"
    jobs, script = hostile_jobs(tmp_path, marker), tmp_path / "hostile.py"
    script.write_text(HOSTILE)
    server = subprocess.Popen(
        [PYTHON, "-c", SERVER, "kits/localhost", *(f"kits/{site}" for site in SITES)],
        stdin=subprocess.PIPE,
    )
    try:
        for site in SITES:
            wait_for(tmp_path / "kits" / site / "log.txt")
        time.sleep(20)  # until the clients have connected
        subprocess.run([PYTHON, script, "kits/admin@spdp.org", jobs], check=True, timeout=200)
    finally:
        server.stdin.close()
        server.wait(60)
    found = json.loads((jobs / "found.json").read_text())
    print(found)
    assert found["class"] != "FINISHED:COMPLETED"
    assert "FINISHED:COMPLETED" not in found["code"]
    assert "kits/bern" not in found["shell"]
    log = "".join((tmp_path / "kits" / site / "flare.log").read_text() for site in SITES)
    assert "is not in allow_list" in log
    assert not marker.exists()


SERVER = """
import sys
from contextlib import ExitStack
from pathlib import Path
from spdp.federated.kits import Kit
with ExitStack() as stack:
    for place in sys.argv[1:]:
        kit = Kit(Path(place))
        kit.folder.mkdir(exist_ok=True)
        stack.enter_context(kit.running(kit.folder, Path(place).name))
    sys.stdin.read()
"""
