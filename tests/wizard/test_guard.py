"""Real requests against the real server: nobody gets in without its address."""

import base64
import http.client
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from urllib.parse import urlsplit

import pytest

pytest.importorskip("shiny", reason="the extra wizard is not installed")


@pytest.fixture
def ask(address):
    """Status and headers of a request; ``ours`` stands for the wizard's own path."""
    parts = urlsplit(address)

    def call(path="", method="GET", host=None, token=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=20)
        whole = f"/{token}/{path}" if token is not None else parts.path + path
        connection.putrequest(method, whole, skip_host=True)
        connection.putheader("Host", host or parts.netloc)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    call.netloc, call.port = parts.netloc, parts.port
    return call


def shake(ask, **headers):
    """A websocket's handshake; 101 is success."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    return ask("websocket/", Sec_WebSocket_Key=key, **upgrade, **headers)[0]


def test_the_address_that_was_printed_opens_the_page(ask):
    status, _, body = ask()
    assert status == 200
    assert b"spdp wizard" in body


@pytest.mark.parametrize(
    "token", ["", "x", "x" * 43, "static", "..", "%2e%2e", "\u00e4".encode().hex()]
)
def test_a_wrong_token_opens_nothing(ask, token):
    status, _, body = ask(token=token)
    assert status == 403
    assert b"<html" not in body


def test_part_of_the_token_opens_nothing(ask, address):
    token = urlsplit(address).path.strip("/")
    for wrong in (token[:-1], token + "A", token[:-1] + ("A" if token[-1] != "A" else "B")):
        assert ask(token=wrong)[0] == 403
        assert ask("static/wizard.js", token=wrong)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}"]
)
def test_a_foreign_host_is_refused_even_with_the_token(ask, host):
    """DNS rebinding: a foreign name that was made to point to the loopback."""
    assert ask(host=host.format(port=ask.port))[0] == 403


def test_localhost_is_this_machine(ask):
    assert ask(host=f"localhost:{ask.port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_a_foreign_origin_is_refused(ask, origin):
    assert ask(Origin=origin.format(port=ask.port))[0] == 403
    assert shake(ask, Origin=origin.format(port=ask.port)) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_asks_for_is_refused(ask, site):
    assert ask(Sec_Fetch_Site=site)[0] == 403


def test_a_websocket_needs_token_host_and_origin(ask):
    own = f"http://{ask.netloc}"
    assert shake(ask) == 403  # no browser leaves its origin out
    assert shake(ask, Origin=own, host="evil.example") == 403
    assert shake(ask, Origin=own, token="x" * 43) == 403
    assert shake(ask, Origin=own) == 101


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_is_uploaded(ask, method):
    assert ask(method=method, Content_Length="0")[0] == 403


def test_every_answer_forbids_requests_to_other_hosts(ask):
    for path in ("", "static/wizard.js", "absent"):
        _, headers, _ = ask(path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        hosts = {word for word in policy.split() if "://" in word}
        assert {host.rstrip(";").split("//")[1] for host in hosts} == {
            f"127.0.0.1:{ask.port}",
            f"localhost:{ask.port}",
        }
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_the_page_names_no_other_host(ask):
    body = ask()[2].decode()
    assert "//" not in body.replace("<!--", "").replace("http://www.w3.org", "").split("<style>")[0]


def test_nobody_else_on_the_network_reaches_it(ask):
    """It listens on 127.0.0.1 alone, on no other address of this machine."""
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError):
            other.connect(("127.0.0.2", ask.port))


def test_ctrl_c_ends_the_wizard_and_says_nothing_of_charges(studies):
    command = [sys.executable, "-m", "spdp", "wizard", "--no-browser", "--folder", str(studies)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        assert urllib.request.urlopen(url).status == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_tokens_are_not_repeated(address, studies):
    from .conftest import wizard

    with wizard(studies) as other:
        assert urlsplit(other).path != urlsplit(address).path
    assert len(urlsplit(address).path.strip("/")) >= 43
