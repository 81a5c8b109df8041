"""The zip of a release: its files, and how it was made."""

import io
import zipfile
from pathlib import Path

import msgspec

from spdp.release import CERTIFICATE, REPORT, Release
from spdp.wizard.recipe import Recipe
from spdp.wizard.writing import AGAIN, notebook, script, shell

README = """\
{names} and certificate.json   the release: publish these
report.html                    a page about it: publish it, too
deployment.yaml, hazards.md,   what registries and boards ask, to be completed
dataset.jsonld, CITATION.cff
plan.yaml                      what was entered; `spdp run plan.yaml` asks for it again
command.txt                    the same as one command
release.py, release.ipynb      the same as a Python script, and as a notebook; their page
                               does not show the ledger's entry and its balance

{again} Each of the four writes to a folder of its own, and names
the files that the wizard was given, as seen from the folder in which it was started:
look at them before you hand them on. `spdp verify` checks the release.
"""


def bundle(folder: str | Path, recipe: Recipe) -> bytes:
    """A zip of the release in a folder, and of all that makes it again."""
    release = Release.load(folder)
    arrays = [f"{name}.npy" for name in release.values]
    files = {name: (Path(folder) / name).read_bytes() for name in [*arrays, CERTIFICATE]}
    page = Path(folder) / REPORT
    if page.is_file():
        files[REPORT] = page.read_bytes()
    again = {way: _beside(recipe, way) for way in ("plan", "command", "script", "notebook")}
    texts = {
        "plan.yaml": again["plan"].yaml(),
        "command.txt": f"# {AGAIN}\n{shell(again['command'])}\n",
        "release.py": script(again["script"]),
        "release.ipynb": notebook(again["notebook"]),
        **disclosed(release),
        "README.txt": README.format(names=", ".join(arrays), again=AGAIN),
    }
    files |= {name: text.encode() for name, text in texts.items()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def disclosed(release: Release) -> dict[str, str]:
    """What registries and boards ask of a private release; nothing of a simulation."""
    return release.disclosure().texts if release.certificate["private"] else {}


def _beside(recipe: Recipe, way: str) -> Recipe:
    """The recipe with a folder of its own: no release is overwritten."""
    return msgspec.structs.replace(recipe, output=f"{recipe.output}-{way}")
