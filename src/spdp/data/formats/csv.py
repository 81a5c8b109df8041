"""CSV tables, ``.csv``, with a header line: parsed by Arrow (extra ``tables``).

The header determines the separator. Column names and options, and no record, determine
which columns are entries.

Opening counts the lines, so that every piece can be read on its own. A line is a
record: a quoted line break does not join two lines. Only an empty line is skipped; in a
table of one column it is a missing cell.

*Enforced.* What becomes of a line depends on that line alone. Arrow reads blocks that
it can parse, all others are read line by line, with the same result: a line is split at
its separators, bytes that are not UTF-8 are replaced, a cell that is not a number is a
missing one, and cells that are not used are not read.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from spdp.data.formats.base import Options, need
from spdp.data.formats.tables import Table, block_of
from spdp.data.source import rows_per_block
from spdp.errors import DataError

SEPARATORS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


def lines(file: Path, separator: str | None = None) -> Iterator[list[str]]:
    """The cells of each line, the header's first; it determines the separator.

    A quote that is not closed does not reach into the next line.
    """
    separator = separator or _separator(file)
    data = file.read_bytes().removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n")
    for line in data.split(b"\n"):
        text = line.decode("utf-8", "replace").rstrip("\r")
        yield _split(text, separator) if text else []


def _separator(file: Path) -> str:
    """The separator that splits the header into most names; a comma in a tie."""
    first = _first(file)
    return max(SEPARATORS, key=lambda s: len(next(csv.reader([first], delimiter=s), [])))


def _first(file: Path) -> str:
    """The first line, which names the columns; no other line is read."""
    with file.open("rb") as stream:
        return stream.readline().decode("utf-8-sig")


def header(file: Path) -> list[str]:
    """Names of the columns."""
    first = _first(file)
    return [name.strip() for name in next(csv.reader([first], delimiter=_separator(file)), [])]


def open(file: Path, options: Options) -> Table:
    """Layout of the table."""
    names = header(file)
    if not names or any(_is_number(name) or not name.isprintable() for name in names):
        first = ", ".join(map(repr, names[:3])) or "nothing"
        raise DataError(f"{file}: its first line must name the columns, found {first}")
    layout = Table.of(file, names, None, options)
    unit = rows_per_block(layout.k)
    offsets, n = _offsets(file, unit, len(names))
    return replace(layout, n=n, unit=unit, offsets=offsets)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _offsets(file: Path, unit: int, columns: int) -> tuple[tuple[int, ...], int]:
    """Where every ``unit``-th record begins, and the file ends; number of records."""
    offsets: list[int] = []
    position = n = 0
    with file.open("rb") as stream:
        for i, line in enumerate(stream):
            if i > 0 and _is_record(line, columns):
                if n % unit == 0:
                    offsets.append(position)
                n += 1
            position += len(line)
    return (*offsets, position), n


def _is_record(line: bytes, columns: int) -> bool:
    return columns == 1 or bool(line.rstrip(b"\r\n"))


def rows(layout: Table, start: int, stop: int) -> Any:
    """Records start to stop, which begin where units begin."""
    first, last = start // layout.unit, -(-stop // layout.unit)
    with layout.file.open("rb") as stream:
        stream.seek(layout.offsets[first])
        data = stream.read(layout.offsets[last] - layout.offsets[first])
    return block_of(layout, _columns(layout, data))


def _columns(layout: Table, data: bytes) -> dict[int, Any]:
    """The columns of some lines: numbers of the entries, texts of the others."""
    arrow = need("pyarrow", "tables", layout.file)
    if b'"' not in data and data.count(b"\r") == data.count(b"\r\n"):
        try:
            return _parsed(layout, data)
        except arrow.ArrowInvalid:  # a text for a number, or other columns
            pass
    width, separator = len(layout.names), _separator(layout.file)
    lines = data.removesuffix(b"\n").split(b"\n")
    rows = [_cells(line, width, separator) for line in lines if _is_record(line, width)]
    numbers = {
        i: arrow.array([float(row[i]) if _is_number(row[i]) else nan for row in rows])
        for i in layout.entries
    }
    texts = {i: arrow.array([_text(row[i]) for row in rows], arrow.string()) for i in layout.beside}
    return numbers | texts


def _cells(line: bytes, columns: int, separator: str) -> list[str]:
    """The cells of a line; empty ones where their number is not ``columns``."""
    cells = _split(line.decode("utf-8", "replace").rstrip("\r\n"), separator)
    return cells if len(cells) == columns else [""] * columns


def _split(text: str, separator: str) -> list[str]:
    """The cells of a line; where a quote is not closed, quotes are plain characters."""
    if '"' in text:
        try:
            return next(csv.reader([text], delimiter=separator, strict=True))
        except csv.Error:
            pass
    return text.split(separator)


def _parsed(layout: Table, data: bytes) -> dict[int, Any]:
    arrow, parser = (need(name, "tables", layout.file) for name in ("pyarrow", "pyarrow.csv"))
    names = [str(i) for i in range(len(layout.names))]
    numbers = dict.fromkeys(map(str, layout.entries), arrow.float64())
    texts = dict.fromkeys(map(str, layout.beside), arrow.binary())
    read = parser.ReadOptions(column_names=names, block_size=len(data) + 1)
    parse = parser.ParseOptions(
        delimiter=_separator(layout.file), ignore_empty_lines=len(names) > 1
    )
    kinds = {"include_columns": [*numbers, *texts], "column_types": numbers | texts}
    convert = parser.ConvertOptions(**kinds, null_values=list(MISSING))
    found = parser.read_csv(arrow.BufferReader(data), read, parse, convert)
    columns = {i: found.column(str(i)).combine_chunks() for i in layout.used}
    return columns | {i: _decoded(columns[i], arrow) for i in layout.beside}


def _decoded(column: Any, arrow: Any) -> Any:
    """Texts of a column of bytes; each distinct one is decoded once."""
    coded = column.dictionary_encode()
    texts = [_text(cell.decode("utf-8", "replace")) for cell in coded.dictionary.to_pylist()]
    return arrow.DictionaryArray.from_arrays(coded.indices, arrow.array(texts, arrow.string()))


def _text(cell: str) -> str | None:
    return None if cell.strip() in MISSING else cell
