// Vectors of the log-Cholesky metric with one matrix per SIMD lane. Compiled once per instruction set.
//
// X = L L', y = (ln L_ii, L_ij for i > j in the order of vecd). A pivot that is zero up to the rounding of the stored
// entries counts as their eps times the largest entry; one that is negative beyond it makes the matrix unusable.
#include "lanes.hpp"

#include <cfloat>

namespace SPDP_ISA {

constexpr double LEAST = 0x1p-400, MOST = 0x1p400;  // largest entries of matrices that need no scaling

template <int K, int N> struct LogCholesky final : Worker {
    using P = Pack<N>;
    using M = Mask<N>;
    const int kk;
    std::unique_ptr<P[], Free> memory;
    P *A, *inverse, *y;
    Sums<N> sums;

    explicit LogCholesky(int k_) : kk(k_), sums(k_ * (k_ + 1) / 2) {
        const size_t k = k_;
        memory = buffer<P>(k * k + k + k * (k + 1) / 2);
        A = memory.get();
        inverse = A + k * k;
        y = inverse + k;
    }
    INLINE int size() const { return K ? K : kk; }

    // Symmetrise the lower triangle. Matrices of an ordinary size, which need no scaling, take one pass; if there are
    // others in the batch, all go through `prepare`, which leaves the ordinary ones as they would have been.
    INLINE void read(const Job& job, int64_t begin, int lanes, P& shift, P& largest, M& finite, M& symmetric) {
        const int k = size();
        load(A, k, job, begin, lanes);
        P gap = 0.0, zero = 0.0;
        shift = P(0.0);
        largest = P(0.0);
        for (int i = 0; i < k; ++i) {
            largest = max(abs(A[i * k + i]), largest);
            zero += A[i * k + i] * 0.0;
            for (int j = 0; j < i; ++j) {
                const P a = A[i * k + j], b = A[j * k + i];
                const P mean = 0.5 * (a + b);
                largest = max(max(abs(a), abs(b)), largest);
                gap = max(abs(a - b), gap);
                zero += mean * 0.0;
                A[i * k + j] = mean;
            }
        }
        finite = zero == 0.0;
        symmetric = gap <= (job.single ? SYMMETRY_SINGLE : SYMMETRY_DOUBLE) * largest;
        if (any(~(finite & (largest >= LEAST) & (largest <= MOST)))) {
            load(A, k, job, begin, lanes);
            prepare(A, k, job.single, 0.0, shift, largest, finite, symmetric, LEAST, MOST);
        }
    }

    // The factor of the lower triangle of A, in place; false for lanes that are not positive definite.
    INLINE M factorise(const P& tolerance, const P& floor, double eps) {
        const int k = size();
        M positive = ~none<N>();
        P top = 0.0;
        for (int i = 0; i < k; ++i) {
            P* row = A + i * k;
            for (int j = 0; j < i; ++j) {
                const P* other = A + j * k;
                P t = row[j];
                for (int l = 0; l < j; ++l) t -= row[l] * other[l];
                row[j] = t * inverse[j];
            }
            P pivot = row[i];
            top = max(pivot, top);
            for (int l = 0; l < i; ++l) pivot -= row[l] * row[l];
            positive = positive & (pivot >= -tolerance);
            pivot = select(pivot > eps * row[i], pivot, floor);
            y[i] = pivot;
            if (i + 1 < k) inverse[i] = P(1.0) / sqrt(pivot);
        }
        return positive & (top > 0.0);
    }

    void batch(const Job& job, int64_t begin, int lanes) {
        const int k = size(), dim = k * (k + 1) / 2;
        P shift, largest;
        M finite, symmetric;
        read(job, begin, lanes, shift, largest, finite, symmetric);
        const double eps = job.single ? double(FLT_EPSILON) : DBL_EPSILON, least = job.single ? -149.0 : -1074.0;
        const P granule = max(eps * largest, pow2(max(min(P(least) - shift, P(0.0)), P(-1000.0))));
        const M positive = factorise(double(RANK_SLACK) * k * granule, granule, eps);
        const M usable = present<N>(lanes) & finite & symmetric & positive;
        tell(job, begin, lanes, finite, symmetric, none<N>(), positive);
        const M scaled = ~(shift == 0.0);
        for (int i = 0; i < k; ++i) y[i] = 0.5 * (log(max(y[i], P(0x1p-1000))) + shift * 0.6931471805599453);
        int at = k;
        for (int j = 0; j < k; ++j)
            for (int i = j + 1; i < k; ++i) y[at++] = A[i * k + j];
        if (any(scaled)) {  // times the root of 2^shift, without leaving the range of pow2
            const P half = trunc(0.5 * shift), odd = shift - 2.0 * half;
            const P root = pow2(half) * select(odd == 0.0, P(1.0), select(odd > 0.0, P(M_SQRT2), P(M_SQRT1_2)));
            for (int j = k; j < dim; ++j) y[j] = y[j] * root;
        }
        sums.give(job, begin, lanes, y, dim, usable);
    }

    void run(const Job& job, int64_t begin, int64_t end) override {
        for (int64_t i = begin; i < end; i += P::W) batch(job, i, int(std::min<int64_t>(P::W, end - i)));
    }
    void lattice_sum(int64_t* to) override { sums.take(to); }
    void log_sum(double* to) override { sums.take(to); }
};

// Two vectors per pack while a batch stays in the first-level cache: they hide the latency of roots and quotients.
template <int K> Worker* make_lanes(int k) { return new LogCholesky<K, (K > 0 && K <= 12) ? 2 : 1>(k); }

Worker* make_logchol(int k) {
    switch (k) {
        case 2: return make_lanes<2>(k);
        case 3: return make_lanes<3>(k);
        case 4: return make_lanes<4>(k);
        case 5: return make_lanes<5>(k);
        case 6: return make_lanes<6>(k);
        case 7: return make_lanes<7>(k);
        case 8: return make_lanes<8>(k);
        case 9: return make_lanes<9>(k);
        case 10: return make_lanes<10>(k);
        case 11: return make_lanes<11>(k);
        case 12: return make_lanes<12>(k);
        default: return make_lanes<0>(k);
    }
}

}  // namespace SPDP_ISA
