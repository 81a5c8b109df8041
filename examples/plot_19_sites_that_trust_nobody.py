"""
Several hospitals that trust nobody
===================================

Three hospitals and a coordinator, each a process of its own that sees its own files and
what the others send. No hospital shows its exact sum to anybody. Each adds its share of
the noise, and masks that cancel in the sum over all hospitals and nowhere else.

The data are synthetic: 300 to 900 persons, one 4×4 covariance each.
"""

import json
import os
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from spdp import EigenvalueBounds, Ledger, Release, private_mean
from spdp.federated.identity import Identity, words_of
from spdp.geometry import distance_logeuclid, expm, invvecd, mean_logeuclid

rng = np.random.default_rng(0)
sizes = {"basel": 300, "cork": 500, "delft": 900}
shared, own = 0.1 * rng.standard_normal(10), 0.4
records = {
    name: expm(invvecd(own * rng.standard_normal((n, 10)) + shared)) for name, n in sizes.items()
}
public = {"epsilon": 1.0, "delta": 1e-6}

# %%
# A process for each
# ------------------
# ``at`` starts a command of spdp for each hospital at the same time, and waits for all.
# The folder stands for all hospitals' disks and for the mail between them.

place = TemporaryDirectory()
folder = Path(place.name)
os.environ["SPDP_LEDGER_KEY"] = "one for each hospital, in truth"


def spdp(*words):
    """A process of the command line."""
    command = [sys.executable, "-m", "spdp", *map(str, words)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def coordinator(*words):
    assert spdp("study", *words).wait() == 0


def at(*words):
    """The same command at every hospital, with its own files."""
    started = [spdp("site", *(str(word).format(name) for word in words)) for name in sizes]
    assert [process.wait() for process in started] == [0] * len(sizes)


for name, X in records.items():
    np.save(folder / f"{name}.npy", X)
    key = os.environ["SPDP_LEDGER_KEY"].encode()
    Ledger(folder / f"{name}.ledger", epsilon=3.0, delta=1e-5, key=key).bind(X)

# %%
# From a question to a release
# ----------------------------
# The coordinator writes down what is asked. The hospitals join and sign; each compares
# the words of the others by telephone, once, and reserves the price in its own ledger.

budget = ("--epsilon", public["epsilon"], "--delta", public["delta"])
coordinator("create", "a.study", "--k", 4, "--eigenvalues", 0.05, 20, *budget)
at("join", "a.study", "{}.npy", "--name", "{}", "--ledger", "{}.ledger", "-o", "{}.card")
coordinator("seal", "a.study", *(f"{name}.card" for name in sizes))
words = {name: words_of(Identity.open(folder / f"{name}.identity").public) for name in sizes}
(folder / "pins").write_text("".join(f"{name} {read}\n" for name, read in words.items()))
at("sign", "a.study", "--ledger", "{}.ledger", "-o", "{}.seal", "--pins", "pins", "--yes")

# %%
# Each hospital sends one file. Added up, they are the noisy sum; the hospitals check
# what was made of it, and sign.

at("sum", "a.study", "{}.npy", "--ledger", "{}.ledger", "-o", "{}.masked")
coordinator("merge", "a.study", *(f"{name}.masked" for name in sizes), "-o", "draft")
at("close", "draft", "--ledger", "{}.ledger", "-o", "{}.close")
coordinator("publish", "draft", *(f"{name}.close" for name in sizes), "-o", "published")
release = Release.load(folder / "published")
print(release.certificate["trust"])

# %%
# The picture
# -----------
# Left: what the hospitals sent, ten numbers each, over all that 64 bits can say, and
# the sum, in which the masks are gone. Right: errors that certificates promise (bars)
# and those there were (dots), for each hospital alone, for the three without a curator,
# and for one curator who sees everything. To trust nobody costs √(3/2) times the noise.


def sent(name):
    """The ten numbers of a hospital's file, after its signature."""
    text = json.loads((folder / f"{name}.masked").read_text())["answer"]
    return np.frombuffer(b64decode(text)[64:], "<u8")


masked = {name: sent(name) for name in sizes}
total = sum(masked.values()).view(np.int64)  # modulo 2⁶⁴

options = {**public, "domain": EigenvalueBounds(0.05, 20.0), "method": "oneshot"}
options["mechanism"] = "gaussian"
everyone = np.concatenate(list(records.values()))
made = {f"{name}\nalone": (private_mean(X, **options), X) for name, X in records.items()}
made["three,\nno curator"] = release, everyone
made["one\ncurator"] = private_mean(everyone, **options), everyone
promised = [np.sqrt(r.certificate["expected_squared_error"]) for r, _ in made.values()]
found = [distance_logeuclid(r.value, mean_logeuclid(X)) for r, X in made.values()]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for place_of, numbers in enumerate(masked.values()):
    left.plot(numbers.view(np.int64), np.full(10, place_of), "o", alpha=0.6)
left.plot(total, np.full(10, 3), "k|", markersize=14)
left.set(yticks=range(4), yticklabels=[*sizes, "sum"], xlim=(-(2.0**63), 2.0**63))
left.set(xticks=[-(2.0**63), 0, 2.0**63], xticklabels=["$-2^{63}$", "0", "$2^{63}$"])
left.set(title="what was sent", xlabel="numbers, modulo $2^{64}$")
right.bar(range(len(made)), promised, color="0.8", label="promised, rms")
right.plot(range(len(made)), found, "o", label="found")
right.set_xticks(range(len(made)), list(made))
right.set(ylabel="log-Euclidean error", title="and how good the release is")
figure.legend(frameon=False, loc="outside lower right", ncols=2)
plt.show()
place.cleanup()
