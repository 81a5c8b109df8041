// Passes over log-vectors (m, d): z = (y - center) * inverse width. Neighbouring lanes share a row, each has every so many-th
// coordinate; an ordinary compiler knows one lane.
#pragma once

// The coordinates of this lane, numbered by p: all at once where there are few, known beforehand.
#ifdef SPDP_D
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif
#define FOR_COORDINATES(rows, p, j)                                             \
    UNROLLED for (int p = 0; p * (rows).lanes < (rows).d; ++p)                  \
        if (const int j = p * (rows).lanes + (rows).lane; j < (rows).d)

namespace spdp {

struct Rows {
    Int m;
    const double *y, *center, *by;  // by: 1 / width
    int lane;
#ifdef SPDP_D
    static constexpr int d = SPDP_D, lanes = SPDP_ROW_LANES, EACH = (d + lanes - 1) / lanes;
    double origin[EACH], factor[EACH];  // in registers, as rows are
#else
    int d, lanes;
#endif

    FN Rows(Int m_, int d_, const double* y_, const double* parameters, int lanes_ = 1)  // center, then by
        : m(m_), y(y_), center(parameters), by(parameters + d_), lane(0) {
#if !HOST
        lane = threadIdx.x % lanes_;
#endif
#ifdef SPDP_D
        FOR_COORDINATES(*this, p, j) origin[p] = center[j], factor[p] = by[j];
#else
        d = d_, lanes = lanes_;
#endif
    }
    // Over the lanes of a row, in an order that depends on nothing else.
    template <class Number> FN Number total(Number x) const {
#if !HOST
        const unsigned row = (lanes == 32 ? 0xffffffffu : (1u << lanes) - 1) << (threadIdx.x % 32 - lane);
        for (int step = lanes / 2; step; step /= 2) x += __shfl_xor_sync(row, x, step);
#endif
        return x;
    }
};

#ifdef SPDP_D
// What a lane has of row i as it is stored; nothing but zero beyond the last one.
struct Raw {
    double y[Rows::EACH];
    FN Raw(const Rows& rows, Int i) {
        FOR_COORDINATES(rows, p, j) y[p] = i < rows.m ? rows.y[i * rows.d + j] : 0.0;
    }
};
#endif

// What a lane has of one row: x = y - center, and z.
struct Row {
    const Rows& rows;
#ifdef SPDP_D
    double held[Rows::EACH];
    FN Row(const Rows& all, const Raw& raw) : rows(all) {
        FOR_COORDINATES(rows, p, j) held[p] = raw.y[p] - rows.origin[p];
    }
    FN Row(const Rows& all, Int i) : Row(all, Raw(all, i)) {}
    FN double x(int p, int j) const { return held[p]; }
    FN double z(int p, int j) const { return held[p] * rows.factor[p]; }
#else
    const double* y;
    FN Row(const Rows& all, Int i) : rows(all), y(all.y + i * all.d) {}
    FN double x(int p, int j) const { return y[j] - rows.center[j]; }
    FN double z(int p, int j) const { return x(p, j) * rows.by[j]; }
#endif
};

FN double row_norm(const Row& row) {
    double square = 0.0;
    FOR_COORDINATES(row.rows, p, j) square = fma(row.z(p, j), row.z(p, j), square);
    return sqrt(row.rows.total(square));
}

// Length of y - center as it is, and of z.
struct Lengths {
    double plain, scaled;
};
FN Lengths row_lengths(const Row& row) {
    double plain = 0.0, scaled = 0.0;
    FOR_COORDINATES(row.rows, p, j) {
        plain = fma(row.x(p, j), row.x(p, j), plain);
        scaled = fma(row.z(p, j), row.z(p, j), scaled);
    }
    return {sqrt(row.rows.total(plain)), sqrt(row.rows.total(scaled))};
}

// min(norm / cap, 1) in units of 2^-30: an integer between 0 and 2^30, 0 for what is not a number
FN Int distance_units(double norm, double cap) {
    const double share = norm / cap;
    return share >= 1.0 ? Int(LATTICE) : share > 0.0 ? Int(share * LATTICE) : 0;
}

// Place of a norm between ascending edges; beyond all of them for what is not a number.
FN int interval(double norm, const double* edges, int count) {
    int place = 0;
    for (int above = count; place < above;) {
        const int middle = (place + above) / 2;
        if (norm < edges[middle])
            above = middle;
        else
            place = middle + 1;
    }
    return place;
}

// What clipping to `radius` takes off, of a record within a reach: the query ClippingBias. Between 0 and weight;
// `most` is the largest value over reach^power.
struct Reach {
    double reach, weight, power, most;
};
FN Int excess_units(const Lengths& at, double radius, const Reach& of) {
    if (!(at.scaled > radius)) return 0;  // as most are
    const double inside = at.plain * (radius / larger(at.scaled, radius));
    double before = smaller(at.plain, of.reach) / of.reach, after = inside / of.reach;
    if (of.power == 2.0) {
        before *= before;
        after *= after;
    }
    const double share = (before - after) / of.most;
    if (!(share > 0.0)) return 0;  // nor is it a number
    const double units = ceil(smaller(share, 1.0) * of.weight);
    return Int(smaller(units, of.weight));
}

// Whether all eigenvalues of the k x k matrix of a row lie between low and high: the pivots of S - low and high - S,
// eliminated in `room` for k (k + 1) / 2 numbers.
FN bool eigenvalues_between(const double* y, int k, double low, double high, double* room) {
    for (int side = 0; side < 2; ++side) {
        const double sign = side ? -1.0 : 1.0, shift = side ? high : -low;
        for (int i = 0; i < k; ++i)
            for (int j = 0; j <= i; ++j)
                room[i * (i + 1) / 2 + j] = i == j ? fma(sign, y[i], shift) : sign * y[place_of(k, j, i)] / ROOT2;
        for (int j = 0; j < k; ++j) {
            const double pivot = room[j * (j + 1) / 2 + j];
            if (!(pivot > 0.0)) return false;
            for (int i = j + 1; i < k; ++i) {
                const double factor = room[i * (i + 1) / 2 + j] / pivot;
                for (int l = j + 1; l <= i; ++l)
                    room[i * (i + 1) / 2 + l] = fma(-factor, room[l * (l + 1) / 2 + j], room[i * (i + 1) / 2 + l]);
            }
        }
    }
    return true;
}

// A row's way onto the lattice of a ball: scaled to the ball, rounded toward zero, and shrunk until the rule holds.
struct RowCode {
    const Row& row;
    const double by;
    double factor = LATTICE;

    FN RowCode(const Row& of, double radius) : row(of), by(1.0 / radius) {
        double square = 0.0;
        FOR_COORDINATES(row.rows, p, j) square = fma(scaled(p, j), scaled(p, j), square);
        square = row.rows.total(square);
        if (square > 1.0) factor = LATTICE / sqrt(square);
        if (!(square <= 1.7976931348623157e308)) factor = 0.0;  // not a finite vector: the centre
        round();
        if (square < 1.0 - 0x1p-20) return;  // rounding is far smaller than that: the rule holds
        for (Squares squares = all_squares(); squares.over(); squares = all_squares()) shrink(shrinkage(squares));
    }
    FN double scaled(int p, int j) const { return row.z(p, j) * by; }
    FN int rounded(int p, int j) const { return factor == 0.0 ? 0 : code(scaled(p, j), factor); }
    FN Squares all_squares() const {
        Squares squares;
        FOR_COORDINATES(row.rows, p, j) squares.add((*this)(p, j));
        squares.upper = row.rows.total(squares.upper);
        squares.lower = row.rows.total(squares.lower);
        return squares;
    }
#ifdef SPDP_D
    int q[Rows::EACH];
    FN void round() { FOR_COORDINATES(row.rows, p, j) q[p] = rounded(p, j); }
    FN void shrink(double less) { FOR_COORDINATES(row.rows, p, j) q[p] = shrunk(q[p], less); }
    FN int operator()(int p, int j) const { return q[p]; }
#else  // each time anew, with what the rule took off
    static constexpr int MOST = 8;
    double less[MOST];
    int times = 0;
    FN void round() {}
    FN void shrink(double by_this) {
        if (times == MOST) factor = 0.0;  // never seen: each time takes at least one off every coordinate
        else less[times++] = by_this;
    }
    FN int operator()(int p, int j) const {
        int value = rounded(p, j);
        for (int i = 0; i < times; ++i) value = shrunk(value, less[i]);
        return value;
    }
#endif
};

}  // namespace spdp
