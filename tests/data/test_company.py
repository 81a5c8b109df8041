"""What is read of a record, a label or an id is what is read of it alone."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spdp.blocks import records_of
from spdp.data import open_records

HEADER = b"c1,c2,c3,who,note,site"
PLAIN = b"2.0,0.1,2.0,p,fine,north"
ODD = [b"2.0,x,2.0,p,fine,north", b'2.0,0.1,2.0,p,"a"b,north', b"2.0,0.1\r,2.0,p,fine,north"]
CELLS = [
    *(b"1.5", b" 1.5 ", b"+1", b"1_0", b"1e400", b"0x10", b"nan", b"nan(1)", b"inf", b"-Infinity"),
    *(b"", b" ", b"NA", b" NA", b"\xc2\xa0NA", b"null ", b"n/a", b"\xe9", b"Jos\xe9", b"\xe2\x82"),
    *(b"\xff\xfe", b"\x00", b"a\x0bb", b"\xe2\x80\xa8", b'"', b'"a', b'a"b', b'"a"b', b'"a,b"'),
    *(b"\r", b"1\r2", b"u" * 140_000, b"1,2", b"\t", b"\xd9\xa1", b"true"),
]


def read_csv(path, lines, separator=b",", **options):
    path.write_bytes(b"\n".join(line.replace(b",", separator) for line in lines) + b"\n")
    source = open_records(path, entries="upper", **options)
    blocks = list(source.blocks())
    columns = zip(*(b.beside[name] for name in source.columns for b in blocks), strict=True)
    records = np.concatenate([records_of(block) for block in blocks])
    assert len(records) == source.n
    return list(zip(map(repr, records.tolist()), columns, strict=True))


@pytest.mark.parametrize("separator", [b",", b"\t"])
@settings(max_examples=150)
@given(st.lists(st.lists(st.sampled_from(CELLS), min_size=6, max_size=6), min_size=1, max_size=4))
@example([[b""] * 6])
def test_a_line_of_a_csv_in_company_is_that_line_alone(tmp_path_factory, separator, cells):
    """Whatever path a block takes; labels are missing, or texts, by themselves."""
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [b",".join([*row[:3], b"p", *row[4:]]) for row in cells]
    options = {"separator": separator, "groups_column": "who", "label_column": "site"}
    usual = [PLAIN] * 20  # so that what the columns hold is plain
    expected = []
    for line in lines:
        expected += read_csv(path, [HEADER, *usual, line], **options)[20:]
    assert len(expected) == len(lines)
    for odd in ODD:
        together = read_csv(path, [HEADER, *usual, *lines, odd], **options)
        assert together[20:-1] == expected


def test_an_odd_line_changes_no_other(tmp_path):
    """400 records whose name is no UTF-8, in a column that nobody uses."""
    options = {"groups_column": "who", "label_column": "site"}
    usual = [HEADER, *[b"2.0,0.1,2.0,p,Jos\xe9,north"] * 400, PLAIN]
    before = read_csv(tmp_path / "t.csv", usual, **options)
    after = read_csv(tmp_path / "t.csv", [*usual[:-1], ODD[0]], **options)
    assert before[:400] == after[:400]
    assert "nan" not in before[0][0]
