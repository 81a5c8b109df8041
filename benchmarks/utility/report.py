"""The comparison in words and tables: utility.md."""

import numpy as np
from sets import HELD_OUT, SYNTHETIC, TUNED
from tables import BANDS, SIGNIFICANT, Cells, geometric, in_band, table
from words import INTRODUCTION, SPLIT

__all__ = ["markdown"]

USES = (HELD_OUT, TUNED, SYNTHETIC)
TARGETS = (0.95, 0.5, 0.55, 0.95, 0.75, 0.45)
GROUP_TARGET, SHOT_TARGET, NARROWER_TARGET, MANY = 1.15, 1.3, 0.8, 20
TIME_TARGETS = {3: 3.0, 5: 2.0, 9: 2.0}
MOONSHOTS = (((200, np.inf), 1.5), ((8, 20), 10.0))
OTHERS = ("one shot", "CoinPress", "Huang–Liang–Yi", "version 0.1", "iso", "diag", "full")
REAL = (HELD_OUT, TUNED)


def markdown(rows, times):
    cells = Cells(rows)
    parts = (
        [INTRODUCTION, "", runs_line(cells), ""],
        ["## Targets", "", *table(["target", "reached", ""], reached(cells, times))],
        bands(cells),
        groups(cells),
        [SPLIT, ""],
        bound(cells),
        others(cells),
        time_table(times),
        sets(cells),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def runs_line(cells):
    error, runs = np.median([r["relative s.e."] for r in cells]), [r["runs"] for r in cells]
    return (
        f"{len(cells)} cells, {cells.runs:,} releases: {min(runs):.0f} to {max(runs):.0f} runs a "
        "cell, fewer for many records; the standard error of a cell's mean squared error is "
        f"{error:.0%} (median)."
    )


def named(band):
    return f"> {band[0]}" if np.isinf(band[1]) else f"{band[0]}–{band[1]}"


def reached(cells, times):
    """Each target that there are figures for, what was reached, whether it is met."""
    for text, value, limit, *rest in targets(cells, times):
        at_least, form = rest or (False, ".3f")
        if np.isfinite(value):
            met = value >= limit if at_least else value <= limit
            yield text, format(value, form), "met" if met else "**missed**"


def targets(cells, times):
    """Text, value and limit; for lower limits, True and how to write the value."""
    held = cells.only(use=HELD_OUT)
    for band, limit in zip(BANDS, TARGETS, strict=True):
        value = in_band(held, band).mean_ratio("adaptive", "version 0.1")
        yield (f"new / 0.1, held out, resolution {named(band)}: ≤ {limit}", value, limit)
    averages = {g: some.mean_ratio("adaptive", "version 0.1") for g, some in grouped(cells)}
    worst = max(averages, key=averages.get)
    text = f"new / 0.1, average of a group: ≤ {GROUP_TARGET} (largest: {worst})"
    yield (text, averages[worst], GROUP_TARGET)
    text = f"adaptive / one shot, every cell: ≤ {SHOT_TARGET}"
    yield (text, cells.worst("adaptive", "one shot"), SHOT_TARGET)
    yield ("coverage of the 95 % bound: ≥ 95 %", cells.coverage(95), 0.95, True, ".2%")
    yield ("cells significantly below it: none", len(cells.below(95)), 0, False, "d")
    text = f"bound below one shot's, real data, d ≥ {MANY}: ≥ {NARROWER_TARGET:.0%} of the cells"
    yield (text, real(cells).narrower(), NARROWER_TARGET, True, ".1%")
    for band, limit in MOONSHOTS:
        value = in_band(held, band).mean_ratio("adaptive", "full")
        text = f"moonshot: new / full oracle, held out, resolution {named(band)}: ≤ {limit:g}"
        yield (text, value, limit)
    for row in times:
        k, limit = int(row["k"]), TIME_TARGETS[int(row["k"])]
        threads = "one thread" if row["threads"] == 1 else f"{row['threads']:.0f} threads"
        text = f"time over one shot's, k = {k}, {threads}: ≤ {limit:g}"
        yield (text, row["adaptive"] / row["oneshot"], limit)


def real(cells):
    """Cells of real data in many dimensions."""
    return Cells(r for r in cells if r["use"] in REAL and r["d"] >= MANY)


def grouped(cells):
    return [(g, cells.only(group=g)) for g in dict.fromkeys(r["group"] for r in cells)]


def bands(cells):
    head = ["resolution", "sets", "cells", "target", "new / 0.1", "worst cell"]
    head += ["rms new", "rms 0.1", "new / full", "0.1 / full", "before projection / 0.1"]
    lines = []
    for band, limit in zip(BANDS, TARGETS, strict=True):
        for use in USES:
            some = in_band(cells.only(use=use), band)
            if some:
                target = limit if use == HELD_OUT else ""
                lines.append([named(band), use, len(some), target, *band_figures(some)])
    return [
        "## Bands of resolution",
        "",
        "Geometric means over cells; rms errors are geometric means too, so they compare new with "
        "0.1 within a row, not row with row. The last column is the search alone, without the last "
        "projection onto the eigenvalue bounds, which version 0.1 lacks.",
        "",
        *table(head, lines),
        *out_of_reach(cells),
        "![Squared error over the full-shape oracle's against resolution](utility-error.png)",
        "",
    ]


def out_of_reach(cells):
    """What the last band's limit would ask for."""
    band, limit = BANDS[-1], TARGETS[-1]
    some = in_band(cells.only(use=HELD_OUT), band)
    if not some:
        return []
    former = some.mean_ratio("version 0.1", "full")
    return [
        f"At {named(band)} version 0.1 lies at {former:.2f} times the full-shape oracle on the "
        f"sets held out: {limit:g} of it would be {limit * former:.2f} times an oracle that spends "
        "nothing to find mean, axes and radius, less than a search costs.",
        "",
    ]


def band_figures(some):
    ratio = f"{some.mean_ratio('adaptive', 'version 0.1'):.3f}"
    return (
        f"**{ratio}**" if some[0]["use"] == HELD_OUT else ratio,
        f"{some.worst('adaptive', 'version 0.1'):.2f}",
        f"{some.rms('adaptive'):.3g}",
        f"{some.rms('version 0.1'):.3g}",
        f"{some.mean_ratio('adaptive', 'full'):.3g}",
        f"{some.mean_ratio('version 0.1', 'full'):.3g}",
        f"{some.mean_ratio('searched', 'version 0.1'):.3f}",
    )


def groups(cells):
    head = ["group", "used for tuning", "cells", "new / 0.1", "worst cell"]
    head += ["rms new", "rms 0.1", "worst / one shot", "0.1's", "lowest coverage, 95 %"]
    lines = []
    for name, some in grouped(cells):
        tuned = "no" if some[0]["use"] == HELD_OUT else "yes"
        figures = (
            f"{some.mean_ratio('adaptive', 'version 0.1'):.2f}",
            f"{some.worst('adaptive', 'version 0.1'):.2f}",
            f"{some.rms('adaptive'):.3g}",
            f"{some.rms('version 0.1'):.3g}",
            f"{some.worst('adaptive', 'one shot'):.2f}",
            f"{some.worst('version 0.1', 'one shot'):.2f}",
            f"{some.lowest(95):.3f}",
        )
        lines.append([name, tuned, len(some), *figures])
    order = sorted(cells, key=lambda r: -r["adaptive"] / r["one shot"])
    listed = "; ".join(f"{where(r)}: {against_one_shot(r)}" for r in order[:5])
    return [
        "## Groups of data",
        "",
        *table(head, lines),
        f"Largest against one shot, with standard errors: {listed}.",
        "",
    ]


def against_one_shot(row):
    ratio = row["adaptive"] / row["one shot"]
    return f"{ratio:.2f} ± {ratio * row['relative s.e.']:.2f}"


def where(row):
    return f"{row['set']}, n = {row['n']:,.0f}, ε = {row['epsilon']:g}"


def bound(cells):
    head = ["sets", "releases", "95 % bound", "99 % bound", "lowest cell, 95 %"]
    head += ["cells significantly below 95 %", "below 99 %", "bound / rms error"]
    head += ["second statement", "its cells below", "its bound / rms"]
    lines = []
    for use in (*USES, "all"):
        some = cells if use == "all" else cells.only(use=use)
        if not some:
            continue
        lines.append(
            [
                use,
                f"{some.runs:,}",
                f"{some.coverage(95):.2%}",
                f"{some.coverage(99):.2%}",
                f"{some.lowest(95):.3f}",
                len(some.below(95)),
                len(some.below(99)),
                f"{some.tightness():.1f}",
                f"{some.coverage_within():.2%}",
                len(some.below_within()),
                f"{some.tightness_within():.1f}",
            ]
        )
    below = [*cells.below(95), *cells.below(99), *cells.below_within()]
    faults = "; ".join(dict.fromkeys(where(r) for r in below))
    return [
        "## The error bound",
        "",
        f"Share of releases whose realised error lies below the bound, runs counted; a cell is "
        f"significantly below if so few covered runs have probability < {SIGNIFICANT:.0%} at the "
        f"stated level (were every coverage exactly at its level, {SIGNIFICANT * len(cells):.0f} "
        f"of {len(cells)} cells would be, by chance). The second statement is the "
        "bound on the distance to the mean of the records clipped to within a stated reach, where "
        "the search clipped. Bound over rms error: median over cells.",
        "",
        *table(head, lines),
        f"Cells significantly below: {faults or 'none'}.",
        "",
        *narrower(cells),
        "![Bound against realised error](utility-bound.png)",
        "",
    ]


def narrower(cells):
    """How often the bound is below one shot's."""
    words = []
    for use in REAL:
        some = real(cells.only(use=use))
        words.append(f"{use} {some.narrower():.0%} of {len(some)} cells" if some else "")
    some = real(cells)
    return [
        f"The 95 % bound is on average below one shot's in {some.narrower():.0%} of the "
        f"{len(some)} cells of real data with d ≥ {MANY} ({', '.join(filter(None, words))}); in "
        f"{some.as_wide()} more it is the same, because the whole domain is used.",
        "",
    ]


def others(cells):
    head = ["resolution", "cells", "rms adaptive", *(f"{name} / adaptive" for name in OTHERS)]
    lines = []
    for band in BANDS:
        some = in_band(cells, band)
        if some:
            ratios = (f"{some.mean_ratio(name, 'adaptive'):.3g}" for name in OTHERS)
            lines.append([named(band), len(some), f"{some.rms('adaptive'):.3g}", *ratios])
    return [
        "## Other methods",
        "",
        "Squared error over the adaptive mean's, all sets: above 1, adaptive is better.",
        "",
        *table(head, lines),
    ]


def time_table(times):
    head = ["k", "threads", "one shot, s", "adaptive, s", "ratio", "of processor time", "target"]
    lines = [
        [
            int(row["k"]),
            int(row["threads"]),
            f"{row['oneshot']:.3f}",
            f"{row['adaptive']:.3f}",
            f"{row['adaptive'] / row['oneshot']:.2f}",
            f"{row['adaptive cpu'] / row['oneshot cpu']:.2f}",
            f"{TIME_TARGETS[int(row['k'])]:g}",
        ]
        for row in times
    ]
    return [
        "## Time",
        "",
        "`private_mean` end to end, n = 100,000 Wishart matrices in memory, ε = 1, noise from the "
        "operating system's entropy; medians of 5, the methods in turn, after one that does not "
        "count. The ratio of processor time is less sensitive to other work on the machine, of "
        "which there was some.",
        "",
        *table(head, lines),
    ]


def sets(cells):
    """Every cell: rms error and ratio, a row per set and number of records."""
    epsilons = sorted({r["epsilon"] for r in cells})
    head = ["set", "n", "d", "used for tuning", *(f"ε = {e:g}" for e in epsilons)]
    head += ["resolution", "worst / one shot", "lowest coverage", "bound / rms"]
    lines = []
    for name, n in dict.fromkeys((r["set"], r["n"]) for r in cells):
        some = cells.only(set=name, n=n)
        tuned = "no" if some[0]["use"] == HELD_OUT else "yes"
        figures = (
            f"{np.sqrt(r['adaptive']):.3g} ({r['adaptive'] / r['version 0.1']:.2f})" for r in some
        )
        spread = f"{some[0]['resolution']:.3g}–{some[-1]['resolution']:.3g}"
        tight = geometric(r["bound 95"] / np.sqrt(r["adaptive"]) for r in some)
        last = (f"{some.worst('adaptive', 'one shot'):.2f}", f"{some.lowest(95):.3f}")
        lines.append(
            [name, f"{n:,.0f}", int(some[0]["d"]), tuned, *figures, spread, *last, f"{tight:.1f}"]
        )
    return [
        "## All cells",
        "",
        "rms error of the adaptive mean (squared error over version 0.1's).",
        "",
        *table(head, lines),
    ]
