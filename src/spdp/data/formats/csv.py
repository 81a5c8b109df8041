"""CSV tables, ``.csv``, with a header line: parsed by Arrow (extra ``tables``).

Columns are separated by what separates their names: no record decides it.

Opening counts the lines, so that every piece can be read on its own. A line is a
record: a quoted line break does not join two. What a line holds decides about that
record alone: where Arrow finds anything odd, lines are read one by one.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from spdp.data.formats.base import Options, need
from spdp.data.formats.tables import Table, block_of
from spdp.data.source import rows_per_block
from spdp.errors import DataError

__all__ = ["header", "lines", "open", "rows"]

MIXED = 10  # a column with fewer exceptions than one in so many is of one kind
SAMPLE = 1000  # lines that tell columns of numbers from others
SEPARATORS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


def lines(file: Path, separator: str | None = None) -> Iterator[list[str]]:
    """The cells of each line, the header's first; it says what separates them."""
    separator = separator or _separator(file)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        yield from csv.reader(stream, delimiter=separator)


def _separator(file: Path) -> str:
    """What separates the names of the columns: a comma, unless another makes more."""
    first = _first(file)
    return max(SEPARATORS, key=lambda s: len(next(csv.reader([first], delimiter=s), [])))


def _first(file: Path) -> str:
    """The first line, which names the columns; no other is looked at."""
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
    layout = Table.of(file, names, _numeric(file, len(names)), options)
    unit = rows_per_block(layout.k)
    offsets, n = _offsets(file, unit)
    return replace(layout, n=n, unit=unit, offsets=offsets)


def _numeric(file: Path, columns: int) -> list[bool | None]:
    """Which columns hold numbers, by the first lines: nearly all, or nearly none.

    Anything between is refused, so that no single record decides what the others mean.
    Of a table without records, all are.
    """
    numbers, texts = [0] * columns, [0] * columns
    separator = _separator(file)
    with file.open("rb") as stream:
        for line in islice(stream, 1, SAMPLE):
            for i, cell in enumerate(_cells(line, columns, separator)):
                if cell is not None:
                    numbers[i] += _is_number(cell)
                    texts[i] += not _is_number(cell)
    if not any(numbers) and not any(texts):
        return [True] * columns
    mixed = [i for i in range(columns) if MIXED * min(numbers[i], texts[i]) > numbers[i] + texts[i]]
    return [None if i in mixed else numbers[i] > texts[i] for i in range(columns)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _offsets(file: Path, unit: int) -> tuple[tuple[int, ...], int]:
    """Where every ``unit``-th record begins, and the file ends; number of records."""
    offsets: list[int] = []
    position = n = 0
    with file.open("rb") as stream:
        for i, line in enumerate(stream):
            if i > 0 and not line.isspace():
                if n % unit == 0:
                    offsets.append(position)
                n += 1
            position += len(line)
    return (*offsets, position), n


def rows(layout: Table, start: int, stop: int) -> Any:
    """Records start to stop, which begin where units begin."""
    first, last = start // layout.unit, -(-stop // layout.unit)
    with layout.file.open("rb") as stream:
        stream.seek(layout.offsets[first])
        data = stream.read(layout.offsets[last] - layout.offsets[first])
    return block_of(layout, _columns(layout, data))


def _columns(layout: Table, data: bytes) -> dict[int, Any]:
    """The columns of some lines; a text in place of a number is a missing one."""
    arrow = need("pyarrow", "tables", layout.file)
    if b'"' not in data and data.count(b"\r") == data.count(b"\r\n"):
        try:
            return _parsed(layout, data)
        except arrow.ArrowInvalid:  # a text for a number, other columns, no UTF-8
            pass
    width, separator = len(layout.names), _separator(layout.file)
    rows = [_cells(line, width, separator) for line in data.split(b"\n") if line.strip()]
    found = {i: arrow.array([row[i] for row in rows], arrow.string()) for i in layout.used}
    numbers = {i: [_number(row[i]) for row in rows] for i in layout.entries}
    return found | {i: arrow.array(values, arrow.float64()) for i, values in numbers.items()}


def _cells(line: bytes, columns: int, separator: str) -> list[str | None]:
    """What stands in a line, None where it is missing; all of it in an odd line."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        cells = next(csv.reader([text], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error):
        cells = []
    if len(cells) != columns:
        return [None] * columns
    return [None if cell.strip() in MISSING else cell for cell in cells]


def _parsed(layout: Table, data: bytes) -> dict[int, Any]:
    arrow, parser = (need(name, "tables", layout.file) for name in ("pyarrow", "pyarrow.csv"))
    names = [str(i) for i in range(len(layout.names))]
    others = dict.fromkeys(map(str, layout.used), arrow.string())
    found = parser.read_csv(
        arrow.BufferReader(data),
        parser.ReadOptions(column_names=names, block_size=len(data) + 1),
        parser.ParseOptions(delimiter=_separator(layout.file)),
        parser.ConvertOptions(
            include_columns=list(others),
            column_types=others | dict.fromkeys(map(str, layout.entries), arrow.float64()),
            null_values=list(MISSING),
            strings_can_be_null=True,
        ),
    )
    return {i: found.column(str(i)).combine_chunks() for i in layout.used}


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _is_number(text) else None
