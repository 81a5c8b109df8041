"""Messages of the command line in the words of the page: what can be done there."""

import re

from spdp.wizard.recipe import HELPS, NAMES

FIELDS = NAMES | {
    "names": "names of the rows",
    "output": "the folder for the release",
    "ledger": "the ledger’s file",
    "label": "the name of this release",
    "eigenvalues": "the limits of eigenvalues",
    "correlation": "the shrinkage",
    "groups_column": "the column of the persons",
    "labels": "the file of classes",
    "on_invalid": "“If a record is no positive definite matrix”",
    "unit": "“Whose are they?”",
    "per_file": "“Each file is one person’s”",
}
ASKS = re.compile(r" \((?:pass |set )([^()]*)\)\.?$")
GROUPS = ("name it as groups", "say so at the first step")
OPTION = re.compile(r"--([a-z][a-z-]*)")
ELSEWHERE = re.compile(r" \((?:spdp plan|see spdp [^()]*--help)\)")


def on_the_page(message: str) -> str:
    """A message without options and commands of a terminal."""
    asks = ASKS.search(message)
    text = ELSEWHERE.sub("", message[: asks.start()] if asks else message)
    text = OPTION.sub(lambda found: _field(found[1]), text).replace(*GROUPS)
    names = OPTION.findall(asks[1]) if asks else []
    helps = [_help(name) for name in names]
    return f"{text}: {' or '.join(helps)}" if helps else text


def _help(name: str) -> str:
    return HELPS.get(name.replace("-", "_")) or f"state {_field(name)}"


def _field(name: str) -> str:
    name = name.replace("-", "_")
    return FIELDS.get(name, name.replace("_", " "))
