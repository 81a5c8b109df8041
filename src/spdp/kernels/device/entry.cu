// What is launched. SPDP_K, SPDP_LANES, SPDP_THREADS, SPDP_BLOCKS (kernels/launch.py), SPDP_MODE and SPDP_REAL say what the
// pass over matrices is compiled for; without them the passes over vectors are compiled.
namespace spdp {

constexpr int WARP = 32;

// The sum over a warp of an integer below 2^30 in size, exactly: in halves that 32 bits hold.
FN Int warp_sum(int q) {
#if __CUDA_ARCH__ >= 800
    const unsigned lower = __reduce_add_sync(0xffffffffu, unsigned(q) & 0xffffu);
    const int upper = __reduce_add_sync(0xffffffffu, q >> 16);
    return Int(upper) * 65536 + lower;
#else
    Int sum = q;
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
#endif
}
FN void add_to(Int* to, Int value) { atomicAdd(reinterpret_cast<Word*>(to), Word(value)); }
FN void add_warp(Int* to, Int value) {  // the sum over a warp, of numbers of any size
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % WARP == 0) add_to(to, value);
}

// One row of each lane, written by its warp together: neighbours in memory go out at once. `stage` holds a warp's rows.
template <int D> FN void store_rows(double* stage, const double (&row)[D], double* out, Int first, Int m) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int j = 0; j < D; ++j) stage[lane * D + j] = row[j];
    __syncwarp();
    const Int left = (m - first) * D;
    const int count = left < WARP * D ? int(left) : WARP * D;
    for (int t = lane; t < count; t += WARP) out[first * D + t] = stage[t];
    __syncwarp();
}

}  // namespace spdp

using namespace spdp;

#ifdef SPDP_K

#if SPDP_LANES == 1

extern "C" __global__ void __launch_bounds__(SPDP_THREADS, SPDP_BLOCKS)
    records(const SPDP_REAL* x, Int m, double log_low, double log_high, double radius, const double* center, double* out,
            Int* codes, Byte* status, int copies) {
    constexpr int K = SPDP_K, D = K * (K + 1) / 2, OWNED = (D + WARP - 1) / WARP;
    constexpr bool FEW = D <= 6;
    const Job job = {m, log_low, log_high, radius, center, out, codes, status, copies};
    __shared__ double home[D], stage[SPDP_MODE == LOGVEC ? SPDP_THREADS * D : 1];
    for (int j = threadIdx.x; j < D; j += blockDim.x) home[j] = center[j];
    __syncthreads();
    const int lane = threadIdx.x % WARP;
    const Int stride = Int(gridDim.x) * blockDim.x;
    Int sums[FEW ? D : OWNED] = {};
    for (Int at = Int(blockIdx.x) * blockDim.x + threadIdx.x; at - lane < m; at += stride) {
        double y[D];
        int q[D];
        const int code = at < m ? Small<K>::vector(x + at * (K * K), job, y) : int(NOT_FINITE);
        if (at < m) status[at] = Byte(code);
        if (SPDP_MODE == LOGVEC) {
            if (code != OK)
#pragma unroll
                for (int j = 0; j < D; ++j) y[j] = 0.0;
            store_rows<D>(stage + threadIdx.x / WARP * (WARP * D), y, out, at - lane, m);
            continue;
        }
        if (code == OK)
            encode<D>(y, job, home, q);
        else
#pragma unroll
            for (int j = 0; j < D; ++j) q[j] = 0;
        if (SPDP_MODE == ENCODE) {
            if (at < m)
#pragma unroll
                for (int j = 0; j < D; ++j) codes[at * D + j] = q[j];
        } else if (FEW) {
#pragma unroll
            for (int j = 0; j < D; ++j) sums[FEW ? j : 0] += q[j];
        } else {
#pragma unroll
            for (int j = 0; j < D; ++j) {
                const Int sum = warp_sum(q[j]);
                if (lane == j % WARP) sums[FEW ? 0 : j / WARP] += sum;
            }
        }
    }
    if (SPDP_MODE != LATTICE_SUM) return;
    Int* to = codes + Int(blockIdx.x % copies) * D;
    if (FEW) {
#pragma unroll
        for (int j = 0; j < D; ++j) {
            add_warp(to + j, sums[FEW ? j : 0]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < OWNED; ++i)
            if (i * WARP + lane < D) add_to(to + i * WARP + lane, sums[FEW ? 0 : i]);
    }
}

#else

extern "C" __global__ void __launch_bounds__(SPDP_THREADS, SPDP_BLOCKS)
    records(const SPDP_REAL* x, Int m, double log_low, double log_high, double radius, const double* center, double* out,
            Int* codes, Byte* status, int copies) {
    typedef Shape<SPDP_K, SPDP_LANES> S;
    constexpr int T = SPDP_LANES;
    extern __shared__ __align__(16) double shared[];
    const Job job = {m, log_low, log_high, radius, center, out, codes, status, copies};
    const int thread = S::block ? threadIdx.x : threadIdx.x % WARP, warps = S::block ? 1 : blockDim.x / WARP;
    const int warp = S::block ? 0 : threadIdx.x / WARP, slot = thread / T, lane = thread % T;
    const Int stride = Int(gridDim.x) * warps * S::together;
    const Int copy = (blockIdx.x * warps + warp) % copies;
    const int place = slot < S::together ? slot : 0;
    double* mine = shared + (warp * S::together + place) * S::Solver::DOUBLES;
    for (Int first = (Int(blockIdx.x) * warps + warp) * S::together; first < m; first += stride) {
        const bool on = slot < S::together && first + slot < m;
        typename S::Solver solver(mine, lane, on);
        solver.template record<SPDP_MODE>(x, first + slot, job, copy);
    }
}

#endif

#else

constexpr int TILE = 64, DEPTH = 16;

extern "C" __global__ void row_norms(Int m, int d, const double* y, const double* parameters, double* out) {
    const Rows rows(m, d, y, parameters);
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x)
        out[i] = row_norm(rows, y + i * d);
}

extern "C" __global__ void row_codes(Int m, int d, const double* y, const double* parameters, double radius, Int* codes) {
    const Rows rows(m, d, y, parameters);
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x) {
        const RowCode code(rows, y + i * d, radius);
        for (int j = 0; j < d; ++j) codes[i * d + j] = code(j);
    }
}

// The same, divided toward zero, as numbers that can be multiplied.
extern "C" __global__ void row_factors(Int m, int d, const double* y, const double* parameters, double radius, int divisor,
                                       double* out) {
    const Rows rows(m, d, y, parameters);
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x) {
        const RowCode code(rows, y + i * d, radius);
        for (int j = 0; j < d; ++j) out[i * d + j] = double(code(j) / divisor);
    }
}

// Sums over a warp's rows are kept in shared memory, where it holds them: column j is that of lane j % WARP.
extern "C" __global__ void row_sums(Int m, int d, const double* y, const double* parameters, double radius, int absolute,
                                    int kept, Int* sums) {
    extern __shared__ Int shared_sums[];
    const Rows rows(m, d, y, parameters);
    const int lane = threadIdx.x % WARP;
    Int* mine = shared_sums + threadIdx.x / WARP * d;
    if (kept)
        for (int j = lane; j < d; j += WARP) mine[j] = 0;
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i - lane < m; i += Int(gridDim.x) * blockDim.x) {
        const bool here = i < m;
        const RowCode code(rows, y + (here ? i : 0) * d, radius);
        for (int j = 0; j < d; ++j) {
            const int q = here ? code(j) : 0;
            const Int sum = warp_sum(absolute && q < 0 ? -q : q);
            if (lane != j % WARP) continue;
            if (kept)
                mine[j] += sum;
            else
                add_to(sums + j, sum);
        }
    }
    if (kept)
        for (int j = lane; j < d; j += WARP) add_to(sums + j, mine[j]);
}

// --- queries of the search, each in one pass -------------------------------------------------------------------------------

extern "C" __global__ void row_distances(Int m, int d, const double* y, const double* parameters, double cap, Int* sum) {
    const Rows rows(m, d, y, parameters);
    Int mine = 0;
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x)
        mine += distance_units(row_norm(rows, y + i * d), cap);
    add_warp(sum, mine);
}

// Edges stand behind the other parameters.
extern "C" __global__ void row_counts(Int m, int d, const double* y, const double* parameters, int edges, Int* counts) {
    extern __shared__ Int tally[];
    const Rows rows(m, d, y, parameters);
    for (int t = threadIdx.x; t <= edges; t += blockDim.x) tally[t] = 0;
    __syncthreads();
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x)
        add_to(tally + interval(row_norm(rows, y + i * d), parameters + 2 * d, edges), 1);
    __syncthreads();
    for (int t = threadIdx.x; t <= edges; t += blockDim.x)
        if (tally[t]) add_to(counts + t, tally[t]);
}

constexpr int MOST_REACHES = 4;

// Reaches stand behind the other parameters, three numbers each.
extern "C" __global__ void row_excess(Int m, int d, const double* y, const double* parameters, double radius, int reaches,
                                      Int* sums) {
    const Rows rows(m, d, y, parameters);
    const Reach* all = reinterpret_cast<const Reach*>(parameters + 2 * d);
    Int mine[MOST_REACHES] = {};
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += Int(gridDim.x) * blockDim.x) {
        const Lengths at = row_lengths(rows, y + i * d);
#pragma unroll
        for (int r = 0; r < MOST_REACHES; ++r)
            if (r < reaches) mine[r] += excess_units(at, radius, all[r]);
    }
#pragma unroll
    for (int r = 0; r < MOST_REACHES; ++r)
        if (r < reaches) add_warp(sums + r, mine[r]);
}

// Rows of which every so many-th is looked at; `room` has d numbers for each thread. With low = high only the ball counts.
extern "C" __global__ void row_edges(Int m, int d, const double* y, const double* parameters, Int stride, int k, double radius,
                                     double low, double high, double* room, Int* count) {
    const Rows rows(m, d, y, parameters);
    const Int thread = Int(blockIdx.x) * blockDim.x + threadIdx.x;
    Int mine = 0;
    for (Int i = thread; i < m; i += Int(gridDim.x) * blockDim.x) {
        const double* row = y + i * stride * d;
        const bool inside = row_norm(rows, row) < radius;
        mine += !(inside && (low == high || eigenvalues_between(row, k, low, high, room + thread * d)));
    }
    add_warp(count, mine);
}

// The same for few coordinates, one thread per row.
#ifdef SPDP_D
extern "C" __global__ void few_turns(Int m, const double* y, const double* center, const double* axes, double* out) {
    constexpr int D = SPDP_D;
    __shared__ double right[D][D], home[D], stage[SPDP_THREADS * D];
    const int lane = threadIdx.x % WARP;
    for (int t = threadIdx.x; t < D * D; t += blockDim.x) right[t / D][t % D] = axes[t];
    for (int t = threadIdx.x; t < D; t += blockDim.x) home[t] = center[t];
    __syncthreads();
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i - lane < m; i += Int(gridDim.x) * blockDim.x) {
        double z[D], turned[D];
#pragma unroll
        for (int j = 0; j < D; ++j) z[j] = i < m ? y[i * D + j] - home[j] : 0.0;
#pragma unroll
        for (int l = 0; l < D; ++l) {
            double sum = 0.0;
#pragma unroll
            for (int j = 0; j < D; ++j) sum = fma(z[j], right[j][l], sum);
            turned[l] = sum;
        }
        store_rows<D>(stage + threadIdx.x / WARP * (WARP * D), turned, out, i - lane, m);
    }
}
#endif

// (y - center) axes: each row's sums run over j in order, whatever its place among the others.
extern "C" __global__ void __launch_bounds__(256)
    row_turns(Int m, int d, const double* y, const double* center, const double* axes, double* out) {
    __shared__ double left[DEPTH][TILE + 1], right[DEPTH][TILE];
    const Int first = Int(blockIdx.x) * TILE;
    const int across = blockIdx.y * TILE, row = threadIdx.x / 16, column = threadIdx.x % 16;
    double sums[4][4] = {};
    for (int from = 0; from < d; from += DEPTH) {
        for (int t = threadIdx.x; t < DEPTH * TILE; t += 256) {
            const int j = from + t % DEPTH, l = from + t / TILE, c = across + t % TILE;
            const Int i = first + t / DEPTH;
            left[t % DEPTH][t / DEPTH] = i < m && j < d ? y[i * d + j] - center[j] : 0.0;
            right[t / TILE][t % TILE] = l < d && c < d ? axes[Int(l) * d + c] : 0.0;
        }
        __syncthreads();
        for (int j = 0; j < DEPTH; ++j)
#pragma unroll
            for (int a = 0; a < 4; ++a)
#pragma unroll
                for (int b = 0; b < 4; ++b) sums[a][b] = fma(left[j][row + 16 * a], right[j][column + 16 * b], sums[a][b]);
        __syncthreads();
    }
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const Int i = first + row + 16 * a;
            const int c = across + column + 16 * b;
            if (i < m && c < d) out[i * d + c] = sums[a][b];
        }
}

#endif
