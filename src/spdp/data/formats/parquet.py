"""Parquet tables, ``.parquet``: read by row groups (needs the extra ``tables``)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spdp.data.formats.base import Options, need
from spdp.data.formats.tables import Table, block_of
from spdp.data.source import rows_per_block
from spdp.errors import DataError


@dataclass(frozen=True)
class RowGroups(Table):
    """A table in row groups; ``offsets`` are their first records, and n."""

    def pieces(self, blocks: int = 1) -> Iterator[tuple[int, int]]:
        """(start, stop) of whole row groups, of about so many blocks."""
        wanted, start = blocks * rows_per_block(self.k, self.dtype.itemsize), 0
        for stop, following in pairwise((*self.offsets[1:], np.inf)):
            if following - start > wanted and stop > start:
                yield start, int(stop)
                start = int(stop)


def open(file: Path, options: Options) -> RowGroups:
    """Layout of the table: its schema says which columns hold numbers."""
    parquet = need("pyarrow.parquet", "tables", file).ParquetFile(file)
    types = need("pyarrow.types", "tables", file)
    schema, head = parquet.schema_arrow, parquet.metadata
    numeric = [types.is_integer(kind) or types.is_floating(kind) for kind in schema.types]
    layout = RowGroups.of(file, schema.names, numeric, options)
    single = all(types.is_float32(schema.types[i]) for i in layout.entries)
    groups = [head.row_group(i) for i in range(head.num_row_groups)]
    for group in groups:
        for column in (group.column(j) for j in range(group.num_columns)):
            if column.file_path:
                raise DataError(f"{file}: has values in {column.file_path}, outside the file")
    counts = [group.num_rows for group in groups]
    return replace(
        layout,
        n=head.num_rows,
        dtype=np.dtype(np.float32 if single else np.float64),
        offsets=tuple(accumulate(counts, initial=0)),
    )


def rows(layout: RowGroups, start: int, stop: int) -> Any:
    """Records start to stop, which are whole row groups."""
    parquet = need("pyarrow.parquet", "tables", layout.file).ParquetFile(layout.file)
    groups = [i for i, (a, b) in enumerate(pairwise(layout.offsets)) if start <= a < b <= stop]
    return _block(layout, parquet.read_row_groups(groups, columns=_names(layout)))


def stream(layout: RowGroups) -> Iterator[Any]:
    """All records in blocks: a row group may be larger than memory."""
    parquet = need("pyarrow.parquet", "tables", layout.file).ParquetFile(layout.file)
    size = rows_per_block(layout.k, layout.dtype.itemsize)
    for batch in parquet.iter_batches(size, columns=_names(layout)):
        yield _block(layout, batch)


def _names(layout: Table) -> list[str]:
    return [layout.names[i] for i in layout.used]


def _block(layout: Table, columns: Any) -> Any:
    return block_of(layout, {i: columns.column(layout.names[i]) for i in layout.used})
