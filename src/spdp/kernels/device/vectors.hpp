// Passes over log-vectors (m, d), one thread per row: z = (y - center) * inverse width.
#pragma once

namespace spdp {

struct Rows {
    Int m;
    int d;
    const double *y, *center, *by;  // by: 1 / width
};

FN double row_norm(const Rows& rows, const double* y) {
    double square = 0.0;
    for (int j = 0; j < rows.d; ++j) {
        const double z = (y[j] - rows.center[j]) * rows.by[j];
        square = fma(z, z, square);
    }
    return sqrt(square);
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
