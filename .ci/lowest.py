"""The lowest permitted version of every dependency, as pip takes them.

    python .ci/lowest.py EXTRA...

prints requirements of the package and of these extras, each pinned to its floor; of two
floors of one package, the higher one.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]


def floors(extras):
    extra = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *(one for name in extras for one in extra[name])]
    for requirement in listed:
        inner = re.fullmatch(r"spdp\[(.*)\]", requirement)
        if inner:
            yield from floors(inner[1].split(","))
        else:
            yield requirement.replace(">=", "==")


def numbers(requirement):
    return [int(number) for number in re.findall(r"\d+", requirement.partition("==")[2])]


if __name__ == "__main__":
    highest = {one.partition("==")[0]: one for one in sorted(floors(sys.argv[1:]), key=numbers)}
    print("\n".join(sorted(highest.values())))
