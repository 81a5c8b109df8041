"""``spdp mean``, ``spdp plan`` and ``spdp demo``."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from spdp.adaptive import predict
from spdp.cli.ledger import fingerprint_key
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.domain import Ball, Domain, EigenvalueBounds
from spdp.errors import DataError, ParameterError
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.io import TENSOR_ORDERS, dask_records, open_records
from spdp.laws import law_of
from spdp.ledger import Ledger
from spdp.mean import NAMES, choose_method, plan_one_shot, private_mean
from spdp.privacy import gaussian_mu
from spdp.records import Records
from spdp.release import Release
from spdp.report import html_report, plan_png, terminal_curve

__all__ = ["demo", "mean", "plan"]

Mechanism = Enum("Mechanism", {"auto": "auto", "gaussian": "gaussian", "laplace": "laplace"})
Method = Enum("Method", {"auto": "auto", "oneshot": "oneshot", "adaptive": "adaptive"})
Adjacency = Enum("Adjacency", {"replace_one": "replace-one", "add_remove": "add-remove"})
OnInvalid = Enum("OnInvalid", {"raise_": "raise", "center": "center"})
Order = Enum("Order", {name: name for name in TENSOR_ORDERS})  # type: ignore[misc]

Epsilon = Annotated[float, typer.Option(help="Privacy loss ε.")]
Delta = Annotated[float, typer.Option(help="Privacy slack δ; 0 asks for pure differential privacy.")]
Eigenvalues = Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Public bounds on every record's eigenvalues.")]
Radius = Annotated[float | None, typer.Option(help="Public radius of a log-Euclidean ball that records are forced into.")]
Center = Annotated[Path | None, typer.Option(help="Public centre of that ball, a .npy file (default: the identity).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def domain_from(eigenvalues: tuple[float, float] | None, radius: float | None, center: Path | None) -> Domain:
    if (eigenvalues is None) == (radius is None):
        raise ParameterError(
            "pass either --eigenvalues LOW HIGH or --radius R: the public set that every record is forced into. "
            "It must come from public knowledge; bounds computed from the data would leak the data."
        )
    if eigenvalues is not None:
        if center is not None:
            raise ParameterError("--center goes with --radius")
        return EigenvalueBounds(*eigenvalues)
    assert radius is not None
    if center is None:
        return Ball(radius)
    try:
        return Ball(radius, np.load(center, allow_pickle=False))
    except (OSError, EOFError) as error:
        raise DataError(f"{center}: cannot be read as a .npy matrix ({error})") from None


def check_output(output: Path | None) -> None:
    """Find out before any budget is spent whether the results can be written."""
    if output is None:
        return
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: exists and is not a directory")
    home = next(p for p in [output, *output.absolute().parents] if p.exists())
    if not os.access(home, os.W_OK):
        raise DataError(f"{output}: cannot be written to")


def show(release: Release, console: Console) -> None:
    c = release.certificate
    table = Table(show_header=False, title=f"Private mean, {c['k']}×{c['k']}", title_justify="left")
    size = f"{c['n']:,}" if c["n"] is not None else f"about {c['n_estimate']:,.0f} (itself private)"
    safe = "exact integer noise" if c["float_safe"] else "floating-point noise (not float-safe)"
    q = c["squared_error_quantiles"]
    table.add_row("guarantee", f"ε = {c['epsilon']:g}, δ = {c['delta']:g}, {c['adjacency']}")
    table.add_row("private", "yes" if c["private"] else "[bold red]NO: seeded simulation[/]")
    table.add_row("mechanism", f"{c['mechanism']} ({c['calibration']}), {safe}")
    if "steps" in c:
        table.add_row("method", f"adaptive: {', '.join(step['step'] for step in c['steps'])}")
    table.add_row("records", size)
    table.add_row("domain", json.dumps({k: v for k, v in c["domain"].items() if k != "center"}))
    what = "noise" if "steps" in c else "error"
    table.add_row(f"expected {what} (rms ρ)", f"{np.sqrt(c['expected_squared_error']):.4g}")
    table.add_row(f"{what} at most, 95 %", f"{np.sqrt(q['95%']):.4g}")
    if "steps" in c:
        table.add_row("bias from clipping", "not known")
    console.print(table)


def mean(
    data: Annotated[Path, typer.Argument(help="Matrices: .npy, .npz, .mat, .h5, .zarr, .nii or .nii.gz.")],
    epsilon: Epsilon,
    delta: Delta,
    eigenvalues: Eigenvalues = None,
    radius: Radius = None,
    center: Center = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Directory for mean.npy and certificate.json.")] = None,
    mechanism: Annotated[Mechanism, typer.Option(help="Law of the noise.")] = Mechanism.auto,
    method: Annotated[Method, typer.Option(help="Noise for the whole domain, or a private search first.")] = Method.auto,
    adjacency: Annotated[Adjacency, typer.Option(help="Whether the number of records is public.")] = Adjacency.replace_one,
    on_invalid: Annotated[OnInvalid, typer.Option(help="What an unusable record does.")] = OnInvalid.raise_,
    ledger: Annotated[
        Path | None, typer.Option(help="Account of the dataset's budget; the release is refused if it would exceed it.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="What the ledger's entry is called.")] = None,
    key: Annotated[str | None, typer.Option(help="Which array, where the file holds several.")] = None,
    order: Annotated[Order | None, typer.Option(help="Component order of a NIfTI tensor image.")] = None,
    mask: Annotated[Path | None, typer.Option(help="NIfTI mask of the voxels that are records.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask cluster that can see the file.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Start a local Dask cluster of this many workers.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Also write report.html into the output directory.")] = False,
    as_json: Json = False,
) -> None:
    """Release the private Fréchet mean of the matrices in a file."""
    domain = domain_from(eigenvalues, radius, center)
    if report and output is None:
        raise ParameterError("--report needs an output directory: add -o DIR")
    check_output(output)
    account = None if ledger is None else Ledger(ledger, key=fingerprint_key())
    with _records(data, key, None if order is None else order.value, mask, dask, workers) as records:
        release = private_mean(
            records,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            mechanism=mechanism.value,
            method=method.value,
            adjacency=adjacency.value,
            on_invalid=on_invalid.value,
            ledger=account,
            label=label if label is not None else data.name,
        )
    console = Console(highlight=False)
    if as_json:
        print(json.dumps({"value": release.value.tolist(), "certificate": release.certificate}))
    else:
        show(release, console)
        if output is None:
            console.print(np.array2string(release.value, precision=5, suppress_small=True), markup=False)
    if output is not None:
        write(release, output, report, console, quiet=as_json)


@contextmanager
def _records(data: Path, key: str | None, order: str | None, mask: Path | None, dask: str | None, workers: int | None) -> Iterator[Records]:
    """The file's records: here, or on a cluster that lasts as long as the release."""
    if dask is None and workers is None:
        yield open_records(data, key=key, order=order, mask=mask)
        return
    if dask is not None and workers is not None:
        raise ParameterError("pass either --dask, the address of a cluster, or --workers, the size of a local one")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise DataError("a cluster needs Dask; install it with: pip install 'spdp[dask]'") from None
    if dask is not None:
        with Client(dask, timeout="20s") as client:
            yield dask_records(data, client, key=key)
        return
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield dask_records(data, client, key=key)


def write(release: Release, output: Path, report: bool, console: Console, quiet: bool) -> None:
    release.save(output)
    if report:
        page = output / "report.html"
        page.write_text(html_report(release), encoding="utf-8")
    if not quiet:
        for file in ("mean.npy", "certificate.json", *(["report.html"] if report else [])):
            console.print(f"wrote {output / file}", soft_wrap=True)


def plan(
    k: Annotated[int, typer.Option(min=1, help="Size of the matrices.")],
    n: Annotated[int, typer.Option(min=1, help="Number of records.")],
    epsilon: Epsilon,
    delta: Delta,
    eigenvalues: Eigenvalues = None,
    radius: Radius = None,
    error: Annotated[float | None, typer.Option(help="Wanted rms error: what n or ε would reach it?")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a PNG of error against n (needs the plots extra).")] = None,
    adjacency: Annotated[Adjacency, typer.Option(help="Whether the number of records is public.")] = Adjacency.replace_one,
    as_json: Json = False,
) -> None:
    """Show, before any data is touched, how accurate a release would be."""
    domain = domain_from(eigenvalues, radius, None)
    fixed: dict[str, Any] = {"domain": domain, "adjacency": adjacency.value}
    names = ["laplace"] if delta == 0 else ["gaussian", "laplace"] if epsilon > 0 else ["gaussian"]
    shots = {name: plan_one_shot(k, epsilon=epsilon, delta=delta, mechanism=name, **fixed) for name in names}
    best = plan_one_shot(k, epsilon=epsilon, delta=delta, **fixed)
    rows = {}
    for name, shot in shots.items():
        law = law_of(shot.law(n))
        rows[name] = {
            "mechanism": NAMES[name],
            "rms_error": float(np.sqrt(law.mean())),
            "error_95": float(np.sqrt(law.ppf(0.95))),
        }
    result: dict[str, Any] = {"k": k, "n": n, "epsilon": epsilon, "delta": delta, "domain": domain.describe()}
    result |= {"domain_radius": domain.radius_for(k), "mechanisms": rows, "best": best.noise}
    result["method"] = choose_method(best, n, epsilon, delta, "auto")
    if delta > 0 and adjacency.value == "replace-one":
        result["adaptive"] = _plan_adaptive(k, n, epsilon, delta, domain)
    result["hopeless"] = best.expected_squared_error(n) > domain.radius_for(k) ** 2
    if error is not None:
        if not error > 0:
            raise ParameterError(f"error must be positive, got {error}")
        result["wanted_error"] = error
        result["n_needed"] = int(np.ceil(np.sqrt(best.expected_squared_error(1.0)) / error))
        result["epsilon_needed"] = _epsilon_needed(k, n, delta, error, fixed)
    grid = np.unique(np.geomspace(max(1, n / 30), n * 30, 9).round())
    errors = {NAMES[name]: np.sqrt([shot.expected_squared_error(m) for m in grid]) for name, shot in shots.items()}
    if plot is not None:
        plan_png(plot, grid, errors, n)
    if as_json:
        print(json.dumps(result))
        return
    _show_plan(result, grid, errors[NAMES[best.noise]])
    if plot is not None:
        Console().print(f"wrote {plot}", soft_wrap=True)


def _plan_adaptive(k: int, n: int, epsilon: float, delta: float, domain: Domain) -> list[dict[str, float]]:
    """Predicted rms noise of the adaptive method, for data that spread over some part of the domain's radius."""
    d, mu, radius = k * (k + 1) // 2, gaussian_mu(epsilon, delta), domain.radius_for(k)
    return [{"spread": part, "rms_noise": float(np.sqrt(predict(n, d, mu, radius, part * radius)))} for part in (0.5, 0.2, 0.1, 0.05)]


def _epsilon_needed(k: int, n: int, delta: float, error: float, fixed: dict[str, Any]) -> float | None:
    """Smallest ε (to 1 %) whose best mechanism reaches the wanted rms error; None beyond ε = 500."""

    def reaches(e: float) -> bool:
        return plan_one_shot(k, epsilon=e, delta=delta, **fixed).expected_squared_error(n) <= error**2

    low, high = 1e-6, 500.0
    if not reaches(high):
        return None
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return float(f"{high:.3g}")


def _show_plan(result: dict[str, Any], grid: Any, errors: Any) -> None:
    console = Console(highlight=False)
    title = f"n = {result['n']:,}, k = {result['k']}, ε = {result['epsilon']:g}, δ = {result['delta']:g}"
    title += f", domain radius {result['domain_radius']:.4g}"
    table = Table("mechanism", "rms error ρ", "95 % of releases within", title=title, title_justify="left")
    for name, row in result["mechanisms"].items():
        style = "bold" if name == result["best"] else ""
        table.add_row(row["mechanism"], f"{row['rms_error']:.4g}", f"{row['error_95']:.4g}", style=style)
    for row in result.get("adaptive", []):
        style = "bold" if result["method"] == "adaptive" else ""
        table.add_row(f"adaptive, if the data spread over {row['spread']:.0%} of the radius", f"{row['rms_noise']:.4g}", "", style=style)
    console.print(table)
    if result["hopeless"]:
        console.print("The budget is too small: no method can be expected to beat returning the domain's centre.", style="red")
    if "wanted_error" in result:
        e = result["epsilon_needed"]
        console.print(
            f"rms error {result['wanted_error']:g} needs n = {result['n_needed']:,} at this ε, or "
            + (f"ε = {e:g} at this n" if e else "more than ε = 500 at this n")
        )
    console.print("\nrms error against the number of records (logarithmic bars):")
    for line in terminal_curve(grid, errors, "n"):
        console.print(line, markup=False)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the release.")] = Path("spdp-demo"),
) -> None:
    """Release the private mean of covariance descriptors of 1,797 handwritten digits, and compare it with the secret mean."""
    console = Console(highlight=False)
    check_output(output)
    images = load_images("digits").images
    X = covariance_descriptors(images)
    console.print(f"Covariance descriptors (9×9) of scikit-learn's {len(images):,} images of digits, one per writer, say.\n")
    release = private_mean(X, epsilon=1.0, delta=1e-6, domain=descriptor_bounds(1))
    show(release, console)
    realised = float(distance_logeuclid(release.value, mean_logeuclid(X)))
    console.print(f"realised error (a demonstration only: it is computed from the data): {realised:.4g}")
    write(release, output, True, console, quiet=False)
