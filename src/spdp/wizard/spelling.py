"""Messages of the command line in the words of the page: what can be done there."""

import re

from spdp.wizard.recipe import NAMES

HELPS = {
    "force": "choose another folder at the step Ledger",
    "anyway": "choose a larger ε, or count more persons",
    "report": "",
    "ledger_key": "set SPDP_LEDGER_KEY before the wizard is started",
}
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
OPTION = re.compile(r"--([a-z][a-z-]*)")
ELSEWHERE = re.compile(r" \((?:spdp plan|see spdp [^()]*--help)\)")


def on_the_page(message: str) -> str:
    """A message without options and commands of a terminal."""
    asks = ASKS.search(message)
    text = ELSEWHERE.sub("", message[: asks.start()] if asks else message)
    text = OPTION.sub(lambda found: _field(found[1]), text)
    names = OPTION.findall(asks[1]) if asks else []
    helps = [help_ for name in names if (help_ := _help(name))]
    return f"{text}: {' or '.join(helps)}" if helps else text


def _help(name: str) -> str:
    name = name.replace("-", "_")
    return HELPS[name] if name in HELPS else f"state {_field(name)}"


def _field(name: str) -> str:
    name = name.replace("-", "_")
    return FIELDS.get(name, name.replace("_", " "))
