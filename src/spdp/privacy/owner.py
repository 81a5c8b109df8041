"""Which process holds an entry of a ledger, and whether it is gone.

A process number means something only where it was given: on one host, since one boot,
in one pid namespace (a container has its own). Nothing can be said of numbers given
elsewhere. Here, a process is gone if its number is free, or belongs to a process that
started at another time.
"""

import os
import socket
from pathlib import Path
from typing import NamedTuple

__all__ = ["Owner"]


class Owner(NamedTuple):
    """A process: where its number was given, the number, and when it started."""

    origin: str
    pid: int
    started: int | None  # in clock ticks since the boot; None where it cannot be known

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(_origin(), os.getpid(), _started(os.getpid()))

    def is_gone(self) -> bool:
        """Whether the process has certainly ended."""
        if self.origin != _origin():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return self.started is not None and _started(self.pid) not in (self.started, None)


def _origin() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: no namespaces either
        boot = namespace = "-"
    return f"{socket.gethostname()} {boot} {namespace}"


def _started(pid: int) -> int | None:
    """Start time of a process; -1 for one that has ended and waits for its parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    state, *fields = text.rpartition(b")")[2].split()  # the name before may hold anything
    return -1 if state in (b"Z", b"X") else int(fields[18])
