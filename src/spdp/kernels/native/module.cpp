// The Python module: checks arguments, chooses the instruction set, shares the work among threads.
#include "kernel.hpp"
#include "discrete_gaussian.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#ifdef SPDP_AVX2
#include <cpuid.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace baseline { extern const spdp::Kernels KERNELS; }
#ifdef SPDP_AVX2
namespace avx2 { extern const spdp::Kernels KERNELS; }
#endif
#ifdef SPDP_AVX512
namespace avx512 { extern const spdp::Kernels KERNELS; }
#endif

namespace {

// Instruction sets that were compiled, the processor has, and whose registers the system keeps; the best is last. By the
// processor's own words: not every compiler's runtime has __builtin_cpu_supports.
std::vector<const spdp::Kernels*> instruction_sets() {
    std::vector<const spdp::Kernels*> sets{&baseline::KERNELS};
#ifdef SPDP_AVX2
    unsigned a, b, c, d, kept, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return sets;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) || (kept & 0x06) != 0x06) return sets;
    sets.push_back(&avx2::KERNELS);
#ifdef SPDP_AVX512
    constexpr unsigned all = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    if ((b & all) == all && (kept & 0xe6) == 0xe6) sets.push_back(&avx512::KERNELS);
#endif
#endif
    return sets;
}

std::atomic<const spdp::Kernels*> chosen{instruction_sets().back()};
std::atomic<int> threads{1};

// Matrices a thread takes at a time, also the unit of reproducible float sums: about 20 µs of work and whole packs. Of large
// matrices few, so that threads end together, but for float sums, which are kept for each chunk.
int64_t chunk_size(const spdp::Job& job, bool sums) {
    const int64_t k = job.k;
    if (k >= spdp::LARGE && !sums) return job.mode == spdp::EIGH || job.mode == spdp::EXPM || job.mode == spdp::CARRY ? 16 : 2;
    const int64_t size = std::max<int64_t>(32, 65536 / (k * k * k) / 32 * 32);
    return job.chart == 0 ? size : 8 * size;  // a Cholesky factor is less work than a logarithm
}

// Vectors a thread takes at a time, whole packs of them: some 20 µs of work.
int64_t rows_at_a_time(int64_t d) { return std::max<int64_t>(16, 65536 / std::max<int64_t>(1, d) / 16 * 16); }

std::vector<std::string> chart_names() {
    std::vector<std::string> names;
    for (const auto* chart = chosen.load()->charts; chart->name; ++chart) names.emplace_back(chart->name);
    return names;
}

// Runs `work` on all threads; each takes chunks from the counter it is given until there are none. A thread starts for two of
// them at least, if they are short: to start it takes longer than one. The first failure is passed on.
template <class Work> void share(int64_t chunks, const Work& work, bool are_short = true) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto guarded = [&] {
        try {
            work(next);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        for (int64_t i = 1; i < std::min<int64_t>(threads, are_short ? (chunks + 1) / 2 : chunks); ++i) others.emplace_back(guarded);
    } catch (const std::exception&) {  // the system gives no more threads: those at hand do all the work
    }
    guarded();
    for (auto& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

// Adds row i of q (m, d) to row rows[i] of `to`, to none where that is -1. Rows lie anywhere, and are asked for before
// they are needed.
void add_to_rows(const int64_t* q, const int64_t* rows, int64_t m, int64_t d, int64_t* to) {
    constexpr int64_t SOON = 16;
    for (int64_t i = 0; i < m; ++i) {
        if (i + SOON < m && rows[i + SOON] >= 0) {
            __builtin_prefetch(to + rows[i + SOON] * d, 1);
            __builtin_prefetch(to + rows[i + SOON] * d + d - 1, 1);
        }
        if (rows[i] < 0) continue;
        int64_t* row = to + rows[i] * d;
        for (int64_t j = 0; j < d; ++j) row[j] += q[i * d + j];
    }
}

// Codes of a chunk are added to their rows while they are in the cache; threads take turns at that.
void run_into_rows(const spdp::Job& job, spdp::Worker& worker, int64_t begin, int64_t end, int64_t* codes, std::mutex& turn) {
    const int64_t dim = int64_t(job.k) * (job.k + 1) / 2;
    spdp::Job piece = job;
    piece.mode = spdp::ENCODE;
    piece.x += begin * job.stride[0];
    piece.status += begin;
    piece.codes = codes;
    worker.run(piece, 0, end - begin);
    std::lock_guard<std::mutex> lock(turn);
    add_to_rows(codes, job.rows + begin, end - begin, dim, job.codes);
}

// Runs the job on all threads. Float sums are kept per chunk and added in order, so they do not depend on the threads.
void execute(const spdp::Job& job, double* log_total, int64_t* lattice_total) {
    const int64_t size = chunk_size(job, log_total != nullptr), chunks = (job.m + size - 1) / size;
    const int64_t dim = int64_t(job.k) * (job.k + 1) / 2;
    std::vector<double> partial(log_total ? chunks * dim : 0);
    std::mutex mutex;
    share(chunks, [&](std::atomic<int64_t>& next) {
        std::unique_ptr<spdp::Worker> worker(chosen.load()->charts[job.chart].make(job.k));
        std::vector<int64_t> codes(job.mode == spdp::ADD_ROWS ? size * dim : 0);
        for (int64_t i; (i = next++) < chunks;) {
            const int64_t begin = i * size, end = std::min(job.m, (i + 1) * size);
            if (job.mode == spdp::ADD_ROWS)
                run_into_rows(job, *worker, begin, end, codes.data(), mutex);
            else
                worker->run(job, begin, end);
            if (log_total) worker->log_sum(partial.data() + i * dim);
        }
        worker->finish(job);
        if (lattice_total) {
            std::lock_guard<std::mutex> lock(mutex);
            worker->lattice_sum(lattice_total);
        }
    }, job.k < spdp::LARGE);
    if (log_total)
        for (int64_t i = 0; i < chunks; ++i)
            for (int64_t j = 0; j < dim; ++j) log_total[j] += partial[i * dim + j];
}

using Input = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
template <class T> using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Places come from Python.
void check_rows(const Places& rows, int64_t m, int64_t lowest, int64_t count) {
    if (int64_t(rows.size()) != m) throw std::invalid_argument("an array has the wrong size");
    for (int64_t i = 0; i < m; ++i)
        if (rows.data()[i] < lowest || rows.data()[i] >= count) throw std::invalid_argument("a row is out of range");
}

void run(int mode, const Input& x, Output<uint8_t> status, std::optional<Output<double>> out,
         std::optional<Output<double>> values, std::optional<Output<int64_t>> codes, std::optional<Vector> weights,
         std::optional<Vector> center, double log_low, double log_high, double radius, double slack, int chart,
         std::optional<Places> rows, std::optional<Vector> congruence, int exponent) {
    spdp::Job job;
    job.mode = mode;
    job.chart = chart;
    job.m = int64_t(x.shape(0));
    job.k = int(x.shape(1));
    job.single = x.dtype() == nb::dtype<float>();
    if (!job.single && x.dtype() != nb::dtype<double>()) throw std::invalid_argument("float32 or float64 expected");
    const int64_t item = job.single ? 4 : 8, dim = int64_t(job.k) * (job.k + 1) / 2;
    for (int i = 0; i < 3; ++i) job.stride[i] = x.stride(i) * item;
    job.x = static_cast<const char*>(x.data());
    const auto need = [](bool ok) {
        if (!ok) throw std::invalid_argument("an array has the wrong size");
    };
    need(chart >= 0 && chart < int(chart_names().size()) && (chart == 0 || mode >= spdp::LOGVEC));
    need(x.shape(2) == x.shape(1) && job.k > 0 && int64_t(status.size()) == job.m);
    job.status = status.data();
    double* log_total = nullptr;
    int64_t* lattice_total = nullptr;
    if (mode == spdp::EIGH || mode == spdp::LOGM || mode == spdp::EXPM) {
        need(out && int64_t(out->size()) == job.m * job.k * job.k);
        job.out = out->data();
    }
    if (mode == spdp::LOGVEC) {
        need(out && int64_t(out->size()) == job.m * dim);
        job.out = out->data();
    }
    if (mode == spdp::EIGH || mode == spdp::LOGM || mode == spdp::LOGSUM) {
        need(values && int64_t(values->size()) == (mode == spdp::EIGH ? job.m * job.k : job.m));
        job.values = values->data();
    }
    if (mode == spdp::LOGSUM) {
        need(out && int64_t(out->size()) == dim);
        log_total = out->data();
        if (weights) {
            need(int64_t(weights->size()) == job.m);
            job.weights = weights->data();
        }
        if (congruence) {
            need(job.k < spdp::LARGE && int64_t(congruence->size()) == int64_t(job.k) * job.k);
            job.congruence = congruence->data();
            job.exponent = exponent;
        }
    }
    if (mode == spdp::ENCODE || mode == spdp::LATTICE_SUM) {
        need(codes && center && int64_t(center->size()) == dim);
        need(int64_t(codes->size()) == (mode == spdp::ENCODE ? job.m * dim : dim));
        job.center = center->data();
        if (mode == spdp::ENCODE)
            job.codes = codes->data();
        else
            lattice_total = codes->data();
    }
    if (mode == spdp::ADD_ROWS) {
        need(codes && rows && center && int64_t(center->size()) == dim && codes->size() % dim == 0);
        check_rows(*rows, job.m, -1, int64_t(codes->size()) / dim);
        job.center = center->data();
        job.codes = codes->data();
        job.rows = rows->data();
    }
    job.log_low = log_low;
    job.log_high = log_high;
    job.radius = radius;
    job.slack = slack;
    nb::gil_scoped_release release;
    execute(job, log_total, lattice_total);
}

// Vectors (m, d), one after the other or some way apart.
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

int64_t pitch_of(const Rows& y) {
    if (y.shape(0) == 0) return int64_t(y.shape(1));
    if (y.shape(1) > 1 && y.stride(1) != 1) throw std::invalid_argument("rows without gaps expected");
    if (y.shape(0) < 2) return int64_t(y.shape(1));
    if (y.stride(0) < int64_t(y.shape(1))) throw std::invalid_argument("rows one after the other expected");
    return y.stride(0);
}

spdp::VectorJob vector_job(const Rows& y, const Vector& center, const Vector& inverse, double radius) {
    spdp::VectorJob job;
    job.m = int64_t(y.shape(0));
    job.d = int64_t(y.shape(1));
    if (int64_t(center.size()) != job.d || int64_t(inverse.size()) != job.d)
        throw std::invalid_argument("an array has the wrong size");
    job.y = y.data();
    job.pitch = pitch_of(y);
    job.center = center.data();
    job.inverse = inverse.data();
    job.radius = radius;
    return job;
}

// Vectors of records seen from another point.
void carry(const Rows& y, Vector congruence, int exponent, Output<uint8_t> status, Output<double> out) {
    spdp::Job job;
    job.mode = spdp::CARRY;
    job.m = int64_t(y.shape(0));
    while (int64_t(job.k) * (job.k + 1) / 2 < int64_t(y.shape(1))) ++job.k;
    if (int64_t(job.k) * (job.k + 1) / 2 != int64_t(y.shape(1)) || job.k < 1 || job.k > spdp::SIDE_BY_SIDE ||
        int64_t(congruence.size()) != int64_t(job.k) * job.k || int64_t(status.size()) != job.m ||
        int64_t(out.size()) != job.m * int64_t(y.shape(1)))
        throw std::invalid_argument("an array has the wrong size");
    job.x = reinterpret_cast<const char*>(y.data());
    job.stride[0] = pitch_of(y) * 8;
    job.congruence = congruence.data();
    job.exponent = exponent;
    job.status = status.data();
    job.out = out.data();
    nb::gil_scoped_release release;
    execute(job, nullptr, nullptr);
}

// Runs a pass on all threads; `total` (count,) receives the integers of all of them.
void pass_over(const spdp::VectorJob& job, spdp::VectorPass pass, int64_t size, int64_t count, int64_t* total) {
    const int64_t chunks = (job.m + size - 1) / size;
    std::mutex mutex;
    share(chunks, [&](std::atomic<int64_t>& next) {
        std::vector<int64_t> mine(count);
        for (int64_t i; (i = next++) < chunks;) pass(job, i * size, std::min(job.m, (i + 1) * size), mine.data());
        std::lock_guard<std::mutex> lock(mutex);
        for (int64_t j = 0; total && j < count; ++j) total[j] += mine[j];
    });
}

void run_vectors(const Rows& y, Vector center, Vector inverse, double radius, bool absolute,
                 std::optional<Output<int64_t>> total, std::optional<Output<double>> distance,
                 std::optional<Output<int64_t>> codes) {
    spdp::VectorJob job = vector_job(y, center, inverse, radius);
    if ((total && int64_t(total->size()) != job.d) || (distance && int64_t(distance->size()) != job.m) ||
        (codes && int64_t(codes->size()) != job.m * job.d))
        throw std::invalid_argument("an array has the wrong size");
    job.absolute = absolute;
    job.sum = total.has_value();
    job.distance = distance ? distance->data() : nullptr;
    job.codes = codes ? codes->data() : nullptr;
    int64_t* sums = total ? total->data() : nullptr;
    nb::gil_scoped_release release;
    pass_over(job, chosen.load()->vectors, rows_at_a_time(job.d), job.d, sums);
}

void run_counts(const Rows& y, Vector center, Vector inverse, Vector edges, Output<int64_t> total) {
    spdp::VectorJob job = vector_job(y, center, inverse, 1.0);
    job.edges = edges.data();
    job.edge_count = int64_t(edges.size());
    if (int64_t(total.size()) != job.edge_count) throw std::invalid_argument("an array has the wrong size");
    int64_t* counts = total.data();
    nb::gil_scoped_release release;
    pass_over(job, chosen.load()->counts, rows_at_a_time(job.d), job.edge_count, counts);
}

// Sums of products with i <= j, in an array (d, d); few chunks, since each thread has sums of its own to empty.
void run_products(const Rows& y, Vector center, Vector inverse, double radius, Output<int64_t> total) {
    const spdp::VectorJob job = vector_job(y, center, inverse, radius);
    if (int64_t(total.size()) != job.d * job.d) throw std::invalid_argument("an array has the wrong size");
    int64_t* sums = total.data();
    nb::gil_scoped_release release;
    pass_over(job, chosen.load()->products, std::max<int64_t>(1024, rows_at_a_time(job.d)), job.d * job.d, sums);
}

void rotate(const Rows& y, Vector center, Vector axes, Output<double> out) {
    spdp::RotateJob job;
    job.m = int64_t(y.shape(0));
    job.d = int64_t(y.shape(1));
    if (int64_t(center.size()) != job.d || int64_t(axes.size()) != job.d * job.d || int64_t(out.size()) != job.m * job.d)
        throw std::invalid_argument("an array has the wrong size");
    job.y = y.data();
    job.pitch = pitch_of(y);
    job.center = center.data();
    job.axes = axes.data();
    job.out = out.data();
    nb::gil_scoped_release release;
    const int64_t size = rows_at_a_time(job.d), chunks = (job.m + size - 1) / size;
    const auto pass = chosen.load()->rotate;
    share(chunks, [&](std::atomic<int64_t>& next) {
        for (int64_t i; (i = next++) < chunks;) pass(job, i * size, std::min(job.m, (i + 1) * size));
    });
}

// On one thread: memory is what takes the time.
void add_rows(const nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& q, const Places& rows,
              const nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
    const int64_t m = int64_t(q.shape(0)), d = int64_t(q.shape(1));
    if (int64_t(out.shape(1)) != d) throw std::invalid_argument("an array has the wrong size");
    check_rows(rows, m, 0, int64_t(out.shape(0)));
    nb::gil_scoped_release release;
    add_to_rows(q.data(), rows.data(), m, d, out.data());
}

// --- the discrete Gaussian by strips

constexpr int64_t BLOCK = 512;     // words read at a time, 4 KiB
constexpr int64_t PIECE = 1 << 13;  // draws a thread takes at a time, a quarter of a millisecond

using Totals = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Draws for the totals [from, to), with words that `read(words, count)` writes. A word is used for one proposal, once.
template <class Read>
void draw_piece(const spdp::StripTable& table, const int64_t* totals, int64_t from, int64_t to, int64_t* out,
                std::vector<spdp::OpenProposal>& open, const Read& read) {
    uint64_t words[BLOCK];
    struct Forgotten {
        uint64_t* words;
        int64_t count;
        ~Forgotten() { spdp::wipe(words, count); }
    } kept{words, 0};
    while (from < to) {
        const int64_t wanted = to - from, some = std::min(wanted + wanted / 16 + 4, BLOCK / table.words());
        kept.count = std::max(kept.count, some * table.words());
        read(words, some * table.words());
        from = spdp::propose(table, words, some, totals, from, to, out, open);
    }
}

// Totals with noise, in `out`; gives the places whose draws are still to be settled. Without `read` words come from the
// operating system and threads share the work; with it, from read(bytes), in turn.
nb::list draw_gaussian(const spdp::StripTable& table, const Totals& totals, Output<int64_t> out, nb::object read) {
    const int64_t m = int64_t(totals.size());
    if (int64_t(out.size()) != m) throw std::invalid_argument("an array has the wrong size");
    const int64_t* given = totals.data();
    int64_t* noisy = out.data();
    std::vector<spdp::OpenProposal> open;
    if (!read.is_none()) {
        draw_piece(table, given, 0, m, noisy, open, [&](uint64_t* words, int64_t count) {
            const auto bytes = nb::cast<nb::bytes>(read(8 * count));
            if (int64_t(bytes.size()) != 8 * count) throw std::invalid_argument("the words have the wrong size");
            std::memcpy(words, bytes.c_str(), size_t(8 * count));
        });
    } else {
        nb::gil_scoped_release release;
        std::mutex mutex;
        share((m + PIECE - 1) / PIECE, [&](std::atomic<int64_t>& next) {
            std::vector<spdp::OpenProposal> mine;
            for (int64_t from; (from = next++ * PIECE) < m;)
                draw_piece(table, given, from, std::min(m, from + PIECE), noisy, mine, [](uint64_t* words, int64_t count) {
                    if (!spdp::entropy(words, size_t(8 * count)))
                        throw std::runtime_error("the operating system gave no random bytes");
                });
            std::lock_guard<std::mutex> lock(mutex);
            open.insert(open.end(), mine.begin(), mine.end());
        });
    }
    nb::list listed;
    for (const auto& o : open) listed.append(nb::make_tuple(o.place, o.tail, o.negative, o.cell, o.magnitude));
    return listed;
}

template <uint32_t (spdp::StripTable::*Row)[spdp::COLUMNS]> nb::list row_of(const spdp::StripTable& table) {
    nb::list numbers;
    for (const uint32_t number : table.*Row) numbers.append(number);
    return numbers;
}

}  // namespace

// For threadpoolctl, which finds and calls these by name.
extern "C" NB_EXPORT int spdp_get_num_threads() { return threads; }
extern "C" NB_EXPORT void spdp_set_num_threads(int n) { threads = n < 1 ? 1 : n; }

NB_MODULE(_native, module) {
    module.attr("LATTICE_BITS") = int(spdp::LATTICE_BITS);
    module.attr("STATUS") = nb::make_tuple(int(spdp::OK), int(spdp::NOT_FINITE), int(spdp::NOT_SYMMETRIC),
                                           int(spdp::NOT_POSITIVE), int(spdp::NOT_CONVERGED));
    module.def("run", &run, "mode"_a, "x"_a, "status"_a, "out"_a.none() = nb::none(), "values"_a.none() = nb::none(),
               "codes"_a.none() = nb::none(), "weights"_a.none() = nb::none(), "center"_a.none() = nb::none(),
               "log_low"_a = 0.0, "log_high"_a = 0.0, "radius"_a = 1.0, "slack"_a = 0.0, "chart"_a = 0,
               "rows"_a.none() = nb::none(), "congruence"_a.none() = nb::none(), "exponent"_a = 0);
    module.def("carry", &carry, "y"_a, "congruence"_a, "exponent"_a, "status"_a, "out"_a);
    module.attr("CARRIED_UP_TO") = int(spdp::SIDE_BY_SIDE);
    module.def("run_vectors", &run_vectors, "y"_a, "center"_a, "inverse"_a, "radius"_a = 1.0, "absolute"_a = false,
               "total"_a.none() = nb::none(), "distance"_a.none() = nb::none(), "codes"_a.none() = nb::none());
    module.def("run_products", &run_products, "y"_a, "center"_a, "inverse"_a, "radius"_a, "total"_a);
    module.def("run_counts", &run_counts, "y"_a, "center"_a, "inverse"_a, "edges"_a, "total"_a);
    module.def("add_rows", &add_rows, "q"_a, "rows"_a, "out"_a);
    module.def("rotate", &rotate, "y"_a, "center"_a, "axes"_a, "out"_a);
    module.def("charts", [] {
        nb::list list;
        for (const auto& name : chart_names()) list.append(nb::str(name.c_str()));
        return list;
    });
    nb::class_<spdp::StripTable>(module, "StripTable")
        .def("__init__", [](spdp::StripTable* table, double scale, uint32_t bits) {
            spdp::StripTable made;
            if (!spdp::make_strips(scale, bits, made)) throw std::invalid_argument("no table for this scale");
            new (table) spdp::StripTable(made);
        }, "scale"_a, "bits"_a = 32)
        .def_ro("scale", &spdp::StripTable::scale)
        .def_ro("bits", &spdp::StripTable::bits)
        .def_ro("width", &spdp::StripTable::width)
        .def_ro("strips", &spdp::StripTable::strips)
        .def_ro("top", &spdp::StripTable::top)
        .def_ro("tail_strips", &spdp::StripTable::tail_strips)
        .def_prop_ro("height", &row_of<&spdp::StripTable::height>)
        .def_prop_ro("sure", &row_of<&spdp::StripTable::sure>)
        .def_prop_ro("own", &row_of<&spdp::StripTable::own>)
        .def_prop_ro("other", &row_of<&spdp::StripTable::other>)
        .def_prop_ro("shift", &row_of<&spdp::StripTable::shift>);
    module.def("draw_gaussian", &draw_gaussian, "table"_a, "totals"_a, "out"_a, "read"_a.none() = nb::none());
    module.def("strip_weight", &spdp::strip_weight, "z"_a, "scale"_a);
    uint64_t word;
    module.attr("HAS_ENTROPY") = spdp::entropy(&word, sizeof word);  // whether this build can ask the system itself
    module.def("get_num_threads", [] { return threads.load(); });
    module.def("set_num_threads", &spdp_set_num_threads);
    module.def("instruction_set", [] { return chosen.load()->name; });
    module.def("instruction_sets", [] {
        nb::list list;
        for (const auto* set : instruction_sets()) list.append(nb::str(set->name));
        return list;
    });
    // For tests: the other instruction sets this machine has.
    module.def("set_instruction_set", [](const std::string& name) {
        for (const auto* set : instruction_sets())
            if (name == set->name) return chosen.store(set);
        throw std::invalid_argument("no such instruction set here: " + name);
    });
}
