// What kernels with one matrix per SIMD lane share: reading matrices into lanes, judging them, and what leaves.
// Compiled once per instruction set, with SPDP_ISA naming it.
#pragma once
#include "kernel.hpp"
#include "pack.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace SPDP_ISA {

using namespace spdp;

constexpr double LATTICE = double(1LL << LATTICE_BITS);
constexpr double NEAR_NORM = LATTICE * LATTICE * (1.0 - 0x1p-20);  // float norms below it need no exact check
constexpr int64_t FLUSH = 1 << 20;                // additions after which double accumulators are emptied (2^30 * 2^20 < 2^53)

constexpr std::align_val_t ALIGNED{128};
struct Free {  // not inlined: out of the way of the loops
    __attribute__((noinline)) void operator()(void* p) const { ::operator delete(p, ALIGNED); }
};
template <class T> __attribute__((noinline)) std::unique_ptr<T[], Free> buffer(size_t count) {
    void* p = ::operator new(count * sizeof(T), ALIGNED);
    std::memset(p, 0, count * sizeof(T));
    return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

// Which matrices the lanes hold: one after the other, or some that were picked.
struct Consecutive {
    int64_t begin;
    INLINE int64_t operator[](int lane) const { return begin + lane; }
};
typedef const int64_t* Picked;

// --- input ---------------------------------------------------------------------------------------------------------
// Matrices [begin, begin + lanes) of the job in double and without gaps; those that are left over are the identity.
template <class T> void gather(double* to, int k, const Job& job, int64_t begin, int lanes, int width) {
    for (int lane = 0; lane < width; ++lane) {
        const char* from = job.x + (begin + lane) * job.stride[0];
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j)
                *to++ = lane >= lanes ? i == j : *reinterpret_cast<const T*>(from + i * job.stride[1] + j * job.stride[2]);
    }
}
// A worker's way to batches of W matrices without gaps: where they are, or a copy.
template <int N> struct Reader {
    static constexpr int W = Pack<N>::W;
    std::unique_ptr<double[], Free> copy;

    explicit Reader(size_t k) : copy(buffer<double>(W * k * k)) {}
    INLINE const double* at(int k, const Job& job, int64_t begin, int lanes) const {
        const bool dense = job.stride[2] == 8 && job.stride[1] == 8 * k && job.stride[0] == 8 * k * k;
        if (dense && !job.single && lanes == W) return reinterpret_cast<const double*>(job.x + begin * job.stride[0]);
        (job.single ? gather<float> : gather<double>)(copy.get(), k, job, begin, lanes, W);
        return copy.get();
    }
};

// One stage of a transposition in place: rows that are S apart trade their blocks of S entries off the diagonal.
template <int S, int... L> INLINE void trade(Vec& a, Vec& b, std::integer_sequence<int, L...>) {
    const Vec c = a, e = b;
    a = SHUFFLE(c, e, (L & S ? L - S + LANES : L)...);
    b = SHUFFLE(c, e, (L & S ? L + LANES : L + S)...);
}
// Stages of trades among blocks smaller than `Most`: all of a transposition, or all but its last stage, of half a vector,
// which reading may take care of.
template <int Most = LANES, int S = 1> INLINE void transpose(Vec* rows) {
    if constexpr (S < Most) {
        for (int i = 0; i < LANES; ++i)
            if (!(i & S)) trade<S>(rows[i], rows[i + S], std::make_integer_sequence<int, LANES>());
        transpose<Most, 2 * S>(rows);
    }
}

// Matrices without gaps, one per lane of A (k, k): LANES entries of LANES matrices at a time in registers. Stores of
// single entries, read back as vectors, would stall.
template <int N> INLINE void load(Pack<N>* A, int k, const double* from) {
    const int count = k * k;
    for (int n = 0; n < N; ++n, from += LANES * count) {
        int e = 0;
        for (; e + LANES <= count; e += LANES) {
            Vec rows[LANES];
            for (int l = 0; l < LANES / 2; ++l) {
                const double *a = from + l * count + e, *b = a + LANES / 2 * count;
                rows[l] = halves(a, b);
                rows[l + LANES / 2] = halves(a + LANES / 2, b + LANES / 2);
            }
            transpose<LANES / 2>(rows);
            for (int l = 0; l < LANES; ++l) A[e + l].v[n] = rows[l];
        }
        for (; e < count; ++e) {
            Vec entry = {};
            for (int l = 0; l < LANES; ++l) entry[l] = from[l * count + e];
            A[e].v[n] = entry;
        }
    }
}

// Symmetrise (the lower triangle) and scale by a power of two; `shift` is its exponent. Lanes that are not finite become
// the identity. Matrices whose largest entry lies in [least, most] are left at their scale.
template <int N>
INLINE void prepare(Pack<N>* A, int k, bool single, double slack, Pack<N>& shift, Pack<N>& largest, Mask<N>& finite,
                    Mask<N>& symmetric, double least = HUGE_VAL, double most = 0.0) {
    using P = Pack<N>;
    using M = Mask<N>;
    P big = 0.0, gap = 0.0, zero = 0.0;
    for (int i = 0; i < k; ++i) {
        const P a = A[i * k + i];
        big = max(abs(a), big);
        zero += a * 0.0;
        for (int j = 0; j < i; ++j) {
            const P a = A[i * k + j], b = A[j * k + i];
            big = max(max(abs(a), abs(b)), big);
            zero += a * 0.0 + b * 0.0;
        }
    }
    finite = zero == 0.0;
    P scale = 1.0, first = 1.0;
    shift = P(0.0);
    big = select(finite, big, P(1.0));
    const M tiny = big < 0x1p-900, huge = big > 0x1p900;
    if (any(tiny | huge)) {  // keep the second factor a normal number
        first = select(tiny, P(0x1p600), select(huge, P(0x1p-600), P(1.0)));
        shift = select(tiny, P(-600.0), select(huge, P(600.0), P(0.0)));
        big = big * first;
    }
    big = max(big, P(0x1p-1000));
    const M plain = (big >= least) & (big <= most);
    const P ex = select(plain, P(0.0), exponent(big));
    scale = pow2(-ex);
    shift += ex;
    for (int i = 0; i < k; ++i) {
        A[i * k + i] = select(finite, A[i * k + i] * first * scale, P(1.0));
        for (int j = 0; j < i; ++j) {
            const P a = A[i * k + j] * first * scale, b = A[j * k + i] * first * scale;
            gap = max(abs(a - b), gap);
            A[i * k + j] = select(finite, 0.5 * (a + b), P(0.0));
        }
    }
    // entries are below 2 here; the tolerance is relative to the largest, as in the reference
    // (the slack's product may be 0 * inf: max takes its second argument then)
    largest = big * scale;
    const P relative = (single ? SYMMETRY_SINGLE : SYMMETRY_DOUBLE) * largest;
    symmetric = gap <= max(slack * (first * scale), relative);
    shift = select(finite, shift, P(0.0));
}

// Lanes that hold a matrix.
template <int N> INLINE Mask<N> present(int lanes) {
    Mask<N> r = ~none<N>();
    for (int lane = lanes; lane < Pack<N>::W; ++lane) r.set(lane, false);
    return r;
}

// --- output --------------------------------------------------------------------------------------------------------
template <int N, class Place>
INLINE void tell(const Job& job, Place place, int lanes, const Mask<N>& finite, const Mask<N>& symmetric,
                 const Mask<N>& stuck, const Mask<N>& positive) {
    if (!any(stuck | ~(finite & symmetric & positive))) {
        for (int lane = 0; lane < lanes; ++lane) job.status[place[lane]] = OK;
        return;
    }
    for (int lane = 0; lane < lanes; ++lane) {
        const auto is = [lane](const Mask<N>& m) { return m.lane(lane); };
        job.status[place[lane]] = !is(finite)      ? NOT_FINITE
                                  : !is(symmetric) ? NOT_SYMMETRIC
                                  : is(stuck)      ? NOT_CONVERGED
                                  : !is(positive)  ? NOT_POSITIVE
                                                   : OK;
    }
}
template <int N>
INLINE void tell(const Job& job, int64_t begin, int lanes, const Mask<N>& finite, const Mask<N>& symmetric,
                 const Mask<N>& stuck, const Mask<N>& positive) {
    tell(job, Consecutive{begin}, lanes, finite, symmetric, stuck, positive);
}

// y becomes (y - center) / radius; gives the sum of squares.
template <int N> INLINE Pack<N> normalise(Pack<N>* y, int dim, const Job& job) {
    const double inverse = 1.0 / job.radius;
    Pack<N> sums[4] = {0.0, 0.0, 0.0, 0.0};  // side by side
    for (int j = 0; j < dim; j += 4)
        for (int l = 0; l < 4 && j + l < dim; ++l) {
            y[j + l] = (y[j + l] - job.center[j + l]) * inverse;
            sums[l] += y[j + l] * y[j + l];
        }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Clip normalised vectors to the ball and round them toward the centre onto the lattice: integers held as doubles.
template <int N> INLINE void encode(Pack<N>* z, int dim, const Mask<N>& usable, const Pack<N>& square) {
    using P = Pack<N>;
    const P factor = select(square > 1.0, LATTICE / sqrt(square), P(LATTICE));
    P norm = 0.0;
    for (int j = 0; j < dim; ++j) {
        z[j] = trunc(select(usable, z[j] * factor, P(0.0)));
        norm += z[j] * z[j];
    }
    // Only lanes near or over the bound need exact arithmetic.
    if (any(~(norm <= NEAR_NORM)))
        for (int lane = 0; lane < P::W; ++lane) enforce_norm(z[0].lanes() + lane, P::W, dim);
}

// Sums over all matrices that a worker has seen: of lattice points, exact, or of weighted vectors.
template <int N> struct Sums {
    using P = Pack<N>;
    std::unique_ptr<P[], Free> acc;
    int64_t pending = 0;
    std::vector<int64_t> total;

    explicit Sums(size_t dim) : acc(buffer<P>(dim)), total(dim, 0) {}

    void flush() {
        for (size_t j = 0; j < total.size(); ++j) {
            for (int lane = 0; lane < P::W; ++lane) total[j] += int64_t(acc[j].lanes()[lane]);
            acc[j] = P(0.0);
        }
        pending = 0;
    }
    void take(int64_t* to) {
        flush();
        for (size_t j = 0; j < total.size(); ++j) {
            to[j] += total[j];
            total[j] = 0;
        }
    }
    void take(double* to) {
        for (size_t j = 0; j < total.size(); ++j) {
            double sum = 0;
            for (int lane = 0; lane < P::W; ++lane) sum += acc[j].lanes()[lane];
            to[j] = sum;
            acc[j] = P(0.0);
        }
    }

    // Adds the lattice points of normalised vectors, if all lie inside by more than rounding, which is below
    // (dim + 2) * 2^-53: they stay inside when they are truncated. The usual case, in which no lane needs more than that.
    INLINE bool add_inside(const P* z, int dim, const Mask<N>& usable, const P& square) {
        if (any(~(usable & (square <= 1.0 - 0x1p-20)))) return false;
        for (int j = 0; j < dim; ++j) {
            P q = whole(z[j] * LATTICE);
            for (int n = 1; n < N; ++n) q.v[0] += q.v[n];
            acc[j].v[0] += q.v[0];
        }
        count();
        return true;
    }
    // What a batch of vectors becomes in the modes that every chart has: LOGVEC, ENCODE and LATTICE_SUM.
    template <class Place>
    INLINE void give(const Job& job, Place place, int lanes, P* y, int dim, const Mask<N>& usable) {
        if (job.mode == LOGVEC) return write(job, place, lanes, y, dim);
        const P square = normalise(y, dim, job);
        if (job.mode == LATTICE_SUM && add_inside(y, dim, usable, square)) return;
        put(job, place, lanes, y, dim, usable, square);
    }
    template <class Place> void write(const Job& job, Place place, int lanes, const P* y, int dim) {
        for (int lane = 0; lane < lanes; ++lane)
            for (int j = 0; j < dim; ++j)
                job.out[place[lane] * dim + j] = job.status[place[lane]] == OK ? y[j].lanes()[lane] : 0.0;
    }
    // The lattice points of normalised vectors.
    template <class Place>
    void put(const Job& job, Place place, int lanes, P* z, int dim, const Mask<N>& usable, const P& square) {
        encode(z, dim, usable, square);
        if (job.mode == ENCODE) {
            for (int lane = 0; lane < lanes; ++lane)
                for (int j = 0; j < dim; ++j) job.codes[place[lane] * dim + j] = int64_t(z[j].lanes()[lane]);
            return;
        }
        for (int j = 0; j < dim; ++j) acc[j] += z[j];
        count();
    }
    INLINE void count() {
        if (++pending == FLUSH) flush();
    }
};

}  // namespace SPDP_ISA
