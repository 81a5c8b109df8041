"""Makes poles.hpp: ``python poles.py > poles.hpp``.

log x - log x0 is the integral of 1/(t + x0) - 1/(t + x) over t > 0. Put t = sc(y)²,
Jacobi's function of complementary parameter 2⁻ᶜ, for 0 < y < K: then for any x of the
interval [1, 2ᶜ] the integrand is analytic in y as far out as it can be (the map of
Zolotarev's problem; Hale, Higham and Trefethen 2008 use it for the square root), and
Gauss and Legendre's rule converges like a constant to the power of its nodes.

Tabulated, all compilers and processors have the same numbers. They are computed with 64
significant bits and rounded to 53: what earlier versions computed on x86 processors
while they ran, to the bit, so that codes of large matrices stay the same.
"""

from typing import Any

from mpmath import MPContext

mp = MPContext()
mp.prec = 64

COUNTS = {3: 16, 5: 24, 7: 24, 9: 32, 11: 32, 14: 40, 17: 48, 20: 48}  # of poles, by c
HEAD = """\
// The logarithm on [1, 2^c] as a sum of resolvents, to 4e-15 or better:
// log x = constant - sum_j weight_j / (x + at_j). Made by poles.py, which says how.
#pragma once

namespace SPDP_ISA {

constexpr int MAX_POLES = %d;
constexpr int CLASSES[8] = {%s};  // the intervals, by their c

struct Poles {
    int count;  // whole packs
    double constant, at[MAX_POLES], weight[MAX_POLES];
};

constexpr Poles POLES[8] = {
"""
FOOT = """\
};

}  // namespace SPDP_ISA
"""


def legendre(n: int, j: int) -> tuple[Any, Any]:
    """The j-th largest root of Legendre's polynomial of degree n, and its weight."""
    z, slope = mp.cos(mp.pi * (j + mp.mpf(0.75)) / (n + mp.mpf(0.5))), mp.one
    for _ in range(8):
        before, value = mp.one, z
        for m in range(2, n + 1):
            before, value = value, ((2 * m - 1) * z * value - (m - 1) * before) / m
        slope = n * (z * value - before) / (z * z - 1)
        z -= value / slope
    return z, 2 / ((1 - z * z) * slope * slope)


def poles(c: int, count: int) -> tuple[Any, list[Any], list[Any]]:
    """Constant, poles and weights; each pole is followed by its mirror image."""
    kappa = mp.mpf(2) ** c
    middle = mp.sqrt(kappa)
    a, b, ratio = mp.one, 1 / middle, []  # the arithmetic-geometric mean: K = π / (2 a)
    while abs(a - b) > mp.mpf("1e-18") * b:
        mean, half = (a + b) / 2, (a - b) / 2
        a, b = mean, mp.sqrt(a * b)
        ratio.append(half / mean)
    K = mp.pi / (2 * a)
    constant, at, weight = mp.log(middle), [], []
    for j in range(count // 2):
        z, gauss = legendre(count, j)
        phi = mp.ldexp(a * (1 - z) / 2 * K, len(ratio))
        for r in reversed(ratio):
            phi = (phi + mp.asin(r * mp.sin(phi))) / 2
        sn, cn = mp.sin(phi), mp.cos(phi)
        dn = mp.sqrt(cn * cn + sn * sn / kappa)
        t, w = sn * sn / (cn * cn), gauss * K * sn * dn / (cn * cn * cn)
        mirrored, other = kappa / t, w * kappa / (t * t)  # of K - y
        constant += w / (t + middle) + other / (mirrored + middle)
        at += [t, mirrored]
        weight += [w, other]
    return constant, at, weight


def header() -> str:
    """The text of poles.hpp."""

    def block(numbers: list[Any]) -> str:
        digits = [float(x).hex() for x in numbers]
        lines = [", ".join(digits[i : i + 4]) for i in range(0, len(digits), 4)]
        return "{" + ",\n      ".join(lines) + "}"

    text = HEAD % (max(COUNTS.values()), ", ".join(map(str, COUNTS)))
    for c, count in COUNTS.items():
        constant, at, weight = poles(c, count)
        text += f"    {{{count}, {float(constant).hex()},  // c = {c}\n"
        text += f"     {block(at)},\n     {block(weight)}}},\n"
    return text + FOOT


if __name__ == "__main__":
    print(header(), end="")
