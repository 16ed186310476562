// The CPU providers of the slots. The headers of catena/kernels say what each one does; a provider
// includes the one that it needs, so that changing a call compiles few objects.
#pragma once

#include "catena/array/array.h"

namespace catena {

struct AccuracyCall;
struct ArangeCall;
struct ArgReduceCall;
struct BatchNormalizationCall;
struct BatchNormalizationGradCall;
struct BincountCall;
struct ConcatenateCall;
struct CopyCall;
struct CrossEntropyCall;
struct CrossEntropyGradCall;
struct DropoutCall;
struct ElementwiseCall;
struct FillCall;
struct FixedBatchNormalizationCall;
struct FusedCall;
struct HistogramCall;
struct LossScaleCall;
struct MatmulCall;
struct NonFiniteCall;
struct NonzeroCall;
struct NonzeroCountCall;
struct OptimizerCall;
struct OrderStatisticsCall;
struct PatchSumsCall;
struct PatchesCall;
struct PermutationCall;
struct RandomCall;
struct ReduceCall;
struct RunStartsCall;
struct ScanCall;
struct ScatterAddCall;
struct SearchSortedCall;
struct SelectCall;
struct SoftmaxCall;
struct SoftmaxGradCall;
struct SortCall;
struct TakeCall;

namespace host {

void elementwise(const ElementwiseCall& call);
void fused(const FusedCall& call);
// Whether walking the array in C order jumps from cache line to cache line although another order
// would not. A large array of this kind is copied first, tile by tile.
bool is_transposed(const Array& input);
void copy(const CopyCall& call);
void fill(const FillCall& call);
void arange(const ArangeCall& call);
void reduce(const ReduceCall& call);
void arg_reduce(const ArgReduceCall& call);
void matmul(const MatmulCall& call);
void concatenate(const ConcatenateCall& call);
void take(const TakeCall& call);
void scatter_add(const ScatterAddCall& call);
void sort(const SortCall& call);
void order_statistics(const OrderStatisticsCall& call);
void searchsorted(const SearchSortedCall& call);
void run_starts(const RunStartsCall& call);
void scan(const ScanCall& call);
void nonzero_count(const NonzeroCountCall& call);
void nonzero(const NonzeroCall& call);
void bincount(const BincountCall& call);
void histogram(const HistogramCall& call);
void gather(const SelectCall& call);
void scatter(const SelectCall& call);
void random(const RandomCall& call);
void permutation(const PermutationCall& call);
void dropout(const DropoutCall& call);
void softmax(const SoftmaxCall& call);
void softmax_grad(const SoftmaxGradCall& call);
void softmax_cross_entropy(const CrossEntropyCall& call);
void softmax_cross_entropy_grad(const CrossEntropyGradCall& call);
void accuracy(const AccuracyCall& call);
void patches(const PatchesCall& call);
void patch_sums(const PatchSumsCall& call);
void batch_normalization(const BatchNormalizationCall& call);
void fixed_batch_normalization(const FixedBatchNormalizationCall& call);
void batch_normalization_grad(const BatchNormalizationGradCall& call);
void optimizer_update(const OptimizerCall& call);
void find_nonfinite(const NonFiniteCall& call);
void advance_loss_scale(const LossScaleCall& call);

}  // namespace host
}  // namespace catena
