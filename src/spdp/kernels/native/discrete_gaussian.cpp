// The discrete Gaussian by strips. What decides here is integers, and doubles beyond a proven margin: see privacy/discrete_gaussian.py.
#include "discrete_gaussian.hpp"

#include <cmath>
#include <limits>

#if defined(__linux__)
#include <cerrno>
#include <sys/random.h>
#endif

#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "the sampler's proof needs IEEE arithmetic: build without -ffast-math"
#endif

namespace spdp {
namespace {

static_assert(sizeof(1.0) == sizeof(double), "constants are doubles: build without -fsingle-precision-constant");
static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<double>::digits == 53, "doubles are binary64");

constexpr double MARGIN = 1.0 / (int64_t(1) << 40);  // relative; the error of a weight is below 2^-44
constexpr double LARGEST_EXPONENT = 32;              // for which that is proven
constexpr double LARGEST_SCALE = double(int64_t(1) << 60);
constexpr int64_t LEAST = std::numeric_limits<int64_t>::min(), MOST = std::numeric_limits<int64_t>::max();
constexpr double FACTORIALS[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600};

// exp(-g), 0 <= g <= LARGEST_EXPONENT, as 2^-n exp(f) with |f| < 0.347: Taylor's polynomial of degree 12.
double exp_minus(double g) {
    const double n = std::floor(g * 1.4426950408889634 + 0.5);
    const double f = n * 0.6931471805599453 - g;
    double sum = 1.0 / FACTORIALS[12];
    for (int k = 11; k >= 0; --k) sum = sum * f + 1.0 / FACTORIALS[k];
    return std::ldexp(sum, -int(n));
}

double weight(double z, double scale) {
    const double x = z / scale;
    return exp_minus(0.5 * x * x);
}

uint32_t surely_above(double level) { return uint32_t(level * (1 + MARGIN)) + 1; }
uint32_t surely_below(double level) { return uint32_t(level * (1 - MARGIN)); }

// Walker's alias table in integers: each column has room for 2^bits / COLUMNS cells, and is filled by its own strip's and,
// above them, by cells of one other strip. Every cell of every strip has one place.
void fill_columns(StripTable& t) {
    const uint64_t room = (uint64_t(1) << t.bits) >> COLUMN_BITS;
    uint64_t left[COLUMNS];
    int poor[COLUMNS], rich[COLUMNS], poors = 0, riches = 0;
    for (int i = 0; i < COLUMNS; ++i) {
        left[i] = t.height[i];
        if (left[i] < room)
            poor[poors++] = i;
        else
            rich[riches++] = i;
    }
    while (poors > 0) {
        const int i = poor[--poors], j = rich[riches - 1];
        left[j] -= room - left[i];
        t.own[i] = uint32_t(left[i]);
        t.other[i] = uint32_t(j);
        t.shift[i] = uint32_t(left[j] - left[i]);
        if (left[j] < room) {
            --riches;
            poor[poors++] = j;
        }
    }
    while (riches > 0) {
        const int i = rich[--riches];
        t.own[i] = uint32_t(room);
        t.other[i] = t.shift[i] = 0;
    }
}

// The sum, not the noise, ends at the ends of int64.
int64_t saturated(int64_t total, int64_t noise) {
    if (noise >= 0) return total > MOST - noise ? MOST : total + noise;
    return total < LEAST - noise ? LEAST : total + noise;
}

}  // namespace

double strip_weight(uint64_t z, double scale) { return weight(double(z), scale); }

bool make_strips(double scale, uint32_t bits, StripTable& t) {
    if (!(scale >= 1 && scale <= LARGEST_SCALE) || bits < 12 || bits > 32) return false;
    const int exponent = std::ilogb(scale);
    t = StripTable{};
    t.scale = scale;
    t.bits = bits;
    t.width = exponent > 4 ? uint32_t(exponent - 4) : 0;
    const double per_strip = std::ldexp(scale, -int(t.width));  // s/m, below 32
    const double cells = std::ldexp(1.0, int(bits));

    // Strips until the next would be less than a cell high, whatever C is.
    double w[COLUMNS], sum = 0;
    uint32_t n = 0;
    while ((w[n] = weight(n, per_strip)) * cells > sum) {
        sum += w[n];
        if (++n + 2 > COLUMNS) return false;
    }
    const double reach = n / per_strip;
    if (0.5 * reach * reach > LARGEST_EXPONENT) return false;
    t.strips = n;
    t.tail_strips = uint32_t(std::ceil(0.7 * per_strip * per_strip / n));
    const double top = std::floor((cells - n - 2.0 * t.tail_strips) / sum * (1 - 16 * MARGIN));
    t.top = uint32_t(top);
    if (top * w[n] * (1 + MARGIN) > 1) return false;

    uint64_t used = 0;
    for (uint32_t i = 0; i < n; ++i) {
        t.height[i] = surely_above(top * w[i]);
        t.sure[i] = surely_below(top * w[t.width > 0 ? i + 1 : i]);
        used += t.height[i];
    }
    t.height[n] = 2 * t.tail_strips;
    used += t.height[n];
    const uint64_t all = uint64_t(1) << bits;
    if (used > all) return false;
    t.height[n + 1] = uint32_t(all - used);
    fill_columns(t);
    return true;
}

int64_t propose(const StripTable& t, const uint64_t* words, int64_t proposals, const int64_t* totals, int64_t from, int64_t to,
                int64_t* out, std::vector<OpenProposal>& open) {
    const uint32_t skip = 32 + COLUMN_BITS - t.bits;
    const bool two = t.words() == 2;
    const uint64_t within = (uint64_t(1) << t.width) - 1;
    for (int64_t p = 0; p < proposals && from < to; ++p) {
        const uint64_t word = words[two ? 2 * p : p];
        const uint32_t column = uint32_t(word) & (COLUMNS - 1), v = uint32_t(word) >> skip;
        const bool own = v < t.own[column];
        const uint32_t i = own ? column : t.other[column];
        const uint32_t u = own ? v : v + t.shift[column];
        const bool negative = (word >> 32) & 1;
        const uint64_t offset = ((word >> 33) | (two ? words[2 * p + 1] << OFFSET_BITS : 0)) & within;
        const uint64_t z = (uint64_t(i) << t.width) + offset;
        if (u >= t.sure[i]) {
            if (i > t.strips) continue;  // void
            bool settled = false;
            if (i < t.strips && z == 0) {  // its level is C itself
                if (u >= t.top) continue;
                settled = true;
            } else if (i < t.strips) {
                const double level = t.top * weight(double(z), t.scale);
                if (u >= level * (1 + MARGIN)) continue;
                settled = u + 1.0 <= level * (1 - MARGIN);
            }
            if (!settled) {
                open.push_back({from, i == t.strips, negative, u, i == t.strips ? offset : z});
                ++from;
                continue;
            }
        }
        if (z == 0 && negative) continue;  // zero has one sign
        out[from] = saturated(totals[from], negative ? -int64_t(z) : int64_t(z));
        ++from;
    }
    return from;
}

bool entropy(void* to, size_t size) {
#if defined(__linux__)
    auto* bytes = static_cast<unsigned char*>(to);
    while (size > 0) {
        const auto got = getrandom(bytes, size, 0);  // may give less, or be interrupted
        if (got < 0 && errno != EINTR) return false;
        if (got > 0) {
            bytes += got;
            size -= size_t(got);
        }
    }
    return true;
#else
    (void)to;
    return size == 0;
#endif
}

void wipe(uint64_t* words, int64_t count) {
    volatile uint64_t* forgotten = words;
    for (int64_t i = 0; i < count; ++i) forgotten[i] = 0;
}

}  // namespace spdp
