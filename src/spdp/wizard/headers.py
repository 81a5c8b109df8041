"""What a file says of itself in public: shape, dtype, names of columns and arrays.

*Enforced.* Headers are read, and of a CSV file the number of its lines; no record, no
id, no label. Subject ids beside the data are not opened. A list of files and persons is
read, for it names the files, and so is the mask of an image: the numbers of persons and
of voxels that they say are public.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from spdp.data import open_records
from spdp.data.formats.base import Options
from spdp.data.opening import expand, is_manifest, read_manifest
from spdp.errors import DataError, need
from spdp.options import Unit
from spdp.wizard.recipe import Recipe, Whose, explained


@dataclass(frozen=True)
class Seen:
    """The public facts of files.

    Attributes
    ----------
    columns, arrays : tuple of str
        Names of a table's columns, or of the arrays of an .npz.
    unused : tuple of str
        Those that nothing was said of: they may say whose the records are.
    image, table : bool
        Whether it is a NIfTI image, or a table.
    n, k : int or None
        Number of records, and size of the matrices; None until they can be told.
    files : int
        How many files it is.
    persons : int or None
        Their number, where the names of files tell it.
    problem : str or None
        Why it cannot be opened as it was described.
    """

    columns: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    image: bool = False
    table: bool = False
    n: int | None = None
    k: int | None = None
    files: int = 0
    persons: int | None = None
    problem: str | None = None


def look(recipe: Recipe) -> Seen:
    """The public facts of a recipe's files."""
    try:
        return _read(recipe)
    except (OSError, ValueError) as error:  # the errors of spdp are of the latter kind
        return replace(_names(recipe), problem=explained(error))


def _read(recipe: Recipe) -> Seen:
    if not recipe.files:
        raise DataError("name the file, or the folder, that holds the matrices")
    files = expand(recipe.files)
    seen = _names(recipe)
    listed = len(files) == 1 and is_manifest(files[0])
    if listed != (recipe.whose is Whose.MANIFEST):
        what = "is a list of files" if listed else "is no list of files (columns path and person)"
        raise DataError(f"{files[0]}: {what}: choose accordingly whose the records are")
    entries = read_manifest(files[0]) if listed else []
    column = recipe.groups_column if recipe.whose is Whose.COLUMN else None
    labels = recipe.label_column if seen.table and not recipe.labels else None
    source = open_records(
        recipe.files,
        key=recipe.key,
        order=recipe.order,
        mask=recipe.mask,
        groups_column=column,
        label_column=labels,
        entries=recipe.entries,
        per_file=recipe.whose is Whose.FILE,
    )
    if source.unit is Unit.VOXEL and recipe.whose is Whose.RECORD:
        raise DataError(
            "the voxels of an image are one person's data: choose “each file is one person”, or "
            "“single voxels”"
        )
    if recipe.whose is Whose.VOXEL and source.unit is not Unit.VOXEL:
        raise DataError(f"{files[0]}: holds no voxels; single voxels are those of NIfTI images")
    persons = len({entry.person for entry in entries}) if listed else None
    persons = len(files) if recipe.whose is Whose.FILE else persons
    beside = () if listed else _unused(files[0], recipe, seen)
    return replace(seen, n=source.n, k=source.k, files=len(files), persons=persons, unused=beside)


def _names(recipe: Recipe) -> Seen:
    """What the first file's header names, as far as it can be read."""
    try:
        first = expand(recipe.files[:1])[0]
        name = first.name.lower()
        image = name.endswith((".nii", ".nii.gz"))
        return Seen(
            columns=_columns(first),
            arrays=_arrays(first),
            image=image,
            table=name.endswith((".csv", ".parquet")),
        )
    except (DataError, OSError, IndexError, ValueError):
        return Seen()


def _columns(file: Path) -> tuple[str, ...]:
    if file.name.lower().endswith(".csv"):
        from spdp.data.formats.csv import header

        return tuple(header(file))
    if file.name.lower().endswith(".parquet"):
        return tuple(need("pyarrow.parquet", "tables", str(file)).read_schema(file).names)
    return ()


def _unused(first: Path, recipe: Recipe, seen: Seen) -> tuple[str, ...]:
    """Columns, or arrays of a value per record, that are read for nothing."""
    options = Options(  # grouped: the page says itself what is not used
        groups_column=recipe.groups_column if recipe.whose is Whose.COLUMN else None,
        label_column=None if recipe.labels else recipe.label_column,
        entries=recipe.entries,
        grouped=True,
    )
    if seen.table:
        from spdp.data.formats import parquet
        from spdp.data.formats.tables import Table

        layout = (
            Table.of(first, list(seen.columns), None, options)
            if first.name.lower().endswith(".csv")
            else parquet.open(first, options)
        )
        return tuple(name for i, name in enumerate(layout.names) if i not in layout.used)
    return tuple(name for name in _one_each(first) if name != recipe.label_column)


def _one_each(first: Path) -> list[str]:
    """Arrays of an .npz that have one value for each record."""
    if not first.name.lower().endswith(".npz"):
        return []
    from spdp.data.formats.npy import header

    shapes = {}
    with ZipFile(first) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    shapes[name.removesuffix(".npy")] = header(member)[0]
    long = [shape[:1] for shape in shapes.values() if len(shape) > 1]
    return [name for name, shape in shapes.items() if shape in long]


def _arrays(file: Path) -> tuple[str, ...]:
    if not file.name.lower().endswith(".npz"):
        return ()
    try:
        with ZipFile(file) as archive:
            return tuple(name.removesuffix(".npy") for name in archive.namelist())
    except BadZipFile as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
