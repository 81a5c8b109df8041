"""``spdp reproduce`` and ``spdp describe``."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from spdp.datasets import read_idx
from spdp.descriptors import covariance_descriptors, descriptor_bounds, image_stack
from spdp.errors import DataError, ParameterError
from spdp.paper import FIGURES, figure
from spdp.paper.common import Settings, run
from spdp.paper.page import write_page
from spdp.progress import track

__all__ = ["describe", "reproduce"]

PICTURES = (".png", ".jpg", ".jpeg")


def reproduce(
    name: Annotated[str, typer.Argument(help=f"A figure ({', '.join(FIGURES)}) or all.")] = "all",
    output: Annotated[Path, typer.Option("--output", "-o", help="Where tables, pictures and the page go.")] = Path("spdp-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: minutes in place of half an hour.")] = False,
    page: Annotated[Path | None, typer.Option(help="Where the page goes (default: paper.md among the results).")] = None,
    data: Annotated[str | None, typer.Option(help="Directory with the image sets (default: SPDP_DATA).")] = None,
) -> None:
    """Re-run the paper's experiments. An interrupted run resumes where it stopped."""
    names = FIGURES if name == "all" else (name,)
    if name != "all" and name not in FIGURES:
        raise ParameterError(f"unknown figure {name!r}; expected all or one of {', '.join(FIGURES)}")
    console = Console(highlight=False)
    settings, results = Settings(quick, data), []
    for each in names:
        module = figure(each)
        console.print(f"[bold]{module.TITLE}[/]")
        rows = run(module, settings, output)
        results.append((module, rows))
        console.print(module.verdict(rows) if rows else "  not run: its data are not at hand (set SPDP_DATA or --data)", soft_wrap=True)
    console.print(f"\nwrote {write_page(results, output, page or output / 'paper.md')}", soft_wrap=True)


def describe(
    images: Annotated[Path, typer.Argument(help="Images: .npy, .npz, an idx file, or a folder of PNG or JPEG files of one size.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the descriptors (.npy).")],
    key: Annotated[str | None, typer.Option(help="Which array of an .npz file.")] = None,
    eta: Annotated[float, typer.Option(help="Regularisation added to the diagonal.")] = 1e-6,
) -> None:
    """Turn images into covariance descriptors, ready for ``spdp mean``."""
    A = image_stack(_load(images, key))
    if output.suffix != ".npy":
        raise ParameterError(f"{output}: descriptors are written as .npy")
    bounds = descriptor_bounds(A.shape[3], eta)
    step = 4096
    k = 8 + A.shape[3]
    with tempfile.TemporaryDirectory(dir=output.absolute().parent, prefix=".partial-") as scratch:
        draft = Path(scratch) / "x.npy"
        R = np.lib.format.open_memmap(draft, "w+", np.float64, (len(A), k, k))
        with track("describing images", len(A)) as advance:
            for start in range(0, len(A), step):
                R[start : start + step] = covariance_descriptors(A[start : start + step], eta)
                advance(min(step, len(A) - start))
        R.flush()
        draft.replace(output)
    console = Console(highlight=False)
    console.print(f"wrote {output}: {len(A):,} descriptors, {k}×{k}", soft_wrap=True)
    console.print(f"public bounds: --eigenvalues {bounds.low:g} {bounds.high:.7g}")


def _load(path: Path, key: str | None) -> NDArray[Any]:
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        return _folder(path)
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                fits = (
                    [key]
                    if key
                    else [name for name in archive.files if archive[name].ndim in (3, 4) and "image" in name] or archive.files[:1]
                )
                if fits[0] not in archive.files:
                    raise DataError(f"{path}: no array {key!r}; it holds {', '.join(archive.files)}")
                return np.asarray(archive[fits[0]])
        return read_idx(path)
    except (DataError, ParameterError):
        raise
    except Exception as error:
        raise DataError(f"{path}: cannot be read, it may be damaged or truncated ({error})") from None


def _folder(path: Path) -> NDArray[Any]:
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURES)
    if not files:
        raise DataError(f"{path}: holds no PNG or JPEG files")
    try:
        from PIL import Image
    except ImportError:
        raise DataError("reading pictures needs Pillow; install it with: pip install 'spdp[plots]'") from None
    arrays = []
    with track("reading pictures", len(files)) as advance:
        for file in files:
            try:
                with Image.open(file) as picture:
                    arrays.append(np.asarray(picture.convert("L" if picture.mode in ("1", "L", "I;16") else "RGB")))
            except OSError as error:
                raise DataError(f"{file}: cannot be read as a picture ({error})") from None
            if arrays[-1].shape != arrays[0].shape:
                raise DataError(
                    f"{file}: {arrays[-1].shape}, but {files[0].name} is {arrays[0].shape}; pictures must be of one size and kind"
                )
            advance(1)
    return np.stack(arrays)
