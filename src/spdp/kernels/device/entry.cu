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

constexpr int MOST_REACHES = 4;

// Rows in turn, each seen by all of its lanes.
template <class Each> FN void for_rows(const Rows& rows, Each each) {
    const Int stride = Int(gridDim.x) * blockDim.x / rows.lanes;
    Int i = (Int(blockIdx.x) * blockDim.x + threadIdx.x) / rows.lanes;
#ifdef SPDP_D
    for (Raw now(rows, i); i < rows.m; i += stride) {
        const Raw next(rows, i + stride);  // on its way meanwhile
        each(Row(rows, now), i);
        now = next;
    }
#else
    for (; i < rows.m; i += stride) each(Row(rows, i), i);
#endif
}

extern "C" __global__ void row_norms(Int m, int d, const double* y, const double* parameters, int lanes, double* out) {
    const Rows rows(m, d, y, parameters, lanes);
    for_rows(rows, [&](const Row& row, Int i) {
        const double norm = row_norm(row);
        if (rows.lane == 0) out[i] = norm;
    });
}

extern "C" __global__ void row_codes(Int m, int d, const double* y, const double* parameters, int lanes, double radius,
                                     Int* codes) {
    const Rows rows(m, d, y, parameters, lanes);
    for_rows(rows, [&](const Row& row, Int i) {
        const RowCode code(row, radius);
        FOR_COORDINATES(rows, p, j) codes[i * d + j] = code(p, j);
    });
}

// The same, divided toward zero, as numbers that can be multiplied.
extern "C" __global__ void row_factors(Int m, int d, const double* y, const double* parameters, int lanes, double radius,
                                       int divisor, double* out) {
    const Rows rows(m, d, y, parameters, lanes);
    for_rows(rows, [&](const Row& row, Int i) {
        const RowCode code(row, radius);
        FOR_COORDINATES(rows, p, j) out[i * d + j] = double(code(p, j) / divisor);
    });
}

// Each lane adds up its columns: in registers, or in shared memory side by side with the others of its warp, if that holds them.
extern "C" __global__ void row_sums(Int m, int d, const double* y, const double* parameters, int lanes, double radius,
                                    int absolute, int kept, Int* sums) {
    extern __shared__ Int shared_sums[];
    const Rows rows(m, d, y, parameters, lanes);
    const int together = WARP / lanes, slot = threadIdx.x % WARP / lanes;
    Int* mine = shared_sums + threadIdx.x / WARP * (d * together) + slot;
#ifdef SPDP_D
    Int own[Rows::EACH] = {};
#else
    if (kept) FOR_COORDINATES(rows, p, j) mine[j * together] = 0;
#endif
    for_rows(rows, [&](const Row& row, Int i) {
        const RowCode code(row, radius);
        FOR_COORDINATES(rows, p, j) {
            const int q = code(p, j), size = absolute && q < 0 ? -q : q;
#ifdef SPDP_D
            own[p] += size;
#else
            if (kept)
                mine[j * together] += size;
            else
                add_to(sums + j, size);
#endif
        }
    });
#ifdef SPDP_D
    FOR_COORDINATES(rows, p, j) mine[j * together] = own[p];
#endif
    if (!kept) return;
    __syncthreads();
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        Int sum = 0;
        for (int warp = 0; warp < blockDim.x / WARP; ++warp)
            for (int t = 0; t < together; ++t) sum += shared_sums[(warp * d + j) * together + t];
        add_to(sums + j, sum);
    }
}

// --- queries of the search, each in one pass -------------------------------------------------------------------------------

extern "C" __global__ void row_distances(Int m, int d, const double* y, const double* parameters, int lanes, double cap,
                                         Int* sum) {
    const Rows rows(m, d, y, parameters, lanes);
    Int mine = 0;
    for_rows(rows, [&](const Row& row, Int i) {
        const Int units = distance_units(row_norm(row), cap);
        if (rows.lane == 0) mine += units;
    });
    add_warp(sum, mine);
}

// Edges stand behind the other parameters. A block counts in 32 bits: it sees fewer rows than that.
extern "C" __global__ void row_counts(Int m, int d, const double* y, const double* parameters, int lanes, int edges,
                                      Int* counts) {
    extern __shared__ unsigned tally[];
    const Rows rows(m, d, y, parameters, lanes);
    for (int t = threadIdx.x; t <= edges; t += blockDim.x) tally[t] = 0;
    __syncthreads();
    for_rows(rows, [&](const Row& row, Int i) {
        const double norm = row_norm(row);
        if (rows.lane == 0) atomicAdd(tally + interval(norm, parameters + 2 * d, edges), 1u);
    });
    __syncthreads();
    for (int t = threadIdx.x; t <= edges; t += blockDim.x)
        if (tally[t]) add_to(counts + t, tally[t]);
}

// Reaches stand behind the other parameters, four numbers each.
extern "C" __global__ void row_excess(Int m, int d, const double* y, const double* parameters, int lanes, double radius,
                                      int reaches, Int* sums) {
    const Rows rows(m, d, y, parameters, lanes);
    const Reach* all = reinterpret_cast<const Reach*>(parameters + 2 * d);
    Int mine[MOST_REACHES] = {};
    for_rows(rows, [&](const Row& row, Int i) {
        const Lengths at = row_lengths(row);
        if (rows.lane) return;
#pragma unroll
        for (int r = 0; r < MOST_REACHES; ++r)
            if (r < reaches) mine[r] += excess_units(at, radius, all[r]);
    });
#pragma unroll
    for (int r = 0; r < MOST_REACHES; ++r)
        if (r < reaches) add_warp(sums + r, mine[r]);
}

// `room` has d numbers for each thread. With low = high only the ball counts.
extern "C" __global__ void row_edges(Int m, int d, const double* y, const double* parameters, int k, double radius, double low,
                                     double high, double* room, Int* count) {
    const Rows rows(m, d, y, parameters);
    const Int thread = Int(blockIdx.x) * blockDim.x + threadIdx.x;
    Int mine = 0;
    for (Int i = thread; i < m; i += Int(gridDim.x) * blockDim.x) {
        const bool inside = row_norm(Row(rows, i)) < radius;
        mine += !(inside && (low == high || eigenvalues_between(y + i * d, k, low, high, room + thread * d)));
    }
    add_warp(count, mine);
}

// (y - center) axes for few coordinates, one thread per row; a warp brings its rows in and out together.
#if defined(SPDP_D) && SPDP_D <= 24
constexpr int FEW_THREADS = 64;

extern "C" __global__ void __launch_bounds__(FEW_THREADS)
    few_turns(Int m, const double* y, const double* center, const double* axes, double* out) {
    constexpr int D = SPDP_D, ROW = D | 1;
    __shared__ double right[D][D], home[D];
    __shared__ double stage[FEW_THREADS * ROW];
    const int lane = threadIdx.x % WARP;
    double* rows = stage + threadIdx.x / WARP * (WARP * ROW);
    for (int t = threadIdx.x; t < D * D; t += blockDim.x) right[t / D][t % D] = axes[t];
    for (int t = threadIdx.x; t < D; t += blockDim.x) home[t] = center[t];
    __syncthreads();
    for (Int i = Int(blockIdx.x) * blockDim.x + threadIdx.x; i - lane < m; i += Int(gridDim.x) * blockDim.x) {
        const Int first = (i - lane) * D, left = (m - (i - lane)) * D;
        const int count = left < WARP * D ? int(left) : WARP * D;
#pragma unroll
        for (int t = 0; t < D; ++t) {
            const int at = lane + t * WARP;
            if (at < count) rows[at / D * ROW + at % D] = y[first + at];
        }
        __syncwarp();
        double z[D];
#pragma unroll
        for (int j = 0; j < D; ++j) z[j] = rows[lane * ROW + j] - home[j];
#pragma unroll 4
        for (int l = 0; l < D; ++l) {
            double sum = 0.0;
#pragma unroll
            for (int j = 0; j < D; ++j) sum = fma(z[j], right[j][l], sum);
            rows[lane * ROW + l] = sum;
        }
        __syncwarp();
#pragma unroll
        for (int t = 0; t < D; ++t) {
            const int at = lane + t * WARP;
            if (at < count) out[first + at] = rows[at / D * ROW + at % D];
        }
        __syncwarp();
    }
}
#endif

// c += a b for 16 x 8 and 8 x 8 numbers of a warp. Of a, a lane has rows lane / 4 (+ 8) and columns lane % 4 (+ 4); of b, rows
// lane % 4 (+ 4) of column lane / 4; of c, two columns from lane % 4 * 2 of rows lane / 4 (+ 8).
FN void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int t = 0; t < 8; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const double left = __shfl_sync(0xffffffffu, a[t / 4 * 2 + i / 2], lane / 4 * 4 + t % 4);
            c[i] = fma(left, __shfl_sync(0xffffffffu, b[t / 4], (lane % 4 * 2 + i % 2) * 4 + t % 4), c[i]);
        }
#endif
}

// To shared memory, while others work; nothing but zero where there is nothing.
FN void fetch(double* to, const double* from, bool there) {
#if __CUDA_ARCH__ >= 800
    const unsigned at = unsigned(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(there ? 8 : 0));
#else
    *to = there ? *from : 0.0;
#endif
}
template <int BUT> FN void fetched() {  // but for the last ones
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(BUT));
#endif
    __syncthreads();
}
FN void fetching() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}

constexpr int TILE_ROWS = 64, TILE_COLUMNS = 48, DEPTH = 16, GAP = 4;  // a gap, so that lanes meet in no bank

// A depth of 16 of the product of a tile: rows of y, columns of the axes, and what is to be taken off y.
struct Slice {
    double left[TILE_ROWS][DEPTH + GAP], right[DEPTH][TILE_COLUMNS + GAP], home[DEPTH];

    FN void fill(Int first, int across, int from, Int m, int d, const double* y, const double* center, const double* axes) {
#pragma unroll
        for (int t = threadIdx.x; t < DEPTH * TILE_ROWS; t += TILE_ROWS) {
            const int j = from + t % DEPTH;
            const Int i = first + t / DEPTH;
            const bool there = i < m && j < d;
            fetch(&left[t / DEPTH][t % DEPTH], there ? y + i * d + j : y, there);
        }
#pragma unroll
        for (int t = threadIdx.x; t < DEPTH * TILE_COLUMNS; t += TILE_ROWS) {
            const int l = from + t / TILE_COLUMNS, column = t % TILE_COLUMNS, c = across + column;
            const int place = column / 8 * 8 + column % 4 * 2 + column / 4 % 2;  // neighbours of the sums are neighbours' then
            const bool there = l < d && c < d;
            fetch(&right[t / TILE_COLUMNS][place], there ? axes + Int(l) * d + c : axes, there);
        }
        const int j = threadIdx.x;
        if (j < DEPTH) fetch(&home[j], from + j < d ? center + from + j : center, from + j < d);
        fetching();
    }
};

// (y - center) axes: each row's sums are taken in one order, whatever its place among the others.
extern "C" __global__ void __launch_bounds__(TILE_ROWS, 6)
    row_turns(Int m, int d, const double* y, const double* center, const double* axes, double* out) {
    __shared__ Slice slices[2];
    constexpr int DOWN = WARP / 16, ALONG = TILE_COLUMNS / 8;  // parts of 16 x 8 of a warp
    const Int first = Int(blockIdx.x) * TILE_ROWS;
    const int across = blockIdx.y * TILE_COLUMNS, lane = threadIdx.x % WARP, top = threadIdx.x - lane;
    double sums[DOWN][ALONG][4] = {};
    slices[0].fill(first, across, 0, m, d, y, center, axes);
    for (int from = 0, turn = 0; from < d; from += DEPTH, turn ^= 1) {
        if (from + DEPTH < d) {
            slices[turn ^ 1].fill(first, across, from + DEPTH, m, d, y, center, axes);
            fetched<1>();
        } else {
            fetched<0>();
        }
        const Slice& now = slices[turn];
#pragma unroll
        for (int j = 0; j < DEPTH; j += 8) {
            double a[DOWN][4], b[ALONG][2];
#pragma unroll
            for (int r = 0; r < DOWN; ++r)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int at = j + lane % 4 + i / 2 * 4;
                    a[r][i] = now.left[top + 16 * r + lane / 4 + i % 2 * 8][at] - now.home[at];
                }
#pragma unroll
            for (int c = 0; c < ALONG; ++c)
#pragma unroll
                for (int i = 0; i < 2; ++i) b[c][i] = now.right[j + lane % 4 + 4 * i][8 * c + lane / 4];
#pragma unroll
            for (int r = 0; r < DOWN; ++r)
#pragma unroll
                for (int c = 0; c < ALONG; ++c) multiply(sums[r][c], a[r], b[c]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < DOWN; ++r)
#pragma unroll
        for (int c = 0; c < ALONG; ++c)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const Int row = first + top + 16 * r + lane / 4 + i / 2 * 8;
                const int column = across + 8 * c + lane % 4 + i % 2 * 4;
                if (row < m && column < d) out[row * d + column] = sums[r][c][i];
            }
}

#endif
