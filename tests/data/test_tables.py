"""Tables: a row is a record, and columns say whose it is."""

import csv
import pickle
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spdp import EigenvalueBounds, private_mean
from spdp.data import open_records
from spdp.data.batching import Block, records_of
from spdp.data.formats import csv as csv_format
from spdp.data.formats import parquet as parquet_format
from spdp.errors import DataError, DataWarning, InvalidMatrixError, ParameterError
from spdp.statistics.partial_sums import LatticeSum

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DOMAIN = EigenvalueBounds(0.01, 100.0)
FORMATS = ["csv", "parquet"]
PERSONS = {"groups_column": "who"}


@pytest.fixture
def X(random_spd):
    return random_spd(25, 3)


@pytest.fixture
def small_pieces(monkeypatch):
    """Blocks of four records."""
    for module in (csv_format, parquet_format):
        monkeypatch.setattr(module, "rows_per_block", lambda k, itemsize=8: 4)
    monkeypatch.setattr("spdp.data.formats.base.rows_per_block", lambda k, itemsize=8: 4)


def columns_of(X, upper=False):
    k = X.shape[1]
    places = [(i, j) for i in range(k) for j in range(i if upper else 0, k)]
    return {f"c{i}{j}": X[:, i, j] for i, j in places}


def write(path, columns, row_group_size=7):
    """A table of columns by name, in the format of the path's name."""
    if path.suffix.lower() == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
        return path
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        rows = zip(*(np.asarray(column, object) for column in columns.values()), strict=True)
        writer.writerows([_cell(value) for value in row] for row in rows)
    return path


def _cell(value):
    return "" if value is None else repr(float(value)) if isinstance(value, float) else value


def contents(source):
    blocks = list(source.blocks())
    return np.concatenate([records_of(block) for block in blocks]), blocks


def chunks_of(source):
    return [pickle.loads(pickle.dumps(chunk))() for chunk in source.chunks]


def refusal(path, kind=DataError, **options):
    with pytest.raises(kind) as refused:
        open_records(path, **options)
    return str(refused.value)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("suffix", [*FORMATS, "CSV"])
def test_tables_give_back_what_was_stored(tmp_path, X, small_pieces, suffix, upper):
    who = [f"p{i % 4}" for i in range(25)]
    site = ["north", "south"] * 12 + ["north"]
    path = tmp_path / f"a.{suffix}"
    write(path, {"who": who, **columns_of(X, upper), "site": site, "y": np.arange(25) % 3})
    form = "upper" if upper else "full"  # of a CSV, where the site might be an entry
    source = open_records(path, **PERSONS, label_column="y", entries=form)
    assert (source.n, source.k, source.columns) == (25, 3, ("person", "label"))
    assert source.unit == "person"
    for _ in range(2):
        records, blocks = contents(source)
        np.testing.assert_array_equal(records, X)
        assert len(blocks) > 3
    for pieces in (blocks, chunks_of(source)):
        np.testing.assert_array_equal(np.concatenate([b.records for b in pieces]), X)
        assert [v for b in pieces for v in b.columns["person"]] == who
        assert [v for b in pieces for v in b.columns["label"]] == [i % 3 for i in range(25)]
    assert source.sizes == [len(block) for block in chunks_of(source)]
    assert len(source.sizes) > 1


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_table_without_persons_is_records(tmp_path, X, suffix):
    source = open_records(write(tmp_path / f"a.{suffix}", columns_of(X)))
    assert not isinstance(next(source.blocks()), Block)
    assert source.unit == "record"
    assert LatticeSum.of(source, DOMAIN).n == 25


@pytest.mark.parametrize("suffix", FORMATS)
def test_labels_are_carried_and_a_mean_needs_none(tmp_path, X, suffix):
    path = write(tmp_path / f"a.{suffix}", {**columns_of(X), "y": ["a"] * 25})
    source = open_records(path, label_column="y")
    assert source.columns == ("label",)
    for method in ("oneshot", "adaptive"):
        release = private_mean(source, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method)
        assert release.certificate["unit"] == "record"


@pytest.mark.parametrize("suffix", FORMATS)
def test_ids_are_the_same_however_they_are_stored(tmp_path, X, suffix):
    """7, 7.0 and "7" are one person: else one would be protected as three."""
    kinds = [[7] * 25, ["7"] * 25, np.full(25, 7.0), pa.array(["7"] * 25).dictionary_encode()]
    for who in kinds[: 4 if suffix == "parquet" else 2]:
        path = write(tmp_path / f"a.{suffix}", {"who": who, **columns_of(X)})
        block = next(open_records(path, **PERSONS).blocks())
        assert set(block.columns["person"].tolist()) == {7}


def test_leading_zeros_are_part_of_an_id(tmp_path, X):
    path = write(tmp_path / "a.csv", {"who": ["007", "7"] * 12 + ["7"], **columns_of(X)})
    block = next(open_records(path, **PERSONS).blocks())
    assert set(block.columns["person"]) == {"007", 7}


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_values_are_invalid_records(tmp_path, X, suffix):
    """One of them is no error of the file, and changes no other record."""
    columns = {name: list(map(float, values)) for name, values in columns_of(X).items()}
    columns["c11"][5] = None
    source = open_records(write(tmp_path / f"a.{suffix}", columns))
    records, _ = contents(source)
    assert np.isnan(records[5, 1, 1])
    np.testing.assert_array_equal(np.delete(records, 5, 0), np.delete(X, 5, 0))
    with pytest.raises(InvalidMatrixError, match=r"matrix 5 is not finite: entry \(1, 1\)"):
        LatticeSum.of(source, DOMAIN)
    assert LatticeSum.of(source, DOMAIN, "center").n == 25


@pytest.mark.parametrize("text", ["oops", "1.2.3", "NA", "  ", "∞"])
def test_texts_in_place_of_numbers_are_invalid_records(tmp_path, X, text):
    columns = {name: list(map(float, values)) for name, values in columns_of(X).items()}
    columns["c00"] = np.array(columns["c00"], object)
    columns["c00"][5] = text
    records, _ = contents(open_records(write(tmp_path / "a.csv", columns)))
    assert np.isnan(records[5, 0, 0])
    np.testing.assert_array_equal(np.delete(records, 5, 0), np.delete(X, 5, 0))


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_persons_are_an_error(tmp_path, X, suffix):
    who = [*["a"] * 20, None, *["b"] * 4]
    path = write(tmp_path / f"a.{suffix}", {"who": who, **columns_of(X)})
    with pytest.raises(DataError, match="record 20 has no person"):
        LatticeSum.of(open_records(path, **PERSONS), DOMAIN, "center")


@pytest.mark.parametrize("suffix", FORMATS)
def test_which_columns_are_entries_is_never_guessed(tmp_path, random_spd, suffix):
    path = tmp_path / f"a.{suffix}"
    both = write(path, columns_of(random_spd(5, 6)))
    asked = refusal(both)
    assert "36 columns" in asked
    assert "whole matrices 6×6 (full) or upper triangles 8×8 (upper)" in asked
    assert asked.endswith("(pass entries=...)")
    assert open_records(both, entries="full").k == 6
    assert open_records(both, entries="upper").k == 8
    assert "must be 'full' or 'upper'" in refusal(both, ParameterError, entries="lower")
    write(path, dict.fromkeys(("age", "a", "b", "c", "d"), np.arange(5.0)))
    message = refusal(path)
    assert "5 columns of entries (age, a, b, c, d) are not k² entries" in message
    assert open_records(path, groups_column="age", entries="full").k == 2
    if suffix == "csv":  # neither names nor types say that all are numbers
        doubt = "(a, b, c, d) may be whole matrices 2×2 (full) or some that are no entries"
        assert doubt in refusal(path, groups_column="age")
    assert "no column 'sex'; its columns are age, a" in refusal(path, groups_column="sex")
    write(path, {"name": ["x"] * 5})
    assert "0 columns of entries (none)" in refusal(path, groups_column="name")
    write(path, {"one": np.arange(1.0, 6.0)})
    assert open_records(path).k == 1
    assert "are not upper" in refusal(both_of(path, random_spd), entries="upper")


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_id_that_is_forgotten_is_not_an_entry(tmp_path, X, suffix):
    """Nine entries and a number beside them would pass for a triangle of ten."""
    columns = {"who": np.arange(25), **columns_of(X)}
    path = write(tmp_path / f"a.{suffix}", columns)
    message = refusal(path)
    assert "10 columns of entries" in message
    assert "upper triangles 4×4 (upper) or whole matrices 3×3 (full) and others" in message
    assert message.endswith("(pass entries=... or groups_column=...)")
    assert open_records(path, **PERSONS).k == 3
    assert open_records(path, entries="upper").k == 4


def both_of(path, random_spd):
    return write(path, columns_of(random_spd(5, 2)))


def test_singles_stay_single(tmp_path, X):
    columns = {name: values.astype(np.float32) for name, values in columns_of(X).items()}
    source = open_records(write(tmp_path / "a.parquet", columns))
    assert next(source.blocks()).dtype == np.float32
    columns["c00"] = columns["c00"].astype(float)
    source = open_records(write(tmp_path / "a.parquet", columns))
    assert next(source.blocks()).dtype == np.float64


def test_row_groups_are_the_pieces(tmp_path, X, small_pieces):
    write(tmp_path / "a.parquet", columns_of(X), row_group_size=3)
    assert open_records(tmp_path / "a.parquet").sizes == [18, 7]
    write(tmp_path / "a.parquet", columns_of(X), row_group_size=25)
    source = open_records(tmp_path / "a.parquet")
    assert source.sizes == [25]
    assert [len(block) for block in source.blocks()][:2] == [4, 4]


def test_csv_lines_that_are_empty_are_no_records(tmp_path, X):
    path = write(tmp_path / "a.csv", columns_of(X))
    lines = path.read_text().splitlines()
    path.write_text("\ufeff" + "\r\n".join([*lines[:5], "", *lines[5:], "", ""]), "utf-8")
    source = open_records(path)
    assert source.n == 25
    np.testing.assert_array_equal(contents(source)[0], X)


def test_damaged_tables_are_named(tmp_path, X):
    good = write(tmp_path / "a.parquet", columns_of(X)).read_bytes()
    (tmp_path / "bad.parquet").write_bytes(good[: len(good) // 2])
    assert "bad.parquet: cannot be read" in refusal(tmp_path / "bad.parquet")
    path = write(tmp_path / "a.csv", columns_of(X))
    lines = path.read_text().splitlines()
    (tmp_path / "ragged.csv").write_text("\n".join([*lines, "1.0,2.0"]))
    with pytest.raises(InvalidMatrixError, match="matrix 25 is not finite"):
        LatticeSum.of(open_records(tmp_path / "ragged.csv"), DOMAIN)
    (tmp_path / "bare.csv").write_text("\n".join(lines[1:]))
    assert "bare.csv: its first line must name the columns" in refusal(tmp_path / "bare.csv")
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv: its first line must name" in refusal(tmp_path / "empty.csv")
    (tmp_path / "none.csv").write_text(lines[0] + "\n")
    assert open_records(tmp_path / "none.csv").n == 0
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    assert "binary.csv: " in refusal(tmp_path / "binary.csv")


def test_options_of_other_formats(tmp_path, X):
    write(tmp_path / "a.csv", columns_of(X))
    np.save(tmp_path / "a.npy", X)
    assert "key is for" in refusal(tmp_path / "a.csv", ParameterError, key="X")
    for option in ("groups_column", "label_column", "entries"):
        message = refusal(tmp_path / "a.npy", ParameterError, **{option: "full"})
        assert f"{option} is for tables, not for a.npy" in message


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_extras_are_asked_for_by_name(tmp_path, X, suffix, monkeypatch):
    path = write(tmp_path / f"a.{suffix}", columns_of(X))
    for name in ("pyarrow", "pyarrow.parquet", "pyarrow.csv", "pyarrow.types"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match=r"pip install 'spdp\[tables\]'"):
        list(open_records(path).blocks())


ODD_LINES = [
    b'"',
    b'"abc',
    b"\xff",
    b"1\r2",
    b"x" * 200_000,
    b"1,2,3,4,5,6,7",
    b'a"b"c',
    b"+1",
    b"",
]


@pytest.mark.parametrize("odd", ODD_LINES, ids=lambda odd: repr(odd[:8]))
def test_an_odd_line_of_a_csv_is_one_invalid_record(tmp_path, odd):
    """It neither swallows the next line nor makes an error of the file."""
    pytest.importorskip("pyarrow")
    lines = [b"%d.5,0,0,%d.25" % (i + 1, i + 1) for i in range(20)]
    plain, file = tmp_path / "plain.csv", tmp_path / "odd.csv"
    plain.write_bytes(b"\n".join([b"a,b,c,d", *lines]) + b"\n")
    lines[3] = b"1," + odd + b",0,1"
    file.write_bytes(b"\n".join([b"a,b,c,d", *lines]) + b"\n")
    (expected,), (found,) = (list(open_records(f, entries="full").blocks()) for f in (plain, file))
    keep = np.arange(20) != 3
    np.testing.assert_array_equal(found[keep], expected[keep])
    assert len(found) == 20


@pytest.mark.parametrize("separator", [";", "\t"])
def test_columns_are_separated_as_their_names_are(tmp_path, X, separator):
    """As the header says, whatever stands in a record."""
    path = write(tmp_path / "a.csv", {"who": ["a,b"] * 25, **columns_of(X)})
    text = path.read_text().replace('"a,b"', "@").replace(",", separator).replace("@", "a,b")
    path.write_text(text)
    source = open_records(path, **PERSONS)
    (block,) = list(source)
    np.testing.assert_array_equal(block.records, X)
    assert set(block.columns["person"]) == {"a,b"}
    decimal = tmp_path / "decimal.csv"
    decimal.write_text(text.replace(".", ","))
    with pytest.raises(InvalidMatrixError, match="decimal comma"):
        LatticeSum.of(open_records(decimal, **PERSONS), DOMAIN)


@pytest.mark.parametrize("suffix", FORMATS)
def test_entries_are_told_by_their_names(tmp_path, X, suffix):
    """Columns whose names differ in an index only, if it is said how many there are."""
    path = tmp_path / f"a.{suffix}"
    names = [f"D{a}{b}" for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")]
    upper = dict(zip(names, columns_of(X, upper=True).values(), strict=True))
    for more in (["age"], ["age", "dose"], ["age", "dose", "day"]):
        write(path, {"who": np.arange(25), **upper, **dict.fromkeys(more, np.arange(25.0))})
        (block,) = list(open_records(path, **PERSONS, entries="upper"))
        np.testing.assert_array_equal(block.records, X)
        asked = refusal(path, **PERSONS)
        assert asked.endswith(
            "upper triangles 3×3 (upper) and others; say which (pass entries=...)"
        )


@pytest.mark.parametrize("note", ["", "5", "x", "NA"])
def test_no_record_of_a_csv_says_what_its_columns_are(tmp_path, note):
    """One cell of an empty column made entries of it, for all records."""
    path = tmp_path / "a.csv"
    rows = ["2.0,0.1,2.0,"] * 500
    rows[300] += note
    path.write_text("\n".join(["c11,c12,c22,note", *rows]) + "\n")
    with pytest.warns(DataWarning, match="note not used"):
        (records,) = list(open_records(path, entries="upper"))
    np.testing.assert_array_equal(records, np.tile([[2.0, 0.1], [0.1, 2.0]], (500, 1, 1)))
    doubt = refusal(path)
    assert "may be whole matrices 2×2 (full) or upper triangles 2×2 (upper) and others" in doubt


def test_the_first_line_of_ids_is_no_header(tmp_path, X):
    """Ids without a header: their first line decides nothing for the others."""
    matrices = write(tmp_path / "a.csv", columns_of(X))
    (tmp_path / "ids.csv").write_text("\n".join(f"{i};{i}" for i in range(25)))
    (block,) = list(open_records(matrices, groups=tmp_path / "ids.csv"))
    assert block.columns["person"][3] == "3;3"
    named = tmp_path / "named.csv"
    named.write_text("id;who\n" + "\n".join(f"{i};p{i % 5}" for i in range(25)))
    (block,) = list(open_records(matrices, groups=named, groups_column="who"))
    assert block.columns["person"][7] == "p2"


@pytest.mark.parametrize(
    "names", ["path,subject", "file;participant_id", "Path,Person", "path,age"]
)
def test_a_manifest_is_told_how_its_header_is_spelt(tmp_path, names):
    path = tmp_path / "study.csv"
    separator = ";" if ";" in names else ","
    path.write_text(f"{names}\na.npy{separator}1\nb.npy{separator}2\n")
    message = refusal(path)
    assert "a manifest, has columns path and person, and if wanted label and mask" in message
    assert f"the columns here are {', '.join(names.replace(';', ',').split(','))}" in message


def test_a_manifest_may_have_semicolons(tmp_path, X):
    np.save(tmp_path / "a.npy", X)
    path = tmp_path / "study.csv"
    path.write_text("path;person\na.npy;7\n")
    (block,) = list(open_records(path))
    assert set(block.columns["person"]) == {7}


# --- a line of a CSV is read as it is alone

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
    columns = zip(*(b.columns[name] for name in source.columns for b in blocks), strict=True)
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
