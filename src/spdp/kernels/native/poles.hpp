// The logarithm on [1, 2^c] as a sum of resolvents: log x = constant - sum_j weight_j / (x + at_j), to 4e-15 or better.
//
// log x - log x0 is the integral of 1/(t + x0) - 1/(t + x) over t > 0. Put t = sc(y)^2, Jacobi's function of complementary
// parameter 2^-c, for 0 < y < K: then for any x of the interval the integrand is analytic in y as far out as it can be
// (the map of Zolotarev's problem; Hale, Higham and Trefethen 2008 use it for the square root), and Gauss and Legendre's
// rule converges like a constant to the power of its nodes.
#pragma once
#include <cmath>
#include <utility>

namespace SPDP_ISA {

constexpr int MAX_POLES = 48;
constexpr int CLASSES[8] = {3, 5, 7, 9, 11, 14, 17, 20};          // the intervals, by their c
constexpr int COUNTS[8] = {16, 24, 24, 32, 32, 40, 48, MAX_POLES};  // of their poles, whole packs

struct Poles {
    int count = 0;
    double at[MAX_POLES], weight[MAX_POLES], constant;

    Poles(int c, int count_) : count(count_) {
        using Real = long double;
        const Real kappa = std::ldexp(Real(1), c), middle = std::sqrt(kappa);
        Real a[16] = {1}, ratio[16] = {}, b = 1 / middle;  // the arithmetic-geometric mean: K = pi / (2 a)
        int last = 0;
        while (last < 15 && std::fabs(a[last] - b) > 1e-18L * b) {
            const Real mean = (a[last] + b) / 2, half = (a[last] - b) / 2;
            b = std::sqrt(a[last] * b);
            a[++last] = mean;
            ratio[last] = half / mean;
        }
        const Real K = M_PIl / (2 * a[last]);
        Real sum = std::log(middle);
        for (int j = 0; j < count / 2; ++j) {
            const auto [z, gauss] = legendre(count, j);
            Real phi = std::ldexp(a[last] * (1 - z) / 2 * K, last);
            for (int n = last; n > 0; --n) phi = (phi + std::asin(ratio[n] * std::sin(phi))) / 2;
            const Real sn = std::sin(phi), cn = std::cos(phi), dn = std::sqrt(cn * cn + sn * sn / kappa);
            const Real t = sn * sn / (cn * cn), w = gauss * K * sn * dn / (cn * cn * cn);
            const Real mirrored = kappa / t, other = w * kappa / (t * t);  // of K - y
            sum += w / (t + middle) + other / (mirrored + middle);
            at[2 * j] = double(t), weight[2 * j] = double(w);
            at[2 * j + 1] = double(mirrored), weight[2 * j + 1] = double(other);
        }
        constant = double(sum);
    }

    // The j-th largest root of Legendre's polynomial of degree n, and its weight.
    static std::pair<long double, long double> legendre(int n, int j) {
        long double z = std::cos(M_PIl * (j + 0.75L) / (n + 0.5L)), slope = 1;
        for (int step = 0; step < 8; ++step) {
            long double before = 1, value = z;
            for (int m = 2; m <= n; ++m) {
                const long double next = ((2 * m - 1) * z * value - (m - 1) * before) / m;
                before = std::exchange(value, next);
            }
            slope = n * (z * value - before) / (z * z - 1);
            z -= value / slope;
        }
        return {z, 2 / ((1 - z * z) * slope * slope)};
    }
};

inline const Poles& poles(int c) {
    static const Poles all[8] = {{CLASSES[0], COUNTS[0]}, {CLASSES[1], COUNTS[1]}, {CLASSES[2], COUNTS[2]}, {CLASSES[3], COUNTS[3]},
                                 {CLASSES[4], COUNTS[4]}, {CLASSES[5], COUNTS[5]}, {CLASSES[6], COUNTS[6]}, {CLASSES[7], COUNTS[7]}};
    return all[c];
}

}  // namespace SPDP_ISA
