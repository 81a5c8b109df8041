// A few threads per matrix: T lanes hold R rows each of G = L V in registers (row lane + T r), every column in all of them.
// In a round of one-sided Jacobi, lane p finds the rotation of the p-th pair of neighbours from the lanes' parts of their
// dot product, which meet in shared memory. On the host one thread plays all lanes in turn; the arithmetic is the same.
#pragma once

namespace spdp {

#if HOST
#define LANES for (int lane = 0; lane < T; ++lane)
#define MY state[lane]
#else
#define LANES if (on)
#define MY state[0]
#endif

template <int K, int T, int R, bool BLOCK> struct Group {
    static constexpr int D = K * (K + 1) / 2, LD = K | 1, TP = T | 1, P = K / 2;
    static constexpr int AHEAD = 8;  // loads on their way at once
    static constexpr int TABLE = (K * (LD > TP ? LD : TP) + 1) / 2 * 2;
    // shared, for one matrix; neighbours in a warp begin where this one's lanes end, counted in banks
    static constexpr int NEEDED = TABLE + 2 * P + 5 * K + 3 * T;
    static constexpr int DOUBLES = NEEDED + (T % 16 - NEEDED % 16 + 16) % 16;
    struct alignas(T % 2 ? 8 : 16) Angle {
        double c, s;
    };
    struct State {
        double g[R][K], sum[R];
    };
    double *table, *norm, *column, *weight, *part;
    Angle* angles;
    int *flags, *rank, *order;
    int lane;
    bool on;
#if HOST
    State state[T];
#else
    State state[1];
#endif

    FN Group(double* shared, int lane_, bool on_) : lane(lane_), on(on_) {
        table = shared;
        angles = reinterpret_cast<Angle*>(table + TABLE);
        norm = table + TABLE + 2 * P;
        column = norm + K;
        weight = column + 2 * K;
        part = weight + K;
        flags = reinterpret_cast<int*>(part + 2 * T);
        rank = flags + 2 * T;
        order = rank + K;
    }
    FN void sync() const {
#if !HOST
        if (BLOCK)
            __syncthreads();
        else
            __syncwarp();
#endif
    }
    // whether none of the matrices that share a warp needs more
    FN bool nobody(bool needs) const {
#if HOST
        return !needs;
#else
        return BLOCK ? !needs : __all_sync(0xffffffffu, !needs);
#endif
    }
    FN double& entry(int i, int j) const { return table[i * LD + j]; }
    FN int most(const int* of) const {
        int top = 0;
        for (int l = 0; l < T; ++l) top = larger(top, of[l]);
        return top;
    }

    // Rows and columns by falling diagonal entries, whatever they are: rotations then have less to do.
    template <class Real> FN void sort(const Real* a) {
        LANES {
            for (int j = lane; j < K; j += T) {
                const int mine = high(wide(a[j * (K + 1)]));
                int before = 0;
                for (int m = 0; m < K; ++m) {
                    const int other = high(wide(a[m * (K + 1)]));
                    before += other > mine || (other == mine && m < j);
                }
                rank[j] = before;
                order[before] = j;
            }
        }
        sync();
    }
    FN int place(int i, int j) const {  // in the record's vector, of an entry in the table
        const int a = order[i], b = order[j];
        return place_of(K, a < b ? a : b, a < b ? b : a);
    }

    // The matrix as it is stored, into shared memory; its status so far and its largest upper word.
    template <class Real> FN int load(const Real* a, int& top) {
        sort(a);
        LANES {
            int word = 0;
            for (int from = lane; from < K * K; from += AHEAD * T) {
                double x[AHEAD];
#pragma unroll
                for (int n = 0; n < AHEAD; ++n) x[n] = from + n * T < K * K ? wide(a[from + n * T]) : 0.0;
#pragma unroll
                for (int n = 0; n < AHEAD; ++n) {
                    const int t = from + n * T;
                    if (t < K * K) entry(rank[t / K], rank[t % K]) = x[n];
                    word = larger(word, size_word(x[n]));
                }
            }
            flags[lane] = word;
        }
        sync();
        LANES {
            int word = 0;
            for (int t = lane; t < K * K; t += T) {
                const int i = t / K, j = t % K;
                if (j < i) word = larger(word, size_word(entry(i, j) - entry(j, i)));
            }
            flags[T + lane] = word;
        }
        sync();
        if (!on) return OK;
        top = most(flags);
        if (top >= 0x7ff00000) return NOT_FINITE;
        if (surely_symmetric<Real>(most(flags + T), top)) return OK;
        double gap = 0.0;
        for (int i = 0; i < K; ++i)
            for (int j = 0; j < i; ++j) gap = larger(fabs(entry(i, j) - entry(j, i)), gap);
        return gap <= Stored<Real>::symmetry * largest() ? OK : NOT_SYMMETRIC;
    }
    FN double largest() const {
        double big = 0.0;
        for (int i = 0; i < K; ++i)
            for (int j = 0; j < K; ++j) big = larger(fabs(entry(i, j)), big);
        return big;
    }

    FN void rows(double factor, double shifted) {
        LANES {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + T * r;
#pragma unroll
                for (int m = 0; m < K; ++m) {
                    MY.g[r][m] = i < K ? fma(0.5, entry(i, m), 0.5 * entry(m, i)) * factor : 0.0;
                    if (m == i) MY.g[r][m] += shifted;
                }
            }
        }
    }
    // Lower Cholesky factor in place; false where it breaks down. Lanes that do not try only keep step.
    FN bool factor(bool trying) {
        bool whole = true;
#pragma unroll
        for (int j = 0; j < K; ++j) {
            double* now = column + (j & 1) * K;
            if (trying) LANES {
#pragma unroll
                    for (int r = 0; r < R; ++r)
                        if (lane + T * r < K) now[lane + T * r] = MY.g[r][j];
                }
            sync();
            if (!trying) continue;
            const double pivot = now[j];
            whole &= pivot > 1e-290;
            const double root = inverse_root(whole ? pivot : 1.0), by = root * root;
            LANES {
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    const double f = MY.g[r][j] * by;
#pragma unroll
                    for (int m = j + 1; m < K; ++m) MY.g[r][m] = fma(-f, now[m], MY.g[r][m]);
                    MY.g[r][j] *= root;
                }
            }
        }
        if (trying) LANES {
#pragma unroll
                for (int r = 0; r < R; ++r)
#pragma unroll
                    for (int m = 0; m < K; ++m)
                        if (m > lane + T * r) MY.g[r][m] = 0.0;
            }
        return whole;
    }

    FN void norms(bool busy) {
        sync();
        if (busy) LANES {
#pragma unroll
                for (int j = 0; j < K; ++j) {
                    double sum = 0.0;
#pragma unroll
                    for (int r = 0; r < R; ++r) sum = fma(MY.g[r][j], MY.g[r][j], sum);
                    table[j * TP + lane] = sum;
                }
            }
        sync();
        if (busy) LANES {
                for (int j = lane; j < K; j += T) norm[j] = gathered(j);
            }
        sync();
    }
    FN double gathered(int j) const {
        double sum = 0.0, other = 0.0;
#pragma unroll
        for (int l = 0; l + 1 < T; l += 2) {
            sum += table[j * TP + l];
            other += table[j * TP + l + 1];
        }
        if (T % 2) sum += table[j * TP + T - 1];
        return sum + other;
    }

    template <int FIRST> FN void round(bool busy, int number) {
        constexpr int PAIRS = (K - FIRST) / 2, PASSES = (PAIRS + T - 1) / T;
        if (busy) LANES {
#pragma unroll
                for (int p = 0; p < PAIRS; ++p) {
                    double dot = 0.0;
#pragma unroll
                    for (int r = 0; r < R; ++r) dot = fma(MY.g[r][FIRST + 2 * p], MY.g[r][FIRST + 2 * p + 1], dot);
                    table[p * TP + lane] = dot;
                }
            }
        sync();
        if (busy) LANES {
                Turn by[PASSES];
                Seen all;
#pragma unroll
                for (int pass = 0; pass < PASSES; ++pass) {
                    const int p = lane + pass * T;
                    if (PASSES == 1 && p >= PAIRS) continue;
                    const int at = p < PAIRS ? p : lane;  // a pair again, not a branch: passes run side by side
                    Seen what;
                    by[pass] = turn(norm[FIRST + 2 * at], norm[FIRST + 2 * at + 1], gathered(at), what);
                    all.again |= what.again && p < PAIRS;
                    all.large |= what.large && p < PAIRS;
                }
#pragma unroll
                for (int pass = 0; pass < PASSES; ++pass) {
                    const int p = lane + pass * T;
                    double* n = norm + FIRST + 2 * p;
                    if (p >= PAIRS) continue;
                    const double a = n[0] + by[pass].w, b = n[1] - by[pass].w;
                    n[0] = b;
                    n[1] = a;
                    angles[p] = {by[pass].c, by[pass].s};
                }
                if (all.again) flags[0] = number;
                if (all.large) flags[1] = number;
            }
        sync();
        if (busy) LANES {
#pragma unroll
                for (int p = 0; p < PAIRS; ++p) {
                    const Angle by = angles[p];
                    constexpr int F = FIRST;
#pragma unroll
                    for (int r = 0; r < R; ++r) {
                        const double x = MY.g[r][F + 2 * p], z = MY.g[r][F + 2 * p + 1];
                        MY.g[r][F + 2 * p + 1] = fma(by.c, x, -(by.s * z));
                        MY.g[r][F + 2 * p] = fma(by.s, x, by.c * z);
                    }
                }
            }
    }
    // Rounds until K of them, which meet every pair once, have gone by since a pair last asked for more.
    FN void orthogonalise(bool busy) {
        if (busy) LANES if (lane == 0) flags[0] = flags[1] = 0;
        int number = 0;
        sync();
#pragma unroll 1
        for (int sweeps = 0; sweeps < MAX_SWEEPS; ++sweeps) {
            const bool anew = busy && (number == 0 || flags[1] > number - K);
            if (!nobody(anew)) norms(anew);
#pragma unroll 1
            for (int turned = 0; turned < (K + 1) / 2; ++turned) {
                round<0>(busy, ++number);
                round<1>(busy, ++number);
                busy = busy && number - flags[0] < K;
                if (nobody(busy)) return;
            }
        }
    }

    // The clipped logarithm's vector, as a matrix above the diagonal of the table; the status.
    template <class Real> FN int vector(const Real* a, const Job& job) {
        int top = 0, status = load(a, top);
        const Scale scale = scale_of(top);
        double shifted = 0.0, tolerance = 0.0;
        bool whole = false;
#pragma unroll 1
        for (int attempt = 0; attempt < 2; ++attempt) {
            bool trying = on && status == OK && !whole;
            if (attempt && trying) {  // not positive beyond rounding, if at all: a shift shows which
                const double big = largest() * scale.factor;
                tolerance = rank_tolerance<Real>(K, big, scale.shift);
                shifted = 2.0 * tolerance;
                trying = big > 0.0;
            }
            if (trying) rows(scale.factor, shifted);
            sync();
            const bool found = factor(trying);
            whole |= trying && found;
            if (nobody(on && status == OK && !whole)) break;
        }
        if (status == OK && !whole) status = NOT_POSITIVE;
        const bool use = on && status == OK;
        orthogonalise(use);
        norms(use);
        if (use) status = weigh(scale.shift, shifted, tolerance, job);
        sync();
        compose(use);
        return status;
    }
    FN int weigh(int shift, double shifted, double tolerance, const Job& job) {
        double least = norm[0], most_ = norm[0];
        if (shifted != 0.0)
            for (int j = 1; j < K; ++j) {
                least = smaller(least, norm[j]);
                most_ = larger(most_, norm[j]);
            }
        most_ -= shifted;
        LANES {
            for (int j = lane; j < K; j += T) {
                const double value = norm[j] - shifted;
                const double x = shifted != 0.0 ? larger(value, EPSILON * most_) : value;
                weight[j] = clipped_log(larger(x, 1e-300), shift, job) * inverse(norm[j]);
            }
        }
        const bool positive = most_ > 1e-13 * shifted && least - shifted >= -tolerance;
        return shifted == 0.0 || positive ? int(OK) : int(NOT_POSITIVE);
    }
    FN void compose(bool use) {
        if (use) LANES {
#pragma unroll
                for (int r = 0; r < R; ++r)
                    if (lane + T * r < K)
#pragma unroll
                        for (int p = 0; p < K; ++p) {
                            entry(lane + T * r, p) = MY.g[r][p];
                            MY.g[r][p] *= weight[p];
                        }
            }
        sync();
#pragma unroll 1
        for (int j = 0; j < K; ++j) {
            if (use) LANES {
#pragma unroll
                    for (int r = 0; r < R; ++r) {
                        double sum = 0.0;
#pragma unroll
                        for (int p = 0; p < K; ++p) sum = fma(MY.g[r][p], entry(j, p), sum);
                        MY.sum[r] = sum;
                    }
                }
            sync();
            if (use) LANES {
#pragma unroll
                    for (int r = 0; r < R; ++r) {
                        const int i = lane + T * r;
                        if (i < K && i >= j) entry(j, i) = i == j ? MY.sum[r] : MY.sum[r] * ROOT2;
                    }
                }
        }
        sync();
    }

    FN void store_vector(double* out, bool usable) {
        LANES {
            for (int t = lane; t < K * K; t += T) {
                const int i = t / K, j = t % K;
                if (j >= i) out[place(i, j)] = usable ? entry(i, j) : 0.0;
            }
        }
    }
    // Lattice point in place of the vector, the rule of the lattice enforced in integers.
    FN void encode(const Job& job, bool use) {
        const double by = 1.0 / job.radius;
        if (use) LANES {
                double sum = 0.0;
                for (int t = lane; t < K * K; t += T) {
                    const int i = t / K, j = t % K;
                    if (j < i) continue;
                    const double z = (entry(i, j) - job.center[place(i, j)]) * by;
                    entry(i, j) = z;
                    sum = fma(z, z, sum);
                }
                part[lane] = sum;
            }
        sync();
        double square = 0.0, factor = LATTICE;
        if (use)
            for (int l = 0; l < T; ++l) square += part[l];
        if (square > 1.0) factor = LATTICE * inverse_root(square);
        if (!(square < 0x1p1000)) factor = 0.0;  // not a finite vector: the centre
        sync();
        double less = 1.0;
        for (bool first = true;; first = false) {
            Word* words = reinterpret_cast<Word*>(part);
            if (use) LANES {
                    Squares mine;
                    for (int t = lane; t < K * K; t += T) {
                        const int i = t / K, j = t % K;
                        if (j < i) continue;
                        const double z = entry(i, j);
                        const int q = !first ? shrunk(int(z), less) : factor == 0.0 ? 0 : code(z, factor);
                        entry(i, j) = q;
                        mine.add(q);
                    }
                    words[2 * lane] = mine.upper;
                    words[2 * lane + 1] = mine.lower;
                }
            sync();
            Squares all;
            if (use)
                for (int l = 0; l < T; ++l) {
                    all.upper += words[2 * l];
                    all.lower += words[2 * l + 1];
                }
            const bool over = all.over();
            if (nobody(over)) break;
            less = over ? shrinkage(all) : 1.0;
            sync();
        }
    }
    FN void store_code(Int* to, bool usable) {
        LANES {
            for (int t = lane; t < K * K; t += T) {
                const int i = t / K, j = t % K;
                if (j >= i) to[place(i, j)] = usable ? Int(entry(i, j)) : 0;
            }
        }
    }
    FN void add_code(Int* to) {
        LANES {
            for (int t = lane; t < K * K; t += T) {
                const int i = t / K, j = t % K;
                if (j < i) continue;
#if HOST
                to[place(i, j)] += Int(entry(i, j));
#else
                atomicAdd(reinterpret_cast<Word*>(to + place(i, j)), Word(Int(entry(i, j))));
#endif
            }
        }
    }

    // All of one record.
    template <int MODE, class Real> FN void record(const Real* x, Int at, const Job& job, Int copy) {
        const int status = vector(x + at * (K * K), job);
        const bool use = on && status == OK;
        if (MODE == LOGVEC) {
            if (on) store_vector(job.out + at * D, use);
        } else {
            encode(job, use);
            if (MODE == ENCODE && on) store_code(job.codes + at * D, use);
            if (MODE == LATTICE_SUM && use) add_code(job.codes + copy * D);
        }
        if (on && (HOST || lane == 0)) job.status[at] = Byte(status);
        sync();
    }
};

// Lanes of one matrix, and the rows each holds: parts of a warp, or a block.
template <int K, int T> struct Shape {
    static constexpr bool block = T > 32;
    static constexpr int together = block ? 1 : 32 / T;  // in a warp
    typedef Group<K, T, (K + T - 1) / T, block> Solver;
};

#undef LANES
#undef MY
}  // namespace spdp
