"""FLARE's processes beside ``spdp``: a kit, its policy, and the job of a study.

A *kit* is a folder that ``nvflare provision`` makes for each participant. A site's has
its name in the study.

*Enforced*, before FLARE is started, in the kit's folder ``local``: jobs may name two
classes (:mod:`.flare`, and FLARE's streamer of logs, without which no job starts), may
bring no code, run no shell command, and stream no logs. A kit with another policy is an
error. FLARE's processes are not told where records, keys and ledger are.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spdp.errors import DataError, need, reason

CONTROLLER, EXECUTOR = (f"spdp.federated.flare.{n}" for n in ("StudyController", "SiteExecutor"))
STREAMER = "nvflare.app_common.logging.job_log_streamer.JobLogStreamer"
RECEIVER = "nvflare.app_common.logging.job_log_receiver.JobLogReceiver"
ALLOWED = {"client": [EXECUTOR, STREAMER], "server": [CONTROLLER, RECEIVER]}
ROLES = ("project_admin", "org_admin", "lead", "member")
RIGHTS = ("submit_job", "manage_job", "download_job", "view", "operate")
PLACE = "SPDP_FLARE_FOLDER"  # in the environment of FLARE's process, as in `.flare`
OWN = "SPDP_FLARE_NAME"
AGAIN = 2.0  # seconds between two looks at a job
STILL = 60.0  # seconds without a message, after which a job begins again
GRACE = 10.0  # seconds for a process to end
# FLARE's own script starts its process again where it was killed. It ends when the pipe
# from spdp does, however spdp ended; jobs end with the process that started them.
WATCHED = 'trap : TERM; bash "$0" & read -r _; kill -TERM -- -$$; sleep 2; kill -KILL -- -$$'
RUNNING = ("SUBMITTED", "APPROVED", "DISPATCHED", "RUNNING")


class Kit:
    """A participant's kit, as FLARE provisions it."""

    def __init__(self, path: Path) -> None:
        need("nvflare", "flare", "a study over FLARE", "NVIDIA FLARE 2.9")
        self.path = path.absolute()
        found = [side for side in ALLOWED if (path / "startup" / f"fed_{side}.json").is_file()]
        if len(found) != 1 or not (path / "startup" / "sub_start.sh").is_file():
            raise DataError(
                f"{path}: not a kit of a client or a server, as nvflare provision makes"
            )
        (self.side,) = found

    @property
    def folder(self) -> Path:
        """The folder that spdp and FLARE share; it is kept between runs."""
        return self.path / "spdp"

    def name(self) -> str:
        """The name of a client, by its certificate."""
        text = _json(self.path / "startup" / "fed_client.json")
        return str(text["client"]["fqsn"])

    def restrict(self) -> None:
        """Write the policy, or check the one that is there."""
        local = self.path / "local"
        for file, wanted in (
            ("resources.json", self._resources()),
            ("authorization.json", {"format_version": "1.0", "permissions": _permissions()}),
        ):
            target = local / file
            if not target.exists():
                target.write_text(json.dumps(wanted, indent=2), encoding="utf-8")
            elif _json(target) != wanted:
                raise DataError(
                    f"{target}: not the policy of spdp, which allows no code, no other classes and "
                    "no streaming of logs; remove the file, and it is written anew"
                )
        more = sorted(file.name for file in local.glob("*__*resources.json"))
        if more:
            raise DataError(f"{local / more[0]}: adds to the policy of spdp; remove it")

    def _resources(self) -> dict[str, Any]:
        wanted: dict[str, Any] = _json(self.path / "local" / "resources.json.default")
        allowed = ALLOWED[self.side]
        wanted |= {"class_list_enforcement_mode": "enforce", "class_allow_list": allowed}
        wanted |= {"allow_log_streaming": False}
        parts = [part for part in wanted["components"] if part["id"] != "site_log_streamer"]
        wanted["components"] = parts
        if self.side == "server":  # by default in /tmp, where others' jobs may lie
            store = str(self.path / "store")
            for part in parts:
                if part["id"] == "job_manager":
                    part["args"]["uri_root"] = f"{store}/jobs"
            state = wanted["snapshot_persistor"]["args"]["storage"]["args"]
            state["root_dir"] = f"{store}/snapshots"
        return wanted

    @contextmanager
    def running(self, folder: Path, name: str = "") -> Iterator[None]:
        """FLARE's process, as long as the block runs; it writes to ``flare.log``."""
        self.restrict()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        own = os.path.dirname(sys.executable)
        given = {PLACE: str(folder.absolute()), OWN: name}
        given |= {"PATH": os.pathsep.join([own, os.environ.get("PATH", "")])}
        command = ["bash", "-c", WATCHED, str(self.path / "startup" / "sub_start.sh")]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SPDP_")}
        with (self.path / "flare.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=kept | given, stdin=subprocess.PIPE, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, cwd=self.path,
            )  # fmt: skip
            try:
                yield
            finally:
                _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _permissions() -> dict[str, Any]:
    rights = dict.fromkeys(RIGHTS, "any")
    rights |= dict.fromkeys(("byoc", "shell_commands", "clone_job"), "none")
    return {role: rights if role != "member" else {"view": "any"} for role in ROLES}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from None


# --- the coordinator's job


def write_job(folder: Path, sites: list[str]) -> Path:
    """The job of a study: it names two classes, and brings no code."""
    job = folder / "spdp"
    config = job / "app" / "config"
    config.mkdir(parents=True)
    everyone = {"app": ["server", *sites]}
    meta = {"name": "spdp", "min_clients": len(sites), "mandatory_clients": sites}
    controller = {"id": "study", "path": CONTROLLER, "args": {"sites": sites}}
    executor = {"tasks": ["ask", "draft", "end"], "executor": {"path": EXECUTOR, "args": {}}}
    for file, text in (
        (job / "meta.json", meta | {"resource_spec": {}, "deploy_map": everyone}),
        (config / "config_fed_server.json", {"workflows": [controller], "components": []}),
        (config / "config_fed_client.json", {"executors": [executor], "components": []}),
    ):
        given = text if file.name == "meta.json" else {"format_version": 2, **text}
        file.write_text(json.dumps(given), encoding="utf-8")
    return job


@contextmanager
def submitted(admin: Path, sites: list[str], folder: Path) -> Iterator[None]:
    """Keep a job of the study running; one that ended, or stands still, begins again.

    FLARE takes minutes to find that a site's process was killed. To begin again costs
    nothing: what is in the folder of the study is not asked again.
    """
    if not (admin / "startup" / "fed_admin.json").is_file():
        raise DataError(f"{admin}: not the kit of an administrator, as nvflare provision makes")
    who = _json(admin / "startup" / "fed_admin.json")["admin"]["username"]
    over = threading.Event()
    with TemporaryDirectory() as scratch:
        job = write_job(Path(scratch), sites)
        given = admin.absolute(), who, job, over, folder
        thread = threading.Thread(target=_keep, args=given, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(GRACE)


def _keep(admin: Path, who: str, job: Path, over: threading.Event, folder: Path) -> None:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    session, current = None, ""
    there, since = set[str](), time.monotonic()
    while not over.is_set():
        if (found := {file.name for file in folder.iterdir()}) != there:
            there, since = found, time.monotonic()
        try:
            if session is None:
                session = new_secure_session(who, str(admin))
            status = str(session.get_job_meta(current).get("status")) if current else "none"
            if status not in RUNNING:
                current, since = session.submit_job(str(job)), time.monotonic()
            elif time.monotonic() - since > STILL:
                session.abort_job(current)
                since = time.monotonic()
        except Exception:  # the server starts, or is away for a while: tried again
            if session is not None:
                with suppress(Exception):
                    session.close()
            session = None
        over.wait(AGAIN)
    if session is not None:
        with suppress(Exception):
            session.abort_job(current)
        with suppress(Exception):
            session.close()
