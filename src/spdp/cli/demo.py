"""``spdp demo`` and ``spdp reproduce``."""

from pathlib import Path

import typer

from spdp.cli import options
from spdp.cli.output import Output, can_report, present, say
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.paper import ALL, FIGURES, figures
from spdp.paper.common import Settings, run, write_page
from spdp.statistics.mean import private_mean

__all__ = ["demo"]


def demo(
    output: Path = options.option(
        "Where to write the release.", "--output", "-o", default=Path("spdp-demo"), metavar="DIR"
    ),
    force: bool = options.FORCE,
) -> None:
    """Release a private mean of handwritten digits, as an example."""
    target = Output(output, force, report=can_report())
    with target.prepared():
        images = load_images("digits").images
        X = covariance_descriptors(images)
        release = private_mean(X, epsilon=1.0, delta=1e-6, domain=descriptor_bounds(1))
        written = target.write(release)
    say(f"{len(images):,} images of digits, each taken for one person's, as 9×9 descriptors.")
    say("")
    present(release, written)
    realised = float(distance_logeuclid(release.value, mean_logeuclid(X)))
    say("")
    say(f"realised error: {realised:.4g} (NOT private: computed from the data, for this demo only)")


NOT_RUN = "not run: its data were not found (set SPDP_DATA or pass --data)"


def reproduce(
    name: str = typer.Argument(
        ALL, metavar="FIGURE", help=f"{ALL}, figure-1 to figure-4, or one of {', '.join(FIGURES)}."
    ),
    output: Path = options.option(
        "Where tables, pictures and the page go.",
        "--output",
        "-o",
        default=Path("spdp-paper"),
        metavar="DIR",
    ),
    quick: bool = options.option(
        "Small sizes: minutes instead of half an hour.", "--quick", default=False
    ),
    page: Path | None = options.option("The page [default: DIR/paper.md].", metavar="FILE"),
    data: str | None = options.option(
        "Where the image sets are [default: SPDP_DATA].", metavar="DIR"
    ),
) -> None:
    """Re-run the paper's experiments. An interrupted run resumes where it stopped."""
    modules = figures(name)

    settings, results = Settings(quick, data), []
    for module in modules:
        say(module.TITLE, style="bold")
        rows = run(module, settings, output)
        results.append((module, rows))
        say(module.verdict(rows) if rows else NOT_RUN)
    say("")
    say(f"wrote {write_page(results, output, page or output / 'paper.md')}")
