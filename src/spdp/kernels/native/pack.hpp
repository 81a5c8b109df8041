// Pack: N machine vectors treated as one, one matrix per lane. Two vectors side by side hide the latency of the
// recurrences in the eigensolver. Everything is inlined; the file is compiled once per instruction set.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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

// Entries of two vectors by their places, the second's after the first's.
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Int{__VA_ARGS__})
#endif

// The first half of a vector from one place in memory, the second from another.
INLINE Vec halves(const double* a, const double* b) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return (Vec)_mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(a)), _mm256_loadu_pd(b), 1);
#elif defined(__AVX2__)
    return (Vec)_mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(a)), _mm_loadu_pd(b), 1);
#else
    return Vec{a[0], b[0]};
#endif
}

// Asks for the cache lines at `near`, into the first cache, and at `far`, into the second. It stays where x is computed, not
// at the head of the code where the compiler would put it: requests that come all at once find no room.
INLINE void ask(const char* near, const char* far, Vec& x) {
#if defined(__x86_64__)
    asm volatile("prefetcht0 %1\n\tprefetcht1 %2" : "+v"(x) : "m"(*near), "m"(*far));
#else
    __builtin_prefetch(near);
    __builtin_prefetch(far, 0, 2);
    (void)x;
#endif
}

INLINE Vec vsqrt(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return (Vec)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (Vec)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
    return (Vec)_mm_sqrt_pd((__m128d)x);
#elif defined(__aarch64__)
    return (Vec)vsqrtq_f64((float64x2_t)x);
#else
    for (int i = 0; i < LANES; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

// 1 / sqrt(x) to the last bit but a thousandth, for normal numbers. An estimate to 2^-14, where the machine has one, needs
// one step of fifth order, from what it is off by exactly: less than a root and a quotient, and nearer than these.
INLINE Vec vinverse_root(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    const __m512d a = _mm512_rsqrt14_pd((__m512d)x), product = _mm512_mul_pd((__m512d)x, a);
    const __m512d lost = _mm512_fmsub_pd((__m512d)x, a, product);
    const Vec off = (Vec)_mm512_fnmadd_pd(lost, a, _mm512_fnmadd_pd(product, a, _mm512_set1_pd(1.0))), root = (Vec)a;
    return root + (root * off) * (0.5 + off * (0.375 + off * (0.3125 + off * 0.2734375)));
#else
    return 1.0 / vsqrt(x);
#endif
}

// Which lanes something is true of: a bit each where the machine has registers for that, else a vector.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define SPDP_MASK_BITS
typedef __mmask8 Bits;
#else
typedef Int Bits;
#endif

INLINE bool vany(Int m) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return _mm512_movepi64_mask((__m512i)m) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_pd((__m256d)m) != 0;
#elif defined(__x86_64__)
    return _mm_movemask_pd((__m128d)m) != 0;
#elif defined(__aarch64__)
    return vmaxvq_u32((uint32x4_t)m) != 0;
#else
    int64_t r = 0;
    for (int i = 0; i < LANES; ++i) r |= m[i];
    return r != 0;
#endif
}

template <int N> struct Mask {
    Bits v[N];
#ifdef SPDP_MASK_BITS
    INLINE bool lane(int l) const { return v[l / LANES] >> (l % LANES) & 1; }
    INLINE void set(int l, bool yes) { v[l / LANES] = (v[l / LANES] & ~(1 << l % LANES)) | yes << l % LANES; }
#else
    INLINE bool lane(int l) const { return v[l / LANES][l % LANES] != 0; }
    INLINE void set(int l, bool yes) { v[l / LANES][l % LANES] = yes ? -1 : 0; }
#endif
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
#ifdef SPDP_MASK_BITS
#define COMPARISON(op, a, b, code) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), code)
#else
#define COMPARISON(op, a, b, code) (Int)((a)op(b))
#endif
#define COMPARE(op, code)                                                                                              \
    template <int N> INLINE Mask<N> operator op(const Pack<N>& a, const Pack<N>& b) {                                  \
        Mask<N> r;                                                                                                     \
        EACH r.v[i] = COMPARISON(op, a.v[i], b.v[i], code);                                                            \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <int N> INLINE Mask<N> operator op(const Pack<N>& a, double b) { return a op Pack<N>(b); }
COMPARE(<, _CMP_LT_OQ) COMPARE(>, _CMP_GT_OQ) COMPARE(<=, _CMP_LE_OQ) COMPARE(>=, _CMP_GE_OQ) COMPARE(==, _CMP_EQ_OQ)
#undef COMPARE
#undef COMPARISON
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
#ifdef SPDP_MASK_BITS
    EACH r.v[i] = (Vec)_mm512_mask_blend_pd(m.v[i], (__m512d)b.v[i], (__m512d)a.v[i]);
#elif defined(__AVX2__)
    EACH r.v[i] = (Vec)_mm256_blendv_pd((__m256d)b.v[i], (__m256d)a.v[i], (__m256d)m.v[i]);
#elif defined(__aarch64__)
    EACH r.v[i] = (Vec)vbslq_f64((uint64x2_t)m.v[i], (float64x2_t)a.v[i], (float64x2_t)b.v[i]);
#else
    EACH r.v[i] = (Vec)((m.v[i] & (Int)a.v[i]) | (~m.v[i] & (Int)b.v[i]));
#endif
    return r;
}
template <int N> INLINE bool any(const Mask<N>& m) {
    Bits r = m.v[0];
    for (int i = 1; i < N; ++i) r |= m.v[i];
#ifdef SPDP_MASK_BITS
    return r != 0;
#else
    return vany(r);
#endif
}
template <int N> INLINE Mask<N> none() {
    Mask<N> r;
    EACH r.v[i] = Bits{};
    return r;
}
template <int N> INLINE Pack<N> sqrt(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = vsqrt(a.v[i]);
    return r;
}
template <int N> INLINE Pack<N> inverse_root(const Pack<N>& a) {
    Pack<N> r;
    EACH r.v[i] = vinverse_root(a.v[i]);
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
// the same in one instruction where there is one; what is not a number stays so
template <int N> INLINE Pack<N> whole(const Pack<N>& a) {
    Pack<N> r;
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    EACH r.v[i] = (Vec)_mm512_roundscale_pd((__m512d)a.v[i], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    EACH r.v[i] = (Vec)_mm256_round_pd((__m256d)a.v[i], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
    EACH r.v[i] = (Vec)vrndq_f64((float64x2_t)a.v[i]);
#else
    r = trunc(a);
#endif
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

constexpr double SQRT2 = 0x1.6a09e667f3bcdp+0, SQRT1_2 = SQRT2 / 2, LN2 = 0x1.62e42fefa39efp-1;
constexpr double LN2_HIGH = 0x1.62e42fefa3800p-1;  // exact product with any exponent
constexpr double LN2_LOW = 0x1.ef35793c76730p-45;

// Natural logarithm of positive normal numbers, to about one unit in the last place: m in [1/sqrt2, sqrt2),
// ln m = 2 atanh(s), s = (m-1)/(m+1), 2 atanh(s) = 2 s + s z p(z), z = s^2 <= 0.0295; p by Remez' algorithm, whose
// relative error in ln m is below 2^-58.
template <int N> INLINE Pack<N> log(const Pack<N>& x) {
    constexpr int64_t ROOT = 0x3fe6a09e667f3bcdLL, BELOW_ONE = 0x3ff0000000000000LL - ROOT;  // of 1/2
    Pack<N> e, m;
    EACH {
        const Int bits = (Int)x.v[i] + BELOW_ONE;
        e.v[i] = (Vec)((bits >> 52) | 0x4330000000000000LL) - (0x1p52 + 1023);  // x > 0: the shift is logical
        m.v[i] = (Vec)((bits & 0xfffffffffffffLL) + ROOT);
    }
    const Pack<N> f = m - 1.0, s = f / (m + 1.0), z = s * s, w = z * z;
    const Pack<N> even = ((0x1.2f0634a5f7592p-3 * w + 0x1.74663fa24cd53p-3) * w + 0x1.24924941f4fcap-2) * w + 0x1.5555555555592p-1;
    const Pack<N> odd = (0x1.39a1a6f3b88a4p-3 * w + 0x1.c71c520607208p-3) * w + 0x1.999999997fd77p-2;
    // 2 s = f - s f: keeps the leading term exact
    return e * 0.6931471805599453 + (f - s * (f - z * (z * odd + even)));
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
