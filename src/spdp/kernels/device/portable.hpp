// What the device's compiler and an ordinary one need to read the same kernels: a few instructions, and who the lanes are.
// The constants of kernels/constants.py stand above this text when it is compiled.
#pragma once
#ifdef __CUDACC__
#define FN __device__ __forceinline__
#define HOST 0
#else
#include <cmath>
#include <cstring>
#define FN inline
#define HOST 1
#endif

namespace spdp {

typedef long long Int;
typedef unsigned long long Word;
typedef unsigned char Byte;

constexpr double LATTICE = double(1LL << LATTICE_BITS);
constexpr Word LARGEST_SQUARE = 1ULL << (2 * LATTICE_BITS);
constexpr double ROOT2 = 1.4142135623730951;
constexpr double EPSILON = 2.220446049250313e-16, EPSILON_SINGLE = 1.1920928955078125e-07;

#if HOST
FN int high(double x) {
    Int bits;
    std::memcpy(&bits, &x, 8);
    return int(bits >> 32);
}
FN double with_high(int top, unsigned bottom) {
    const Word bits = Word(unsigned(top)) << 32 | bottom;
    double x;
    std::memcpy(&x, &bits, 8);
    return x;
}
FN unsigned low(double x) {
    Word bits;
    std::memcpy(&bits, &x, 8);
    return unsigned(bits);
}
// as rough as the device's: what is below the upper half is lost
FN double rough_root(double x) { return with_high(high(1.0 / std::sqrt(x)), 0); }
FN double rough_inverse(double x) { return with_high(high(1.0 / x), 0); }
FN double fma_down(double a, double b, double c) {  // a*b + c, rounded toward zero; all are non-negative
    const double p = a * b, error = std::fma(a, b, -p), t = std::floor(p);
    return c + (t == p && error < 0 ? t - 1 : t);
}
using std::ceil;
using std::fabs;
using std::fma;
using std::sqrt;
using std::trunc;
#else
FN int high(double x) { return __double2hiint(x); }
FN unsigned low(double x) { return unsigned(__double2loint(x)); }
FN double with_high(int top, unsigned bottom) { return __hiloint2double(top, int(bottom)); }
FN double rough_root(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}
FN double rough_inverse(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}
FN double fma_down(double a, double b, double c) { return __fma_rz(a, b, c); }
#endif

FN double wide(double x) { return x; }
FN double wide(float x) {
#if !HOST
    const int bits = __float_as_int(x), rest = bits & 0x7fffffff;
    if (rest < 0x00800000) {  // subnormal numbers, which a compiler may be told to take for zero
        const double size = (with_high(0x43300000, unsigned(rest)) - 0x1p52) * 0x1p-149;
        return bits < 0 ? -size : size;
    }
#endif
    return double(x);
}

FN int larger(int a, int b) { return a > b ? a : b; }
FN double smaller(double a, double b) { return a < b ? a : b; }
FN double larger(double a, double b) { return a > b ? a : b; }
FN int size_word(double x) { return high(x) & 0x7fffffff; }  // grows with |x|
FN double power(int e) { return with_high((e + 1023) << 20, 0); }  // 2^e, e in [-1022, 1023]

// 1/sqrt(x) and 1/x to the last place or so: a third-order step from about 2^-20
FN double inverse_root(double x) {
    const double y = rough_root(x), e = fma(-(x * y), y, 1.0);
    return fma(y * e, fma(0.375, e, 0.5), y);
}
FN double inverse(double x) {
    const double y = rough_inverse(x), e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}

// Natural logarithm of a positive normal number to about 1e-15: m in [1/sqrt2, sqrt2), ln m = 2 atanh((m-1)/(m+1))
FN double logarithm(double x) {
    const int e = (high(x) - 0x3fe6a09e) >> 20;
    const double m = with_high(high(x) - (e << 20), low(x));
    const double f = m - 1.0, s = f * inverse(m + 1.0), z = s * s;
    double p = 1.0 / 17;
    p = fma(p, z, 1.0 / 15);
    p = fma(p, z, 1.0 / 13);
    p = fma(p, z, 1.0 / 11);
    p = fma(p, z, 1.0 / 9);
    p = fma(p, z, 1.0 / 7);
    p = fma(p, z, 1.0 / 5);
    p = fma(p, z, 1.0 / 3);
    const double r = f - s * (f - 2.0 * z * p);  // the leading term stays exact
    const double n = with_high(0x43300000, unsigned(e) ^ 0x80000000u) - (0x1p52 + 0x1p31);
    return fma(n, 0x1.62e42fefa3800p-1, fma(n, 0x1.ef35793c76730p-45, r));
}

// --- the lattice -----------------------------------------------------------------------------------------------------

// trunc(z * factor), for |z| * factor below 2^31; 2^30 at most
FN int code(double z, double factor) {
    const int size = int(low(fma_down(fabs(z), factor, 0x1p52)));
    const int kept = size > (1 << LATTICE_BITS) ? 1 << LATTICE_BITS : size;
    return high(z) < 0 ? -kept : kept;
}

// A sum of squares of integers up to 2^30, in two halves that cannot overflow.
struct Squares {
    Word upper = 0, lower = 0;
    FN void add(Int q) {
        const Word square = Word(q * q);
        upper += square >> 32;
        lower += square & 0xffffffffu;
    }
    FN bool over() const {
        const Word carried = upper + (lower >> 32), rest = lower & 0xffffffffu, bound = LARGEST_SQUARE >> 32;
        return carried > bound || (carried == bound && rest > 0);
    }
    FN double root() const { return sqrt(double(upper) * 0x1p32 + double(lower)); }
};

// The rule of the lattice, as in the other kernels: a vector over it shrinks toward zero until the rule holds.
FN double shrinkage(const Squares& s) { return smaller(1.0 - 1.0 / LATTICE, LATTICE / s.root()); }
FN int shrunk(int q, double by) { return int(trunc(double(q) * by)); }

// What one record adds to the sums, for the whole batch.
struct Job {
    Int m;
    double log_low, log_high, radius;
    const double* center;  // (d,)
    double* out;           // (m, d) vectors
    Int* codes;            // (m, d) lattice points, or (copies, d) sums
    Byte* status;          // (m,)
    int copies;            // of the sums, over which blocks spread their additions
};

enum Mode { LOGVEC = 0, ENCODE = 1, LATTICE_SUM = 2 };

template <class Real> struct Stored;
template <> struct Stored<double> {
    static constexpr double epsilon = EPSILON, symmetry = SYMMETRY_DOUBLE;
    static constexpr int subnormal = -1074;
};
template <> struct Stored<float> {
    static constexpr double epsilon = EPSILON_SINGLE, symmetry = SYMMETRY_SINGLE;
    static constexpr int subnormal = -149;
};

// A matrix' scale 2^shift; entries of common size are left alone.
struct Scale {
    int shift;
    double factor;  // 2^-shift
};
FN Scale scale_of(int largest_word) {
    const int e = (largest_word >> 20) - 1023;
    if (e > -300 && e < 300) return {0, 1.0};
    const int shift = e > 1000 ? 1000 : e < -1000 ? -1000 : e;
    return {shift, power(-shift)};
}

// How far below zero an eigenvalue of a scaled matrix may come by the rounding of what was stored.
template <class Real> FN double rank_tolerance(int k, double largest, int shift) {
    int least = Stored<Real>::subnormal - shift;
    least = least > 0 ? 0 : least < -1000 ? -1000 : least;
    return double(RANK_SLACK) * k * larger(Stored<Real>::epsilon * largest, power(least));
}

// |a - b| is rounding: surely so from the upper words, or looked at in full by the caller
template <class Real> FN bool surely_symmetric(int gap_word, int largest_word) {
    return gap_word == 0 || with_high(gap_word + 1, 0) <= Stored<Real>::symmetry * with_high(largest_word, 0);
}

FN double clipped_log(double x, int shift, const Job& job) {
    const double y = logarithm(x) + shift * 0.6931471805599453;
    return smaller(larger(y, job.log_low), job.log_high);
}

// --- one-sided Jacobi rotations ----------------------------------------------------------------------------------------

// Columns p and q become c p - s q and s p + c q; squared norms become a + w and b - w. The angle is only roughly that
// which makes them orthogonal, but c^2 + s^2 = 1 to the last place: roughness costs convergence, not accuracy.
struct Turn {
    double c, s, w;
};
// Done when every pair in turn had a cosine below 2^-23 and turned by less than 2^-17, or was orthogonal to 2^-46: what
// a rotation leaves, and what later ones bring back, is then below 2^-40.
constexpr int ORTHOGONAL = 93 << 20, NEARLY = 46 << 20, SMALL_ANGLE = (1023 - 17) << 20, VISIBLE = 33 << 20;
constexpr int MAX_SWEEPS = 30;

// cosines above 1/8 change norms so much that they are to be computed anew
constexpr int LARGE = 6 << 20;

struct Seen {
    bool again = false, large = false;
};

FN Turn turn(double a, double b, double dot, Seen& what) {
    const double gap = b - a, square = dot * dot;
    const int wide = larger(high(a * b), 0), seen = high(square);
    const bool active = seen > larger(wide - ORTHOGONAL, VISIBLE);
    const double h = active ? fma(gap, gap, 4.0 * square) : 1.0;
    const double t = 2.0 * dot * rough_inverse(fma(h, rough_root(h), fabs(gap)));
    const double tangent = active ? with_high(high(t) ^ (high(gap) & 0x80000000), low(t)) : 0.0;
    Turn r;
    r.c = inverse_root(fma(tangent, tangent, 1.0));
    r.s = tangent * r.c;
    r.w = r.s * fma(r.s, gap, -2.0 * dot * r.c);
    what.large |= seen > wide - LARGE;
    what.again |= active && (seen > wide - NEARLY || size_word(tangent) > SMALL_ANGLE);
    return r;
}

FN int place_of(int k, int i, int j) {  // of entry (i, j), i <= j, in a vector
    return i == j ? i : k + i * (2 * k - i - 1) / 2 + (j - i - 1);
}

}  // namespace spdp
