// Passes over log-vectors with one record per lane: what becomes of a record depends on its own row alone.
#include "lanes.hpp"

#include <cfloat>

namespace SPDP_ISA {

// Rows [row, row + lanes) of y (m, d), coordinate by coordinate; lanes that are left over hold `rest` (d,). A load may reach
// into the next row, as long as there is one: what it finds there is not kept. `to` has room for LANES more than d.
INLINE void load_rows(Vec* to, const double* y, int64_t m, int64_t d, int64_t row, int lanes, const double* rest) {
    const bool whole = lanes == LANES && (row + LANES - 1) * d + (d + LANES - 1) / LANES * LANES <= m * d;
    if (whole) {
        for (int64_t e = 0; e < d; e += LANES) {
            Vec rows[LANES];
            for (int l = 0; l < LANES; ++l) std::memcpy(&rows[l], y + (row + l) * d + e, sizeof(Vec));
            transpose(rows);
            for (int l = 0; l < LANES; ++l) to[e + l] = rows[l];
        }
        return;
    }
    for (int l = 0; l < LANES; ++l) {
        const double* from = l < lanes ? y + (row + l) * d : rest;
        for (int64_t j = 0; j < d; ++j) to[j][l] = from[j];
    }
}

INLINE void store_rows(double* out, int64_t d, int64_t row, int lanes, const Vec* from) {
    int64_t e = 0;
    for (; lanes == LANES && e + LANES <= d; e += LANES) {
        Vec rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = from[e + l];
        transpose(rows);
        for (int l = 0; l < LANES; ++l) std::memcpy(out + (row + l) * d + e, &rows[l], sizeof(Vec));
    }
    for (; e < d; ++e)
        for (int l = 0; l < lanes; ++l) out[(row + l) * d + e] = from[e][l];
}

// Vectors z become lattice points q of the ball of radius 1 / inverse, rounded toward its centre; one whose norm is not a
// finite number is the centre.
INLINE void round_rows(Vec* z, int64_t d, Vec norm, double inverse, bool absolute) {
    const Vec scaled = norm * inverse, none = {};
    const Int finite = (Int)(scaled <= DBL_MAX);
    const Vec factor = (scaled > 1.0 ? LATTICE / scaled : LATTICE - none) * inverse;
    Pack<1> size = 0.0;
    for (int64_t j = 0; j < d; ++j) {
        Pack<1> q;
        q.v[0] = finite ? z[j] * factor : none;
        q = trunc(min(max(q, Pack<1>(-LATTICE)), Pack<1>(LATTICE)));
        if (absolute) q = abs(q);
        size += q * q;
        z[j] = q.v[0];
    }
    if (!vany((Int)(size.v[0] > NEAR_NORM))) return;
    for (int l = 0; l < LANES; ++l)
        if (size.v[0][l] > NEAR_NORM) enforce_norm(reinterpret_cast<double*>(z) + l, LANES, d);
}

// Rows [begin, end) of a vector pass; `total` (d,) receives exact integer sums.
void vector_pass(const VectorJob& job, int64_t begin, int64_t end, int64_t* total) {
    const int64_t d = job.d;
    auto z = buffer<Vec>(d + LANES), sums = buffer<Vec>(d);
    const double inverse = 1.0 / job.radius;
    int64_t pending = 0;
    const auto flush = [&] {
        for (int64_t j = 0; j < d; ++j) {
            for (int l = 0; l < LANES; ++l) total[j] += int64_t(sums[j][l]);
            sums[j] = Vec{};
        }
        pending = 0;
    };
    for (int64_t row = begin; row < end; row += LANES) {
        const int lanes = int(std::min<int64_t>(LANES, end - row));
        load_rows(z.get(), job.y, job.m, d, row, lanes, job.center);
        Vec square = {};
        for (int64_t j = 0; j < d; ++j) {
            z[j] = (z[j] - job.center[j]) * job.inverse[j];
            square += z[j] * z[j];
        }
        const Vec norm = vsqrt(square);
        if (job.distance) std::memcpy(job.distance + row, &norm, lanes * sizeof(double));
        if (!job.sum && !job.codes) continue;
        round_rows(z.get(), d, norm, inverse, job.absolute);
        for (int l = 0; job.codes && l < lanes; ++l)
            for (int64_t j = 0; j < d; ++j) job.codes[(row + l) * d + j] = int64_t(z[j][l]);
        for (int64_t j = 0; j < d; ++j) sums[j] += z[j];
        if (++pending == FLUSH) flush();
    }
    if (job.sum) flush();
}

// B coordinates of a rotation at once, so that they share a record's loads; each sum runs over j in order, whatever B is.
template <int B> INLINE void turn(const RotateJob& job, const Vec* y, Vec* z, int64_t at) {
    Vec sums[B] = {};
    for (int64_t j = 0; j < job.d; ++j) {
        const Vec v = y[j];
        const double* axis = job.axes + j * job.d + at;
        for (int b = 0; b < B; ++b) sums[b] += v * axis[b];
    }
    for (int b = 0; b < B; ++b) z[at + b] = sums[b];
}

// `out` may be y itself: LANES rows are read before any of them is written.
void rotate_pass(const RotateJob& job, int64_t begin, int64_t end) {
    const int64_t d = job.d;
    auto y = buffer<Vec>(d + LANES), z = buffer<Vec>(d);
    for (int64_t row = begin; row < end; row += LANES) {
        const int lanes = int(std::min<int64_t>(LANES, end - row));
        load_rows(y.get(), job.y, job.m, d, row, lanes, job.center);
        for (int64_t j = 0; j < d; ++j) y[j] -= job.center[j];
        int64_t at = 0;
        for (; at + 8 <= d; at += 8) turn<8>(job, y.get(), z.get(), at);
        for (; at + 4 <= d; at += 4) turn<4>(job, y.get(), z.get(), at);
        for (; at < d; ++at) turn<1>(job, y.get(), z.get(), at);
        store_rows(job.out, d, row, lanes, z.get());
    }
}

}  // namespace SPDP_ISA
