// The discrete Gaussian by strips: its table, and draws from words that are given. The algorithm and its proof stand in
// privacy/discrete_gaussian.py.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spdp {

constexpr int COLUMN_BITS = 8;
constexpr int COLUMNS = 1 << COLUMN_BITS;
constexpr uint32_t OFFSET_BITS = 31;  // of the place in a strip, in a proposal's first word; a second word has the rest

struct StripTable {
    double scale;             // s
    uint32_t bits;            // there are 2^bits cells
    uint32_t width;           // a strip holds 2^width integers
    uint32_t strips;          // n; cells numbered n are the tail's, and n + 1 the void
    uint32_t top;             // C: |z| is accepted below the height C exp(-z^2/2s^2)
    uint32_t tail_strips;     // q
    uint32_t height[COLUMNS];  // cells of a strip
    uint32_t sure[COLUMNS];    // of these, how many are below the level of all its integers
    uint32_t own[COLUMNS];     // cells of a column that are its own strip's, the lowest
    uint32_t other[COLUMNS];   // whose the rest are,
    uint32_t shift[COLUMNS];   // and how much higher they lie there, modulo 2^32

    int64_t words() const { return width > OFFSET_BITS ? 2 : 1; }  // of a proposal
};

// A proposal that doubles do not settle, for total number `place`.
struct OpenProposal {
    int64_t place;
    bool tail, negative;
    uint32_t cell;
    uint64_t magnitude;  // |z|; of the tail, the place in a strip
};

// False if the scale is not one of [1, 2^60], or the bits not of [12, 32].
bool make_strips(double scale, uint32_t bits, StripTable& table);

// exp(-z^2/2s^2) with a relative error below 2^-44, where z^2/2s^2 <= 32.
double strip_weight(uint64_t z, double scale);

// Adds a draw to each total [from, to) until there are none left, or no proposals; gives the first that has no draw yet.
// Totals whose proposal is open are listed, and left to the caller. A function of its arguments alone.
int64_t propose(const StripTable& table, const uint64_t* words, int64_t proposals, const int64_t* totals, int64_t from, int64_t to,
                int64_t* out, std::vector<OpenProposal>& open);

// Bytes of the operating system; false where this build cannot ask for them itself.
bool entropy(void* to, size_t size);

// Zeros over words that are no longer needed, by writes that no compiler leaves out.
void wipe(uint64_t* words, int64_t count);

}  // namespace spdp
