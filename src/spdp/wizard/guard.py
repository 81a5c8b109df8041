"""Nobody but the person who started the wizard gets in: one ASGI middleware.

*Enforced,* for every request and every websocket, before anything else sees it:

- The path begins with a random token, compared in constant time. It is not a cookie: a
  browser sends cookies of one port of a machine to all others, and along with requests
  that another site makes.
- ``Host`` is this server's own address, so that a foreign name that was made to point
  to the loopback (DNS rebinding) is refused.
- ``Origin``, where it is sent, is this server's own; a websocket must send it. Requests
  that the browser marks as made by another site are refused.
- Only GET and HEAD are answered: nothing is uploaded.
- Every answer forbids scripts, styles, frames and requests from anywhere else, storing,
  and telling the address to others.

*Assumed.* The server listens on the loopback only (:mod:`.server`), and the address is
kept to oneself: whoever reads it, or can act as the same user of the machine, gets in.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost")
TOKEN_BYTES = 32
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self' {sockets}; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFUSED = b"This page is for the person who started spdp wizard, by the address it printed.\n"


def new_token() -> str:
    """A token nobody can guess."""
    return token_urlsafe(TOKEN_BYTES)


class Guard:
    """The middleware, around the application that it guards."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = {f"{name}:{port}".encode() for name in LOOPBACK}
        sockets = " ".join(f"ws://{host.decode()}" for host in sorted(self.hosts))
        self.headers = [
            (b"content-security-policy", POLICY.format(sockets=sockets).encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif not self.admits(scope):
            await self._refuse(scope, receive, send)
        else:
            await self.app(scope, receive, self._marked(send))

    def admits(self, scope: Scope) -> bool:
        """Whether a request may pass: no header is trusted alone."""
        if scope["type"] not in ("http", "websocket"):
            return False
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            return False
        return self._by_token(scope) and self._from_here(scope)

    def _by_token(self, scope: Scope) -> bool:
        first = scope["path"].removeprefix("/").partition("/")[0]
        return compare_digest(first.encode("utf-8", "surrogateescape"), self.token)

    def _from_here(self, scope: Scope) -> bool:
        hosts, origins, sites = (
            [value for name, value in scope["headers"] if name == wanted]
            for wanted in (b"host", b"origin", b"sec-fetch-site")
        )
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return False
        own = b"http://" + hosts[0].lower()
        if scope["type"] == "websocket" and not origins:
            return False
        if any(origin.lower() != own for origin in origins):
            return False
        return all(site in (b"same-origin", b"none") for site in sites)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # before it is accepted: answered by 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [*self.headers, (b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": REFUSED})

    def _marked(self, send: Send) -> Send:
        """Answers with the guard's headers, in place of the application's own."""
        own = {name for name, _ in self.headers}

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in own]
                message = {**message, "headers": [*kept, *self.headers]}
            await send(message)

        return marked
