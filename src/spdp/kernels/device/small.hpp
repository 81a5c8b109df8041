// One thread per matrix, in registers: Cholesky factor L, then one-sided Jacobi on its columns, G = L V with orthogonal
// columns, so that A = G G' has the columns' directions for eigenvectors and their squared norms for eigenvalues.
#pragma once

namespace spdp {

template <int K> struct Small {
    static constexpr int D = K * (K + 1) / 2;
    typedef double Matrix[K][K];

    // Largest entry and largest asymmetry in full: only where the upper words do not decide.
    template <class Real> static FN double largest_entry(const Real* a) {
        double big = 0.0;
#pragma unroll 1
        for (int i = 0; i < K * K; ++i) big = larger(fabs(wide(a[i])), big);
        return big;
    }
    template <class Real> static FN bool is_symmetric(const Real* a) {
        double gap = 0.0;
#pragma unroll 1
        for (int i = 0; i < K; ++i)
#pragma unroll 1
            for (int j = 0; j < i; ++j) gap = larger(fabs(wide(a[i * K + j]) - wide(a[j * K + i])), gap);
        return gap <= Stored<Real>::symmetry * largest_entry(a);
    }

    // Lower Cholesky factor of what g holds below and on the diagonal; false where it breaks down.
    static FN bool factor(Matrix& g) {
        bool whole = true;
#pragma unroll
        for (int j = 0; j < K; ++j) {
            whole &= g[j][j] > 1e-290;
            const double r = inverse_root(whole ? g[j][j] : 1.0);
#pragma unroll
            for (int i = j; i < K; ++i) g[i][j] *= r;
#pragma unroll
            for (int l = j + 1; l < K; ++l)
#pragma unroll
                for (int i = l; i < K; ++i) g[i][l] -= g[i][j] * g[l][j];
        }
#pragma unroll
        for (int i = 0; i < K; ++i)
#pragma unroll
            for (int j = i + 1; j < K; ++j) g[i][j] = 0.0;
        return whole;
    }

    template <int SWAP> static FN void rotate(Matrix& g, double (&n)[K], int p, int q, Seen& what) {
        double dot = 0.0, x[K], z[K];
#pragma unroll
        for (int i = 0; i < K; ++i) {
            x[i] = g[i][p];
            z[i] = g[i][q];
            dot = fma(x[i], z[i], dot);
        }
        const Turn r = turn(n[p], n[q], dot, what);
        const double a = n[p] + r.w, b = n[q] - r.w;
        n[SWAP ? q : p] = a;
        n[SWAP ? p : q] = b;
#pragma unroll
        for (int i = 0; i < K; ++i) {
            g[i][SWAP ? q : p] = fma(r.c, x[i], -(r.s * z[i]));
            g[i][SWAP ? p : q] = fma(r.s, x[i], r.c * z[i]);
        }
    }

    static FN void norms(Matrix& g, double (&n)[K]) {
#pragma unroll
        for (int j = 0; j < K; ++j) {
            n[j] = 0.0;
#pragma unroll
            for (int i = 0; i < K; ++i) n[j] = fma(g[i][j], g[i][j], n[j]);
        }
    }

    // Rotate every pair until all are orthogonal: row by row for few columns, else neighbours that change places
    // (odd-even transposition), K rounds of which meet every pair once.
    static FN void orthogonalise(Matrix& g, double (&n)[K]) {
        int quiet = 0;  // rounds in which no pair asked for more
#pragma unroll 1
        for (int sweeps = 0; sweeps < MAX_SWEEPS && quiet < K; ++sweeps) {
            norms(g, n);
            if (K <= 5) {
                Seen what;
#pragma unroll
                for (int p = 0; p < K; ++p)
#pragma unroll
                    for (int q = p + 1; q < K; ++q) rotate<0>(g, n, p, q, what);
                quiet = what.again ? 0 : K;
            } else {
#pragma unroll 1
                for (int round = 0; round < (K + 1) / 2 && quiet < K; ++round) {
                    Seen what;
#pragma unroll
                    for (int p = 0; p + 1 < K; p += 2) rotate<1>(g, n, p, p + 1, what);
#pragma unroll
                    for (int p = 1; p + 1 < K; p += 2) rotate<1>(g, n, p, p + 1, what);
                    quiet = what.again ? 0 : quiet + 2;
                }
            }
        }
        norms(g, n);
    }

    // y = vecd of the clipped logarithm; the status of the matrix.
    template <class Real> static FN int vector(const Real* a, const Job& job, double (&y)[D]) {
        Matrix g;
        double n[K], shifted = 0.0, tolerance = 0.0;
        Scale scale = {0, 1.0};
        int top = 0, apart = 0, status = OK;
        bool whole = false;
#pragma unroll 1
        for (int attempt = 0; attempt < 2 && !whole; ++attempt) {
            if (attempt) {  // not positive beyond rounding, if at all: a shift shows which
                const double largest = largest_entry(a) * scale.factor;
                tolerance = rank_tolerance<Real>(K, largest, scale.shift);
                shifted = 2.0 * tolerance;
                if (largest == 0.0) break;
            }
#pragma unroll
            for (int i = 0; i < K; ++i) {
                g[i][i] = wide(a[i * K + i]);
                top = larger(top, size_word(g[i][i]));
#pragma unroll
                for (int j = 0; j < i; ++j) {
                    g[i][j] = wide(a[i * K + j]);
                    const double other = wide(a[j * K + i]);
                    top = larger(top, larger(size_word(g[i][j]), size_word(other)));
                    apart = larger(apart, size_word(g[i][j] - other));
                    g[i][j] = fma(0.5, g[i][j], 0.5 * other);
                }
            }
            if (top >= 0x7ff00000) return NOT_FINITE;
            if (!surely_symmetric<Real>(apart, top) && !is_symmetric(a)) return NOT_SYMMETRIC;
            scale = scale_of(top);
            if (scale.shift != 0)
#pragma unroll
                for (int i = 0; i < K; ++i)
#pragma unroll
                    for (int j = 0; j <= i; ++j) g[i][j] *= scale.factor;
            if (attempt)
#pragma unroll
                for (int i = 0; i < K; ++i) g[i][i] += shifted;
            whole = factor(g);
        }
        if (!whole) return NOT_POSITIVE;
        orthogonalise(g, n);
        if (shifted != 0.0) {
            double least = n[0], most = n[0];
            for (int j = 1; j < K; ++j) {
                least = smaller(least, n[j]);
                most = larger(most, n[j]);
            }
            most -= shifted;
            if (!(most > 1e-13 * shifted && least - shifted >= -tolerance)) status = NOT_POSITIVE;
#pragma unroll
            for (int p = 0; p < K; ++p) {
                const double value = n[p] - shifted;
                y[p] = larger(value, EPSILON * most);
            }
        } else {
#pragma unroll
            for (int p = 0; p < K; ++p) y[p] = n[p];
        }
        double weight[K];
#pragma unroll
        for (int p = 0; p < K; ++p) weight[p] = clipped_log(larger(y[p], 1e-300), scale.shift, job) * inverse(n[p]);
        compose(g, weight, y);
        return status;
    }

    static FN void compose(Matrix& g, const double (&weight)[K], double (&y)[D]) {
#pragma unroll
        for (int i = 0; i < K; ++i) {
            double row[K];
#pragma unroll
            for (int p = 0; p < K; ++p) row[p] = g[i][p] * weight[p];
#pragma unroll
            for (int j = i; j < K; ++j) {
                double sum = 0.0;
#pragma unroll
                for (int p = 0; p < K; ++p) sum = fma(row[p], g[j][p], sum);
                y[place_of(K, i, j)] = i == j ? sum : sum * ROOT2;
            }
        }
    }
};

// In closed form: log A = mean I + (l1 - l2)/(2h) (A - m I) for eigenvalues m +- h.
template <> struct Small<2> {
    static constexpr int D = 3;
    template <class Real> static FN int vector(const Real* x, const Job& job, double (&y)[D]) {
        double a = wide(x[0]), b = wide(x[1]), z = wide(x[3]);
        const double other = wide(x[2]);
        const int top = larger(larger(size_word(a), size_word(b)), larger(size_word(other), size_word(z)));
        const int apart = size_word(b - other);
        if (top >= 0x7ff00000) return NOT_FINITE;
        const bool symmetric = surely_symmetric<Real>(apart, top);
        b = fma(0.5, b, 0.5 * other);
        const Scale scale = scale_of(top);
        if (scale.shift != 0) {
            a *= scale.factor;
            b *= scale.factor;
            z *= scale.factor;
        }
        const double middle = 0.5 * (a + z), half = 0.5 * (a - z), square = fma(half, half, b * b);
        const bool round = size_word(square) <= VISIBLE;
        const double r = inverse_root(round ? 1.0 : square), h = round ? 0.0 : square * r;
        const double one = middle + h, w = b * b, det = fma(a, z, -w) - fma(b, b, -w);
        double two = det * inverse(one);
        if (!symmetric || !(two > 0.0) || !(middle > 0.0)) {
            double big = larger(fabs(wide(x[0])), fabs(wide(x[3])));
            big = larger(larger(fabs(wide(x[1])), fabs(other)), big);
            if (fabs(wide(x[1]) - other) > Stored<Real>::symmetry * big) return NOT_SYMMETRIC;
            if (!(middle > 0.0)) two = middle - h;  // no cancellation this way
            if (!(one > 0.0)) return NOT_POSITIVE;
            if (!(two >= -rank_tolerance<Real>(2, big * scale.factor, scale.shift))) return NOT_POSITIVE;
            if (!(two > 0.0)) two = EPSILON * one;
        }
        const double first = clipped_log(one, scale.shift, job);
        const double second = clipped_log(larger(two, 1e-300), scale.shift, job);
        const double mean = 0.5 * (first + second), slope = round ? 0.0 : 0.5 * (first - second) * r;
        y[0] = fma(slope, half, mean);
        y[1] = fma(-slope, half, mean);
        y[2] = ROOT2 * slope * b;
        return OK;
    }
};

// Clip to the ball and round toward its centre: q, with the rule of the lattice enforced in integers.
template <int D> FN void encode(const double (&y)[D], const Job& job, const double* center, int (&q)[D]) {
    const double by = 1.0 / job.radius;
    double z[D], square = 0.0;
#pragma unroll
    for (int j = 0; j < D; ++j) {
        z[j] = (y[j] - center[j]) * by;
        square = fma(z[j], z[j], square);
    }
    double factor = LATTICE;
    if (square > 1.0) factor = LATTICE * inverse_root(square);
    if (!(square < 0x1p1000)) factor = 0.0;  // not a finite vector: the centre
#pragma unroll
    for (int j = 0; j < D; ++j) q[j] = factor == 0.0 ? 0 : code(z[j], factor);
    for (;;) {
        Squares squares;
#pragma unroll
        for (int j = 0; j < D; ++j) squares.add(q[j]);
        if (!squares.over()) break;
        const double less = shrinkage(squares);
#pragma unroll
        for (int j = 0; j < D; ++j) q[j] = shrunk(q[j], less);
    }
}

}  // namespace spdp
