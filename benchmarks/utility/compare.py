"""Accuracy at the same (ε, δ): the adaptive mean beside what there is to compare.

    python benchmarks/utility/compare.py [--data DIR] [--quick] [--only SET]
        [--output DIR] [--cache DIR] [--report]

Writes utility.csv (all figures, cell by cell), utility-time.csv, utility.md and two
pictures, into benchmarks/results by default. Data are looked for in DIR, ``SPDP_DATA``,
or shared/data beside the checkout; sets that are not at hand are skipped with a
message. ``--cache`` keeps log-vectors, so that descriptors are computed once;
``--report`` writes text and pictures again from the tables of an earlier run.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: one thread is faster

from cells import EPSILONS, cell, runs_of, version_0_1
from pictures import draw
from report import markdown
from sets import SETS, data_folder, records
from timing import SIZES, THREADS, seconds

from spdp.errors import DataError

RESULTS = Path(__file__).parents[1] / "results"


def run(options):
    """Rows of all cells, shown and kept as they come."""
    data, earlier, rows, begun = data_folder(options.data), version_0_1(), [], time.monotonic()
    wanted = [s for s in SETS if options.only in (None, s.name, s.family)]
    if not wanted:
        raise SystemExit(f"no set {options.only!r}; there are {names()}")
    for i, chosen in enumerate(wanted, 1):
        try:
            here = records(chosen, data, options.cache)
        except DataError as error:
            print(f"{chosen.name}: skipped, {error}", flush=True)
            continue
        n = len(here.Y)
        for epsilon in EPSILONS:
            runs = runs_of(chosen, n, options.quick)
            rows.append(cell(chosen, here, epsilon, runs, earlier))
        ratios = " ".join(f"{r['adaptive'] / r['version 0.1']:.2f}" for r in rows[-4:])
        elapsed = (time.monotonic() - begun) / 60
        print(f"[{i}/{len(wanted)}, {elapsed:.1f} min] {chosen.name} n={n}: {ratios}", flush=True)
        write(rows, options.output / "utility.csv")
    return rows


def names():
    return ", ".join(dict.fromkeys(s.family for s in SETS))


def clock(output):
    """Times of both methods, for every size and number of threads."""
    rows = []
    for threads in THREADS:
        for k in SIZES:
            rows.append(seconds(k, threads))
            print(f"time: {rows[-1]}", flush=True)
    write(rows, output / "utility-time.csv")
    return rows


def write(rows, file):
    def figure(value):
        return f"{value:.6g}" if isinstance(value, float) else value

    with file.open("w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: figure(value) for name, value in row.items()} for row in rows)


def read(file):
    """Rows of a table written here, numbers as floats."""

    def value(text):
        try:
            return float(text)
        except ValueError:
            return text

    with file.open(encoding="utf-8") as table:
        return [{name: value(text) for name, text in row.items()} for row in csv.DictReader(table)]


def main():
    parser = argparse.ArgumentParser(description="Accuracy at the same (ε, δ).")
    parser.add_argument("--data", help="where the data are")
    parser.add_argument("--quick", action="store_true", help="a few runs per cell")
    parser.add_argument("--only", metavar="SET", help=f"one set or family: {names()}")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--cache", help="folder that keeps log-vectors")
    parser.add_argument("--report", action="store_true", help="from the tables of an earlier run")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.report:
        if not run(options):
            raise SystemExit("no data at hand: pass --data")
        clock(options.output)
    rows, times = (read(options.output / f"utility{part}.csv") for part in ("", "-time"))
    text = markdown(rows, times)
    (options.output / "utility.md").write_text(text, encoding="utf-8")
    draw(rows, options.output)
    print(text)


if __name__ == "__main__":
    main()
