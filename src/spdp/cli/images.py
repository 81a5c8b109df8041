"""Images out of files and folders, for ``spdp describe``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdp.errors import DataError, ParameterError, reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["load_images"]

PICTURES = (".png", ".jpg", ".jpeg")
GRAY_MODES = ("1", "L", "I;16")  # as Pillow calls them


def load_images(path: Path, key: str | None = None) -> "NDArray[Any]":
    """The images of a file or folder, as one array."""
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        return _folder(path)
    try:
        return _file(path, key)
    except (DataError, ParameterError):
        raise
    except Exception as error:
        raise DataError(f"{path}: cannot be read, it may be damaged ({reason(error)})") from None


def _file(path: Path, key: str | None) -> "NDArray[Any]":
    import numpy as np

    from spdp.datasets import read_idx

    suffix = path.suffix.lower()
    if suffix == ".npy":
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    if suffix != ".npz":
        return read_idx(path)
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return np.asarray(archive[_pick(path, archive, key)])


def _pick(path: Path, archive: "np.lib.npyio.NpzFile", key: str | None) -> str:
    """Name of the array to read: ``key``, or one that is called after images."""
    names = list(archive.files)
    if key is None:
        fits = [name for name in names if "image" in name and archive[name].ndim in (3, 4)]
        return str((fits or names)[0])
    if key not in names:
        raise DataError(f"{path}: no array {key!r}; it holds {', '.join(names)}")
    return key


def _folder(path: Path) -> "NDArray[Any]":
    import numpy as np

    from spdp.progress import track

    files = sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURES)
    if not files:
        raise DataError(f"{path}: holds no PNG or JPEG files")
    arrays: list[NDArray[Any]] = []
    with track("reading pictures", len(files)) as advance:
        for file in files:
            arrays.append(_picture(file))
            if arrays[-1].shape != arrays[0].shape:
                raise DataError(
                    f"{file}: {arrays[-1].shape}, but {files[0].name} is {arrays[0].shape}; "
                    "pictures must be of one size and kind"
                )
            advance(1)
    return np.stack(arrays)


def _picture(file: Path) -> "NDArray[Any]":
    import numpy as np

    try:
        from PIL import Image
    except ImportError:
        raise DataError(
            "reading pictures needs Pillow; install it with: pip install 'spdp[plots]'"
        ) from None
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("L" if picture.mode in GRAY_MODES else "RGB"))
    except OSError as error:
        raise DataError(f"{file}: cannot be read as a picture ({reason(error)})") from None
