"""Speed on a GPU beside torch on the same GPU, in one run.

    python benchmarks/gpu.py [--quick] [--output FOLDER]

ns per matrix of the private lattice sum of float64 records in device memory (read,
decompose, logarithm, clip, encode, integer norm rule, exact sum), of reading alone, and
of torch's ``linalg.eigh``, logarithm and mean; then one shot and adaptive releases.
Writes gpu-table.md, by default into benchmarks/results, where gpu.md says what it
means. Needs CuPy, and torch to compare with.
"""

import argparse
import statistics
import time
from pathlib import Path

import cupy

from spdp import EigenvalueBounds
from spdp.kernels import cuda

SIZES = {
    2: 256_000_000,
    3: 64_000_000,
    5: 16_000_000,
    9: 8_000_000,
    11: 8_000_000,
    20: 1_000_000,
    30: 400_000,
    64: 64_000,
}
TORCH = {2: 32_000, 3: 32_000, 5: 32_000, 9: 32_000, 11: 32_000, 20: 16_000, 30: 8_000, 64: 2_000}
MOST_NS = {2: 0.02, 3: 0.1, 5: 0.5, 9: 2.5, 11: 5.0, 20: 40.0, 30: 120.0, 64: 2000.0}
LEAST_RATIO = {2: 1500, 3: 300, 5: 100, 9: 60, 11: 40, 20: 15, 30: 8, 64: 3}
DOMAIN = EigenvalueBounds(1e-3, 1e2)
RESULTS = Path(__file__).parent / "results"


def covariances(n, k, seed=0):
    """Wishart matrices on the device, made in pieces."""
    rng = cupy.random.default_rng(seed)
    X = cupy.empty((n, k, k))
    step = max(1, (1 << 30) // (16 * k * k))
    for start in range(0, n, step):
        A = rng.standard_normal((min(step, n - start), k, 2 * k))
        X[start : start + step] = A @ A.transpose(0, 2, 1) / (2 * k)
    X += X.transpose(0, 2, 1).copy()
    X *= 0.5
    return X


def seconds(function, *arguments, repeats=7):
    """Median time of a call that leaves nothing running, after one to warm up."""
    function(*arguments)
    times = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        function(*arguments)
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def torch_mean(X):
    import torch

    w, V = torch.linalg.eigh(X)
    L = (V * torch.log(w).unsqueeze(-2)) @ V.transpose(-1, -2)
    return L.mean(dim=0)


def torch_seconds(X):
    """Per matrix, at the better of two batch sizes; None without torch.

    Larger batches fail or ask for more memory than there is.
    """
    try:
        import torch
    except ImportError:
        return None
    batches = [torch.from_dlpack(X[: len(X) // part]) for part in (1, 4)]
    return min(seconds(torch_mean, T, repeats=3) / len(T) for T in batches)


def table(quick):
    for k, n in SIZES.items():
        n = n // 16 if quick else n
        X = covariances(n, k)
        region = DOMAIN.region(k)
        ours = seconds(cuda.lattice_sum, X, region) / n * 1e9
        reading = seconds(lambda X: X.sum(), X) / n * 1e9
        peer = torch_seconds(X[: TORCH[k]])
        yield k, n, ours, reading, None if peer is None else peer * 1e9
        del X
        cupy.get_default_memory_pool().free_all_blocks()


def releases(quick):
    """One shot and adaptive of records on the device; noise is drawn on the host."""
    from spdp import private_mean

    options = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "anyway": True}

    def release(X, method):
        return private_mean(X, method=method, **options)

    for k, n in ((3, 1_000_000), (3, 100_000_000), (9, 1_000_000), (9, 10_000_000)):
        X = covariances(n // 16 if quick else n, k)
        times = [seconds(release, X, method, repeats=9) for method in ("oneshot", "adaptive")]
        yield k, len(X), *times
        del X
        cupy.get_default_memory_pool().free_all_blocks()


def streamed(quick):
    """One shot of records in the host's memory, sent to the device block by block."""
    from spdp import private_mean

    options = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "anyway": True}

    def release(X, method):
        return private_mean(X, method=method, engine="gpu", **options)

    for k, n in ((3, 30_000_000), (9, 3_000_000), (30, 200_000)):
        X = covariances(n // 16 if quick else n, k).get()
        times = [seconds(release, X, method, repeats=3) for method in ("oneshot", "adaptive")]
        yield k, len(X), *times, X.nbytes / times[0] / 1e9
        cupy.get_default_memory_pool().free_all_blocks()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [
        f"{device}, float64 records in device memory, ns per matrix.",
        "",
        "| k | n | private sum | at most | reading alone | torch | times torch | at least |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for k, n, ours, reading, peer in table(options.quick):
        other = "" if peer is None else f"{peer:.4g}"
        ratio = "" if peer is None else f"{peer / ours:,.0f}"
        row = f"{k} | {n:,} | {ours:.4g} | {MOST_NS[k]:g} | {reading:.3g} | {other} | {ratio}"
        lines.append(f"| {row} | {LEAST_RATIO[k]:,} |")
        print(lines[-1], flush=True)
    lines += ["", "| k | n | one shot, ms | adaptive, ms | ratio |", "|---|---|---|---|---|"]
    for k, n, one, search in releases(options.quick):
        figures = f"{k} | {n:,} | {one * 1e3:.3g} | {search * 1e3:.3g} | {search / one:.2f}"
        lines.append(f"| {figures} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "| k | n | streamed one shot, ms | adaptive, ms | GB/s |",
        "|---|---|---|---|---|",
    ]
    for k, n, one, search, rate in streamed(options.quick):
        figures = f"{k} | {n:,} | {one * 1e3:.3g} | {search * 1e3:.3g} | {rate:.3g}"
        lines.append(f"| {figures} |")
        print(lines[-1], flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "gpu-table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
