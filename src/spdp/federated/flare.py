"""NVIDIA FLARE as the transport: it carries the files of a folder, and nothing else.

At each site FLARE's client, at the coordinator its server, is a process of its own
beside ``spdp``. The two share a folder (:mod:`.folder`) that nobody else needs to read.
A question is a task of FLARE; what a site answers is the task's result.

*Enforced.* These classes read no records, no keys and no ledger: they are not told
where those are. They take bytes, write them under names of their own, and send back
bytes of limited size that ``spdp`` has written. Every exception is caught here and
becomes a result without a text. :mod:`.kits` forbids code in jobs, all other classes,
and the streaming of logs. *Assumed*: nothing of FLARE. Messages are signed, answers are
masked; whoever runs the engine can stop a study, and learns nothing by it.
"""

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spdp.federated.canonical import read
from spdp.federated.folder import DRAFT, put
from spdp.federated.site import REFUSAL
from spdp.federated.study import NAME

try:
    from nvflare.apis.controller_spec import Task
    from nvflare.apis.executor import Executor
    from nvflare.apis.fl_constant import ReturnCode
    from nvflare.apis.impl.controller import Controller
    from nvflare.apis.shareable import Shareable, make_reply
except ImportError as error:
    raise ImportError("this transport needs NVIDIA FLARE: pip install 'spdp[flare]'") from error

PLACE = "SPDP_FLARE_FOLDER"  # the study's folder, in the environment of FLARE's process
OWN = "SPDP_FLARE_NAME"  # the site's name
ASK, DRAFTED, ENDED = "ask", "draft", "end"  # tasks
LAST = 30  # seconds for the last task, which only says that all sites have signed
POLL = 0.2  # seconds between two looks
MOST = 1 << 30  # bytes of a message
FILES = re.compile(r"[a-z_]{1,40}\.(npy|json)")  # of a draft
ROUND = re.compile(r"ask-(\d{3})")


def place() -> Path:
    """The folder that spdp and FLARE share on this machine."""
    return Path(os.environ[PLACE])


def known(number: Any) -> int:
    """A round's number, as names of files have it."""
    if type(number) is not int or not 0 <= number < 1000:
        raise ValueError("not a number of a round")
    return number


class SiteExecutor(Executor):  # type: ignore[misc]
    """At a site: hands questions to ``spdp site serve``, and its answers to FLARE."""

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """The answer to a task, or a result without one."""
        try:
            folder, name = place(), os.environ[OWN]
            folder.mkdir(exist_ok=True)
            if task_name == ASK:
                number, message = known(shareable["number"]), bytes(shareable["message"])
                found = self.answered(folder, name, number, message, abort_signal)
            elif task_name == DRAFTED:
                found = self.closed(folder, name, dict(shareable["files"]), abort_signal)
            elif task_name == ENDED:
                put(folder / f"end-{name}", found := b"end")
            else:
                found = None
            if found is not None:
                reply = Shareable()
                reply["message"] = found
                return reply
        except Exception:  # its text is nobody's business
            pass
        return make_reply(ReturnCode.EXECUTION_EXCEPTION)

    def answered(
        self, folder: Path, name: str, number: int, message: bytes, stop: Any
    ) -> bytes | None:
        """What is answered in a round: an answer, or a refusal."""
        ask = folder / f"ask-{number:03d}"
        answer, refusal = (folder / f"{what}-{number:03d}-{name}" for what in ("answer", "refusal"))
        if not answer.exists() and not (ask.exists() and read(ask, MOST) == message):
            refusal.unlink(missing_ok=True)
            put(ask, message)
        elif answer.exists() and read(ask, MOST) != message:
            return REFUSAL  # this round was answered to another question
        if not until(lambda: answer.exists() or refusal.exists(), stop):
            return None
        return read(answer, MOST) if answer.exists() else REFUSAL

    def closed(self, folder: Path, name: str, files: dict[str, Any], stop: Any) -> bytes | None:
        """The signature of a draft."""
        close, draft, new = folder / f"close-{name}", folder / DRAFT, folder / ".draft"
        if not close.exists():
            for old in (new, draft):
                shutil.rmtree(old, ignore_errors=True)
            new.mkdir()
            for file, data in files.items():
                if FILES.fullmatch(file) is None:
                    raise ValueError("not a file of a draft")
                put(new / file, bytes(data))
            os.replace(new, draft)
        return read(close, MOST) if until(close.exists, stop) else None


class StudyController(Controller):  # type: ignore[misc]
    """At the coordinator: hands what ``spdp study run`` asks to FLARE, and back.

    Parameters
    ----------
    sites : list of str
        The sites of the study; FLARE's clients have their names.
    """

    def __init__(self, sites: list[str]) -> None:
        super().__init__()
        self.refused: set[tuple[str, str]] = set()  # in this job: a later one asks again
        if not all(isinstance(name, str) and re.match(NAME, name) for name in sites):
            raise ValueError("names of sites are of the letters a-z, digits and hyphens")
        self.sites = list(sites)

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing is prepared."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing is kept."""

    def process_result_of_unknown_task(self, *args: Any, **kwargs: Any) -> None:
        """A result that nobody waits for is dropped."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Carry questions and answers until all sites have signed."""
        folder, done = place(), False
        while not done and not abort_signal.triggered:
            asks = sorted(file for file in folder.glob("ask-*") if ROUND.fullmatch(file.name))
            for ask in asks[-1:]:
                number = ask.name[4:]
                message = {"number": int(number), "message": read(ask, MOST)}
                self.carry(ASK, message, f"answer-{number}", abort_signal, fl_ctx)
            if (folder / DRAFT).is_dir():
                files = {file.name: read(file, MOST) for file in (folder / DRAFT).iterdir()}
                self.carry(DRAFTED, {"files": files}, "close", abort_signal, fl_ctx)
                done = all((folder / f"close-{name}").exists() for name in self.sites)
            time.sleep(POLL)
        self.carry(ENDED, {}, "end", abort_signal, fl_ctx)

    def carry(self, what: str, message: Any, answer: str, stop: Any, fl_ctx: Any) -> None:
        """Put a message to sites that have not answered it; write what they send.

        ``answer`` is how names of files of answers begin.
        """
        folder = place()
        refusal = answer.replace("answer", "refusal")

        def received(client_task: Any, fl_ctx: Any) -> None:
            name, result = client_task.client.name, client_task.result
            if name in self.sites and result.get_return_code() == ReturnCode.OK:
                data = bytes(result["message"])
                if data == REFUSAL:
                    self.refused.add((refusal, name))
                if len(data) <= MOST:
                    put(folder / f"{refusal if data == REFUSAL else answer}-{name}", data)

        missing = [
            name
            for name in self.sites
            if not (folder / f"{answer}-{name}").exists() and (refusal, name) not in self.refused
        ]
        if missing:
            ask = Shareable()
            ask.update(message)
            wait: Any = LAST if what == ENDED else 0
            task: Any = Task(what, ask, timeout=wait, result_received_cb=received)
            self.broadcast_and_wait(
                task, fl_ctx, targets=missing, min_responses=len(missing), abort_signal=stop
            )


def until(ready: Callable[[], bool], stop: Any) -> bool:
    """Look until something is there, or the job is over; whether it is there."""
    while not ready():
        if stop.triggered:
            return False
        time.sleep(POLL)
    return True
