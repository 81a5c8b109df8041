// The device's kernels on the host: one thread plays every thread of the device in turn.
#include "constants.hpp"  // written by the test, from kernels/constants.py
#include "portable.hpp"
#include "small.hpp"
#include "group.hpp"
#include "vectors.hpp"

#include <vector>

using namespace spdp;

namespace {

template <int K, int MODE, class Real> void small(const Real* x, const Job& job) {
    constexpr int D = K * (K + 1) / 2;
    for (Int at = 0; at < job.m; ++at) {
        double y[D];
        int q[D] = {};
        const int code = Small<K>::vector(x + at * K * K, job, y);
        job.status[at] = Byte(code);
        if (code == OK && MODE != LOGVEC) encode<D>(y, job, job.center, q);
        for (int j = 0; j < D; ++j) {
            if (MODE == LOGVEC) job.out[at * D + j] = code == OK ? y[j] : 0.0;
            if (MODE == ENCODE) job.codes[at * D + j] = q[j];
            if (MODE == LATTICE_SUM) job.codes[j] += q[j];
        }
    }
}

template <int K, int T, int MODE, class Real> void grouped(const Real* x, const Job& job) {
    typedef typename Shape<K, T>::Solver Solver;
    std::vector<double> shared(Solver::DOUBLES);
    auto solver = new Solver(shared.data(), 0, true);
    for (Int at = 0; at < job.m; ++at) solver->template record<MODE>(x, at, job, 0);
    delete solver;
}

template <int K, int T, int MODE, class Real> void pass(const void* x, const Job& job) {
    if constexpr (T == 1)
        small<K, MODE>(static_cast<const Real*>(x), job);
    else
        grouped<K, T, MODE>(static_cast<const Real*>(x), job);
}
template <int K, int T, class Real> void any_mode(int mode, const void* x, const Job& job) {
    if (mode == LOGVEC) pass<K, T, LOGVEC, Real>(x, job);
    if (mode == ENCODE) pass<K, T, ENCODE, Real>(x, job);
    if (mode == LATTICE_SUM) pass<K, T, LATTICE_SUM, Real>(x, job);
}
template <int K, int T> void any_type(bool single, int mode, const void* x, const Job& job) {
    if (single)
        any_mode<K, T, float>(mode, x, job);
    else
        any_mode<K, T, double>(mode, x, job);
}

}  // namespace

extern "C" int records(int k, int single, int mode, const void* x, Int m, double log_low, double log_high, double radius,
                       const double* center, double* out, Int* codes, Byte* status) {
    const Job job = {m, log_low, log_high, radius, center, out, codes, status, 1};
    switch (k) {
#define SIZE(K, T) \
    case K: any_type<K, T>(single, mode, x, job); return 1;
        SPDP_SIZES
        default: return 0;
    }
}

extern "C" void row_norms(Int m, int d, const double* y, const double* parameters, double* out) {
    const Rows rows(m, d, y, parameters);
    for (Int i = 0; i < m; ++i) out[i] = row_norm(Row(rows, i));
}

extern "C" void row_distances(Int m, int d, const double* y, const double* parameters, double cap, Int* sum) {
    const Rows rows(m, d, y, parameters);
    for (Int i = 0; i < m; ++i) *sum += distance_units(row_norm(Row(rows, i)), cap);
}

extern "C" void row_counts(Int m, int d, const double* y, const double* parameters, int edges, Int* counts) {
    const Rows rows(m, d, y, parameters);
    for (Int i = 0; i < m; ++i) ++counts[interval(row_norm(Row(rows, i)), parameters + 2 * d, edges)];
}

extern "C" void row_excess(Int m, int d, const double* y, const double* parameters, double radius, int reaches, Int* sums) {
    const Rows rows(m, d, y, parameters);
    const Reach* all = reinterpret_cast<const Reach*>(parameters + 2 * d);
    for (Int i = 0; i < m; ++i)
        for (int r = 0; r < reaches; ++r) sums[r] += excess_units(row_lengths(Row(rows, i)), radius, all[r]);
}

extern "C" void row_between(Int m, int k, const double* y, double low, double high, Byte* between) {
    const int d = k * (k + 1) / 2;
    std::vector<double> room(d);
    for (Int i = 0; i < m; ++i) between[i] = eigenvalues_between(y + i * d, k, low, high, room.data());
}

extern "C" void row_codes(Int m, int d, const double* y, const double* parameters, double radius, Int* codes) {
    const Rows rows(m, d, y, parameters);
    for (Int i = 0; i < m; ++i) {
        const Row row(rows, i);
        const RowCode code(row, radius);
        for (int j = 0; j < d; ++j) codes[i * d + j] = code(j, j);
    }
}
