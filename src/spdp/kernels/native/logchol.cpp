// Vectors of the log-Cholesky metric with one matrix per SIMD lane. Compiled once per instruction set.
//
// X = L L', y = (ln L_ii, L_ij for i > j in the order of vecd). A pivot that is zero up to the rounding of the stored
// entries counts as their eps times the largest entry; one that is negative beyond it makes the matrix unusable.
#include "lanes.hpp"

namespace SPDP_ISA {

constexpr int AHEAD = 20000;  // bytes by which matrices are asked for before they are read
constexpr int STREAMED = 3;   // matrices up to this size lie so close that the machine asks for them itself
constexpr double LEAST = 0x1p-400, MOST = 0x1p400;  // largest entries of matrices that need no scaling

template <int K, int N> struct LogCholesky final : Worker {
    using P = Pack<N>;
    using M = Mask<N>;
    // Small matrices are worked on in registers and on the stack.
    static constexpr int ENTRIES = K ? K * K : 1, VECTOR = K ? K * (K + 1) / 2 : 1;
    const int kk;
    std::unique_ptr<P[], Free> memory;
    Reader<N> reader;
    Sums<N> sums;

    explicit LogCholesky(int k_) : kk(k_), reader(k_), sums(k_ * (k_ + 1) / 2) {
        const size_t k = k_;
        if (!K) memory = buffer<P>(k * k + k * (k + 1));
    }
    INLINE int size() const { return K ? K : kk; }
    INLINE int dim() const { return size() * (size() + 1) / 2; }

    // --- X = L L': ln L_ii in y[0..k), L below its diagonal in the rest, column by column: the order of vecd -------------
    // L_il is column(y, l)[i].
    INLINE P* column(P* y, int l) const { return y + size() + l * (size() - 1) - l * (l - 1) / 2 - l - 1; }

    // Entries i to i + R - 1 of column j.
    template <int R> INLINE void eliminate(const P* A, P* y, int j, int i, const P& inverse) const {
        P t[R];
        for (int r = 0; r < R; ++r) t[r] = A[(i + r) * size() + j];
        for (int l = 0; l < j; ++l) {
            const P* L = column(y, l);
            for (int r = 0; r < R; ++r) t[r] -= L[i + r] * L[j];
        }
        for (int r = 0; r < R; ++r) column(y, j)[i + r] = t[r] * inverse;
    }
    // How a factorisation judges pivots, and where its matrices are.
    struct Rules {
        P tolerance, floor;
        double eps;
        const char* from;
    };
    // The square of L_jj in y[j], which takes part in `positive`.
    INLINE void pivot(const P* A, P* y, int j, const Rules& rules, M& positive) const {
        const P own = A[j * size() + j];
        P left = own;
        for (int l = 0; l < j; ++l) left -= column(y, l)[j] * column(y, l)[j];
        positive = positive & (left >= -rules.tolerance);
        y[j] = select(left > rules.eps * own, left, rules.floor);
        const int share = P::W * size() * 8;  // bytes
        if (size() <= STREAMED) return;
        const char *near = rules.from + (size() + j) * share, *far = rules.from + AHEAD + j * share;
        for (int byte = 0; byte < share; byte += 64) ask(near + byte, far + byte, y[j].v[0]);
    }
    // From column J on; false for lanes with a pivot that is negative.
    template <int J = 0> INLINE M factorise(const P* A, P* y, const Rules& rules) const {
        M positive = ~none<N>();
        if constexpr (K == 0) {
            for (int j = 0; j < kk; ++j) {
                pivot(A, y, j, rules, positive);
                if (j + 1 == kk) break;
                const P inverse = inverse_root(y[j]);  // to the last bit: rounding tells singular matrices from others
                int i = j + 1;
                for (; i + 8 <= kk; i += 8) eliminate<8>(A, y, j, i, inverse);
                for (; i < kk; ++i) eliminate<1>(A, y, j, i, inverse);
            }
        } else if constexpr (J < K) {
            pivot(A, y, J, rules, positive);
            if constexpr (J + 1 < K) eliminate<K - 1 - J>(A, y, J, J + 1, inverse_root(y[J]));
            positive = positive & factorise<J + 1>(A, y, rules);
        }
        return positive;
    }
    INLINE void take_logs(P* y) const {
        for (int i = 0; i < size(); ++i) y[i] = 0.5 * log(y[i]);
    }

    // --- ordinary matrices: finite, symmetric, positive, and in need of no scaling ------------------------------------
    // Their largest entry lies on the diagonal, up to rounding. Not a number, or an infinite one, ends in a pivot or a
    // diagonal that fails a comparison.
    INLINE M ordinary(P* A, P* y, const double* from, const Job& job) const {
        const int k = size();
        const double eps = job.single ? double(FLT_EPSILON) : DBL_EPSILON, least = job.single ? 0x1p-149 : 0x1p-1000;
        load(A, k, from);
        P largest = A[0];
        for (int i = 1; i < k; ++i) largest = max(A[i * k + i], largest);
        M yes = (largest >= LEAST) & (largest <= MOST);
        if (!identical(A)) yes = yes & (symmetrise(A) <= (job.single ? SYMMETRY_SINGLE : SYMMETRY_DOUBLE) * largest);
        const P granule = max(eps * largest, P(least));
        const char* bytes = reinterpret_cast<const char*>(from);
        yes = yes & factorise(A, y, {double(RANK_SLACK) * k * granule, granule, eps, bytes});
        take_logs(y);
        return yes;
    }
    // Whether all are symmetric to the bit: the usual case, in which there is nothing to symmetrise.
    INLINE bool identical(const P* A) const {
        const int k = size();
        Int gap = {};
        for (int i = 1; i < k; ++i)
            for (int j = 0; j < i; ++j)
                for (int n = 0; n < N; ++n) gap |= (Int)A[i * k + j].v[n] ^ (Int)A[j * k + i].v[n];
        return !vany((Int)(gap != 0));
    }
    // Symmetrises the lower triangle; gives the sum of |a_ij - a_ji|.
    INLINE P symmetrise(P* A) const {
        const int k = size();
        P gap = 0.0;
        for (int i = 1; i < k; ++i)
            for (int j = 0; j < i; ++j) {
                const P a = A[i * k + j], b = A[j * k + i];
                gap += abs(a - b);
                A[i * k + j] = 0.5 * (a + b);
            }
        return gap;
    }

    // --- any matrices ---------------------------------------------------------------------------------------------------
    // A batch of which not all lanes are ordinary: each is computed as its matrix asks for, whatever the others hold.
    struct Judgement {
        M finite, symmetric, positive;
    };
    __attribute__((noinline)) Judgement general(const double* from, P* y, const Job& job, const M& plain) {
        const int k = size();
        P entries[ENTRIES], vector[VECTOR];
        P *A = K ? entries : memory.get(), *z = K ? vector : A + k * k + dim();
        Judgement is;
        P shift, largest;
        load(A, k, from);
        prepare(A, k, job.single, 0.0, shift, largest, is.finite, is.symmetric, LEAST, MOST);
        const double eps = job.single ? double(FLT_EPSILON) : DBL_EPSILON, least = job.single ? -149.0 : -1074.0;
        const P granule = max(eps * largest, pow2(max(min(P(least) - shift, P(0.0)), P(-1000.0))));
        P top = A[0];
        for (int i = 1; i < k; ++i) top = max(A[i * k + i], top);
        const char* bytes = reinterpret_cast<const char*>(from);
        const P tolerance = select(top > 0.0, double(RANK_SLACK) * k * granule, P(-HUGE_VAL));  // all zero: no pivot will do
        is.positive = factorise(A, z, {tolerance, granule, eps, bytes});
        take_logs(z);
        // times the root of 2^shift, without leaving the range of pow2
        const P half = trunc(0.5 * shift), odd = shift - 2.0 * half;
        const P root = pow2(half) * select(odd == 0.0, P(1.0), select(odd > 0.0, P(SQRT2), P(SQRT1_2)));
        for (int j = 0; j < dim(); ++j)
            y[j] = select(plain, y[j], j < k ? z[j] + shift * (0.5 * 0.6931471805599453) : z[j] * root);
        return is;
    }
    __attribute__((noinline)) void finish(const Job& job, int64_t begin, int lanes, const double* from, P* y, const M& plain) {
        Judgement is{plain, plain, plain};
        if (any(~plain)) is = general(from, y, job, plain);
        const M finite = is.finite | plain, symmetric = is.symmetric | plain, positive = is.positive | plain;
        tell(job, begin, lanes, finite, symmetric, none<N>(), positive);
        sums.give(job, Consecutive{begin}, lanes, y, dim(), present<N>(lanes) & finite & symmetric & positive);
    }
    __attribute__((noinline)) void put(const Job& job, int64_t begin, P* z, const M& usable, const P& square) {
        sums.put(job, Consecutive{begin}, P::W, z, dim(), usable, square);
    }

    INLINE void batch(const Job& job, int64_t begin, int lanes) {
        P entries[ENTRIES], vector[VECTOR], copy[VECTOR];  // whatever leaves is a copy: y stays in registers
        P *A = K ? entries : memory.get(), *y = K ? vector : A + kk * kk, *out = K ? copy : y;
        const double* from = reader.at(size(), job, begin, lanes);
        const M plain = ordinary(A, y, from, job);
        if (job.mode == LOGVEC || lanes < P::W || any(~plain)) {
            for (int j = 0; K && j < dim(); ++j) out[j] = y[j];
            return finish(job, begin, lanes, from, out, plain);
        }
        std::memset(job.status + begin, OK, P::W);
        const P square = normalise(y, dim(), job);
        if (job.mode == LATTICE_SUM && sums.add_inside(y, dim(), plain, square)) return;
        for (int j = 0; K && j < dim(); ++j) out[j] = y[j];
        put(job, begin, out, plain, square);
    }

    void run(const Job& job, int64_t begin, int64_t end) override {
        for (int64_t i = begin; i < end; i += P::W) batch(job, i, int(std::min<int64_t>(P::W, end - i)));
    }
    void lattice_sum(int64_t* to) override { sums.take(to); }
    void log_sum(double* to) override { sums.take(to); }
};

// More vectors per pack, while they fit, hide the latency of roots and quotients.
constexpr int vectors(int k) { return k == 2 ? 4 : k == 3 ? 3 : 4 <= k && k <= 6 ? 2 : 1; }
template <int K> Worker* make_lanes(int k) { return new LogCholesky<K, vectors(K)>(k); }

Worker* make_logchol(int k) {
    switch (k) {
        case 2: return make_lanes<2>(k);
        case 3: return make_lanes<3>(k);
#ifndef SPDP_FEW_SIZES
        case 4: return make_lanes<4>(k);
        case 5: return make_lanes<5>(k);
        case 6: return make_lanes<6>(k);
        case 7: return make_lanes<7>(k);
        case 8: return make_lanes<8>(k);
        case 9: return make_lanes<9>(k);
        case 10: return make_lanes<10>(k);
        case 11: return make_lanes<11>(k);
        case 12: return make_lanes<12>(k);
#endif
        default: return make_lanes<0>(k);
    }
}

}  // namespace SPDP_ISA
