"""Notebooks run from their first cell to their last, in a kernel of their own."""

import os
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.name)
def executed(request, tmp_path_factory):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(request.param, as_version=4)
    where = tmp_path_factory.mktemp("notebook")
    settings = {"IPYTHONDIR": where / "ipython", "JUPYTER_RUNTIME_DIR": where / "runtime"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, os.fspath(value))
        client = nbclient.NotebookClient(
            notebook, timeout=300, resources={"metadata": {"path": where}}
        )
        client.execute()
    return notebook


def outputs(notebook, kind):
    """All outputs of a MIME type."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"][kind] for output in found if kind in output.get("data", {})]


def test_they_run_and_are_kept_without_outputs(executed):
    assert all(cell.execution_count for cell in executed.cells if cell.cell_type == "code")
    nbformat = pytest.importorskip("nbformat")
    for path in NOTEBOOKS:
        kept = nbformat.read(path, as_version=4)
        nbformat.validate(kept)
        assert not any(cell.get("outputs") for cell in kept.cells)


def test_releases_ledgers_and_plans_show_themselves(executed):
    cards = outputs(executed, "text/html")
    for title in ("Plan: 1,797 records", "Private mean of 9×9 matrices", "Ledger digits.ledger"):
        assert any(title in card for card in cards), title
    assert len(outputs(executed, "image/png")) == 2
    (ledger,) = [card for card in cards if "Ledger digits" in card]
    assert "two digits" in ledger
    assert "True" in outputs(executed, "text/plain")[-1]


def test_long_work_shows_a_bar_below_its_cell(tmp_path):
    """A bar that is gone when the work is done."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    work = (
        "from spdp.data import progress\n"
        "import time\n"
        "progress.PATIENCE = 0.01\n"
        "with progress.track('adding up', 4) as advance:\n"
        "    for _ in range(4):\n"
        "        time.sleep(0.2)\n"
        "        advance(1)\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(work)])
    seen = []

    class Watching(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            if message["msg_type"] == "stream":
                seen.append(message["content"]["text"])
            return super().process_message(message, cell, index)

    Watching(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    assert any("adding up:  50%" in text and "2.00/4.00" in text for text in seen)
    assert "".join(seen).rpartition("\r")[0].rpartition("\r")[2].strip() == ""  # wiped
