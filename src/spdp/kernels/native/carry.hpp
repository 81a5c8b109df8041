// Records seen from another point: W X W' in the place of X. Included by kernel.cpp, once per instruction set.
//
// Two ways in. Matrices X are judged and symmetrised as any others, and then carried. Vectors y hold X = Expm(invvecd y);
// with its eigenvalues e^l and eigenvectors V, and B = W V e^(l/2), W X W' = B B'. Sizes stand apart, as exponents: no product
// leaves the range of a double. What a record becomes depends on that record and on W alone.
#pragma once
#include "lanes.hpp"

namespace SPDP_ISA {

constexpr double ROOT_HALF = 0.70710678118654752440;

// Rows [i, i + R) and columns [j, j + C) of W V, W shared by all lanes.
template <int R, int C, class P> INLINE void shared_tile(P* out, const double* W, const P* V, int k, int i, int j) {
    P sum[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sum[r][c] = P(0.0);
    for (int l = 0; l < k; ++l) {
        P v[C];
        for (int c = 0; c < C; ++c) v[c] = V[l * k + j + c];
        for (int r = 0; r < R; ++r) {
            const double w = W[(i + r) * k + l];
            for (int c = 0; c < C; ++c) sum[r][c] += v[c] * w;
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) out[(i + r) * k + j + c] = sum[r][c];
}
template <class P> INLINE void multiply(P* out, const double* W, const P* V, int k) {
    int i = 0;
    for (; i + 2 <= k; i += 2) {
        int j = 0;
        for (; j + 2 <= k; j += 2) shared_tile<2, 2>(out, W, V, k, i, j);
        if (j < k) shared_tile<2, 1>(out, W, V, k, i, j);
    }
    for (int j = 0; i < k && j < k; ++j) shared_tile<1, 1>(out, W, V, k, i, j);
}

// The lower triangle of B B'.
template <int R, int C, class P> INLINE void gram_tile(P* out, const P* B, int k, int i, int j) {
    P sum[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sum[r][c] = P(0.0);
    for (int l = 0; l < k; ++l) {
        P v[C];
        for (int c = 0; c < C; ++c) v[c] = B[(j + c) * k + l];
        for (int r = 0; r < R; ++r) {
            const P b = B[(i + r) * k + l];
            for (int c = 0; c < C; ++c) sum[r][c] += b * v[c];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) out[(i + r) * k + j + c] = sum[r][c];
}
template <class P> INLINE void gram(P* out, const P* B, int k) {
    int i = 0;
    for (; i + 2 <= k; i += 2)
        for (int j = 0; j <= i; j += 2) gram_tile<2, 2>(out, B, k, i, j);
    for (int j = 0; i < k && j < k; ++j) gram_tile<1, 1>(out, B, k, i, j);
}

// The lower triangle of T W', W shared by all lanes.
template <class P> INLINE void multiply_transposed(P* out, const P* T, const double* W, int k) {
    for (int i = 0; i < k; ++i)
        for (int j = 0; j <= i; ++j) {
            P sum = 0.0;
            for (int l = 0; l < k; ++l) sum += T[i * k + l] * W[j * k + l];
            out[i * k + j] = sum;
        }
}

// Scales the lower triangle of semidefinite matrices, whose largest entries lie on the diagonal, to entries near one.
template <int N> INLINE void rescale(Pack<N>* A, int k, Pack<N>& shift, Pack<N>& largest) {
    using P = Pack<N>;
    P big = A[0];
    for (int i = 1; i < k; ++i) big = max(A[i * k + i], big);
    const P first = select(big < 0x1p-500, P(0x1p500), P(1.0));  // keeps the second factor a normal number
    shift += select(big < 0x1p-500, P(-500.0), P(0.0));
    big = max(big * first, P(0x1p-1000));
    const P ex = exponent(big), scale = pow2(-ex);
    shift += ex;
    for (int i = 0; i < k; ++i)
        for (int j = 0; j <= i; ++j) A[i * k + j] = A[i * k + j] * first * scale;
    largest = big * scale;
}

// LANES entries of LANES vectors at a time, as matrices are loaded; lanes that are left over hold zeros.
template <int N> INLINE void load_vectors(Pack<N>* to, int count, const Job& job, int64_t begin, int lanes) {
    const auto row = [&](int lane) { return reinterpret_cast<const double*>(job.x + (begin + lane) * job.stride[0]); };
    if (lanes < Pack<N>::W) {
        for (int e = 0; e < count; ++e)
            for (int lane = 0; lane < Pack<N>::W; ++lane) to[e].lanes()[lane] = lane < lanes ? row(lane)[e] : 0.0;
        return;
    }
    for (int n = 0; n < N; ++n) {
        int e = 0;
        for (; e + LANES <= count; e += LANES) {
            Vec rows[LANES];
            for (int l = 0; l < LANES; ++l) std::memcpy(&rows[l], row(n * LANES + l) + e, sizeof(Vec));
            transpose(rows);
            for (int l = 0; l < LANES; ++l) to[e + l].v[n] = rows[l];
        }
        for (; e < count; ++e) {
            Vec entry = {};
            for (int l = 0; l < LANES; ++l) entry[l] = row(n * LANES + l)[e];
            to[e].v[n] = entry;
        }
    }
}

// Prepared matrices, in the lower triangle of A, become W A W'.
template <class S> INLINE void carry_matrices(S& solver, const double* W, typename S::P& shift, typename S::P& largest) {
    const int k = solver.size();
    auto *A = solver.A, *T = solver.V;
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < i; ++j) A[j * k + i] = A[i * k + j];
    multiply(T, W, A, k);
    multiply_transposed(A, T, W, k);
    rescale(A, k, shift, largest);
}

// A batch of vectors y, each becoming vecd Logm(2^exponent W Expm(invvecd y) W'). Eigenvalues that are less than the rounding
// of the largest one are raised to it: a vector always has an image.
template <class S> void carry_vectors(S& solver, const Job& job, int64_t begin, int lanes) {
    using P = typename S::P;
    using M = typename S::M;
    const int k = solver.size(), dim = k * (k + 1) / 2;
    P *y = solver.y, *A = solver.A, *values = solver.work;
    load_vectors(y, dim, job, begin, lanes);
    int at = k;
    for (int i = 0; i < k; ++i) {
        A[i * k + i] = y[i];
        for (int j = i + 1; j < k; ++j) A[i * k + j] = A[j * k + i] = y[at++] * ROOT_HALF;
    }
    P shift, largest;
    M finite, symmetric;
    prepare(A, k, false, 0.0, shift, largest, finite, symmetric);
    M stuck = solver.decompose();
    const P two = pow2(max(min(shift, P(1000.0)), P(-1000.0)));
    P top = solver.d[0];
    for (int i = 1; i < k; ++i) top = max(top, solver.d[i]);
    for (int i = 0; i < k; ++i) values[i] = exp(0.5 * two * (solver.d[i] - top));
    top = top * two;
    for (int l = 0; l < k; ++l)
        for (int j = 0; j < k; ++j) solver.V[l * k + j] = solver.V[l * k + j] * values[j];
    multiply(A, job.congruence, solver.V, k);
    gram(solver.V, A, k);
    std::swap(solver.A, solver.V);
    shift = P(double(job.exponent));
    rescale(solver.A, k, shift, largest);
    stuck = stuck | solver.decompose();
    P high = solver.d[0];
    for (int i = 1; i < k; ++i) high = max(high, solver.d[i]);
    const P floor = (double(RANK_SLACK) * k * DBL_EPSILON) * high;
    for (int i = 0; i < k; ++i) values[i] = log(max(solver.d[i], floor)) + (top + shift * 0.6931471805599453);
    solver.compose(values);
    tell(job, begin, lanes, finite, ~none<P::W / LANES>(), stuck, ~none<P::W / LANES>());
    solver.sums.write(job, Consecutive{begin}, lanes, solver.y, dim);
}

}  // namespace SPDP_ISA
