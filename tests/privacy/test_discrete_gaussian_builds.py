"""The compiled sampler, built otherwise: by other compilers, and with errors planted.

A decision is made only where it is proven, so that no compiler and no flag changes a
draw, but for flags that break IEEE arithmetic, with which it does not compile.
"""

import ctypes
import json
import math
import random
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from exact_strips import check, enclosed, level
from strip_words import Stream, counted, cut_words, exact_counts, far_out, replay, zeros

from spdp.privacy import discrete_gaussian, discrete_gaussian_numpy

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "spdp" / "kernels" / "native" / "discrete_gaussian.cpp"
HOST = Path(__file__).with_name("discrete_gaussian_on_host.cpp")
COMPILERS = [found for name in ("g++", "clang++") if (found := shutil.which(name))]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C++ compiler")
UNSAFE = re.compile(r"fast-math|-Ofast|unsafe-math|associative-math|reciprocal-math|fp:fast")
ROOM = 1 << 16


ROW = ctypes.c_uint32 * 256


class Table(ctypes.Structure):
    _fields_ = [
        ("scale", ctypes.c_double),
        *[(name, ctypes.c_uint32) for name in ("bits", "width", "strips", "top", "tail_strips")],
        *[(name, ROW) for name in ("height", "sure", "own", "other", "shift")],
    ]


class Open(ctypes.Structure):
    _fields_ = [
        ("place", ctypes.c_int64),
        ("tail", ctypes.c_bool),
        ("negative", ctypes.c_bool),
        ("cell", ctypes.c_uint32),
        ("magnitude", ctypes.c_uint64),
    ]


class Host:
    """A build of the sampler's source, with the face of the compiled kernels."""

    HAS_ENTROPY = False

    def __init__(self, folder, text=None, compiler=None, flags=("-O2",)):
        source, library = Path(folder) / "discrete_gaussian.cpp", Path(folder) / "host.so"
        source.write_text(SOURCE.read_text() if text is None else text)
        given = [f'-DSTRIPS="{source}"', "-I", str(SOURCE.parent), "-std=c++17", "-shared", "-fPIC"]
        command = [compiler or COMPILERS[0], *given, *flags, str(HOST), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        self.library = ctypes.CDLL(str(library))
        self.library.host_make.argtypes = [ctypes.c_double, ctypes.c_uint32, ctypes.c_void_p]
        self.library.host_weight.argtypes = [ctypes.c_uint64, ctypes.c_double]
        self.library.host_weight.restype = ctypes.c_double
        whole, place = ctypes.c_longlong, ctypes.c_void_p
        kinds = [place, place, whole, place, whole, whole, place, place, whole, place]
        self.library.host_propose.argtypes, self.library.host_propose.restype = kinds, whole
        self.found, self.opened = (Open * ROOM)(), ctypes.c_longlong()

    def StripTable(self, scale, bits=32):
        table = Table()
        if not self.library.host_make(scale, bits, ctypes.byref(table)):
            raise ValueError("no table")
        return table

    def propose(self, table, words, total, done, out):
        """Like :func:`discrete_gaussian_numpy.propose`."""
        given = np.ascontiguousarray(words)
        each = 2 if table.width > 31 else 1
        pointers = given.ctypes.data, len(given) // each, total.ctypes.data, done, len(total)
        done = self.library.host_propose(
            ctypes.byref(table),
            *pointers,
            out.ctypes.data,
            self.found,
            ROOM,
            ctypes.byref(self.opened),
        )
        assert self.opened.value <= ROOM
        fields = ("place", "tail", "negative", "cell", "magnitude")
        listed = self.found[: self.opened.value]
        return done, [tuple(getattr(one, name) for name in fields) for one in listed]

    def draw_gaussian(self, table, total, out, read):
        done, listed = 0, []
        each = 2 if table.width > 31 else 1
        while done < len(total):
            some = min(2 * (len(total) - done) + 4, 2048 // each)
            words = np.frombuffer(read(8 * each * some), "<u8")
            done, more = self.propose(table, words, total, done, out)
            listed += more
        return listed


# --- flags


def test_no_build_flag_breaks_ieee_arithmetic():
    """Neither those of the project nor those that the last build here used."""
    files = [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", *ROOT.glob("build/*/build.ninja")]
    assert not [file for file in files if UNSAFE.search(file.read_text())]
    assert UNSAFE.search("target_compile_options(sampler PRIVATE -ffast-math)")
    assert "-ffp-contract=off" in (ROOT / "CMakeLists.txt").read_text()


@needs_compiler
@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast"])
def test_it_does_not_compile_with_unsafe_arithmetic(flag, tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as failure:
        Host(tmp_path, flags=(flag,))
    assert "IEEE arithmetic" in failure.value.stderr


# --- builds

BUILDS = [
    ("g++", ("-O3", "-mavx2", "-mfma", "-ffp-contract=fast")),
    ("g++", ("-O0", "-ffp-contract=off")),
    ("g++", ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan")),
    ("clang++", ("-O2", "-ffp-contract=off")),
    ("clang++", ("-O3", "-mavx2", "-mfma", "-ffp-contract=fast")),
]
CASES = [(4.0, 32), (4.0, 12), (1234.5678, 12), (2.0**40 + 3, 32), (2.0**40 + 3, 12)]


def drawn(module_native, monkeypatch, scale, bits, table=None):
    monkeypatch.setattr(discrete_gaussian, "native", lambda: module_native)
    table = discrete_gaussian.make_table(scale, bits) if table is None else table
    given = {"table": table, "read": Stream(3), "digits": Stream(4)}
    return discrete_gaussian.gaussian(zeros(1500), scale, **given).tolist()


@needs_compiler
@pytest.mark.parametrize(
    ("compiler", "flags"), BUILDS, ids=[" ".join([one, *flags]) for one, flags in BUILDS]
)
def test_builds_draw_alike(compiler, flags, tmp_path, monkeypatch):
    if not (found := shutil.which(compiler)):
        pytest.skip(f"no {compiler}")
    if "-mfma" in flags and "fma" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no fused operations here")
    plain = Host(tmp_path)
    (tmp_path / "other").mkdir()
    other = Host(tmp_path / "other", compiler=found, flags=flags)
    for scale, bits in CASES:
        table = other.StripTable(scale, bits)
        check(table)
        same = plain.StripTable(scale, bits)
        assert bytes(table) == bytes(same) or "-ffp-contract=fast" in flags
        one = drawn(plain, monkeypatch, scale, bits, table)
        assert one == drawn(other, monkeypatch, scale, bits, table)


# --- errors planted in the sampler

IN_CPP = [
    ("return uint32_t(level * (1 - MARGIN)); }", "return uint32_t(level * (1 + MARGIN)) + 1; }"),
    ("return uint32_t(level * (1 + MARGIN)) + 1; }", "return uint32_t(level * (1 - MARGIN)); }"),
    ("if (z == 0 && negative) continue;", ""),
    ("u + 1.0 <= level", "u + 0.5 <= level"),
    ("if (u >= level * (1 + MARGIN)) continue;", "if (u + 1.0 > level) continue;"),
    ("if (u >= t.top) continue;", "if (u > t.top) continue;"),
    ("words[2 * p + 1] << OFFSET_BITS", "words[2 * p + 1] << (OFFSET_BITS + 1)"),
    ("uint32_t(left[j] - left[i])", "uint32_t(left[j] - left[i] + 1)"),
    ("5040, 40320", "5041, 40320"),
    ("std::ceil(0.7 *", "std::ceil(0.3 *"),
    ("> MOST - noise ? MOST", "> MOST - noise ? LEAST"),
    ("< LEAST - noise ? LEAST", "< LEAST - noise ? total"),
    ("const double x = z / scale;", "const double x = double(float(z)) / scale;"),
    ("w[t.width > 0 ? i + 1 : i]", "w[i]"),
    ("i == t.strips ? offset : z", "z"),
    ("const uint32_t u = own ? v : v + t.shift[column];", "const uint32_t u = v;"),
    ("t.height[n] = 2 * t.tail_strips;", "t.height[n] = t.tail_strips;"),
    ("(word >> 32) & 1", "(word >> 31) & 1"),
    ("out[from] = saturated(totals[from],", "out[from] = saturated(0,"),
    ("words[two ? 2 * p : p]", "words[two ? 2 * p : p & ~int64_t(1)]"),
]
IN_PYTHON = [
    ("* arb(2) ** halvings", "* arb(2) ** (halvings + 1)"),
    ("cell % table.tail_strips) << table.width", "0) << table.width"),
    ("halvings * table.tail_strips", "halvings"),
    ("max(LEAST, min(int(total) + noise, MOST))", "int(total) + max(LEAST, min(noise, MOST))"),
    ("        places += WORD", "        places += WORD - 1"),
    ("zeros + WORD - word.bit_length()", "zeros + WORD - 1 - word.bit_length()"),
    ("if scaled >= high:", "if scaled > low:"),
    ("if scaled <= low:", "if scaled < high:"),
    ("return -z if proposal.negative else z", "return z"),
    ("rejected.append(place)", "out[place] = total[place]"),
    (
        "top, bottom = scale.as_integer_ratio()",
        "top, bottom = float(int(scale)).as_integer_ratio()",
    ),
]
IN_NUMPY = [
    ("taken &= (z != 0) | ~negative", "taken &= True"),
    ("surely = u[rest] + 1.0 <= level", "surely = u[rest] + 0.5 <= level"),
    ("(u[rest] < level * (1 + MARGIN))", "(u[rest] < 0.0 * level)"),
    ("sums[(noise > 0) & (sums < total)] = MOST", "sums[(noise > 0) & (sums < total)] = 0"),
    ("second << np.uint64(OFFSET_BITS)", "second << np.uint64(OFFSET_BITS + 1)"),
    ("ceil(0.7 * per_strip", "ceil(0.3 * per_strip"),
    ("v + table.shift[column] & 0xFFFFFFFF", "v"),
    ("u[zero] < table.top", "u[zero] <= table.top"),
]


def numpy_weight(z, scale):
    x = z / scale
    return float(discrete_gaussian_numpy.exp_minus(np.array([0.5 * x * x]))[0])


def tried(module, make, weight=numpy_weight):
    """What the tests of the sampler ask, in short; raises where an answer is wrong."""
    for scale in (1.0, 7.3, 31.9, 100.0, 2.0**36 * 1.7):
        for bits in (32, 12):
            check(make(scale, bits))
        replay(make(scale, 32), 100, strips=module)
        replay(make(scale, 12), 1000, strips=module)
    for scale in (100.0, 2.0**30 + 12345, 2.0**50):
        table = make(scale, 32)
        words, more = cut_words(table, random.Random(3), 60)
        assert replay(table, 80, 5, words, more, strips=module) >= 180
    for scale, bits, offset in ((4.0, 12, 0), (1.0, 12, 0), (100.0, 14, 3)):
        table = make(scale, bits)
        accepted, cut = counted(table, offset, module)
        assert (accepted.tolist(), cut.tolist()) == exact_counts(table, offset)
    ends = -(2**63), 2**63 - 1
    for total in (0, 2**62, *ends):
        for negative in (0, 1):
            assert far_out(make(2.0**57, 32), total, negative, module) == ends[1 - negative]
    table = make(2.0**60, 32)
    for total in (ends[0] + 2**59, ends[1] - 2**59):
        noisy = [
            module.gaussian(np.full(300, start), table.scale, table=table, read=Stream(1))
            for start in (0, total)
        ]
        sums = [max(ends[0], min(total + z, ends[1])) for z in noisy[0].tolist()]
        assert noisy[1].tolist() == sums
    for z, scale in ((int(7.3 * i) + 1, 9.7 * i) for i in range(1, 400, 7)):
        low, high = enclosed(Fraction(z * z) / (2 * Fraction(scale) ** 2), 160)
        assert abs(Fraction(weight(z, scale)) / low - 1) < Fraction(1, 2**44) > high / low - 1
    wide = module.make_table(2.0**70, 12)
    check(wide)


def planted(text, old, new):
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)


def module_of(text, name="spdp.privacy.discrete_gaussian"):
    module = ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def caught(trial):
    try:
        trial()
    except Exception:
        return True
    return False


@needs_compiler
def test_the_trial_passes_without_a_planted_error(tmp_path, monkeypatch):
    host = Host(tmp_path)
    monkeypatch.setattr(discrete_gaussian, "native", lambda: host)
    tried(discrete_gaussian, host.StripTable, host.library.host_weight)
    tried(discrete_gaussian, discrete_gaussian_numpy.Table.of)


@needs_compiler
@pytest.mark.audit
@pytest.mark.parametrize(("old", "new"), IN_CPP, ids=[new or "left out" for _, new in IN_CPP])
def test_an_error_planted_in_cpp_is_caught(old, new, tmp_path, monkeypatch):
    host = Host(tmp_path, planted(SOURCE.read_text(), old, new))
    monkeypatch.setattr(discrete_gaussian, "native", lambda: host)
    assert caught(lambda: tried(discrete_gaussian, host.StripTable, host.library.host_weight))


@pytest.mark.audit
@pytest.mark.parametrize(("old", "new"), IN_PYTHON, ids=[new for _, new in IN_PYTHON])
def test_an_error_planted_in_python_is_caught(old, new):
    module = module_of(planted(Path(discrete_gaussian.__file__).read_text(), old, new))
    assert caught(lambda: tried(module, discrete_gaussian_numpy.Table.of))


@pytest.mark.audit
@pytest.mark.parametrize(("old", "new"), IN_NUMPY, ids=[new for _, new in IN_NUMPY])
def test_an_error_planted_in_numpy_is_caught(old, new):
    text = planted(Path(discrete_gaussian_numpy.__file__).read_text(), old, new)
    broken = module_of(text, "spdp.privacy.discrete_gaussian_numpy")
    module = module_of(Path(discrete_gaussian.__file__).read_text())
    module.strips_numpy = broken
    assert caught(lambda: tried(module, broken.Table.of))


# --- every word there is, of a table of full size


@needs_compiler
@pytest.mark.audit
@pytest.mark.parametrize(
    ("scale", "offset"), [(4.0, 0), (2.0**30 + 12345, 12345678), (2.0**50 + 3, 2**45 + 54321)]
)
def test_of_all_four_billion_cells_as_many_are_accepted_as_the_law_says(scale, offset, tmp_path):
    host = Host(tmp_path)
    table, chunk = host.StripTable(scale), 1 << 20
    n, width = table.strips, table.width
    accepted, cut, tail = np.zeros(n, np.int64), np.zeros(n, np.int64), 0
    total, out = zeros(chunk), zeros(chunk)
    for first in range(0, 1 << 32, chunk):
        words = np.arange(first, first + chunk, dtype=np.uint64)
        words |= np.uint64((offset & 2**31 - 1) << 33)
        if width > 31:
            words = np.stack([words, np.full_like(words, offset >> 31)], axis=1).ravel()
        done, listed = host.propose(table, words, total, 0, out)
        kept = np.ones(done, bool)
        kept[[place for place, *_ in listed]] = False
        assert (out[:done][kept] & ((1 << width) - 1) == offset).all()
        accepted += np.bincount(out[:done][kept] >> width, minlength=n)
        tail += sum(is_tail for _, is_tail, *_ in listed)
        for _, is_tail, _, _, magnitude in listed:
            if not is_tail:
                cut[magnitude >> width] += 1
    assert tail == 2 * table.tail_strips
    for i in range(n):
        low, high = level(table, (i << width) + offset)
        whole = math.floor(low)
        assert whole == math.floor(high)
        edge = min(low - whole, whole + 1 - low)
        assert accepted[i] <= whole <= accepted[i] + cut[i]
        assert cut[i] == (low != whole) or (cut[i] == 2 and edge < 2.0**-9)  # in the margin
    print(json.dumps({"scale": scale, "accepted": int(accepted.sum()), "open": int(cut.sum())}))
