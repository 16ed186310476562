// The CPU providers of the slots; see catena/array/slots.h for what each does.
#pragma once

#include "catena/array/slots.h"

namespace catena::host {

void elementwise(const ElementwiseCall& call);
void fused(const FusedCall& call);
// Whether walking the array in C order jumps from cache line to cache line though another order
// would not: a large one is copied first, tile by tile.
bool is_transposed(const Array& input);
void copy(const Array& source, const Array& destination);
void fill(const Array& destination, const Scalar& value);
void arange(const Array& destination, const Scalar& start, const Scalar& step);
void reduce(const ReduceCall& call);
void arg_reduce(const ArgReduceCall& call);
void matmul(const MatmulCall& call);
void concatenate(const std::vector<Array>& inputs, int axis, const Array& output);
void take(const Array& source, const Array& indices, uint8_t mode, const Array& output);
void scatter_add(const Array& target, const Array& indices, const Array& values);
void sort(const SortCall& call);
void order_statistics(const Array& input, const std::vector<int64_t>& ranks, const Array& output);
void searchsorted(const Array& sorted, const Array& values, bool right, const Array& output);
void run_starts(const Array& sorted, const Array& output);
void scan(const ScanCall& call);
void nonzero_count(const Array& a, const Array& count);
void nonzero(const Array& a, const Array& positions);
void bincount(const Array& x, const Array& counts);
void histogram(const HistogramCall& call);
void gather(const SelectCall& call);
void scatter(const SelectCall& call);
void random(const RandomCall& call);
void permutation(const RandomBits& bits, const Array& output);
void dropout(const Array& x, double ratio, double scale, const RandomBits& bits, const Array& y);
void softmax(const Array& x, bool log, const Array& y);
void softmax_grad(const Array& y, const Array& gy, bool log, const Array& gx);
void softmax_cross_entropy(const kernels::CrossEntropyCall& call);
void softmax_cross_entropy_grad(const kernels::CrossEntropyCall& call, const Array& gloss,
                                const Array& gx);
void accuracy(const Array& x, const Array& t, bool has_ignore, int32_t ignore_label,
              const Array& result);
void int_range(const Array& a, const Array& result);
void sgd(const OptimizerCall& call);
void momentum_sgd(const OptimizerCall& call);
void adam(const OptimizerCall& call);

}  // namespace catena::host
