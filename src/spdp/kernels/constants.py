"""Numbers that the NumPy and the C++ kernels share. CMake reads this file.

Each stands here once.
"""

LATTICE_BITS = 30  # a record's integer vector has norm at most 2**30
PRODUCT_BITS = 14  # and at most 2**14 where it is multiplied with itself
# status of a matrix
OK = 0
NOT_FINITE = 1
NOT_SYMMETRIC = 2
NOT_POSITIVE = 3
NOT_CONVERGED = 4  # handed to LAPACK; never leaves the native kernels
# rounding that is forgiven, relative to the largest entry
SYMMETRY_DOUBLE = 1e-8
SYMMETRY_SINGLE = 1e-5
RANK_SLACK = 8  # smallest eigenvalues down to -RANK_SLACK * k * eps count as zero
