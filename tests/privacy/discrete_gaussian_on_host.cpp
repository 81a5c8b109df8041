// The sampler's source, compiled by itself: for tests of other builds, and of errors planted in it.
#include STRIPS

#include <algorithm>

extern "C" {

int host_make(double scale, uint32_t bits, spdp::StripTable* table) { return spdp::make_strips(scale, bits, *table); }

double host_weight(uint64_t z, double scale) { return spdp::strip_weight(z, scale); }

// At most `room` open proposals are written; *opened says how many there are.
long long host_propose(const spdp::StripTable* table, const uint64_t* words, long long proposals, const int64_t* totals,
                       long long from, long long to, int64_t* out, spdp::OpenProposal* open, long long room, long long* opened) {
    std::vector<spdp::OpenProposal> found;
    const long long done = spdp::propose(*table, words, proposals, totals, from, to, out, found);
    std::copy_n(found.begin(), std::min<long long>(room, static_cast<long long>(found.size())), open);
    *opened = static_cast<long long>(found.size());
    return done;
}

}
