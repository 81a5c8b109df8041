"""An adaptive study over sites, by processes of the command line: seconds and bytes.

    python benchmarks/sites.py
    python benchmarks/sites.py --sites 5 --k 9 --n 3000

Each site is a process of ``spdp site serve``, the coordinator of ``spdp study run``;
a folder carries their messages. Seconds are those from the first start to the last end,
Python's own start included; down and up are what one site reads and writes in rounds.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spdp import Ledger
from spdp.datasets import synthetic_spd
from spdp.federated.identity import Identity, words_of

KEY = "a key of sixteen letters, or more"
SPDP = (sys.executable, "-m", "spdp")


def run(*words):
    subprocess.run([*SPDP, *map(str, words)], check=True, capture_output=True)


def prepare(names, k, n):
    """A study that all sites have signed, in the current folder."""
    os.environ["SPDP_LEDGER_KEY"] = KEY
    budget = ("--epsilon", "1", "--delta", "1e-6", "--method", "adaptive")
    run("study", "create", "a.study", "--k", k, "--eigenvalues", "1e-2", "1e2", *budget)
    for seed, name in enumerate(names):
        np.save(f"{name}.npy", synthetic_spd(n // len(names), k, random_state=seed))
        ledger = Ledger(f"{name}.ledger", epsilon=3.0, delta=1e-5, key=KEY.encode())
        ledger.bind(np.load(f"{name}.npy"))
        own = ("--name", name, "--ledger", f"{name}.ledger", "-o", f"{name}.card")
        run("site", "join", "a.study", f"{name}.npy", *own)
    run("study", "seal", "a.study", *(f"{name}.card" for name in names))
    words = [(name, words_of(Identity.open(Path(f"{name}.identity")).public)) for name in names]
    Path("pins").write_text("".join(f"{name} {word}\n" for name, word in words))
    for name in names:
        own = ("--ledger", f"{name}.ledger", "-o", f"{name}.seal")
        run("site", "sign", "a.study", *own, "--pins", "pins", "--yes")
    os.mkdir("shared")


def studied(names):
    """Seconds of a study, by the clock and of all processors."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    serve = [
        ("site", "serve", "a.study", f"{name}.npy", "--ledger", f"{name}.ledger") for name in names
    ]
    ask = ("study", "run", "a.study", "-o", "published")
    started = [
        subprocess.Popen([*SPDP, *words, "--folder", "shared"], stdout=subprocess.DEVNULL)
        for words in [*serve, ask]
    ]
    for process in started:
        if process.wait():
            raise SystemExit("a process failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, worked


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--k", type=int, default=9)
    parser.add_argument("--n", type=int, default=3000)
    asked = parser.parse_args()
    names = [f"site-{number:02d}" for number in range(asked.sites)]
    home = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(names, asked.k, asked.n)
        seconds, worked = studied(names)
        (shared,) = Path("shared").iterdir()
        asks = [file.stat().st_size for file in shared.glob("ask-*")]
        up = [file.stat().st_size for file in shared.glob(f"answer-*-{names[0]}")]
        end = sum(file.stat().st_size for file in (shared / "draft").iterdir())
        os.chdir(home)
    d = asked.k * (asked.k + 1) // 2
    size, cores = f"k = {asked.k} (d = {d})", os.cpu_count()
    print(f"{asked.sites} sites, {size}, {len(asks)} rounds, {cores} cores")
    print(f"in all               {seconds:8.1f} s")
    print(f"of processors        {worked:8.1f} s")
    print(f"down, per site       {sum(asks) / 1e3:8.1f} kB")
    print(f"up, per site         {sum(up) / 1e3:8.1f} kB")
    print(f"draft, at the end    {end / 1e3:8.1f} kB")


if __name__ == "__main__":
    main()
