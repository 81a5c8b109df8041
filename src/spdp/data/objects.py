"""Objects of other libraries as records: a table of what is recognised.

*Enforced.* An object is recognised by its type, attributes, shape and dtype, and never
by a number in it; nothing here imports the library it comes from. Of a list, the first
object's type says what all are, and another type is an error. What a record becomes
depends on that record alone.

*Assumed.* Types, shapes, dtypes and names (of rows, columns and coordinates) are
public, and so is what ``kind`` states.

*Therefore* an error of this module tells nothing of a record. What would be a guess,
such as whose data the voxels of an image are, is an error that names the call which
says it: :func:`spdp.data.open_records`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.data import labelled
from spdp.data.batching import is_list
from spdp.data.columns import with_constant
from spdp.data.formats.base import Options
from spdp.data.labelled import is_named, named_matrix, with_rows
from spdp.data.source import Source, as_source, chain
from spdp.data.vectorised import from_vectors, kind_of
from spdp.data.voxels import from_grid, has, is_image
from spdp.errors import DataError, ParameterError, named
from spdp.options import Unit


class Recogniser(NamedTuple):
    """One kind of object: a line of the table ``OBJECTS``."""

    what: str  # in messages
    is_one: Callable[[Any], bool]
    open: Callable[[Any, str, Options], Source]
    options: tuple[str, ...] = ()  # that have a meaning for it


def is_path(X: Any) -> bool:
    """Whether something is the path of a file."""
    return isinstance(X, str | os.PathLike)


def are_paths(X: Any) -> bool:
    """Whether something is a path, or a list of paths."""
    return is_path(X) or (is_list(X) and len(X) > 0 and all(map(is_path, X)))


def recognised(X: Any, name: str) -> Source | None:
    """A source of what needs no option to be read; None for what is not known here.

    An error where records need to be told from each other, or whose they are.
    """
    if are_paths(X):
        return _unasked_files(X, name)
    found = _recogniser(X)
    if found is not None:
        return _told(found.open(X, name, Options()), name)
    if is_list(X) and len(X) > 0:
        first = _recogniser(X[0])
        if first is not None:
            return _told(_listed(list(X), name, Options(), first), name)
    return None


def open_objects(
    X: Any, options: Options, *, name: str = "X", each: bool = False, measure: Any = None
) -> Source:
    """Objects as records, with the options of :func:`spdp.data.open_records`.

    Parameters
    ----------
    X : object, list of objects, or mapping of persons to objects or paths
    options : Options
    name : str
        Its name in messages.
    each : bool
        Whether each object of a list is one person.
    measure : object or str, optional
        What the matrices are: a kind, or what estimated them.
    """
    if isinstance(X, Mapping) and _recogniser(X) is None:
        return _of_persons(X, options, name, measure)
    if each:
        if not is_list(X) or isinstance(X, Source):
            raise ParameterError(f"{named('per_file')} needs a list: one object for each person")
        _check_distinct(list(X), name)
        return _of_persons(dict(enumerate(X)), options, name, measure)
    return _opened(X, options, name, measure)


def _opened(X: Any, options: Options, name: str, measure: Any) -> Source:
    """An object, or a list of them, as options and their type say."""
    if isinstance(X, Source):
        source = X
    elif isinstance(X, np.ndarray):
        source = _of_array(X, options, name, measure)
    elif (found := _recogniser(X)) is not None:
        _check_options(options, found.options, f"{name}, {found.what}")
        source = found.open(X, name, options)
    elif is_list(X) and len(X) > 0 and (of_list := _recogniser(X[0])) is not None:
        source = _listed(list(X), name, options, of_list)
    elif is_list(X) and len(X) > 0 and (options.given() or getattr(X[0], "ndim", 0) > 4):
        parts = [_opened(item, options, f"{name}[{i}]", measure) for i, item in enumerate(X)]
        return chain(parts)
    else:
        _check_options(options, (), name)
        source = as_source(X, name)
    kind = kind_of(measure)
    return source if kind is None else replace(source, kind=kind)


def _of_persons(X: Mapping[Any, Any], options: Options, name: str, measure: Any) -> Source:
    """Objects, or lists of them, by the person whose they are."""
    from spdp.data.opening import open_records

    parts, known = [], replace(options, grouped=True)
    for person, item in X.items():
        place = f"{name}[{person!r}]"
        if are_paths(item):
            given = {option: getattr(options, option) for option in options.given()}
            source = open_records(item, **given, kind=measure)
        elif isinstance(item, np.ndarray) and item.ndim == 2 and item.shape[0] == item.shape[1]:
            source = _opened(item[None], known, place, measure)
        else:
            source = _opened([item] if is_named(item) else item, known, place, measure)
        parts.append(with_constant(source, person=person))
    if not parts:
        raise DataError(f"{name} names no persons")
    return chain(parts)


def _check_distinct(items: list[Any], name: str) -> None:
    """Refuse an object that is listed twice: its records would count twice."""
    seen: dict[int, int] = {}
    for i, item in enumerate(items):
        first = seen.setdefault(id(item), i)
        if first != i and not is_path(item):
            raise ParameterError(f"{name}[{i}] is {name}[{first}]; its records would count twice")


def _check_options(options: Options, known: Sequence[str], what: str) -> None:
    for option in options.given():
        if option not in known:
            raise ParameterError(f"{named(option)} has no meaning for {what}")


# --- what must be said


def _told(source: Source, name: str) -> Source:
    """A source whose unit is no guess: voxels are one person's data."""
    if source.unit is Unit.VOXEL:
        raise ParameterError(
            f"{name} holds voxels, which are one person's data: say what is protected. Pass "
            f"open_records([...], per_file=True, mask=...) if each of several images is one "
            "person, or open_records(X, mask=...) if single voxels are what is to be protected"
        )
    return source


def _unasked_files(X: Any, name: str) -> Source:
    """The records of files where it is no guess whose they are."""
    from spdp.data.opening import expand, open_records

    paths = [X] if is_path(X) else list(X)
    source = _told(open_records(paths), name)
    count = len(expand(paths))
    if source.unit is Unit.RECORD and count > 1 and source.n != count:
        raise ParameterError(
            f"{name} names {count:,} files of many records: pass open_records(..., per_file=True) "
            "if each file is one person, or open_records(...) if each record is"
        )
    return source


# --- arrays


def _of_array(A: NDArray[Any], options: Options, name: str, measure: Any) -> Source:
    """Matrices, voxels of a grid, or rows that are vectorised matrices."""
    if A.ndim == 2 and (options.entries is not None or getattr(measure, "vectorize", False)):
        _check_options(options, ("entries",), name)
        return from_vectors(A, options.entries, name, measure)
    if options.mask is not None or options.order is not None or A.ndim > 4:
        _check_options(options, ("mask", "order"), name)
        how: Any = {"order": options.order, "mask": options.mask, "grouped": options.grouped}
        return from_grid(lambda: A, A.shape, A.dtype, name, **how)
    _check_options(options, (), name)
    return as_source(A, name)


# --- images and fits


def _image(X: Any, name: str, options: Options) -> Source:
    """An image of nibabel, read where it is when its voxels are needed."""
    shape, order = tuple(X.shape), options.order
    if order is None and shape[3:] in ((6,), (1, 6)) and _says_order(X):
        order = "nifti"
    how: Any = {"order": order, "mask": options.mask, "grouped": options.grouped}
    return from_grid(
        lambda: np.asarray(X.dataobj).reshape(_four(shape)),
        _four(shape),
        np.dtype(X.get_data_dtype()),
        name,
        **how,
    )


def _four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an image whose six components are in the fourth axis."""
    return (*shape[:3], 6) if shape[3:] == (1, 6) else shape


def _says_order(image: Any) -> bool:
    """Whether a NIfTI header says that its voxels are symmetric matrices."""
    from spdp.data.formats.nifti import SYMMETRIC_MATRIX_INTENT

    try:
        return int(image.header["intent_code"]) == SYMMETRIC_MATRIX_INTENT
    except (KeyError, TypeError, ValueError):  # a header of another format
        return False


def _is_fit(X: Any) -> bool:
    return has(type(X), "quadratic_form") and has(X, "evals")


def _fit(X: Any, name: str, options: Options) -> Source:
    """A tensor fit of dipy: a matrix for each voxel."""
    shape = (*np.shape(X.evals)[:-1], 3, 3)
    how: Any = {"mask": options.mask, "grouped": options.grouped}
    return from_grid(lambda: X.quadratic_form, shape, np.asarray(X.evals).dtype, name, **how)


def _listed(items: list[Any], name: str, options: Options, found: Recogniser) -> Source:
    """A list of objects of one type: each is a record, or holds records."""
    for i, item in enumerate(items):
        if type(item) is not type(items[0]):
            raise DataError(
                f"{name}[{i}] is {type(item).__name__}, and {name}[0] {type(items[0]).__name__}: "
                "pass objects of one type"
            )
    _check_options(options, found.options, f"{name}, {found.what}")
    if not is_named(items[0]):
        return chain([found.open(item, f"{name}[{i}]", options) for i, item in enumerate(items)])
    matrices, rows = [], named_matrix(items[0])[1]
    for i, item in enumerate(items):
        matrix, own = named_matrix(item)
        if own != rows:
            raise DataError(
                f"{name}[{i}] has other names of rows, or another order, than {name}[0]: "
                "pick the same rows in one order first"
            )
        matrices.append(matrix)
    source = with_rows(as_source(matrices, name), rows)
    return replace(source, kind=labelled.stated_kind(items[0]))


# --- what is no collection of matrices


def _is_signals(X: Any) -> bool:
    return has(X, "ch_names", "info", "get_data")


def _signals(X: Any, name: str, options: Options) -> Source:
    raise DataError(
        f"{name} holds signals ({type(X).__name__}), not matrices: pass their covariances, such "
        "as pyriemann.estimation.Covariances('lwf').transform(epochs.get_data())"
    )


OBJECTS = (
    Recogniser("an image", is_image, _image, ("order", "mask")),
    Recogniser("a tensor fit", _is_fit, _fit, ("mask",)),
    Recogniser("signals", _is_signals, _signals),
    Recogniser("a covariance", labelled.is_covariance, labelled.covariance),
    Recogniser("connectivity", labelled.is_connectivity, labelled.connectivity),
    Recogniser("a labelled array", labelled.is_labelled, labelled.labelled, ("groups_column",)),
    Recogniser("a frame", labelled.is_frame, labelled.frame, labelled.FRAME),
)


def _recogniser(X: Any) -> Recogniser | None:
    """The line of the table for an object; None for one that has none."""
    if isinstance(X, np.ndarray | Source | list | tuple | str | bytes | int | float):
        return None
    return next((one for one in OBJECTS if one.is_one(X)), None)
