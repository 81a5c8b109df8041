"""A command of spdp that runs beside the page: its progress, its end, its cancellation.

A release is made by the command that the page shows, in a process of its own. So it can
be stopped at any time, as by Ctrl-C, and then says itself what was charged; and its
certificate is that of the command.
"""

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT
from time import monotonic

from spdp import system

PROGRESS = "SPDP_PROGRESS"  # tells commands to write progress where there is no terminal
CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
KEPT = 4000  # letters of the last messages

STARTED: "dict[asyncio.Task[int], Job]" = {}


def unfinished() -> "list[Job]":
    """The jobs that were started and have not ended."""
    return [job for job in STARTED.values() if job.running]


@dataclass
class Job:
    """A command that runs, or has run.

    Attributes
    ----------
    words : sequence of str
        The command, after ``spdp``.
    folder : Path
        Where it runs.
    code : int or None
        Its exit code; None while it runs.
    doing : str
        The last line of its progress.
    messages : list of str
        What it said besides: warnings, and the error.
    """

    words: Sequence[str]
    folder: Path
    code: int | None = None
    doing: str = ""
    messages: list[str] = field(default_factory=list)
    stopped: bool = False
    started: float = field(default_factory=monotonic)
    _process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self.code is None

    @property
    def lasted(self) -> float:
        """Seconds since it began."""
        return monotonic() - self.started

    def start(self) -> "asyncio.Task[int]":
        """Run it to its end, even if the page that asked for it is closed."""
        task = asyncio.get_running_loop().create_task(self.run())
        STARTED[task] = self  # else nobody would hold the task
        return task

    async def run(self) -> int:
        """Run the command to its end, and return its exit code."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "spdp", *self.words),
            cwd=self.folder,
            env={**os.environ, PROGRESS: "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
            preexec_fn=system.HEED_INTERRUPTS,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        if self.stopped:  # cancelled before it began
            self._interrupt()
        assert self._process.stderr is not None
        rest = ""
        while chunk := await self._process.stderr.read(4096):
            *lines, rest = re.split(r"[\r\n]", rest + chunk.decode("utf-8", "replace"))
            for line in lines:
                self._hear(line)
        self._hear(rest)
        code = await self._process.wait()
        if self.stopped and code and not self.messages:  # before the command itself had begun
            self.messages.append("it was stopped before it began; nothing was charged")
        self.code, self.doing = code, ""
        return code

    def _hear(self, line: str) -> None:
        text = CONTROL.sub("", line).strip()
        if text.startswith("spdp: "):
            self.messages.append(text.removeprefix("spdp: ")[:KEPT])
        elif text:
            self.doing = text[:KEPT]

    def cancel(self) -> None:
        """Stop it as Ctrl-C does, once: it says what was charged before it ends."""
        if not self.stopped:
            self.stopped = True
            self._interrupt()

    def _interrupt(self) -> None:
        if self._process is None or not self.running:
            return
        if sys.platform == "win32":
            self._process.terminate()
        else:
            self._process.send_signal(SIGINT)
