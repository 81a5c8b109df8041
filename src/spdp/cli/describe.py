"""``spdp describe``: images become matrices."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.cli.images import load_images
from spdp.cli.output import say
from spdp.errors import ParameterError

__all__ = ["describe"]

STEP = 4096  # images at a time


def describe(
    images: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES",
            help="A .npy, .npz or idx file, or a folder of PNG or JPEG files of one size.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The descriptors, .npy.")
    ],
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array of an .npz file.")
    ] = None,
    eta: Annotated[float, typer.Option(help="Regularisation added to the diagonal.")] = 1e-6,
) -> None:
    """Turn images into covariance descriptors, ready for spdp mean."""
    from spdp.descriptors import descriptor_bounds, image_stack

    if output.suffix != ".npy":
        raise ParameterError(f"{output}: descriptors are written as .npy")
    stack = image_stack(load_images(images, key))
    bounds = descriptor_bounds(stack.shape[3], eta)
    k = _write(stack, output, eta)
    say(f"wrote {output}: {len(stack):,} descriptors, {k}×{k}")
    say(f"public bounds: --trace {bounds.low:g} {bounds.trace:.7g}")


def _write(stack: Any, output: Path, eta: float) -> int:
    """Write the descriptors, all of them or none, and give their size."""
    import numpy as np

    from spdp.descriptors import covariance_descriptors
    from spdp.progress import track

    with tempfile.TemporaryDirectory(dir=output.absolute().parent, prefix=".partial-") as scratch:
        draft, R = Path(scratch) / "descriptors.npy", None
        with track("describing images", len(stack)) as advance:
            for start in range(0, len(stack), STEP):
                part = covariance_descriptors(stack[start : start + STEP], eta)
                if R is None:
                    shape = (len(stack), *part.shape[1:])
                    R = np.lib.format.open_memmap(draft, "w+", np.float64, shape)
                R[start : start + STEP] = part
                advance(len(part))
        assert R is not None  # a stack of images is not empty
        R.flush()
        draft.replace(output)
    return int(R.shape[1])
