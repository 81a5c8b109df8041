// What the module and the kernels, compiled once per instruction set, agree on.
#pragma once
#include "constants.hpp"  // generated from kernels/constants.py

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace spdp {

enum Mode { EIGH = 0, LOGM = 1, EXPM = 2, LOGSUM = 3, LOGVEC = 4, ENCODE = 5, LATTICE_SUM = 6, ADD_ROWS = 7, CARRY = 8 };

struct Job {
    int mode = 0, chart = 0, k = 0;       // the chart by its place in CHARTS; LOGVEC, ENCODE and LATTICE_SUM for all but the first
    int64_t m = 0;                        // number of matrices
    const char* x = nullptr;              // first entry
    int64_t stride[3] = {0, 0, 0};        // in bytes
    bool single = false;                  // float32 input
    double slack = 0;                     // asymmetry that is rounding whatever the entries (EXPM)
    double log_low = 0, log_high = 0;     // clip of log-eigenvalues (LOGVEC, ENCODE, LATTICE_SUM)
    const double* center = nullptr;       // (d,)
    double radius = 1;
    const double* weights = nullptr;      // (m,) or null (LOGSUM)
    const double* congruence = nullptr;   // (k,k) or null: W, for W X W' in place of X (LOGSUM; CARRY, where x holds vectors (m,d))
    int exponent = 0;                     // and of a power of two that multiplies W X W'
    double* out = nullptr;                // (m,k,k) or (m,d); eigenvectors for EIGH
    double* values = nullptr;             // eigenvalues (m,k) for EIGH, smallest eigenvalue (m,) for LOGM and LOGSUM
    int64_t* codes = nullptr;             // (m,d) for ENCODE; a table (count,d) for ADD_ROWS
    const int64_t* rows = nullptr;        // (m,) rows of that table, -1 for none
    uint8_t* status = nullptr;            // (m,)
};

constexpr int LARGE = 48;  // matrices from this size on are worked on one at a time
constexpr int SIDE_BY_SIDE = 128;  // up to this size they may share lanes: beyond, they leave the second-level cache

// Per-thread results and scratch memory; opaque to the module.
struct Worker {
    virtual ~Worker() = default;
    virtual void run(const Job& job, int64_t begin, int64_t end) = 0;  // matrices [begin, end)
    virtual void finish(const Job&) {}                                  // those that still wait for others
    virtual void lattice_sum(int64_t* total) = 0;                       // adds (d,) integers
    virtual void log_sum(double* total) = 0;                            // writes (d,), and starts a new sum
};

// A chart's kernel, by its name.
struct ChartKernel {
    const char* name;
    Worker* (*make)(int k);
};

// Passes over log-vectors y (m, d), row by row: z = (y - center) / width, clipped to a ball and rounded toward its centre.
struct VectorJob {
    int64_t m = 0, d = 0;
    const double* y = nullptr;
    int64_t pitch = 0;               // from one row to the next
    const double* center = nullptr;  // (d,)
    const double* inverse = nullptr; // (d,) 1 / width
    double radius = 1;
    bool absolute = false;           // |z| in place of z
    double* distance = nullptr;      // (m,) norms of z before clipping, or null
    int64_t* codes = nullptr;        // (m, d) lattice points, or null
    const double* edges = nullptr;   // (edge_count,) of a count by norms
    int64_t edge_count = 0;
    bool sum = true;                 // whether to add up lattice points
};
// Rows z = (y - center) axes of log-vectors y (m, d); each row is computed on its own.
struct RotateJob {
    int64_t m = 0, d = 0;
    const double* y = nullptr;
    int64_t pitch = 0;
    const double* center = nullptr;  // (d,)
    const double* axes = nullptr;    // (d, d), row j multiplies coordinate j
    double* out = nullptr;           // (m, d); may be y
};
typedef void (*RotatePass)(const RotateJob& job, int64_t begin, int64_t end);
typedef void (*VectorPass)(const VectorJob& job, int64_t begin, int64_t end, int64_t* total);

// All kernels of one instruction set.
struct Kernels {
    const char* name;
    const ChartKernel* charts;  // the last has no name
    VectorPass vectors, products, counts;
    RotatePass rotate;
};

// The rule of the lattice: the sum of squares of an integer vector, held as doubles `stride` apart, is at most
// 2^(2 LATTICE_BITS), in integer arithmetic; a vector over it is shrunk toward zero until it holds.
inline void enforce_norm(double* q, int64_t stride, int64_t dim) {
    for (;;) {
        unsigned __int128 square = 0;
        for (int64_t j = 0; j < dim; ++j) {
            const int64_t v = int64_t(q[j * stride]);
            square += uint64_t(v * v);
        }
        if (square <= (unsigned __int128)1 << (2 * LATTICE_BITS)) return;
        const double norm = double(1LL << LATTICE_BITS), shrink = std::min(1.0 - 1.0 / norm, norm / std::sqrt(double(square)));
        for (int64_t j = 0; j < dim; ++j) q[j * stride] = std::trunc(q[j * stride] * shrink);
    }
}

}  // namespace spdp
