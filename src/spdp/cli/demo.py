"""``spdp demo``."""

from pathlib import Path
from typing import Annotated

import typer

from spdp.cli import options
from spdp.cli.output import Output, can_report, present, say

__all__ = ["demo"]


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to write the release.")
    ] = Path("spdp-demo"),
    force: options.Force = False,
) -> None:
    """Release a private mean of handwritten digits, as an example."""
    from spdp.datasets import load_images
    from spdp.descriptors import covariance_descriptors, descriptor_bounds
    from spdp.geometry import distance_logeuclid, mean_logeuclid
    from spdp.statistics.mean import private_mean

    target = Output(output, force, report=can_report())
    with target.prepared():
        images = load_images("digits").images
        X = covariance_descriptors(images)
        release = private_mean(X, epsilon=1.0, delta=1e-6, domain=descriptor_bounds(1))
        written = target.write(release)
    say(f"{len(images):,} images of digits, one per writer, say, as 9×9 covariance descriptors.")
    say("")
    present(release, written)
    realised = float(distance_logeuclid(release.value, mean_logeuclid(X)))
    say("")
    say(f"realised error: {realised:.4g} (shown here only: it is computed from the data)")
