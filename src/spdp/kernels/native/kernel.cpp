// Batch eigendecomposition with one matrix per SIMD lane, and what is computed from it in the same pass.
// Compiled once per instruction set, with SPDP_ISA naming it.
//
// Householder reduction to tridiagonal form, then implicit QL with Wilkinson's shift. Each lane keeps its own active
// window, found by a masked scan before each sweep, so lanes advance independently. The rotations of a sweep are applied
// to blocks of rows whose shared column stays in a register.
#include "carry.hpp"
#include "lanes.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

namespace SPDP_ISA {

using namespace spdp;

constexpr int MAX_SWEEPS_PER_EIGENVALUE = 40;
constexpr double UNDERFLOW_SQUARE = 1e-280;
constexpr double NEGLIGIBLE = 1.2325951644078309e-32;  // square of a coupling, relative to its neighbours

// Rotate rows [row, row + R) of V by the sweep's rotations in columns [lo, hi].
template <int R, class P> INLINE void rotate_rows(P* V, int k, int row, int lo, int hi, const P* c, const P* s) {
    P carry[R];
    P* z[R];
    for (int r = 0; r < R; ++r) {
        z[r] = V + (row + r) * k;
        carry[r] = z[r][hi];
    }
    for (int i = hi - 1; i >= lo; --i) {
        const P ci = c[i], si = s[i];
        for (int r = 0; r < R; ++r) {
            const P zi = z[r][i];
            z[r][i + 1] = si * zi + ci * carry[r];
            carry[r] = ci * zi - si * carry[r];
        }
    }
    for (int r = 0; r < R; ++r) z[r][lo] = carry[r];
}

template <int K, int N> struct Solver final : Worker {
    using P = Pack<N>;
    using M = Mask<N>;
    static constexpr int W = P::W;
    const int kk;
    std::unique_ptr<P[], Free> memory;
    P *A, *V, *d, *e, *c, *s, *work, *y;
    Reader<N> reader;
    Sums<N> sums;

    explicit Solver(int k_) : kk(k_), reader(k_), sums(k_ * (k_ + 1) / 2) {
        const size_t k = K ? K : k_, dim = k * (k + 1) / 2;
        memory = buffer<P>(2 * k * k + 6 * k + dim);
        A = memory.get();
        V = A + k * k;
        d = V + k * k;
        e = d + k;
        c = e + k;
        s = c + k;
        work = s + k;
        y = work + 2 * k;
    }
    INLINE int size() const { return K ? K : kk; }
    // Loops have pointers of their own: to Clang a vector that is stored may change any member, which is then read again.

    // --- eigendecomposition of the lower triangle of A: eigenvalues in d, eigenvectors in the columns of V -----------
    INLINE M flip() {  // QL is accurate for graded matrices when the large entries are at the bottom
        const int k = size();
        const M f = abs(A[0]) > abs(A[k * k - 1]);
        if (!any(f)) return f;
        for (int i = 0; i < k; ++i)
            for (int j = 0; j <= i; ++j) {  // (i, j) trades places with (k-1-j, k-1-i), which is also below the diagonal
                const int a = i * k + j, b = (k - 1 - j) * k + (k - 1 - i);
                if (a >= b) continue;
                const P x = A[a], z = A[b];
                A[a] = select(f, z, x);
                A[b] = select(f, x, z);
            }
        return f;
    }
    INLINE void unflip(const M& f) {
        if (!any(f)) return;
        const int k = size();
        for (int i = 0; i < k / 2; ++i)
            for (int j = 0; j < k; ++j) {
                const P x = V[i * k + j], z = V[(k - 1 - i) * k + j];
                V[i * k + j] = select(f, z, x);
                V[(k - 1 - i) * k + j] = select(f, x, z);
            }
    }

    // Tridiagonal form in d and e, reflectors in the rows of A left of the diagonal, 1/h of each in work.
    INLINE void tridiagonalise() {
        const int k = size();
        P *const A = this->A, *const d = this->d, *const e = this->e;
        P* h = work;           // 0 where there is no reflector
        P* p = work + k;
        for (int i = k - 1; i >= 2; --i) {
            P* v = A + i * k;  // row i left of the diagonal; becomes the reflector
            P sigma = 0.0;
            for (int j = 0; j < i - 1; ++j) sigma += v[j] * v[j];
            const P alpha = v[i - 1];
            const M act = sigma > UNDERFLOW_SQUARE;
            const P norm = sqrt(alpha * alpha + sigma), beta = -copysign(norm, alpha);
            e[i - 1] = select(act, beta, alpha);
            const P inverse = select(act, P(1.0) / select(act, beta * (beta - alpha), P(1.0)), P(0.0));
            h[i] = inverse;
            v[i - 1] = alpha - beta;
            d[i] = v[i];
            // p = A v / h for the leading i x i block, of which the lower triangle is stored
            for (int j = 0; j < i; ++j) p[j] = P(0.0);
            for (int j = 0; j < i; ++j) {
                const P* row = A + j * k;
                const P vj = v[j];
                P t = row[j] * vj;
                for (int l = 0; l < j; ++l) {
                    t += row[l] * v[l];
                    p[l] += row[l] * vj;
                }
                p[j] += t;
            }
            P kappa = 0.0;
            for (int j = 0; j < i; ++j) {
                p[j] = p[j] * inverse;
                kappa += p[j] * v[j];
            }
            kappa = 0.5 * kappa * inverse;
            for (int j = 0; j < i; ++j) p[j] -= kappa * v[j];
            for (int j = 0; j < i; ++j) {
                P* row = A + j * k;
                const P vj = v[j], pj = p[j];
                for (int l = 0; l <= j; ++l) row[l] -= vj * p[l] + pj * v[l];
            }
        }
        d[0] = A[0];
        if (k > 1) {
            d[1] = A[k + 1];
            e[0] = A[k];
        }
    }
    INLINE void form_vectors() {
        const int k = size();
        P* const V = this->V;
        const P* h = work;
        P* p = work + k;
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j) V[i * k + j] = P(i == j ? 1.0 : 0.0);
        for (int i = 2; i < k; ++i) {  // V <- (I - v v'/h) V on the leading i x i block
            const P* v = A + i * k;
            P* t = p;
            for (int l = 0; l < i; ++l) t[l] = P(0.0);
            for (int j = 0; j < i; ++j)
                for (int l = 0; l < i; ++l) t[l] += v[j] * V[j * k + l];
            for (int l = 0; l < i; ++l) t[l] = t[l] * h[i];
            for (int j = 0; j < i; ++j)
                for (int l = 0; l < i; ++l) V[j * k + l] -= v[j] * t[l];
        }
    }

    INLINE void rotate(int lo, int hi) {
        const int k = size();
        int row = 0;
        while (k - row > 5) {
            rotate_rows<4>(V, k, row, lo, hi, c, s);
            row += 4;
        }
        switch (k - row) {
            case 5: rotate_rows<5>(V, k, row, lo, hi, c, s); break;
            case 4: rotate_rows<4>(V, k, row, lo, hi, c, s); break;
            case 3: rotate_rows<3>(V, k, row, lo, hi, c, s); break;
            case 2: rotate_rows<2>(V, k, row, lo, hi, c, s); break;
            default: rotate_rows<1>(V, k, row, lo, hi, c, s); break;
        }
    }

    // True for lanes that did not converge.
    INLINE M ql() {
        const int k = size();
        P *const d = this->d, *const e = this->e, *const c = this->c, *const s = this->s;
        M busy = none<N>();
        for (int sweep = 0; sweep <= MAX_SWEEPS_PER_EIGENVALUE * k; ++sweep) {
            // each lane's window [l, m]: l the first coupling that is not negligible, m the end of its block
            M started = none<N>(), ended = none<N>();
            P first = 0.0, last = double(k - 1), dl = 0.0, dl1 = 0.0, el = 1.0, dm = d[k - 1];
            int lo = k, hi = 0;
            for (int i = 0; i < k - 1; ++i) {
                const M small = e[i] * e[i] <= NEGLIGIBLE * abs(d[i] * d[i + 1]) + UNDERFLOW_SQUARE;
                e[i] = select(small, P(0.0), e[i]);
                const M opens = ~(small | started), closes = small & started & ~ended;
                first = select(opens, P(double(i)), first);
                dl = select(opens, d[i], dl);
                dl1 = select(opens, d[i + 1], dl1);
                el = select(opens, e[i], el);
                last = select(closes, P(double(i)), last);
                dm = select(closes, d[i], dm);
                started = started | opens;
                ended = ended | closes;
                if (lo == k && any(opens)) lo = i;
                if (any(started & ~ended)) hi = i + 1;
            }
            busy = started;
            if (lo == k || sweep == MAX_SWEEPS_PER_EIGENVALUE * k) break;
            P g = (dl1 - dl) / (2.0 * el);
            g = dm - dl + el / (g + copysign(sqrt(g * g + 1.0), g));
            P si = 1.0, ci = 1.0, p = 0.0;
            for (int i = hi - 1; i >= lo; --i) {
                const P at = double(i);
                const M in = busy & (at < last) & (at >= first);
                const P f = si * e[i], b = ci * e[i];
                const P square = f * f + g * g;
                const M nonzero = square > 1e-300;
                const P r = sqrt(square), inverse = P(1.0) / select(nonzero, r, P(1.0));
                // the first rotation of a window does not touch the (negligible) coupling below it
                e[i + 1] = select(in & (at < last - 1.0), r, e[i + 1]);
                const P cn = select(nonzero, g * inverse, P(1.0)), sn = select(nonzero, f * inverse, P(0.0));
                const P gd = d[i + 1] - p, r2 = (d[i] - gd) * sn + 2.0 * cn * b, pn = sn * r2;
                d[i + 1] = select(in, gd + pn, d[i + 1]);
                g = select(in, cn * r2 - b, g);
                p = select(in, pn, p);
                si = select(in, sn, si);
                ci = select(in, cn, ci);
                c[i] = select(in, cn, P(1.0));
                s[i] = select(in, sn, P(0.0));
                // close the window at its upper end
                const M top = in & (at == first);
                d[i] = select(top, d[i] - pn, d[i]);
                e[i] = select(top, g, e[i]);
            }
            rotate(lo, hi);
        }
        return busy;
    }

    INLINE M decompose() {
        const int k = size();
        if (k == 1) {
            d[0] = A[0];
            V[0] = P(1.0);
            return none<N>();
        }
        if (K == 2) {  // one Jacobi rotation
            const P a = A[0], b = A[2], z = A[3];
            const M act = abs(b) > 1e-290;
            const P theta = (z - a) / (2.0 * select(act, b, P(1.0)));
            P t = P(1.0) / (theta + copysign(sqrt(theta * theta + 1.0), theta));
            t = select(act, t, P(0.0));
            const P cs = P(1.0) / sqrt(t * t + 1.0), sn = t * cs;
            d[0] = a - t * b;
            d[1] = z + t * b;
            V[0] = cs;
            V[1] = sn;
            V[2] = -sn;
            V[3] = cs;
            return none<N>();
        }
        const M f = flip();
        tridiagonalise();
        form_vectors();
        const M busy = ql();
        unflip(f);
        return busy;
    }

    // --- output ------------------------------------------------------------------------------------------------------
    // y = vecd(V diag(values) V'), values in `work`
    INLINE void compose(const P* values) {
        const int k = size();
        P *const V = this->V, *const y = this->y;
        P* t = c;
        int at = k;
        for (int i = 0; i < k; ++i) {
            P diagonal = 0.0;
            for (int l = 0; l < k; ++l) {
                t[l] = V[i * k + l] * values[l];
                diagonal += t[l] * V[i * k + l];
            }
            y[i] = diagonal;
            int j = i + 1;
            for (; j + 3 < k; j += 4) {
                P q0 = 0.0, q1 = 0.0, q2 = 0.0, q3 = 0.0;
                const P* v = V + j * k;
                for (int l = 0; l < k; ++l) {
                    q0 += t[l] * v[l];
                    q1 += t[l] * v[k + l];
                    q2 += t[l] * v[2 * k + l];
                    q3 += t[l] * v[3 * k + l];
                }
                y[at] = q0 * SQRT2;
                y[at + 1] = q1 * SQRT2;
                y[at + 2] = q2 * SQRT2;
                y[at + 3] = q3 * SQRT2;
                at += 4;
            }
            for (; j < k; ++j) {
                P q = 0.0;
                for (int l = 0; l < k; ++l) q += t[l] * V[j * k + l];
                y[at++] = q * SQRT2;
            }
        }
    }

    template <class Place> void store_matrices(const Job& job, Place place, int lanes) {
        const int k = size();
        for (int lane = 0; lane < lanes; ++lane) {
            double* out = job.out + place[lane] * k * k;
            int at = k;
            for (int i = 0; i < k; ++i) {
                out[i * k + i] = y[i].lanes()[lane];
                for (int j = i + 1; j < k; ++j) out[i * k + j] = out[j * k + i] = y[at++].lanes()[lane] * SQRT1_2;
            }
        }
    }

    template <class Place> void store_eigen(const Job& job, Place place, int lanes, const P& scale) {
        const int k = size();
        std::vector<int> order(k);
        for (int lane = 0; lane < lanes; ++lane) {
            for (int i = 0; i < k; ++i) order[i] = i;
            std::sort(order.begin(), order.end(), [&](int a, int b) { return d[a].lanes()[lane] < d[b].lanes()[lane]; });
            double* values = job.values + place[lane] * k;
            double* vectors = job.out + place[lane] * k * k;
            for (int i = 0; i < k; ++i) {
                values[i] = std::ldexp(d[order[i]].lanes()[lane], int(scale.lanes()[lane]));
                for (int j = 0; j < k; ++j) vectors[j * k + i] = V[j * k + order[i]].lanes()[lane];
            }
        }
    }

    void lattice_sum(int64_t* to) override { sums.take(to); }
    void log_sum(double* to) override { sums.take(to); }

    // --- one batch of up to W matrices -------------------------------------------------------------------------------
    void batch(const Job& job, int64_t begin, int lanes) {
        if (job.mode == CARRY) return carry_vectors(*this, job, begin, lanes);
        load(A, size(), reader.at(size(), job, begin, lanes));
        P shift, largest;
        M finite, symmetric;
        prepare(A, size(), job.single, job.slack, shift, largest, finite, symmetric);
        if (job.congruence) {
            carry_matrices(*this, job.congruence, shift, largest);
            shift += P(double(job.exponent));
        }
        finish(job, Consecutive{begin}, lanes, shift, largest, finite, symmetric, decompose());
    }
    // What follows the decomposition of prepared matrices.
    template <class Place>
    INLINE void finish(const Job& job, Place place, int lanes, const P& shift, const P& largest, const M& finite,
                       const M& symmetric, const M& stuck) {
        const int k = size(), dim = k * (k + 1) / 2;
        M positive = ~none<N>();
        const bool clipped = job.mode >= LOGVEC, logs = clipped || job.mode == LOGM || job.mode == LOGSUM;
        P* values = work;
        P low = d[0], high = d[0];
        for (int i = 1; i < k; ++i) {
            low = min(low, d[i]);
            high = max(high, d[i]);
        }
        if (logs) {
            P floor = 1.0;
            if (clipped) {  // non-positive only by the rounding of the stored entries: accepted, the record is clipped next
                const double eps = job.single ? double(FLT_EPSILON) : DBL_EPSILON, least = job.single ? -149.0 : -1074.0;
                const P granule = pow2(max(min(P(least) - shift, P(0.0)), P(-1000.0)));
                positive = (high > 0.0) & (low >= -double(RANK_SLACK) * k * max(eps * largest, granule));
                floor = DBL_EPSILON * high;
            } else {
                positive = low > 0.0;
            }
            const M usable = finite & symmetric & positive;
            for (int i = 0; i < k; ++i) {
                P w = select(d[i] > 0.0, d[i], floor);
                w = select(usable, w, P(1.0));
                w = log(max(w, P(0x1p-1000))) + shift * 0.6931471805599453;
                if (clipped) w = min(max(w, P(job.log_low)), P(job.log_high));
                values[i] = w;
            }
        } else if (job.mode == EXPM) {
            const P two = pow2(max(min(shift, P(1000.0)), P(-1000.0)));
            for (int i = 0; i < k; ++i) values[i] = exp(min(max(d[i] * two, P(-800.0)), P(800.0)));
        }
        tell(job, place, lanes, finite, symmetric, stuck, positive);
        if (job.mode == EIGH) return store_eigen(job, place, lanes, shift);
        compose(values);
        if (job.mode == LOGM || job.mode == LOGSUM)
            for (int lane = 0; lane < lanes; ++lane)
                job.values[place[lane]] = std::ldexp(low.lanes()[lane], int(shift.lanes()[lane]));
        const M usable = present<N>(lanes) & finite & symmetric & positive & ~stuck;
        switch (job.mode) {
            case LOGM:
            case EXPM: store_matrices(job, place, lanes); break;
            case LOGSUM: {
                P weight = 1.0;
                if (job.weights)
                    for (int lane = 0; lane < lanes; ++lane) weight.lanes()[lane] = job.weights[place[lane]];
                weight = select(usable, weight, P(0.0));
                for (int j = 0; j < dim; ++j) sums.acc[j] += y[j] * weight;
                break;
            }
            default: sums.give(job, place, lanes, y, dim, usable);
        }
    }

    void run(const Job& job, int64_t begin, int64_t end) override {
        for (int64_t i = begin; i < end; i += W) batch(job, i, int(std::min<int64_t>(W, end - i)));
    }

    // --- matrices that come in tridiagonal form, one by one ------------------------------------------------------------
    struct Arrivals {
        P shift = 0.0, largest = 1.0;
        M finite = none<N>(), symmetric = none<N>(), flipped = none<N>();
        int64_t index[W];
        int count = 0;
    } arrived;

    static INLINE void mark(M& mask, int lane, bool yes) { mask.set(lane, yes); }
    void put_lane(int lane, const double* matrix, int stride, const double* on, const double* off, const double* inverse) {
        const int k = size();
        for (int i = 0; i < k; ++i) {
            d[i].lanes()[lane] = on[i];
            e[i].lanes()[lane] = off[i];
            work[i].lanes()[lane] = inverse[i];
            for (int j = 0; j < i; ++j) A[i * k + j].lanes()[lane] = matrix[size_t(i) * stride + j];
        }
    }
    bool full() const { return arrived.count == W; }
    void finish_arrivals(const Job& job) {
        if (arrived.count == 0) return;
        const int lanes = arrived.count, k = size();
        for (int lane = lanes; lane < W; ++lane)
            for (int i = 0; i < k; ++i) {  // the identity
                d[i].lanes()[lane] = 1.0;
                e[i].lanes()[lane] = work[i].lanes()[lane] = 0.0;
            }
        form_vectors();
        const M stuck = ql();
        unflip(arrived.flipped);
        finish(job, Picked(arrived.index), lanes, arrived.shift, arrived.largest, arrived.finite, arrived.symmetric, stuck);
        arrived = Arrivals();
    }
};

}  // namespace SPDP_ISA

#include "large.hpp"

namespace SPDP_ISA {

// Two vectors per pack while the working set of a batch stays in the first-level cache.
template <int K> Worker* make(int k) { return new Solver<K, (K > 0 && K <= 12) ? 2 : 1>(k); }

Worker* make_logeuclid(int k) {
    if (k >= LARGE) return new Large(k);
    switch (k) {
        case 2: return make<2>(k);
        case 3: return make<3>(k);
#ifndef SPDP_FEW_SIZES
        case 1: return make<1>(k);
        case 4: return make<4>(k);
        case 5: return make<5>(k);
        case 6: return make<6>(k);
        case 7: return make<7>(k);
        case 8: return make<8>(k);
        case 9: return make<9>(k);
        case 10: return make<10>(k);
        case 11: return make<11>(k);
        case 12: return make<12>(k);
#endif
        default: return make<0>(k);
    }
}

}  // namespace SPDP_ISA
