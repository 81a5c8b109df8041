"""The site builds, its code runs, its links resolve, and a browser finds no fault."""

import fcntl
import html
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from spdp.cli import COMMANDS
from spdp.statistics import STATISTICS

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("inspect_pages.js")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
]
pytest.importorskip("sphinx", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without its gallery, built once for all workers of a test run."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "site"
    with open(shared / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site.built").exists():
            _build(folder, shared)
            (shared / "site.built").touch()
    return folder


def _build(folder, scratch):
    docs = scratch / "docs"  # a copy, so that what is generated does not land in the tree
    ignored = shutil.ignore_patterns("generated", "gallery", "_results", "__pycache__")
    for name in ("docs", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, scratch / name, ignore=ignored, dirs_exist_ok=True)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"):
        shutil.copy(ROOT / name, scratch / name)
    command = [sys.executable, "-m", "sphinx", "-W", "-j", "auto", "--keep-going", "-q"]
    done = subprocess.run(
        [*command, "-b", "html", "-d", str(scratch / "doctrees"), str(docs), str(folder)],
        env={**os.environ, "SPDP_DOCS_QUICK": "1"},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr


class Page(HTMLParser):
    """Links, anchors, pictures and headings of a page."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors, self.images, self.loads, self.titles = [], set(), [], [], 0
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.add(values.get("id"))
        self.titles += tag == "h1"
        if tag == "a":
            self.links.append(values.get("href", ""))
        if tag == "img":
            self.images.append(values)
        if tag in ("img", "script", "link", "iframe", "source"):
            self.loads.append(values.get("src") or values.get("href") or "")


@pytest.fixture(scope="module")
def pages(site):
    return {file: Page(file) for file in site.rglob("*.html")}


CODE = re.compile(r"(?<!-->\n)^```(?:python|console)$", re.MULTILINE)


def test_tutorials_and_how_tos_show_results(site):
    pages = [
        page for kind in ("tutorials", "howto") for page in (ROOT / "docs" / kind).glob("*.md")
    ]
    with_code = [page for page in pages if CODE.search(page.read_text("utf-8"))]
    assert len(with_code) >= 12
    for page in with_code:
        built = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert 'class="result' in built.read_text("utf-8"), page.name


def _is_broken(link, file, pages, site):
    parts = urlsplit(link)
    if parts.scheme or link in ("", "#"):
        return False
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target not in pages:
        return not target.exists()
    return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].anchors


def test_links_and_anchors_resolve(site, pages):
    broken = [
        f"{file.relative_to(site)}: {link}"
        for file, page in pages.items()
        for link in page.links
        if _is_broken(link, file, pages, site)
    ]
    assert not broken
    index = site / "index.html"
    assert _is_broken("nowhere.html", index, pages, site)
    assert _is_broken("install.html#nowhere", index, pages, site)


def test_nothing_is_loaded_from_elsewhere(pages):
    loads = {load for page in pages.values() for load in page.loads}
    assert loads
    assert not [load for load in loads if urlsplit(load).netloc]


def test_pictures_have_alt_texts_and_pages_a_title(site, pages):
    for file, page in pages.items():
        assert page.titles == 1 or file.name == "search.html", file
        for image in page.images:
            assert image.get("alt", "").strip(), (file, image)


def test_every_public_name_has_a_page(site):
    import spdp
    from spdp import descriptors, distributions, errors, geometry, learn, privacy

    reference = (site / "api" / "index.html").read_text("utf-8")
    modules = (geometry, learn, privacy, distributions)
    names = {name for module in modules for name in module.__all__}
    names |= {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__name__ == name and not name.startswith("_")
        if issubclass(kind, Exception)  # and no older name of one
    }
    names |= set(spdp.__all__) - {"__version__"} | {"covariance_descriptors", "open_records"}
    assert "CovarianceDescriptors" in descriptors.__all__
    missing = {
        name for name in names if not re.search(rf"generated/[\w.]*\b{name}\.html", reference)
    }
    assert not missing


def test_every_command_is_on_the_page(site):
    page = html.unescape((site / "cli.html").read_text("utf-8"))
    for command in (*COMMANDS, "ledger create", *(f"stats {name}" for name in STATISTICS)):
        assert f"Usage: spdp {command}" in page or command == "stats mean"
    assert page.count("--epsilon") > len(STATISTICS)  # their options, too


class Server(SimpleHTTPRequestHandler):
    """Serves a folder and, beside its files, the page that looks at them."""

    def __init__(self, *rest, look, **others):
        self.look = look.encode()
        super().__init__(*rest, **others)

    def do_GET(self):
        if self.path != "/look":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.look)

    def log_message(self, *_):
        pass


@contextmanager
def served(folder, look):
    handler = partial(Server, look=look, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/look"
        server.shutdown()


def look_at(pages, folder, tmp_path):
    """What a browser finds wrong with pages, on a light phone and a dark desktop."""
    task = json.dumps({"pages": pages, "looks": [[360, "light"], [1280, "dark"]]})
    look = (
        f'<!doctype html><body><script type="application/json" id="task">{task}</script>'
        f'<pre id="faults"></pre><script>{SCRIPT.read_text("utf-8")}</script></body>'
    )
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command += ["--window-size=1400,900", "--virtual-time-budget=100000", "--timeout=300000"]
    with served(folder, look) as address:
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=400)
    answer = re.search(r'<pre id="faults">(.+?)</pre>', done.stdout, re.DOTALL)
    assert answer, done.stderr
    return json.loads(html.unescape(answer[1]))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_browser_finds_no_fault(site, tmp_path):
    generated = sorted((site / "api" / "generated").glob("*.html"))
    skipped = {*generated[4:], site / "genindex.html", site / "search.html"}
    pages = [str(f.relative_to(site)) for f in sorted(site.rglob("*.html")) if f not in skipped]
    assert len(pages) > 30
    assert look_at(pages, site, tmp_path) == {}


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_browser_finds_faults_that_are_there(tmp_path):
    bad = '<!doctype html><body style="color: #999; background: #fff"><img src="none.png">'
    bad += '<p style="width: 500px">text</p>'
    bad += '<div><a href="#" style="display: block; width: 9px; height: 9px">x</a></div>'
    bad += '<pre style="overflow: hidden; width: 50px">a line that is too long</pre></body>'
    (tmp_path / "bad.html").write_text(bad)
    found = look_at(["bad.html"], tmp_path, tmp_path)
    words = " ".join(found["bad.html at 360 pixels, light"])
    for fault in ("scrolls sideways", "no alt text", "not shown", "contrast 2.85", "no theme"):
        assert fault in words
    assert "small target 9x9" in words
    assert "code is cut off" in words
