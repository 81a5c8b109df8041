// The table of charts that have kernels with one matrix per lane. Compiled once per instruction set.
#include "kernel.hpp"

namespace SPDP_ISA {

spdp::Worker* make_logeuclid(int k);
spdp::Worker* make_logchol(int k);

extern const spdp::ChartKernel CHARTS[] = {
    {"logeuclid", make_logeuclid},
    {"logchol", make_logchol},
    {nullptr, nullptr},
};

}  // namespace SPDP_ISA
