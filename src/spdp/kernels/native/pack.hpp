// Pack: N machine vectors treated as one, one matrix per lane. Two vectors side by side hide the latency of the
// recurrences in the eigensolver. Everything is inlined; the file is compiled once per instruction set.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace SPDP_ISA {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
constexpr int LANES = 8;
#elif defined(__AVX2__)
constexpr int LANES = 4;
#else
constexpr int LANES = 2;
#endif

typedef double Vec __attribute__((vector_size(8 * LANES)));
typedef int64_t Int __attribute__((vector_size(8 * LANES)));
typedef int32_t Half __attribute__((vector_size(4 * LANES)));

INLINE Vec vsqrt(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return (Vec)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (Vec)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
    return (Vec)_mm_sqrt_pd((__m128d)x);
#else
    for (int i = 0; i < LANES; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

INLINE bool vany(Int m) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return _mm512_movepi64_mask((__m512i)m) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_pd((__m256d)m) != 0;
#elif defined(__x86_64__)
    return _mm_movemask_pd((__m128d)m) != 0;
#else
    int64_t r = 0;
    for (int i = 0; i < LANES; ++i) r |= m[i];
    return r != 0;
#endif
}

template <int N> struct Mask {
    Int v[N];
};

template <int N> struct Pack {
    Vec v[N];
    static constexpr int W = N * LANES;
    Pack() = default;
    INLINE Pack(double x) {
        for (int i = 0; i < N; ++i) v[i] = x - Vec{};
    }
    INLINE double* lanes() { return reinterpret_cast<double*>(v); }
    INLINE const double* lanes() const { return reinterpret_cast<const double*>(v); }
};

#define EACH for (int i = 0; i < N; ++i)
#define BINARY(op)                                                                                                     \
    template <int N> INLINE Pack<N> operator op(const Pack<N>& a, const Pack<N>& b) {                                  \
        Pack<N> r;                                                                                                     \
        EACH r.v[i] = a.v[i] op b.v[i];                                                                                \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <int N> INLINE Pack<N> operator op(const Pack<N>& a, double b) { return a op Pack<N>(b); }                \
    template <int N> INLINE Pack<N> operator op(double a, const Pack<N>& b) { return Pack<N>(a) op b; }
BINARY(+) BINARY(-) BINARY(*) BINARY(/)
#undef BINARY
#define COMPARE(op)                                                                                                    \
    template <int N> INLINE Mask<N> operator op(const Pack<N>& a, const Pack<N>& b) {                                  \
        Mask<N> r;                                                                                                     \
        EACH r.v[i] = (Int)(a.v[i] op b.v[i]);                                                                         \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <int N> INLINE Mask<N> operator op(const Pack<N>& a, double b) { return a op Pack<N>(b); }
COMPARE(<) COMPARE(>) COMPARE(<=) COMPARE(>=) COMPARE(==)
#undef COMPARE
#define LOGICAL(op)                                                                                                    \
    template <int N> INLINE Mask<N> operator op(const Mask<N>& a, const Mask<N>& b) {                                  \
        Mask<N> r;                                                                                                     \
        EACH r.v[i] = a.v[i] op b.v[i];                                                                                \
        return r;                                                                                                      \
    }
LOGICAL(&) LOGICAL(|)
#undef LOGICAL
template <int N> INLINE Mask<N> operator~(const Mask<N>& a) {
    Mask<N> r;
    EACH r.v[i] = ~a.v[i];
    return r;
}
template <int N> INLINE Pack<N> operator-(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = -a.v[i];
    return r;
}
template <int N> INLINE Pack<N>& operator+=(Pack<N>& a, const Pack<N>& b) { return a = a + b; }
template <int N> INLINE Pack<N>& operator-=(Pack<N>& a, const Pack<N>& b) { return a = a - b; }

template <int N> INLINE Pack<N> select(const Mask<N>& m, const Pack<N>& a, const Pack<N>& b) {
    Pack<N> r;
    EACH r.v[i] = m.v[i] ? a.v[i] : b.v[i];
    return r;
}
template <int N> INLINE bool any(const Mask<N>& m) {
    Int r = m.v[0];
    for (int i = 1; i < N; ++i) r |= m.v[i];
    return vany(r);
}
template <int N> INLINE Mask<N> none() {
    Mask<N> r;
    EACH r.v[i] = Int{};
    return r;
}
template <int N> INLINE Pack<N> sqrt(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = vsqrt(a.v[i]);
    return r;
}
template <int N> INLINE Pack<N> abs(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = (Vec)((Int)a.v[i] & INT64_MAX);
    return r;
}
// |a| with the sign of b
template <int N> INLINE Pack<N> copysign(const Pack<N>& a, const Pack<N>& b) {
    Pack<N> r;
    EACH r.v[i] = (Vec)(((Int)a.v[i] & INT64_MAX) | ((Int)b.v[i] & INT64_MIN));
    return r;
}
// b where a is NaN
INLINE Vec vmax(Vec a, Vec b) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return (Vec)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    return (Vec)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    return a > b ? a : b;
#endif
}
INLINE Vec vmin(Vec a, Vec b) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return (Vec)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    return (Vec)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    return a < b ? a : b;
#endif
}
template <int N> INLINE Pack<N> max(const Pack<N>& a, const Pack<N>& b) {
    Pack<N> r;
    EACH r.v[i] = vmax(a.v[i], b.v[i]);
    return r;
}
template <int N> INLINE Pack<N> min(const Pack<N>& a, const Pack<N>& b) {
    Pack<N> r;
    EACH r.v[i] = vmin(a.v[i], b.v[i]);
    return r;
}
// toward zero, for |a| < 2^31
template <int N> INLINE Pack<N> trunc(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = __builtin_convertvector(__builtin_convertvector(a.v[i], Half), Vec);
    return r;
}
// 2^e for integral e in [-1022, 1023]
template <int N> INLINE Pack<N> pow2(const Pack<N>& e) {
    Pack<N> r;
    EACH r.v[i] = (Vec)((__builtin_convertvector(__builtin_convertvector(e.v[i], Half), Int) + 1023) << 52);
    return r;
}
// exponent e of a normal number, 2^e <= |a| < 2^(e+1)
template <int N> INLINE Pack<N> exponent(const Pack<N>& a) {
    Pack<N> r;
    EACH {
        Int bits = (((Int)a.v[i] >> 52) & 0x7ff) - 1023;
        r.v[i] = __builtin_convertvector(__builtin_convertvector(bits, Half), Vec);
    }
    return r;
}

constexpr double LN2_HIGH = 0x1.62e42fefa3800p-1;  // exact product with any exponent
constexpr double LN2_LOW = 0x1.ef35793c76730p-45;

// Natural logarithm of positive normal numbers, to about one unit in the last place: m in [1/sqrt2, sqrt2),
// ln m = 2 atanh(s), s = (m-1)/(m+1), by its series in s^2 <= 0.0295.
template <int N> INLINE Pack<N> log(const Pack<N>& x) {
    Pack<N> e = exponent(x), m = x;
    EACH m.v[i] = (Vec)(((Int)x.v[i] & 0xfffffffffffffLL) | 0x3ff0000000000000LL);
    Mask<N> big = m > 1.4142135623730951;
    m = select(big, m * 0.5, m);
    e = select(big, e + 1.0, e);
    Pack<N> f = m - 1.0, s = f / (m + 1.0), z = s * s, p = 1.0 / 23;
    for (int n = 21; n >= 3; n -= 2) p = p * z + 1.0 / n;
    // 2 atanh(s) = f - s*(f - 2 z p): keeps the leading term exact
    Pack<N> r = f - s * (f - 2.0 * z * p);
    return e * LN2_HIGH + (r + e * LN2_LOW);
}

// Exponential for finite x; 0 below -745, infinity above 709.8.
template <int N> INLINE Pack<N> exp(const Pack<N>& a) {
    Pack<N> x = min(max(a, Pack<N>(-746.0)), Pack<N>(710.0));
    Pack<N> t = x * 1.4426950408889634, n = trunc(t + copysign(Pack<N>(0.5), t));
    Pack<N> r = x - n * LN2_HIGH - n * LN2_LOW, p = 1.0;
    for (int i = 14; i >= 1; --i) p = p * r * (1.0 / i) + 1.0;
    Pack<N> half = trunc(n * 0.5);
    return p * pow2(half) * pow2(n - half);
}

#undef EACH
}  // namespace SPDP_ISA
