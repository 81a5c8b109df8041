"""CSV tables, ``.csv``, with a header line: parsed by Arrow (extra ``tables``).

Opening counts the lines, so that every piece can be read on its own.
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

__all__ = ["header", "open", "rows"]

SAMPLE = 1000  # lines that tell columns of numbers from others
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


def header(file: Path) -> list[str]:
    """Names of the columns."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return [name.strip() for name in next(csv.reader(lines), [])]


def open(file: Path, options: Options) -> Table:
    """Layout of the table."""
    names = header(file)
    if not names or any(map(_is_number, names)):
        first = ", ".join(names[:3]) or "nothing"
        raise DataError(f"{file}: its first line must name the columns, found {first}")
    layout = Table.of(file, names, _numeric(file, len(names)), options)
    unit = rows_per_block(layout.k)
    offsets, n = _offsets(file, unit)
    return replace(layout, n=n, unit=unit, offsets=offsets)


def _numeric(file: Path, columns: int) -> list[bool]:
    """Which columns hold numbers: those where more of the first lines have numbers than
    texts, so that no single record decides.
    """
    balance = [0] * columns
    with file.open(encoding="utf-8-sig", newline="") as lines:
        for row in islice(csv.reader(lines), 1, SAMPLE):
            for i, cell in enumerate(row[:columns]):
                if cell.strip() not in MISSING:
                    balance[i] += 1 if _is_number(cell) else -1
    return [sign > 0 for sign in balance]


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
    with file.open("rb") as lines:
        for i, line in enumerate(lines):
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
    try:
        return _parsed(layout, data, arrow.float64())
    except arrow.ArrowInvalid:  # one of them is no number, or a line has other columns
        found = _parsed(layout, data, arrow.string())
    numbers = {i: _numbers(found[i].to_pylist()) for i in layout.entries}
    return found | {i: arrow.array(values, arrow.float64()) for i, values in numbers.items()}


def _parsed(layout: Table, data: bytes, kind: Any) -> dict[int, Any]:
    arrow, parser = (need(name, "tables", layout.file) for name in ("pyarrow", "pyarrow.csv"))
    names = [str(i) for i in range(len(layout.names))]
    others = dict.fromkeys(map(str, layout.used), arrow.string())
    found = parser.read_csv(
        arrow.BufferReader(data),
        parser.ReadOptions(column_names=names, block_size=len(data) + 1),
        parser.ParseOptions(),
        parser.ConvertOptions(
            include_columns=list(others),
            column_types=others | dict.fromkeys(map(str, layout.entries), kind),
            null_values=list(MISSING),
            strings_can_be_null=True,
        ),
    )
    return {i: found.column(str(i)).combine_chunks() for i in layout.used}


def _numbers(texts: list[str | None]) -> Iterator[float | None]:
    return (float(text) if text and _is_number(text) else None for text in texts)
