"""Whole journeys through the real page, in a browser: from a file to a release.

Every request is looked at: none leaves this machine. One journey is fast; the others,
at three widths, light and dark, are audits. Screenshots are kept where SPDP_SCREENSHOTS
says.
"""

import os
import re
import shutil
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spdp import Ledger, Release
from spdp.wizard.instruments import Signals
from spdp.wizard.recipe import Recipe

from .conftest import fill, wizard

pytest.importorskip("shiny", reason="the extra wizard is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if CHROMIUM is None:
    pytest.skip("there is no chromium", allow_module_level=True)

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 60_000  # milliseconds: machines that run tests are busy
LOOKS = [(360, "light"), (768, "dark"), (1280, "light"), (1280, "dark"), (360, "dark")]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A visit of the page, and what is wrong with it."""

    def __init__(self, page, name):
        self.page, self.name, self.step, self.asked = page, name, "records", []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def fill(self, **fields):
        for name, value in fields.items():
            self.page.fill(f"#{name}", value)

    def choose(self, name, value):
        self.page.check(f'input[name="{name}"][value="{value}"]')

    def pick(self, name, value):
        self.page.wait_for_selector(f'#{name} option[value="{value}"]', state="attached")
        self.page.select_option(f"#{name}", value)

    def see(self, text, where="main section:not([hidden])"):
        self.page.locator(where).get_by_text(text).first.wait_for()

    def next(self, name):
        """To a later step, by its own button; each step is photographed."""
        self.look()
        self.page.click(f"#step-{self.step} .between .strong")
        self.page.wait_for_selector(f"#step-{name}:not([hidden])")
        self.step = name

    def look(self):
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{self.step} scrolls sideways by {wide} pixels"
        folder = os.environ.get("SPDP_SCREENSHOTS")
        if folder:
            file = Path(folder) / f"{self.name}-{self.step}.png"
            self.page.screenshot(path=file, full_page=True)

    def examine(self):
        """No serious finding of axe-core in this step."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        found = axe.run(self.page).response["violations"]
        grave = [f for f in found if f["impact"] in ("serious", "critical")]
        told = [(f["id"], [node["html"][:90] for node in f["nodes"][:3]]) for f in grave]
        assert not told, f"{self.step}: {told}"

    def released(self):
        self.page.click("#go")
        self.page.wait_for_selector("#step-results iframe")
        self.step = "results"
        self.look()


@pytest.fixture
def visit(browser, tmp_path):
    """A visit in a folder of its own; afterwards no request has left this machine."""
    contexts, made = [], []
    fill(tmp_path)
    with wizard(tmp_path) as address:

        def begin(name, width=1280, scheme="light"):
            size = {"width": width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            contexts.append(context)
            made.append(Visit(context.new_page(), f"{name}-{width}-{scheme}"))
            made[-1].page.goto(address)
            made[-1].page.wait_for_function("window.Shiny && Shiny.shinyapp.isConnected()")
            return made[-1]

        yield begin
        for one in made:
            hosts = {urlsplit(url).netloc for url in one.asked if not url.startswith("data:")}
            assert hosts == {urlsplit(address).netloc}
            assert one.errors == []
        for context in contexts:
            context.close()


def to_privacy(v, **records):
    """The first three steps, for records that need no more than a file's name."""
    v.fill(file=records["file"])
    v.choose("whose", records.get("whose", "record"))
    for name, value in records.get("picks", {}).items():
        v.pick(name, value)
    v.see("Found", "#seen")
    if "n" in records:
        v.fill(n=records["n"])
    v.next("instrument")
    v.choose("instrument", records["instrument"])
    v.fill(**records.get("settings", {}))
    v.see("radius", "#domain")
    v.next("statistic")


def to_ledger(v, solve=True):
    v.next("privacy")
    if solve:
        v.choose("mode", "accuracy")
    v.page.wait_for_selector("svg.curve")
    v.see("expect an")
    v.next("rehearsal")
    v.page.click("#rehearse")
    v.page.wait_for_selector("#rehearsed iframe")
    v.see("Simulation, not a release")
    v.next("ledger")


def pay(v):
    v.page.click("#create")
    v.see("Created study.ledger")
    v.see("is spent")
    v.next("release")
    v.see("The same as one command")


def zipped(v, folder):
    with v.page.expect_download() as waiting:
        v.page.click("#zip")
    waiting.value.save_as(folder / "release.zip")
    with zipfile.ZipFile(folder / "release.zip") as packed:
        packed.extractall(folder / "zip")
    return folder / "zip"


def test_a_journey_from_a_file_to_a_release(visit, tmp_path):
    """Tensors, one per person, ε solved for the diffusivity; back and forth."""
    v = visit("tensors")
    to_privacy(v, file="tensors.npy", instrument="diffusion")
    v.page.click("#to-records")
    v.page.wait_for_selector("#step-records:not([hidden])")
    assert v.page.input_value("#file") == "tensors.npy"
    assert v.page.input_value("#n") == "1728"
    v.page.click("#to-statistic")
    v.page.wait_for_selector("#step-statistic:not([hidden])")
    to_ledger(v)
    assert v.page.input_value("#within") == "5"
    assert not (tmp_path / "published").exists()
    pay(v)
    v.released()
    c = Release.load(tmp_path / "published").certificate
    assert (c["private"], c["n"], c["domain"]["low"]) == (True, 1728, 1e-5)
    assert all(check.ok for check in Release.load(tmp_path / "published").verify())
    (entry,) = Ledger(tmp_path / "study.ledger").history()
    assert entry["state"] == "done"
    folder = zipped(v, tmp_path)
    plan = Recipe.load(folder / "plan.yaml")
    assert (plan.epsilon, plan.wanted.term) == (c["epsilon"], "diffusivity")
    v.examine()


@pytest.mark.audit
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_voxels_of_an_image(visit, tmp_path, width, scheme):
    v = visit("voxels", width, scheme)
    v.fill(file="tensors.nii.gz")
    v.page.wait_for_selector("#some-image:not([hidden])")
    v.examine()
    to_privacy(
        v,
        file="tensors.nii.gz",
        whose="voxel",
        picks={"order": "nifti"},
        instrument="diffusion",
    )
    v.examine()
    to_ledger(v)
    v.examine()
    pay(v)
    v.examine()
    v.released()
    v.examine()
    assert Release.load(tmp_path / "published").certificate["unit"] == "voxel"


@pytest.mark.audit
@pytest.mark.parametrize(("width", "scheme"), LOOKS[:3])
def test_eeg_with_persons_from_a_table(visit, tmp_path, width, scheme):
    v = visit("eeg", width, scheme)
    v.fill(file="eeg.csv")
    v.choose("whose", "column")
    to_privacy(
        v,
        file="eeg.csv",
        whose="column",
        picks={"groups_column": "subject"},
        n="600",
        instrument="signals",
    )
    to_ledger(v)
    v.examine()
    pay(v)
    v.released()
    c = Release.load(tmp_path / "published").certificate
    assert (c["unit"], c["n"]) == ("person", 600)
    folder = zipped(v, tmp_path)
    text = (folder / "command.txt").read_text("utf-8")
    assert "--groups-column subject" in text
    assert "'groups_column': 'subject'" not in (folder / "release.py").read_text("utf-8")


@pytest.mark.audit
@pytest.mark.parametrize(("width", "scheme"), LOOKS[1:4])
def test_class_means(visit, tmp_path, width, scheme):
    v = visit("classes", width, scheme)
    to_privacy(
        v, file="groups.npy", instrument="other", settings={"other_low": "0.5", "other_high": "2"}
    )
    v.choose("statistic", "class-means")
    v.page.click("#step-statistic .between .strong")
    v.see("needs classes", "#problem_statistic")  # it stays until they are named
    v.fill(classes="a, b", labels="labels.txt")
    to_ledger(v, solve=False)
    pay(v)
    v.released()
    release = Release.load(tmp_path / "published")
    assert release.values["means"].shape == (2, 3, 3)


@pytest.mark.audit
@pytest.mark.parametrize(("width", "scheme"), LOOKS[:3])
def test_a_hopeless_release_is_foreseen_and_refused_at_no_cost(visit, tmp_path, width, scheme):
    v = visit("hopeless", width, scheme)
    to_privacy(
        v,
        file="few.npy",
        instrument="signals",
        settings={"signals_low": "0.5", "signals_high": "50"},
    )
    v.next("privacy")
    v.choose("mode", "epsilon")
    v.fill(epsilon="0.5")
    v.see("would be refused, at no cost")
    v.examine()
    v.next("rehearsal")
    v.next("ledger")
    pay(v)
    v.page.click("#go")
    v.see("refused before any budget is spent")
    v.look()
    assert Ledger(tmp_path / "study.ledger").history() == []
    assert not (tmp_path / "published").exists()


@pytest.mark.audit
def test_a_connectome_by_keyboard_alone(visit, tmp_path):
    """Tab, arrows, Space, Enter and letters; no mouse."""
    v = visit("connectome")
    press, page = v.page.keyboard.press, v.page

    def to(name):
        for _ in range(60):
            press("Tab")
            found = "document.activeElement.id || document.activeElement.name"
            if page.evaluate(found) == name:
                return
        raise AssertionError(f"{name} cannot be reached by Tab")

    def onward(name):
        for _ in range(60):
            press("Tab")
            words = "document.activeElement.dataset.step + document.activeElement.className"
            if page.evaluate(words) == f"{name}strong":
                break
        press("Enter")
        page.wait_for_selector(f"#step-{name}:not([hidden])")
        assert page.evaluate("document.activeElement.id") == f"title-{name}"

    to("file")
    page.keyboard.type("connectomes.npy")
    v.see("Found 800 matrices, 6×6", "#seen")
    onward("instrument")
    to("instrument")
    for _ in range(3):  # whichever is chosen at first, until connectomes are
        if page.is_checked('input[name="instrument"][value="connectomes"]'):
            break
        press("ArrowDown")
    while not page.is_checked('input[name="instrument"][value="connectomes"]'):
        press("ArrowDown")
    v.see("off-log metric", "#domain")
    onward("statistic")
    onward("privacy")
    page.wait_for_selector("svg.curve")
    before = page.inner_html("#curves")
    to("epsilon_slider")
    for _ in range(10):
        press("ArrowRight")
    page.wait_for_function("old => document.getElementById('curves').innerHTML !== old", arg=before)
    onward("rehearsal")
    onward("ledger")
    to("ledger_mode")
    while not page.is_checked('input[name="ledger_mode"][value="none"]'):
        press("ArrowDown")
    onward("release")
    v.see("The same as one command")
    to("go")
    press("Enter")
    page.wait_for_selector("#step-results iframe")
    release = Release.load(tmp_path / "published")
    assert release.certificate["metric"] == "offlog"
    assert release.value.diagonal() == pytest.approx(1.0)


@pytest.mark.audit
def test_a_plan_that_was_saved_begins_where_it_ended(browser, tmp_path):
    """Every field of the page holds what the plan says, and saves the same plan."""
    fill(tmp_path)
    Ledger(tmp_path / "study.ledger", epsilon=3.0, delta=1e-5)
    plan = Recipe(
        files=("eeg.csv",),
        whose="column",
        groups_column="subject",
        k=4,
        n=600,
        instrument=Signals(0.4, 60.0),
        epsilon=0.7,
        delta=1e-7,
        spread="10%",
        ledger="study.ledger",
        label="first",
        output="out",
        on_invalid="center",
    )
    (tmp_path / "plan.yaml").write_text(plan.yaml(), "utf-8")
    with wizard(tmp_path, str(tmp_path / "plan.yaml")) as address:
        v = Visit(browser.new_page(), "resumed")
        v.page.goto(address)
        v.page.wait_for_function("window.Shiny && Shiny.shinyapp.isConnected()")
        v.see("Found", "#seen")
        v.page.click("#to-release")
        v.see("The same as one command")
        with v.page.expect_download() as waiting:
            v.page.click("#plan")
        waiting.value.save_as(tmp_path / "again.yaml")
        v.page.close()
    assert Recipe.load(tmp_path / "again.yaml") == plan


@pytest.mark.audit
def test_a_release_can_be_cancelled_and_says_what_it_cost(visit, tmp_path):
    (tmp_path / "slow.csv").write_text("c11,c12,c22\n" + "x,0,1\n" * 3_000_000)
    v = visit("cancelled")
    v.fill(file="slow.csv")
    v.pick("entries", "upper")
    v.choose("on_invalid", "center")
    to_privacy(
        v, file="slow.csv", instrument="other", settings={"other_low": "0.5", "other_high": "2"}
    )
    v.next("privacy")
    v.see("expect an")
    v.next("rehearsal")
    v.next("ledger")
    pay(v)
    v.page.click("#go")
    v.page.wait_for_selector("#stop:not([hidden])")
    v.page.wait_for_timeout(6000)
    v.page.click("#stop")
    v.see(re.compile("nothing was charged|was charged"), "#progress")
    assert not (tmp_path / "published").exists()


@pytest.mark.audit
def test_a_release_outlives_its_page_and_its_ledger(browser, tmp_path):
    """A ledger that it used up bars no way to results; a new page tells of it."""
    fill(tmp_path)
    with (
        (tmp_path / "messages.txt").open("w") as errors,
        wizard(tmp_path, errors=errors) as address,
    ):

        def begin():
            v = Visit(browser.new_page(), "outlived")
            v.page.goto(address)
            v.page.wait_for_function("window.Shiny && Shiny.shinyapp.isConnected()")
            return v

        v = begin()
        to_privacy(v, file="tensors.npy", instrument="diffusion")
        v.next("privacy")
        v.choose("mode", "epsilon")
        v.see("expect an")
        v.next("rehearsal")
        v.page.click("#rehearse")
        v.page.close()  # while it rehearses
        v = begin()
        v.fill(file="eeg.csv")
        v.see("says persons", "#seen")
        v.choose("whose", "record")
        v.pick("entries", "upper")
        v.see("The column subject is not used", "#seen")  # here, and not in the terminal
        to_privacy(v, file="tensors.npy", instrument="diffusion")
        v.next("privacy")
        v.choose("mode", "epsilon")
        v.see("expect an")
        v.next("rehearsal")
        v.next("ledger")
        v.fill(total_epsilon="1.01", total_delta="1e-6")
        pay(v)
        v.released()
        for step in ("ledger", "results", "ledger", "release"):
            v.page.click(f"#to-{step}")
            v.page.wait_for_selector(f"#step-{step}:not([hidden])")
        v.see("Released, and written to published", "#progress")
        v.page.close()
        v = begin()
        v.see("A release was finished before this page was opened", "#news")
        v.page.click("#to-results")
        v.page.wait_for_selector("#step-results iframe")
        assert (zipped(v, tmp_path) / "certificate.json").is_file()
        v.page.close()
    assert (tmp_path / "messages.txt").read_text() == ""


@pytest.mark.audit
@pytest.mark.parametrize("width", [360, 1280])
def test_persons_of_a_table_are_proposed_and_their_number_is_asked(visit, width):
    v = visit("persons", width)
    v.fill(file="eeg.csv")
    v.see("The name of the column subject says persons", "#seen")
    assert v.page.is_checked('input[name="whose"][value="column"]')
    assert v.page.input_value("#groups_column") == "subject"
    for wrong, why in (("", "is empty"), ("2.5", "not 2.5"), ("1201", "has 1,200 matrices")):
        v.fill(n=wrong)
        v.page.click("#step-records .between .strong")
        v.see(why, "#problem_records")
    v.choose("whose", "record")
    v.pick("entries", "upper")
    v.see("The column subject is not used", "#seen")
    v.examine()
    v.look()
