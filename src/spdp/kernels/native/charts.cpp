// The table of charts that have kernels with one matrix per lane, and of all kernels. Compiled once per instruction set.
#include "kernel.hpp"

#define NAME_OF(x) #x
#define NAME(x) NAME_OF(x)

namespace SPDP_ISA {

spdp::Worker* make_logeuclid(int k);
spdp::Worker* make_logchol(int k);
void vector_pass(const spdp::VectorJob& job, int64_t begin, int64_t end, int64_t* total);
void product_pass(const spdp::VectorJob& job, int64_t begin, int64_t end, int64_t* total);
void count_pass(const spdp::VectorJob& job, int64_t begin, int64_t end, int64_t* total);
void rotate_pass(const spdp::RotateJob& job, int64_t begin, int64_t end);

constexpr spdp::ChartKernel CHARTS[] = {
    {"logeuclid", make_logeuclid},
    {"logchol", make_logchol},
    {nullptr, nullptr},
};

extern const spdp::Kernels KERNELS = {NAME(SPDP_ISA), CHARTS, vector_pass, product_pass, count_pass, rotate_pass};

}  // namespace SPDP_ISA
