// Passes over log-vectors with one record per lane: what becomes of a record depends on its own row alone.
#include "lanes.hpp"

#include <cfloat>

namespace SPDP_ISA {

// Sums of squares of up to 2^17 coordinates are right to 2^-36 and need no exact check below this; clipped records, which
// are many here, lie below it, since rounding toward the centre takes off some 2^-30.
constexpr double SURE_NORM = LATTICE * LATTICE * (1.0 - 0x1p-35);

// LANES entries of each of LANES rows.
INLINE void load_tile(Vec* to, const double* y, int64_t pitch) {
    Vec rows[LANES];
    for (int l = 0; l < LANES; ++l) std::memcpy(&rows[l], y + l * pitch, sizeof(Vec));
    transpose(rows);
    for (int l = 0; l < LANES; ++l) to[l] = rows[l];
}
// Asks for a tile's worth of what will be read next at y, and some way after it.
constexpr int64_t AHEAD = 2048;  // entries
INLINE void ask_tile(const double* y, Vec& x) {
    for (int64_t e = 0; e < LANES * LANES; e += 8)
        ask(reinterpret_cast<const char*>(y + e), reinterpret_cast<const char*>(y + e + AHEAD), x);
}
constexpr int64_t SHORT = 20;  // rows up to this lie so close that the machine asks for them itself

// Rows [row, row + lanes) of the job, coordinate by coordinate; lanes that are left over hold its centre. A load may reach
// into the next row, as long as there is one: what it finds there is not kept. `to` has room for LANES more than d.
template <class J> INLINE void load_rows(Vec* to, const J& job, int64_t row, int lanes) {
    const int64_t d = job.d, pitch = job.pitch, last = (job.m - 1) * pitch + d;
    if (lanes == LANES && (row + LANES - 1) * pitch + (d + LANES - 1) / LANES * LANES <= last) {
        const double *y = job.y + row * pitch, *next = y + LANES * pitch;
        if (d <= SHORT)
            for (int64_t e = 0; e < d; e += LANES) load_tile(to + e, y + e, pitch);
        else
            for (int64_t e = 0; e < d; e += LANES) {
                load_tile(to + e, y + e, pitch);
                ask_tile(next + e * LANES, to[e]);
            }
        return;
    }
    for (int l = 0; l < LANES; ++l) {
        const double* from = l < lanes ? job.y + (row + l) * pitch : job.center;
        for (int64_t j = 0; j < d; ++j) to[j][l] = from[j];
    }
}

// z of LANES rows, and its norms.
INLINE Vec look(Vec* z, const VectorJob& job, int64_t row, int lanes) {
    load_rows(z, job, row, lanes);
    Vec square = {};
    for (int64_t j = 0; j < job.d; ++j) {
        z[j] = (z[j] - job.center[j]) * job.inverse[j];
        square += z[j] * z[j];
    }
    return vsqrt(square);
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
    if (!vany((Int)(size.v[0] > SURE_NORM))) return;
    for (int l = 0; l < LANES; ++l)
        if (size.v[0][l] > SURE_NORM) enforce_norm(reinterpret_cast<double*>(z) + l, LANES, d);
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
        const Vec norm = look(z.get(), job, row, lanes);
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

// How many rows have norms of z that are not below each edge; those that are no number count as beyond all.
void count_pass(const VectorJob& job, int64_t begin, int64_t end, int64_t* total) {
    auto z = buffer<Vec>(job.d + LANES);
    auto counts = buffer<Int>(job.edge_count);
    for (int64_t row = begin; row < end; row += LANES) {
        const int lanes = int(std::min<int64_t>(LANES, end - row));
        Vec norm = look(z.get(), job, row, lanes);
        for (int l = lanes; l < LANES; ++l) norm[l] = -HUGE_VAL;
        for (int64_t e = 0; e < job.edge_count; ++e) counts[e] -= ~(Int)(norm < job.edges[e]);
    }
    for (int64_t e = 0; e < job.edge_count; ++e)
        for (int l = 0; l < LANES; ++l) total[e] += counts[e][l];
}

// Products of lattice points divided by 2^(LATTICE_BITS - PRODUCT_BITS) toward zero; `total` (d, d) receives exact sums of
// those with i <= j. Records are taken G packs at a time, so that a sum is fetched once for all of them.
void product_pass(const VectorJob& job, int64_t begin, int64_t end, int64_t* total) {
    constexpr int G = 4;
    constexpr double unit = 1.0 / double(1LL << (LATTICE_BITS - PRODUCT_BITS));
    const int64_t d = job.d, room = d + LANES;
    auto z = buffer<Vec>(G * room), sums = buffer<Vec>(d * (d + 1) / 2);
    const double inverse = 1.0 / job.radius;
    int64_t pending = 0;
    const auto flush = [&] {
        const Vec* sum = sums.get();
        for (int64_t i = 0; i < d; ++i)
            for (int64_t j = i; j < d; ++j, ++sum)
                for (int l = 0; l < LANES; ++l) total[i * d + j] += int64_t((*sum)[l]);
        std::memset(static_cast<void*>(sums.get()), 0, d * (d + 1) / 2 * sizeof(Vec));
        pending = 0;
    };
    for (int64_t row = begin; row < end; row += G * LANES) {
        for (int g = 0; g < G; ++g) {
            Vec* q = z.get() + g * room;
            const int lanes = int(std::max<int64_t>(0, std::min<int64_t>(LANES, end - row - g * LANES)));
            round_rows(q, d, look(q, job, row + g * LANES, lanes), inverse, false);
            for (int64_t j = 0; j < d; ++j) {
                Pack<1> p;
                p.v[0] = q[j] * unit;
                q[j] = trunc(p).v[0];
            }
        }
        Vec* sum = sums.get();
        for (int64_t i = 0; i < d; ++i) {
            const Vec *a = z.get(), *b = a + room, *c = b + room, *e = c + room;
            const Vec ai = a[i], bi = b[i], ci = c[i], ei = e[i];
            for (int64_t j = i; j < d; ++j, ++sum) *sum += ai * a[j] + bi * b[j] + (ci * c[j] + ei * e[j]);
        }
        if (++pending == FLUSH) flush();
    }
    flush();
}

// A rotation of a few rows: C vectors of coordinates at once, so that all rows share a load of the axes. Each sum runs
// over j in order, whatever C is.
constexpr int TURNED = 4, WIDEST = 6;  // rows, and vectors: their sums stay in registers
template <int C> INLINE void turn(const Vec* axes, int64_t pad, const double* y, int64_t d, Vec* z) {
    Vec sums[TURNED][C] = {};
    for (int64_t j = 0; j < d; ++j)
        for (int r = 0; r < TURNED; ++r)
            for (int c = 0; c < C; ++c) sums[r][c] += y[r * d + j] * axes[j * pad + c];
    for (int r = 0; r < TURNED; ++r)
        for (int c = 0; c < C; ++c) z[r * pad + c] = sums[r][c];
}
template <int C = WIDEST> INLINE void turn_up_to(int64_t left, const Vec* axes, int64_t pad, const double* y, int64_t d, Vec* z) {
    if (C == 1 || left >= C) return turn<C>(axes, pad, y, d, z);
    if constexpr (C > 1) turn_up_to<C - 1>(left, axes, pad, y, d, z);
}

// `out` may be y itself: rows are read before any of them is written.
void rotate_pass(const RotateJob& job, int64_t begin, int64_t end) {
    const int64_t d = job.d, pad = (d + LANES - 1) / LANES;
    auto axes = buffer<Vec>(d * pad), z = buffer<Vec>(TURNED * pad);
    auto y = buffer<double>(TURNED * d);
    for (int64_t j = 0; j < d; ++j) std::memcpy(axes.get() + j * pad, job.axes + j * d, d * sizeof(double));
    for (int64_t row = begin; row < end; row += TURNED) {
        const int64_t rows = std::min<int64_t>(TURNED, end - row);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < d; ++j) y[r * d + j] = job.y[(row + r) * job.pitch + j] - job.center[j];
        for (int64_t at = 0; at < pad; at += WIDEST)
            turn_up_to(pad - at, axes.get() + at, pad, y.get(), d, z.get() + at);
        for (int64_t r = 0; r < rows; ++r) std::memcpy(job.out + (row + r) * d, z.get() + r * pad, d * sizeof(double));
    }
}

}  // namespace SPDP_ISA
