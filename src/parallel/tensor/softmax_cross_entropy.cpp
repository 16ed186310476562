#include "catena/parallel/tensor/softmax_cross_entropy.h"

#include <algorithm>
#include <limits>

#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/comm/internals.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/move_axes.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/select_item.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "catena/parallel/tensor/functions.h"
#include "own_numbers.h"

namespace catena::functions {
namespace {

constexpr const char* kVocabLoss = "vocab_parallel_softmax_cross_entropy";

void check_scores_and_labels(const Array& x, const Array& t, const Communicator& comm) {
  CATENA_CHECK(DtypeError, is_float(x.dtype()), kVocabLoss, ": expected floating scores, got ",
               x.dtype());
  CATENA_CHECK(DtypeError, t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64, kVocabLoss,
               ": expected int32 or int64 labels, got ", t.dtype(),
               "; the arguments are (scores, labels)");
  Shape labels = x.shape();
  CATENA_CHECK(ShapeError, labels.ndim() >= 2, kVocabLoss,
               ": expected scores (n, classes / ranks, ...), got shape ", x.shape());
  labels.erase(labels.begin() + 1);
  CATENA_CHECK(ShapeError, t.shape() == labels, kVocabLoss, ": scores of shape ", x.shape(),
               " need labels of shape ", labels, ", got ", t.shape());
  CATENA_CHECK(DeviceError, x.device() == comm.device() && t.device() == comm.device(), kVocabLoss,
               ": scores are on ", x.device(), ", labels on ", t.device(),
               ", this rank's communicator on ", comm.device(), "; move them with F::copy");
}

// (labels, classes / ranks), in float32 at least.
Variable rows_of_scores(const Variable& x) {
  const Variable wide = is_narrow_float(x.dtype()) ? cast(x, Dtype::kFloat32) : x;
  if (wide.ndim() == 2) return wide;
  return reshape(moveaxis(wide, {1}, {wide.ndim() - 1}), {-1, wide.shape()[1]});
}

// Of each row over all ranks, (labels, 1).
Array largest_scores(const Array& rows, Communicator& comm) {
  const comm::PurposeScope purpose(&comm, "F::vocab_parallel_softmax_cross_entropy");
  return comm.all_reduce(amax(rows, 1, true), comm::Reduction::kMax);
}

// What this rank's classes add to the score of each label: the score itself where the label is
// here; with smoothing s the mean of scores in which it counts 1 - s, and every class s / classes.
Variable label_scores(const Variable& z, const parallel::OwnNumbers& numbers, double smoothing,
                      const Communicator& comm) {
  const Variable own = where(numbers.own, select_item(z, numbers.local), 0.0);
  if (smoothing == 0) return own;
  const double classes = double(z.shape()[1]) * comm.size();
  return own * (1 - smoothing) + sum(z, 1) * (smoothing / classes);
}

// -log softmax of the labels, 0 for ignored ones.
Variable label_losses(const Variable& rows, const Array& labels, Communicator& comm,
                      const VocabParallelOptions& options) {
  const int32_t ignored = options.ignore_label;
  const parallel::OwnNumbers numbers(labels, rows.shape()[1], comm, ignored);
  // Not larger than 0, so that nothing overflows, and digits do not suffer from a common offset.
  const Variable z = rows - largest_scores(rows.data(), comm);
  const Variable sums = sum(exp(z), 1);
  const Variable own = label_scores(z, numbers, options.label_smoothing, comm);
  const Variables whole = split_axis(sum_of_ranks(concat({sums, own}, 0), comm), 2, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Variable losses = where(numbers.known, log(whole[0]) - whole[1], nan);
  return where(not_equal(labels, ignored), losses, 0.0);
}

// The mean over the labels that count, which says how many they are.
Variable mean_of_counted(const Variable& total, const Array& labels, int32_t ignored) {
  const Array counted = catena::sum(not_equal(labels, ignored)).astype(total.dtype());
  const Variable mean = total / catena::maximum(counted, 1);
  declare_mean(mean, {counted, double(labels.size())});
  return mean;
}

}  // namespace

Variable vocab_parallel_softmax_cross_entropy(const VariableOperand& x_operand,
                                              const VariableOperand& t_operand, Communicator& comm,
                                              const VocabParallelOptions& options) {
  const Variable& x = x_operand.variable(kVocabLoss);
  const Array& t = t_operand.variable(kVocabLoss).data();
  check_scores_and_labels(x.data(), t, comm);
  const double s = options.label_smoothing;
  CATENA_CHECK(ValueError, s >= 0 && s < 1, kVocabLoss,
               ": expected a label_smoothing of at least 0 and below 1, got ", s);
  if (t.device().is_cpu()) check_labels(t, x.shape()[1] * comm.size(), options.ignore_label);
  const Variable rows = rows_of_scores(x);
  const Array labels = t.reshape({-1});
  const Variable losses = label_losses(rows, labels, comm, options);
  if (options.reduction == Reduction::kNone) return reshape(losses, t.shape());
  const Variable total = sum(losses);
  if (options.reduction == Reduction::kSum) return total;
  if (options.normalize) return mean_of_counted(total, labels, options.ignore_label);
  return total / double(std::max<int64_t>(x.shape()[0], 1));
}

}  // namespace catena::functions
