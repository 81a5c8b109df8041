"""The wizard's server: on the loopback, behind the guard, until it is interrupted."""

import shlex
import socket
import warnings
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spdp.errors import DataError, ParameterError, need, reason
from spdp.wizard.guard import App, Guard, new_token
from spdp.wizard.jobs import Job, unfinished
from spdp.wizard.recipe import Recipe

HOST = "127.0.0.1"
STATIC = Path(__file__).parent / "static"


def application(folder: Path, recipe: Recipe, token: str, port: int) -> App:
    """The guarded application; its pages lie below the token."""
    need("shiny", "wizard", "the wizard", "Shiny")
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from spdp.wizard.session import app_of

    app: Any = Starlette(routes=[Mount(f"/{token}", app=app_of(folder, recipe))])
    return Guard(app, token, port)


def serve(
    folder: Path,
    recipe: Recipe,
    port: int = 0,
    tell: Callable[[str], None] = print,
    browser: bool = True,
) -> None:
    """Serve the page until it is interrupted; ``tell`` is told its address.

    It is also told of a release that was interrupted with it.
    """
    uvicorn = need("uvicorn", "wizard", "the wizard", "uvicorn")
    with _listening(port) as listener:
        port, token = listener.getsockname()[1], new_token()
        app = application(folder, recipe, token, port)
        quiet = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(app, timeout_graceful_shutdown=2, lifespan="off", **quiet)
        address = f"http://{HOST}:{port}/{token}/"
        tell(f"The wizard: {address}")
        tell("Keep this address to yourself. Ctrl-C ends the wizard.")
        if browser:
            webbrowser.open(address)
        # the page itself says which columns are not used, where it is seen
        warnings.filterwarnings("ignore", message=".* not used. If one of them holds subject ids")
        with suppress(KeyboardInterrupt):  # as it is ended; a job says itself what it cost
            uvicorn.Server(config).run(sockets=[listener])
        for job in unfinished():
            tell(f"A release was interrupted: {charged(job)}")


def charged(job: Job) -> str:
    """Where it is written what an interrupted release was charged."""
    words = list(job.words)
    if "--ledger" not in words:
        return "nothing was released."
    file = shlex.quote(words[words.index("--ledger") + 1])
    return f"spdp ledger history {file} says what was charged."


def _listening(port: int) -> socket.socket:
    """A socket of the loopback: nobody else on the network can reach it."""
    if not 0 <= port < 1 << 16:
        raise ParameterError(f"port must be from 0 to 65535, got {port}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((HOST, port))
        listener.listen()  # who follows the address before the server runs, waits
    except OSError as error:
        listener.close()
        raise DataError(f"port {port} cannot be used ({reason(error)})") from None
    return listener
