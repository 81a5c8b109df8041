// Large matrices, one at a time, with the SIMD lanes along its rows. Included by kernel.cpp, once per instruction set.
//
// Householder reduction to a tridiagonal T, each rank-two update fused with the next product. Then the logarithm takes
// the short way where no eigenvalue is clipped: log T is a sum of resolvents (poles.hpp), and the reflectors bring it
// back, without eigenvectors. Everything else goes the long way, by implicit QL: in lanes beside other matrices up to
// SIDE_BY_SIDE, since there the recurrences wait for each other, alone above. Which way depends on the record alone.
#pragma once
#include "kernel.hpp"
#include "pack.hpp"
#include "poles.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

namespace SPDP_ISA {

using namespace spdp;

typedef double Stored __attribute__((vector_size(8 * LANES), may_alias));
INLINE Vec at(const double* p) { return *reinterpret_cast<const Stored*>(p); }
INLINE void put(double* p, Vec x) { *reinterpret_cast<Stored*>(p) = x; }
INLINE double total(Vec x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    return _mm512_reduce_add_pd((__m512d)x);
#elif defined(__AVX2__)
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128((__m256d)x), _mm256_extractf128_pd((__m256d)x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
#else
    return x[0] + x[1];
#endif
}
INLINE double dot(const double* a, const double* b, int n) {  // n a multiple of LANES
    Vec sum = {};
    for (int l = 0; l < n; l += LANES) sum += at(a + l) * at(b + l);
    return total(sum);
}
inline int padded(int n) { return (n + LANES - 1) / LANES * LANES; }

struct Large final : Worker {
    static constexpr int ROWS = LANES < 4 ? LANES : 4;   // rows that share the loads of a pass
    static constexpr int SWEEPS = 24;                    // whose rotations wait for each other
    static constexpr int TOGETHER = LANES < 8 ? 2 : 3;   // of them that pass over the rows at once
    static constexpr int BAND = LANES < 8 ? 4 : 5;       // vectors of a row that a rotation moves at once
    static constexpr int WIDE = 4;                       // vectors of a tile of the result
    using Shifts = Pack<8 / LANES>;                      // eight shifts, or poles, side by side

    const int k, kp, dim;
    std::unique_ptr<double[], Free> memory;
    double *A, *F, *d, *e, *h, *u, *w, *p, *v, *values, *y, *acc, *tangents, *sines;
    std::unique_ptr<Shifts[], Free> resolvents;
    Shifts *ratio, *diagonal;
    std::vector<int> low, high, together;                // windows of the sweeps whose rotations wait, and how many go at once
    int64_t pending = 0;
    std::vector<int64_t> sums;
    std::unique_ptr<Solver<0, 1>> lanes;                 // for the long way, or null
    // of the record at hand
    double shift = 0, largest = 0;
    bool finite = false, symmetric = false, flipped = false;

    explicit Large(int k_) : k(k_), kp(padded(k_)), dim(k_ * (k_ + 1) / 2) {
        const size_t square = size_t(kp) * kp, flat = size_t(padded(dim)), rotations = size_t(SWEEPS) * kp;
        memory = buffer<double>(2 * square + 9 * size_t(kp) + 2 * flat + 2 * rotations);
        double* next = memory.get();
        const auto take = [&next](size_t count) { return (next += count) - count; };
        A = take(square), F = take(square);
        d = take(kp), e = take(kp), h = take(kp), u = take(kp), w = take(kp), p = take(kp), v = take(kp), values = take(kp);
        y = take(flat), acc = take(flat), tangents = take(rotations), sines = take(rotations);
        resolvents = buffer<Shifts>(2 * size_t(kp) * (MAX_POLES / 8));
        ratio = resolvents.get();
        diagonal = ratio + size_t(kp) * (MAX_POLES / 8);
        sums.assign(dim, 0);
        if (k <= SIDE_BY_SIDE) lanes.reset(new Solver<0, 1>(k));
    }

    // --- input -----------------------------------------------------------------------------------------------------
    template <class T> void load(const Job& job, int64_t index) {  // into F, and what scales it
        const char* from = job.x + index * job.stride[0];
        double big = 0, zero = 0;
        for (int i = 0; i < k; ++i) {
            double* row = F + size_t(i) * kp;
            if (job.stride[2] == int64_t(sizeof(T))) {
                const T* in = reinterpret_cast<const T*>(from + i * job.stride[1]);
                for (int j = 0; j < k; ++j) row[j] = in[j];
            } else
                for (int j = 0; j < k; ++j) row[j] = *reinterpret_cast<const T*>(from + i * job.stride[1] + j * job.stride[2]);
            std::fill(row + k, row + kp, 0.0);
            Vec most = {}, none = {};
            for (int j = 0; j < kp; j += LANES) {
                const Vec a = at(row + j), size = (Vec)((Int)a & INT64_MAX);
                most = size > most ? size : most;
                none += a * 0.0;
            }
            for (int l = 0; l < LANES; ++l) big = std::max(big, most[l]);
            zero += total(none);
        }
        finite = zero == 0.0;
        largest = finite ? big : 1.0;
    }

    // Symmetrise into A and scale by a power of two, as Solver::prepare. QL is accurate for graded matrices when the large
    // entries are at the bottom: others are turned around.
    __attribute__((noinline)) void prepare(const Job& job) {
        double first = 1.0;
        shift = 0;
        if (largest < 0x1p-900) first = 0x1p600, shift = -600;  // keep the second factor a normal number
        if (largest > 0x1p900) first = 0x1p-600, shift = 600;
        largest = std::max(largest * first, 0x1p-1000);
        const int ex = std::ilogb(largest);
        const double scale = std::ldexp(1.0, -ex);
        shift = finite ? shift + ex : 0.0;
        largest *= scale;
        flipped = finite && std::fabs(F[0]) > std::fabs(F[size_t(k - 1) * kp + k - 1]);
        double gap = 0;
        if (!finite)
            for (int i = 0; i < k; ++i)
                for (int j = 0; j < k; ++j) F[size_t(i) * kp + j] = i == j;
        for (int top = 0; top < k; top += LANES)  // tile by tile, since one of the two is read across its rows
            for (int left = 0; left <= top; left += LANES) gap = std::max(gap, symmetrise(top, left, first, scale));
        const double relative = (job.single ? SYMMETRY_SINGLE : SYMMETRY_DOUBLE) * largest, slack = job.slack * (first * scale);
        symmetric = gap <= (slack > relative ? slack : relative);
    }
    INLINE double symmetrise(int top, int left, double first, double scale) {
        double gap = 0;
        for (int i = top; i < std::min(top + LANES, k); ++i)
            for (int j = left; j < std::min(left + LANES, k); ++j) {
                const double a = F[size_t(i) * kp + j] * first * scale, b = F[size_t(j) * kp + i] * first * scale;
                gap = std::max(gap, std::fabs(a - b));
                const double mean = 0.5 * (a + b);
                if (!flipped)
                    A[size_t(i) * kp + j] = mean;
                else if (i >= j)
                    A[size_t(k - 1 - j) * kp + k - 1 - i] = mean;
            }
        return gap;
    }
    // The tiles on the diagonal are held in full, the rest of the upper triangle is never looked at.
    void complete_diagonal() {
        for (int i = 0; i < k; ++i)
            for (int j = i / LANES * LANES; j < i; ++j) A[size_t(j) * kp + i] = A[size_t(i) * kp + j];
        for (int i = 0; i < kp; ++i)  // what is left there of another record
            for (int j = k; j < kp; ++j) A[size_t(i) * kp + j] = A[size_t(j) * kp + i] = 0;
    }

    // --- the pass: S -= u w' + w u' and p = S v at once, S symmetric with its lower triangle and diagonal tiles stored ---
    // Rows [row, row + ROWS), columns left of their tile on the diagonal and in it; their parts of p go to p.
    INLINE void pass_rows(double* S, int row, int tile) {
        double* s[ROWS];
        double ur[ROWS], wr[ROWS], vr[ROWS];
        Vec sum[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            s[r] = S + size_t(row + r) * kp;
            ur[r] = u[row + r], wr[r] = w[row + r], vr[r] = v[row + r];
            sum[r] = Vec{};
        }
        for (int l = 0; l < tile; l += LANES) {
            const Vec ul = at(u + l), wl = at(w + l), vl = at(v + l);
            Vec pl = at(p + l);
            for (int r = 0; r < ROWS; ++r) {
                const Vec x = at(s[r] + l) - ur[r] * wl - wr[r] * ul;
                put(s[r] + l, x);
                sum[r] += x * vl;
                pl += x * vr[r];
            }
            put(p + l, pl);
        }
        const Vec ul = at(u + tile), wl = at(w + tile), vl = at(v + tile);
        for (int r = 0; r < ROWS; ++r) {
            const Vec x = at(s[r] + tile) - ur[r] * wl - wr[r] * ul;
            put(s[r] + tile, x);
            p[row + r] += total(sum[r] + x * vl);
        }
    }
    // The same for rows below the support of u and v, columns [0, width).
    INLINE void pass_below(double* S, int row, int width) {
        double* s[ROWS];
        double wr[ROWS];
        Vec sum[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            s[r] = S + size_t(row + r) * kp;
            wr[r] = w[row + r];
            sum[r] = Vec{};
        }
        for (int l = 0; l < width; l += LANES) {
            const Vec ul = at(u + l), vl = at(v + l);
            for (int r = 0; r < ROWS; ++r) {
                const Vec x = at(s[r] + l) - wr[r] * ul;
                put(s[r] + l, x);
                sum[r] += x * vl;
            }
        }
        for (int r = 0; r < ROWS; ++r) p[row + r] = total(sum[r]);
    }
    INLINE void pass(double* S, int width) {  // of the leading block, width rounded up to whole tiles
        std::fill(p, p + kp, 0.0);
        for (int tile = 0; tile < width; tile += LANES)
            for (int row = tile; row < tile + LANES; row += ROWS) pass_rows(S, row, tile);
    }

    // --- tridiagonal form: d, e, the reflectors in the rows of A left of the diagonal, their 1/h in h --------------------
    __attribute__((noinline)) void tridiagonalise() {
        std::fill(u, u + kp, 0.0);
        std::fill(w, w + kp, 0.0);
        for (int i = k - 1; i >= 2; --i) {
            double* row = A + size_t(i) * kp;
            const int width = padded(i), whole = padded(i + 1);
            update_row(row, i, whole);
            d[i] = row[i];
            std::fill(v, v + kp, 0.0);
            std::copy(row, row + i, v);
            const double alpha = v[i - 1];
            v[i - 1] = 0.0;
            const double sigma = dot(v, v, width);
            const bool act = sigma > UNDERFLOW_SQUARE;
            const double beta = -std::copysign(std::sqrt(alpha * alpha + sigma), alpha);
            e[i - 1] = act ? beta : alpha;
            h[i] = act ? 1.0 / (beta * (beta - alpha)) : 0.0;
            v[i - 1] = alpha - beta;
            row[i - 1] = v[i - 1];
            pass(A, width);
            std::fill(p + i, p + kp, 0.0);
            const double kappa = 0.5 * h[i] * h[i] * dot(p, v, width);
            for (int l = 0; l < width; l += LANES) put(w + l, at(p + l) * h[i] - kappa * at(v + l));
            std::fill(w + width, w + kp, 0.0);
            std::copy(v, v + kp, u);
        }
        if (k > 1) {
            update_row(A + kp, 1, LANES);
            d[1] = A[kp + 1], e[0] = A[kp];
        }
        d[0] = A[0] - 2.0 * u[0] * w[0];
        e[k - 1] = 0.0;
    }
    // Row i as the waiting update leaves it; later passes are to leave it alone.
    INLINE void update_row(double* row, int i, int width) {
        const double ui = u[i], wi = w[i];
        for (int l = 0; l < width; l += LANES) put(row + l, at(row + l) - ui * at(w + l) - wi * at(u + l));
        u[i] = w[i] = 0.0;
    }

    // --- the short way: F = log T as a sum of resolvents, then F <- Q F Q' ----------------------------------------------
    // Whether T - s I is positive definite, for eight shifts: the pivots of its elimination.
    INLINE Mask<8 / LANES> above(const Shifts& s, double sign) const {
        Shifts pivot = sign * d[0] - s;
        Mask<8 / LANES> yes = pivot > 0.0;
        for (int i = 1; i < k; ++i) {
            pivot = (sign * d[i] - s) - Shifts(e[i - 1] * e[i - 1]) / pivot;
            yes = yes & (pivot > 0.0);
        }
        return yes;
    }
    // Poles for the spectrum of T, and the exponent of its lower end; null where the long way is to be taken.
    const Poles* short_way(const Job& job, bool clipped, int& bottom) const {
        double top = 0;
        for (int i = 0; i < k; ++i) top = std::max(top, d[i] + std::fabs(e[i]) + (i ? std::fabs(e[i - 1]) : 0.0));
        if (!(top > 0)) return nullptr;
        const int exponent = std::ilogb(top) + 1;
        Shifts shifts;
        for (int c = 0; c < 8; ++c) shifts.lanes()[c] = std::ldexp(1.0, exponent - CLASSES[c]);
        const auto yes = above(shifts, 1.0);
        int c = 0;
        while (c < 8 && !yes.lane(c)) ++c;
        if (c == 8 || (clipped && !inside(job, top, std::ldexp(1.0, exponent - CLASSES[c])))) return nullptr;
        bottom = exponent - CLASSES[c];
        return &POLES[c];
    }
    // Whether all eigenvalues, of which bounds are known, are safely inside the clip.
    bool inside(const Job& job, double top, double bottom) const {
        const double least = std::exp(job.log_low - shift * LN2) * (1 + 1e-9), most = std::exp(job.log_high - shift * LN2) * (1 - 1e-9);
        const auto all = [](const Mask<8 / LANES>& m) { return !any(~m); };
        return (bottom >= least || all(above(Shifts(least), 1.0))) && (top <= most || all(above(Shifts(-most), -1.0)));
    }

    // Lower triangle of c - sum_j w_j (T + t_j)^-1. With r the pivots of the elimination from below, entry (i, l) is -e/r of
    // row i times entry (i - 1, l).
    __attribute__((noinline)) void sum_resolvents(const Poles& poles, double scale, double constant) {
        const int packs = poles.count / 8;
        Shifts* down = diagonal;
        for (int q = 0; q < packs; ++q) {
            Shifts t, weight;
            std::memcpy(t.lanes(), poles.at + 8 * q, sizeof t);
            std::memcpy(weight.lanes(), poles.weight + 8 * q, sizeof weight);
            Shifts pivot = t + d[0] * scale;
            down[q] = pivot;
            for (int i = 1; i < k; ++i) {
                const double off = e[i - 1] * scale;
                pivot = (t + d[i] * scale) - Shifts(off * off) / pivot;
                down[i * packs + q] = pivot;
            }
            pivot = t + d[k - 1] * scale;
            for (int i = k - 1;; --i) {  // pivot: of row i, from below
                Shifts& both = diagonal[i * packs + q];
                both = weight / (both + pivot - (t + d[i] * scale));
                if (i == 0) break;
                const double off = e[i - 1] * scale;
                const Shifts share = Shifts(-off) / pivot;
                ratio[i * packs + q] = share;
                pivot = (t + d[i - 1] * scale) + off * share;
            }
        }
        for (int left = 0; left < k; left += LANES) fill_columns(left, packs * 8, constant);
    }
    void fill_columns(int left, int count, double constant) {
        Vec g[MAX_POLES] = {};
        const double *share = ratio[0].lanes(), *start = diagonal[0].lanes();
        int i = left;
        for (; i < std::min(left + LANES, k); ++i) {  // columns set out one by one
            Vec sum = {};
            Int set = {};
            set[i - left] = -1;
            for (int q = 0; q < count; ++q) {
                g[q] = set ? start[size_t(i) * count + q] - Vec{} : g[q] * share[size_t(i) * count + q];
                sum += g[q];
            }
            for (int l = left; l <= i; ++l) F[size_t(i) * kp + l] = F[size_t(l) * kp + i] = -sum[l - left];
            F[size_t(i) * kp + i] += constant;
        }
        for (; i < k; ++i) {
            Vec sum = {}, more = {};
            for (int q = 0; q < count; q += 2) {
                g[q] = g[q] * share[size_t(i) * count + q];
                g[q + 1] = g[q + 1] * share[size_t(i) * count + q + 1];
                sum += g[q];
                more += g[q + 1];
            }
            sum += more;
            put(F + size_t(i) * kp + left, -sum);
            // All terms have one sign, and none can grow again by more than the root of the condition: the rest is nothing.
            if (!vany((Int)(((Vec)((Int)sum & INT64_MAX)) > 1e-25))) break;
        }
        for (++i; i < k; ++i) put(F + size_t(i) * kp + left, Vec{});
        for (i = k; i < kp; ++i) put(F + size_t(i) * kp + left, Vec{});
        if (left + LANES > k)
            for (i = left; i < kp; ++i)
                for (int l = k; l < kp; ++l) F[size_t(i) * kp + l] = 0;
    }
    __attribute__((noinline)) void bring_back() {
        std::fill(u, u + kp, 0.0);
        std::fill(w, w + kp, 0.0);
        for (int i = 2; i < k; ++i) {
            if (h[i] == 0.0) continue;
            const int width = padded(i);
            std::copy(A + size_t(i) * kp, A + size_t(i) * kp + i, v);
            std::fill(v + i, v + kp, 0.0);
            pass(F, width);
            for (int row = width; row < kp; row += ROWS) pass_below(F, row, width);
            const double kappa = 0.5 * h[i] * h[i] * dot(p, v, width);
            for (int l = 0; l < kp; l += LANES) put(w + l, at(p + l) * h[i] - kappa * at(v + l));
            std::copy(v, v + kp, u);
        }
        std::fill(v, v + kp, 0.0);
        pass(F, kp);
    }

    // --- the long way: eigenvectors in the rows of F, eigenvalues in d ---------------------------------------------------
    // F = Q', row by row: a row takes all reflectors, two at a time, while it is in the nearest cache.
    __attribute__((noinline)) void form_vectors() {
        double* product = w;  // of a reflector and the next
        for (int i = 0; i < k; ++i) std::fill(A + size_t(i) * kp + (i < 2 ? 0 : i), A + size_t(i) * kp + std::min(kp, padded(i + 2)), 0.0);
        for (int i = 0; i + 1 < k; ++i) product[i] = dot(A + size_t(i) * kp, A + size_t(i + 1) * kp, padded(i + 1));
        h[0] = h[1] = 0.0;
        for (int row = 0; row < kp; row += ROWS) {
            double* f[ROWS];
            for (int r = 0; r < ROWS; ++r) {
                f[r] = F + size_t(row + r) * kp;
                std::fill(f[r], f[r] + kp, 0.0);
                f[r][row + r] = 1.0;
            }
            int i = row + 1;  // those before do nothing here, and one of them may fill the pair
            for (i -= (k - i) & 1; i < k; i += 2) reflect(f, i, product[i]);
        }
    }
    // Rows times (I - a a' h) of reflectors i and i + 1.
    INLINE void reflect(double* const (&f)[ROWS], int i, double product) {
        const double *a = A + size_t(i) * kp, *b = a + kp;
        const int width = padded(i + 1);
        Vec on_a[ROWS] = {}, on_b[ROWS] = {};
        for (int l = 0; l < width; l += LANES)
            for (int r = 0; r < ROWS; ++r) {
                const Vec x = at(f[r] + l);
                on_a[r] += x * at(a + l);
                on_b[r] += x * at(b + l);
            }
        double first[ROWS], second[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            first[r] = total(on_a[r]) * h[i];
            second[r] = (total(on_b[r]) - first[r] * product) * h[i + 1];
        }
        for (int l = 0; l < width; l += LANES)
            for (int r = 0; r < ROWS; ++r) put(f[r] + l, at(f[r] + l) - first[r] * at(a + l) - second[r] * at(b + l));
    }
    // The rotations that wait, for a band of columns at a time, which stays in the second-level cache; some sweeps share the
    // way from there. A rotation is three shears, by the sine and the tangent of half the angle: a fused operation less than
    // four products.
    template <int R> static INLINE void turn(Vec (&carry)[R], Vec (&z)[R], double t, double s) {  // z becomes what is done
        for (int r = 0; r < R; ++r) {
            const Vec sheared = carry[r] + t * z[r];
            carry[r] = z[r] - s * sheared;
            z[r] = sheared + t * carry[r];
        }
    }
    template <int R> static INLINE void read(Vec (&to)[R], const double* from) {
        for (int r = 0; r < R; ++r) to[r] = at(from + r * LANES);
    }
    template <int R> static INLINE void write(const Vec (&from)[R], double* to) {
        for (int r = 0; r < R; ++r) put(to + r * LANES, from[r]);
    }
    // S sweeps of one window, each a row behind the one before: a row is read and written once for all of them.
    template <int R, int S> INLINE void sweep_rows(int column, size_t sweep) {
        const int from = low[sweep], to = high[sweep];
        const double *t = tangents + sweep * kp, *s = sines + sweep * kp;
        double* f = F + size_t(to) * kp + column;  // row i + S, once they all move
        Vec carry[S][R], z[R];
        read(carry[0], f);
        for (int done = 0; done < S; ++done) {
            const int i = to - 1 - done;
            read(z, f - (done + 1) * kp);
            for (int q = 0; q <= done; ++q) turn(carry[q], z, t[q * kp + i + q], s[q * kp + i + q]);
            if (done + 1 < S)
                for (int r = 0; r < R; ++r) carry[done + 1][r] = z[r];
        }
        write(z, f);
        for (int i = to - 1 - S; i >= from; --i) {
            read(z, f - (S + 1) * kp);
            for (int q = 0; q < S; ++q) turn(carry[q], z, t[q * kp + i + q], s[q * kp + i + q]);
            write(z, f -= kp);
        }
        for (int first = 1; first < S; ++first) {
            for (int q = first; q < S; ++q) turn(carry[q], carry[first - 1], t[q * kp + from + q - first], s[q * kp + from + q - first]);
            write(carry[first - 1], f -= kp);
        }
        write(carry[S - 1], f - kp);
    }
    template <int R> INLINE void rotate(int column) {
        for (size_t sweep = 0; sweep < low.size(); sweep += together[sweep])
            if (together[sweep] == TOGETHER)
                sweep_rows<R, TOGETHER>(column, sweep);
            else
                sweep_rows<R, 1>(column, sweep);
    }
    // Gives sweeps with nearly the same windows the same one, with rotations by nothing.
    void group_sweeps() {
        together.assign(low.size(), 1);
        for (size_t first = 0; first + TOGETHER <= low.size();) {
            const size_t last = first + TOGETHER;
            int from = k, to = 0, own = 0;
            for (size_t each = first; each < last; ++each) {
                from = std::min(from, low[each]), to = std::max(to, high[each]);
                own += high[each] - low[each];
            }
            if (2 * TOGETHER * (to - from) > 3 * own || to - from < TOGETHER) {
                ++first;
                continue;
            }
            for (size_t each = first; each < last; ++each) {
                for (double* angles : {tangents + each * kp, sines + each * kp}) {
                    std::fill(angles + from, angles + low[each], 0.0);
                    std::fill(angles + high[each], angles + to, 0.0);
                }
                low[each] = from, high[each] = to;
            }
            together[first] = TOGETHER;
            first = last;
        }
    }
    // Bands of about one width: a narrow one would wait for itself.
    __attribute__((noinline)) void rotate_all() {
        group_sweeps();
        const int vectors = kp / LANES;
        int band = (vectors + BAND - 1) / BAND, column = 0;
        for (; band > 0; --band) {
            const int wide = (vectors - column + band - 1) / band, at = column * LANES;
            switch (wide) {
                case 1: rotate<1>(at); break;
                case 2: rotate<2>(at); break;
                case 3: rotate<3>(at); break;
                case 4: rotate<4>(at); break;
                default: rotate<BAND>(at);
            }
            column += wide;
        }
        low.clear();
        high.clear();
    }
    // Implicit QL with Wilkinson's shift; false where it did not converge.
    __attribute__((noinline)) bool ql() {
        int l = 0;
        low.clear();  // nothing waits, whatever became of the record before
        high.clear();
        for (int sweep = 0; sweep <= MAX_SWEEPS_PER_EIGENVALUE * k; ++sweep) {
            const auto negligible = [&](int i) { return e[i] * e[i] <= NEGLIGIBLE * std::fabs(d[i] * d[i + 1]) + UNDERFLOW_SQUARE; };
            while (l < k - 1 && negligible(l)) e[l++] = 0.0;
            if (l >= k - 1) {
                rotate_all();
                return true;
            }
            int m = l + 1;
            while (m < k - 1 && !negligible(m)) ++m;
            double *t = tangents + low.size() * kp, *s = sines + low.size() * kp;
            double g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            g = d[m] - d[l] + e[l] / (g + std::copysign(std::sqrt(g * g + 1.0), g));
            double si = 1.0, ci = 1.0, shifted = 0.0;
            for (int i = m - 1; i >= l; --i) {
                const double f = si * e[i], b = ci * e[i], square = f * f + g * g;
                const double r = std::copysign(std::sqrt(square), g);  // so that no cosine is negative, nor a tangent large
                const bool nonzero = square > 1e-300;
                const double inverse = r * (1.0 / (nonzero ? square : 1.0));  // root and quotient need not wait for each other
                if (i < m - 1) e[i + 1] = r;  // the coupling below the window is negligible, and stays
                ci = nonzero ? g * inverse : 1.0;
                si = nonzero ? f * inverse : 0.0;
                const double gd = d[i + 1] - shifted, r2 = (d[i] - gd) * si + 2.0 * ci * b;
                shifted = si * r2;
                d[i + 1] = gd + shifted;
                g = ci * r2 - b;
                t[i] = si / (1.0 + ci);
                s[i] = si;
            }
            d[l] -= shifted;
            e[l] = g;
            low.push_back(l);
            high.push_back(m);
            if (low.size() == size_t(SWEEPS)) rotate_all();
        }
        return false;
    }
    // Lower triangle of A = sum_j values_j f_j f_j', in tiles of ROWS by WIDE vectors.
    template <int R> INLINE void compose_tile(int row, int column) {
        Vec sum[ROWS][R] = {};
        for (int j = 0; j < k; ++j) {
            const double* f = F + size_t(j) * kp;
            Vec z[R];
            for (int r = 0; r < R; ++r) z[r] = values[j] * at(f + column + r * LANES);
            for (int q = 0; q < ROWS; ++q)
                for (int r = 0; r < R; ++r) sum[q][r] += f[row + q] * z[r];
        }
        for (int q = 0; q < ROWS; ++q)
            for (int r = 0; r < R; ++r) put(A + size_t(row + q) * kp + column + r * LANES, sum[q][r]);
    }
    __attribute__((noinline)) void compose() {
        for (int column = 0; column < kp; column += WIDE * LANES)
            for (int row = column; row < kp; row += ROWS) {
                if (column + WIDE * LANES <= kp)
                    compose_tile<WIDE>(row, column);
                else
                    for (int l = column; l < kp; l += LANES) compose_tile<1>(row, l);
            }
    }

    // --- output ------------------------------------------------------------------------------------------------------
    INLINE double entry(const double* S, int i, int j) const {  // i >= j
        return flipped ? S[size_t(k - 1 - j) * kp + k - 1 - i] : S[size_t(i) * kp + j];
    }
    // y = vecd of the symmetric matrix whose lower triangle is in S
    __attribute__((noinline)) void flatten(const double* S) {
        for (int i = 0; i < k; ++i) y[i] = entry(S, i, i);
        for (int left = 0; left < k; left += LANES)  // tile by tile, since columns are written as rows
            for (int top = left; top < k; top += LANES)
                for (int j = left; j < std::min(left + LANES, k); ++j) {
                    double* to = y + k + int64_t(j) * (2 * k - j - 1) / 2 - j - 1;
                    for (int i = std::max(top, j + 1); i < std::min(top + LANES, k); ++i) to[i] = entry(S, i, j) * SQRT2;
                }
    }
    void store_matrix(double* out) const {
        int at = k;
        for (int i = 0; i < k; ++i) {
            out[size_t(i) * k + i] = y[i];
            for (int j = i + 1; j < k; ++j) out[size_t(i) * k + j] = out[size_t(j) * k + i] = y[at++] * SQRT1_2;
        }
    }
    void store_eigen(const Job& job, int64_t index) const {
        std::vector<int> order(k);
        for (int i = 0; i < k; ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](int a, int b) { return d[a] < d[b]; });
        double *to = job.values + index * k, *vectors = job.out + index * k * k;
        for (int i = 0; i < k; ++i) {
            to[i] = std::ldexp(d[order[i]], int(shift));
            const double* f = F + size_t(order[i]) * kp;
            for (int j = 0; j < k; ++j) vectors[size_t(j) * k + i] = f[flipped ? k - 1 - j : j];
        }
    }
    // Clip y to the ball and round it toward the centre onto the lattice, in place: integers held as doubles.
    __attribute__((noinline)) void encode(const Job& job) {
        const double inverse = 1.0 / job.radius;
        const int whole = dim / LANES * LANES;
        const auto away = [&](int j) { return (y[j] - job.center[j]) * inverse; };
        Vec squares = {};
        for (int j = 0; j < whole; j += LANES) {
            Vec center;
            std::memcpy(&center, job.center + j, sizeof center);
            const Vec z = (at(y + j) - center) * inverse;
            put(y + j, z);
            squares += z * z;
        }
        double square = total(squares);
        for (int j = whole; j < dim; ++j) {
            y[j] = away(j);
            square += y[j] * y[j];
        }
        const double factor = square > 1.0 ? LATTICE / std::sqrt(square) : LATTICE;
        Vec norms = {};
        for (int j = 0; j < padded(dim); j += LANES) {  // y is zero beyond dim
            Pack<1> z;
            z.v[0] = at(y + j) * factor;
            z = trunc(z);
            put(y + j, z.v[0]);
            norms += z.v[0] * z.v[0];
        }
        // The float norm is right to (dim + 2) * 2^-53, so only records near or over the bound need exact arithmetic.
        if (!(total(norms) <= NEAR_NORM)) enforce_norm(y, 1, dim);
    }
    INLINE void add(double weight) {
        for (int j = 0; j < padded(dim); j += LANES) put(acc + j, at(acc + j) + weight * at(y + j));
    }

    void flush() {
        for (int j = 0; j < dim; ++j) sums[j] += int64_t(acc[j]);
        std::fill(acc, acc + dim, 0.0);
        pending = 0;
    }
    void lattice_sum(int64_t* to) override {
        flush();
        for (int j = 0; j < dim; ++j) {
            to[j] += sums[j];
            sums[j] = 0;
        }
        if (lanes) lanes->lattice_sum(to);
    }
    void log_sum(double* to) override {
        std::fill(to, to + dim, 0.0);
        if (lanes) lanes->log_sum(to);
        for (int j = 0; j < dim; ++j) to[j] += acc[j];
        std::fill(acc, acc + dim, 0.0);
    }

    // --- one matrix ----------------------------------------------------------------------------------------------------
    // Smallest eigenvalue of T, which is positive: eight shifts at a time, until no double lies between.
    double smallest(double bottom) const {
        double from = bottom, to = std::numeric_limits<double>::infinity();
        for (int i = 0; i < k; ++i) to = std::min(to, d[i]);
        for (int step = 0; step < 40 && to - from > 2 * DBL_EPSILON * to; ++step) {
            Shifts shifts;
            for (int c = 0; c < 8; ++c) shifts.lanes()[c] = from + (to - from) * (c + 1) / 9;
            const auto yes = above(shifts, 1.0);
            double next = to;
            for (int c = 7; c >= 0; --c)
                if (yes.lane(c)) {
                    from = shifts.lanes()[c];
                    break;
                } else
                    next = shifts.lanes()[c];
            to = next;
        }
        return from;
    }
    // Logarithms (clipped, where the mode asks) or exponentials of the eigenvalues; what they say of the matrix.
    uint8_t apply(const Job& job, bool clipped, double least, double most, bool converged) {
        const double eps = job.single ? double(FLT_EPSILON) : DBL_EPSILON, granule = job.single ? -149.0 : -1074.0;
        bool positive = true;
        if (clipped)  // non-positive only by the rounding of the stored entries: accepted, the record is clipped next
            positive = most > 0 && least >= -double(RANK_SLACK) * k *
                                              std::max(eps * largest, std::ldexp(1.0, int(std::max(std::min(granule - shift, 0.0), -1000.0))));
        else if (job.mode != EXPM && job.mode != EIGH)
            positive = least > 0;
        const bool usable = finite && symmetric && positive;
        for (int j = 0; j < kp; j += LANES) {
            Pack<1> x;
            x.v[0] = at(d + j);
            if (job.mode == EXPM) {
                const double two = std::ldexp(1.0, int(std::max(std::min(shift, 1000.0), -1000.0)));
                x = exp(min(max(x * two, Pack<1>(-800.0)), Pack<1>(800.0)));
            } else {
                x = select(x > 0.0, x, Pack<1>(clipped ? DBL_EPSILON * most : 1.0));
                x = usable ? x : Pack<1>(1.0);
                x = log(max(x, Pack<1>(0x1p-1000))) + shift * 0.6931471805599453;
                if (clipped) x = min(max(x, Pack<1>(job.log_low)), Pack<1>(job.log_high));
            }
            put(values + j, x.v[0]);
        }
        return !finite ? NOT_FINITE : !symmetric ? NOT_SYMMETRIC : !converged ? NOT_CONVERGED : !positive ? NOT_POSITIVE : OK;
    }
    // y = vecd of the logarithm or exponential by the long way; EIGH leaves eigenvectors instead.
    uint8_t solve(const Job& job, bool clipped, double& least) {
        form_vectors();
        const bool converged = ql();
        least = *std::min_element(d, d + k);
        const uint8_t status = apply(job, clipped, least, *std::max_element(d, d + k), converged);
        if (job.mode == EIGH) return status;
        compose();
        flatten(A);
        return status;
    }
    // y = vecd of the logarithm by the short way.
    void shorten(const Job& job, bool clipped, const Poles& poles, int bottom, double& least) {
        const double scale = std::ldexp(1.0, -bottom);
        if (!clipped) least = smallest(1.0 / scale);
        sum_resolvents(poles, scale, poles.constant + (bottom + shift) * LN2);
        bring_back();
        flatten(F);
    }
    void join(const Job& job, int64_t index) {
        auto& there = lanes->arrived;
        const int lane = there.count++;
        there.index[lane] = index;
        there.shift.lanes()[lane] = shift;
        there.largest.lanes()[lane] = largest;
        lanes->mark(there.finite, lane, finite);
        lanes->mark(there.symmetric, lane, symmetric);
        lanes->mark(there.flipped, lane, flipped);
        lanes->put_lane(lane, A, kp, d, e, h);
        if (lanes->full()) lanes->finish_arrivals(job);
    }
    void one(const Job& job, int64_t index) {
        const bool clipped = job.mode >= LOGVEC, logs = clipped || job.mode == LOGM || job.mode == LOGSUM;
        if (job.single)
            load<float>(job, index);
        else
            load<double>(job, index);
        prepare(job);
        complete_diagonal();
        tridiagonalise();
        int bottom = 0;
        double least = 0;
        uint8_t status = OK;
        const Poles* poles = logs && finite && symmetric ? short_way(job, clipped, bottom) : nullptr;
        if (poles)
            shorten(job, clipped, *poles, bottom, least);
        else if (lanes)
            return join(job, index);
        else
            status = solve(job, clipped, least);
        job.status[index] = status;
        if (job.mode == LOGM || job.mode == LOGSUM) job.values[index] = std::ldexp(least, int(shift));
        switch (job.mode) {
            case EIGH: return store_eigen(job, index);
            case LOGM:
            case EXPM: return store_matrix(job.out + index * k * k);
            case LOGSUM: return add(status != OK ? 0.0 : job.weights ? job.weights[index] : 1.0);
            case LOGVEC:
                if (status != OK) std::fill(y, y + dim, 0.0);
                std::copy(y, y + dim, job.out + index * dim);
                return;
        }
        if (status == OK)
            encode(job);
        else
            std::fill(y, y + dim, 0.0);
        if (job.mode == ENCODE) {
            for (int j = 0; j < dim; ++j) job.codes[index * dim + j] = int64_t(y[j]);
            return;
        }
        add(1.0);
        if (++pending == FLUSH) flush();
    }
    void run(const Job& job, int64_t begin, int64_t end) override {
        if (lanes && (job.mode == EIGH || job.mode == EXPM || job.mode == CARRY)) return lanes->run(job, begin, end);
        for (int64_t i = begin; i < end; ++i) one(job, i);
        if (job.mode == LOGSUM) finish(job);  // its sums are kept for each chunk
    }
    void finish(const Job& job) override {
        if (lanes) lanes->finish_arrivals(job);
    }
};

}  // namespace SPDP_ISA
