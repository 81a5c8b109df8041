// Passes over log-vectors (m, d), one thread per row: z = (y - center) * inverse width.
#pragma once

namespace spdp {

struct Rows {
    Int m;
    int d;
    const double *y, *center, *by;  // by: 1 / width

    FN Rows(Int m_, int d_, const double* y_, const double* parameters)  // center, then by
        : m(m_), d(d_), y(y_), center(parameters), by(parameters + d_) {}
};

FN double row_norm(const Rows& rows, const double* y) {
    double square = 0.0;
    for (int j = 0; j < rows.d; ++j) {
        const double z = (y[j] - rows.center[j]) * rows.by[j];
        square = fma(z, z, square);
    }
    return sqrt(square);
}

// Length of y - center as it is, and of z.
struct Lengths {
    double plain, scaled;
};
FN Lengths row_lengths(const Rows& rows, const double* y) {
    double plain = 0.0, scaled = 0.0;
    for (int j = 0; j < rows.d; ++j) {
        const double x = y[j] - rows.center[j], z = x * rows.by[j];
        plain = fma(x, x, plain);
        scaled = fma(z, z, scaled);
    }
    return {sqrt(plain), sqrt(scaled)};
}

// min(norm / cap, 1) in units of 2^-30: an integer between 0 and 2^30, 0 for what is not a number
FN Int distance_units(double norm, double cap) {
    const double share = norm / cap;
    return share >= 1.0 ? Int(LATTICE) : share > 0.0 ? Int(share * LATTICE) : 0;
}

// Place of a norm between ascending edges; beyond all of them for what is not a number.
FN int interval(double norm, const double* edges, int count) {
    int place = 0;
    while (place < count && !(norm < edges[place])) ++place;
    return place;
}

// What clipping to `radius` takes off, of a record within a reach: the query ExcessSum. Between 0 and weight.
struct Reach {
    double reach, weight, power;
};
FN Int excess_units(const Lengths& at, double radius, const Reach& of) {
    const double inside = at.plain * (radius / larger(at.scaled, radius));
    double before = smaller(at.plain, of.reach) / of.reach, after = inside / of.reach;
    if (of.power == 2.0) {
        before *= before;
        after *= after;
    }
    const double share = before - after;
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

// A row's way onto the lattice of a ball: a factor, and what the rule of the lattice takes off afterwards.
struct RowCode {
    static constexpr int MOST = 8;
    const Rows& rows;
    const double *y, by;
    double factor = LATTICE, less[MOST];
    int times = 0;

    FN RowCode(const Rows& all, const double* row, double radius) : rows(all), y(row), by(1.0 / radius) {
        double square = 0.0;
        for (int j = 0; j < rows.d; ++j) square = fma(scaled(j), scaled(j), square);
        if (square > 1.0) factor = LATTICE / sqrt(square);
        if (!(square <= 1.7976931348623157e308)) factor = 0.0;  // not a finite vector: the centre
        if (square < 1.0 - 0x1p-20) return;  // rounding is far smaller than that: the rule holds
        for (Squares squares = all_squares(); squares.over(); squares = all_squares()) {
            if (times == MOST) factor = 0.0;  // never seen: each time takes at least one off every coordinate
            else less[times++] = shrinkage(squares);
        }
    }
    FN double scaled(int j) const { return (y[j] - rows.center[j]) * rows.by[j] * by; }
    FN int operator()(int j) const {
        if (factor == 0.0) return 0;
        int q = code(scaled(j), factor);
        for (int i = 0; i < times; ++i) q = shrunk(q, less[i]);
        return q;
    }
    FN Squares all_squares() const {
        Squares squares;
        for (int j = 0; j < rows.d; ++j) squares.add((*this)(j));
        return squares;
    }
};

}  // namespace spdp
