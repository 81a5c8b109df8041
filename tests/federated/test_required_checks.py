"""Each check that a study needs, and each row of the table of threats, has a test.

The table is in ``required_checks.toml``. Each of its rows takes one check out of the
sources and names a test, which must then fail.
"""

import re
import tomllib
from pathlib import Path

import planting
import pytest

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("required_checks.toml").read_text("utf-8"))
ROWS = TABLE["check"] + TABLE["threat"]
NAMES = [f"{row.get('number') or row['who']}: {row['without']}" for row in ROWS]


def test_every_required_check_and_every_threat_has_a_row():
    assert {row["number"] for row in TABLE["check"]} == set(range(1, 22))
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.split("## Studies over sites")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", section, re.M)[1:]
    assert {row["who"] for row in TABLE["threat"]} == set(rows)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_every_row_names_a_test_and_the_lines_of_its_check(row):
    file, name = row["test"].split("::")
    assert f"def {name.split('[')[0]}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert row["changes"]
    for module, old, new in row["changes"]:
        assert old != new
        planting.planted(planting.file_of(module).read_text(encoding="utf-8"), old, new)


@pytest.fixture(scope="module")
def server():
    with planting.started() as process:
        yield process
        process.stdin.close()


@pytest.mark.audit
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_test_of_a_check_fails_without_it(row, server):
    code, output = planting.run(server, row["test"], row["changes"])
    assert code == 1, output
    assert re.search(r"^FAILED ", output, re.M), output
    assert not re.search(r"^ERROR ", output, re.M), output
