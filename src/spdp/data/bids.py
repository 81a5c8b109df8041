"""BIDS datasets: which files of derivatives are records, whose, and what is known.

Found are diffusion tensor maps (``_model-tensor_…_dwimap.nii.gz``) and connectivity
matrices (``_relmat.tsv``, a draft) of a dataset, or of the derivatives inside it.

*Enforced.* Files are chosen by their names alone. One person is one ``sub-``; sessions
and runs are records of that person. Files that differ in any other entity, such as the
space, are not mixed: an error says what to choose. A participant without a usable entry
in ``participants.tsv`` counts as one whose label, or covariate, is missing.

*Assumed.* Names of files and folders are public, and so are the header of
``participants.tsv`` and who takes part; its cells and the contents of files are not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from spdp.data.columns import with_constant
from spdp.data.formats import open_file
from spdp.data.formats.base import Options, reading
from spdp.data.formats.csv import lines
from spdp.data.formats.tables import place
from spdp.data.relmat import open_relmat
from spdp.data.source import Source, chain
from spdp.errors import DataError, ParameterError, named
from spdp.options import BidsData, MatrixKind

DESCRIPTION, PARTICIPANTS, ID = "dataset_description.json", "participants.tsv", "participant_id"
RECORDS = ("ses", "run")  # entities in which the records of one person differ
MODELS = ("tensor", "dti")  # of a diffusion tensor, in lower case
WHOLE = (None, "tensor", "diffusivity", "all")  # param- of the tensor; others are scalars
IMAGES = (".nii.gz", ".nii")
AXES = ("x", "y", "z")
NOT_AVAILABLE = ("", "n/a")


class File(NamedTuple):
    """A file of a participant, and the entities of its name."""

    path: Path
    entities: dict[str, str]
    folder: str  # the dataset below BIDS_DIR that it is in; "" for BIDS_DIR itself

    @property
    def person(self) -> str:
        return self.entities["sub"]


class Selection(NamedTuple):
    """Which files to take, where a dataset holds several kinds."""

    data: BidsData | None = None
    derivatives: str | None = None
    participants: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # NAME=LABEL


class Reading(NamedTuple):
    """How files are read, and what is known of participants."""

    order: str | None = None
    mask: Path | None = None
    label: str | None = None  # a column of participants.tsv
    covariates: tuple[str, ...] = ()  # columns of it
    shrinkage: float | None = None  # of correlation matrices


class Found(NamedTuple):
    """The files of a dataset that are records."""

    data: BidsData
    files: list[File]


def find(root: Path, wanted: Selection) -> Found:
    """The files of participants that a selection leaves, all of one kind."""
    if not (root / DESCRIPTION).is_file():
        raise DataError(f"{root}: no BIDS dataset, it has no {DESCRIPTION}")
    files = list(_files(root, wanted.derivatives))
    by_kind = {kind: [file for file in files if is_of(file)] for kind, is_of in KINDS.items()}
    held = [kind for kind, some in by_kind.items() if some]
    if wanted.data is None and len(held) > 1:
        raise ParameterError(f"{root}: holds tensors and connectivity; say which", ask="data")
    kind = wanted.data or (held[0] if held else BidsData.TENSOR)
    chosen = _of_participants(root, by_kind[kind], wanted.participants)
    chosen = [file for file in chosen if _fits(file, wanted.entities)]
    if not chosen:
        raise DataError(
            f"{root}: no files of participants are diffusion tensors (model-tensor, suffix dwimap) "
            "or connectivity (suffix relmat) that fit what was asked for, here or in derivatives/*"
        )
    _refuse_mixtures(root, chosen)
    return Found(kind, sorted(chosen, key=lambda file: (file.person, file.path)))


def open_bids(root: Path, wanted: Selection, how: Reading | None = None) -> tuple[Source, Found]:
    """The records of a dataset, one person per participant, and their files."""
    how = how or Reading()
    found = find(root, wanted)
    known = _participants(root, how)
    if found.data is BidsData.TENSOR:
        if how.shrinkage is not None:
            raise ParameterError(f"{named('shrink')} is for correlations, not for tensors")
        masks = _masks(found.files, how.mask)
        parts = [
            replace(
                open_file(file.path, Options(order=how.order, mask=mask, grouped=True)), rows=AXES
            )
            for file, mask in zip(found.files, masks, strict=True)
        ]
    else:
        for name in ("order", "mask"):
            if getattr(how, name) is not None:
                raise ParameterError(
                    f"{named(name)} is for diffusion tensors, not for relmat files"
                )
        parts = [open_relmat(file.path, file.entities, how.shrinkage) for file in found.files]
        _check_shrinkage(parts[0], how.shrinkage)
    _refuse_other_rows(parts)
    owned = [
        with_constant(part, person=f"sub-{file.person}", **known(file.person))
        for part, file in zip(parts, found.files, strict=True)
    ]
    return chain(owned), found


# --- files


def _files(root: Path, derivatives: str | None) -> Iterator[File]:
    """Files of participants, in the dataset and in its derivatives."""
    inside = root / "derivatives"
    if derivatives is not None:
        if not (inside / derivatives).is_dir():
            raise DataError(f"{inside / derivatives}: no such folder")
        folders = [inside / derivatives]
    else:
        below = sorted(inside.iterdir()) if inside.is_dir() else []
        folders = [root, *(folder for folder in below if folder.is_dir())]
    for folder in folders:
        for path in sorted(folder.glob("sub-*/**/*_*")):
            entities = entities_of(path.name)
            person = path.relative_to(folder).parts[0].removeprefix("sub-")
            if entities.get("sub") == person and path.is_file():
                yield File(path, entities, str(folder.relative_to(root)).removeprefix("."))


def entities_of(name: str) -> dict[str, str]:
    """The entities of a file's name, and its suffix."""
    *pairs, suffix = name.split(".")[0].split("_")
    split = [pair.partition("-") for pair in pairs]
    return {key: label for key, dash, label in split if dash} | {"suffix": suffix}


def _is_tensor(file: File) -> bool:
    """Whether a file is a map of whole tensors, not of a scalar of them."""
    e = file.entities
    is_map = e["suffix"] == "dwimap" and e.get("model", "").lower() in MODELS
    return is_map and e.get("param") in WHOLE and file.path.name.endswith(IMAGES)


def _is_relmat(file: File) -> bool:
    return file.entities["suffix"] == "relmat" and file.path.suffix == ".tsv"


KINDS = {BidsData.TENSOR: _is_tensor, BidsData.CONNECTIVITY: _is_relmat}


def _of_participants(root: Path, files: list[File], labels: Sequence[str]) -> list[File]:
    """Files of the participants that are named, or of all."""
    asked = {label.removeprefix("sub-") for label in labels}
    missing = sorted(asked - {file.person for file in files})
    if missing:
        raise DataError(f"{root}: no such files of sub-{missing[0]}", ask="participant_label")
    return [file for file in files if not asked or file.person in asked]


def _fits(file: File, entities: Sequence[str]) -> bool:
    for pair in entities:
        name, sign, label = pair.partition("=")
        if not (name and sign and label):
            raise ParameterError(
                f"{named('entity')} is NAME=LABEL, such as space=ACPC, got {pair!r}"
            )
        if file.entities.get(name) != label:
            return False
    return True


def _refuse_mixtures(root: Path, files: list[File]) -> None:
    """Refuse files of one dataset that differ in more than person, session and run."""
    folders = sorted({file.folder for file in files})
    if len(folders) > 1:
        listed = " and ".join(folder or "the dataset itself" for folder in folders[:2])
        raise ParameterError(f"{root}: found files in {listed}; choose one", ask="derivatives")
    names = sorted({name for file in files for name in file.entities} - {"sub", *RECORDS})
    for name in names:
        labels = sorted({file.entities.get(name, "none") for file in files})
        if len(labels) > 1:
            listed = ", ".join(labels[:4])
            raise ParameterError(
                f"{root}: files differ in their entity {name} ({listed}); choose one, such as "
                f"{named('entity', f'{name}={labels[0]}')}"
            )


def _check_shrinkage(part: Source, shrinkage: float | None) -> None:
    """Refuse to shrink what is no correlation matrix, and shares that are none."""
    if shrinkage is None:
        return
    if part.kind not in (None, MatrixKind.CORRELATION):
        raise ParameterError(f"{part.name}: {named('shrink')} is for correlations, not {part.kind}")
    if not 0.0 < shrinkage < 1.0:
        raise ParameterError(f"{named('shrink')} must lie between 0 and 1, got {shrinkage:g}")


def _refuse_other_rows(parts: list[Source]) -> None:
    for part in parts:
        if part.rows != parts[0].rows:
            raise DataError(f"{part.name}: its rows have other names than in {parts[0].name}")


def _masks(files: list[File], mask: Path | None) -> list[Path | None]:
    """One public mask for all, or the brain mask beside each file, if all have one."""
    if mask is not None:
        return [mask.absolute()] * len(files)
    found = [_mask_beside(file) for file in files]
    if any(found) and not all(found):
        without = files[found.index(None)].path
        raise DataError(f"{without}: has no desc-brain mask beside it, and others have", ask="mask")
    return found


def _mask_beside(file: File) -> Path | None:
    """The brain mask of a file's session, run and space, in its folder."""
    about = {
        k: v for k, v in file.entities.items() if k not in ("model", "param", "suffix", "desc")
    }
    for path in sorted(file.path.parent.glob("*_desc-brain_mask.nii*")):
        own = entities_of(path.name)
        if {k: v for k, v in own.items() if k not in ("suffix", "desc")} == about:
            return path.absolute()
    return None


# --- participants.tsv


def _participants(root: Path, how: Reading) -> Any:
    """A function of a participant: label and covariates of their records."""
    wanted = [name for name in (how.label, *how.covariates) if name is not None]
    if not wanted:
        return lambda person: {}
    file = root / PARTICIPANTS
    if not file.is_file():
        raise DataError(f"{file}: no such file; labels and covariates are read from it")
    with reading(file):
        header, *rows = [[cell.strip() for cell in row] for row in lines(file, "\t")]
        where = [place(file, header, name) for name in (ID, *wanted)]
    entries: dict[str, list[str]] = {}
    for row in rows:
        if len(row) == len(header):
            cells = [row[i] for i in where]
            person = cells[0].removeprefix("sub-")
            if person in entries:
                raise DataError(f"{file}: sub-{person} has two lines")
            entries[person] = ["" if cell in NOT_AVAILABLE else cell for cell in cells[1:]]
    nothing = [""] * len(wanted)

    def known(person: str) -> dict[str, Any]:
        cells = entries.get(person, nothing)
        label = {} if how.label is None else {"label": cells[0]}
        x = tuple(map(_number, cells[len(label) :]))
        return label | ({"x": x} if x else {})

    return known


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return nan
