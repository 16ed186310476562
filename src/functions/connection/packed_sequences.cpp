// PackedSequences: where the rows are, found on the host once, and the maps between the orders.
#include "catena/functions/connection/packed_sequences.h"

#include <algorithm>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/autograd/linear_map.h"
#include "catena/core/graph.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "catena/kernels/index.h"

namespace catena::functions {
namespace {

constexpr const char* kPacked = "PackedSequences";
constexpr int64_t kPadding = -1;
using Rows = std::vector<int64_t>;

// From (outer, rows, inner) to the rows at these positions, 0 for kPadding.
struct ChosenRows {
  static constexpr const char* kName = "PackedSequences";
  Array positions;  // int64; none twice

  Array forward(const Array& x) const {
    const Shape shape{x.shape()[0], positions.size(), x.shape()[2]};
    const Array y = Array::uninitialized(shape, x.dtype(), x.device());
    if (y.size() > 0) kernels::take(x.device(), {x.contiguous(), positions, 0, y, kRule});
    return y;
  }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    if (gx.size() == 0) return;
    const bool direct = gx.is_contiguous();
    const Array sums = direct ? gx : Array::uninitialized(gx.shape(), gx.dtype(), gx.device());
    kernels::scatter_add(gx.device(),
                         {sums, positions, gy.contiguous(), direct && accumulate, kRule});
    if (!direct) detail::assign_or_add(gx, sums, accumulate);
  }

 private:
  static constexpr IdRule kRule{true, kPadding};
};

// The elements of x along the axis, 0 or 1, at these positions; without positions x itself.
Variable chosen(const Variable& x, int axis, const Array& positions) {
  if (!positions.defined()) return x;
  Shape shape = x.shape();
  const int64_t outer = axis == 0 ? 1 : shape[0], rows = shape[size_t(axis)];
  const int64_t inner = element_count(Shape(shape.begin() + axis + 1, shape.end()));
  const Variable flat = reshape(x, {outer, rows, inner});
  FunctionCall call(kPacked, Autocast::kNone, flat);
  shape[size_t(axis)] = positions.size();
  return reshape(linear_map(call, ChosenRows{positions}), shape);
}

// Lengths --------------------------------------------------------------------------------------

void check_lengths(const Array& lengths, const Variable& x, int64_t n) {
  CATENA_CHECK(ValueError, lengths.defined(), kPacked, ": lengths is an undefined array");
  CATENA_CHECK(DtypeError, lengths.dtype() == Dtype::kInt32 || lengths.dtype() == Dtype::kInt64,
               kPacked, ": expected lengths of int32 or int64, got ", lengths.dtype());
  CATENA_CHECK(ShapeError, lengths.shape() == Shape{n}, kPacked, ": expected a length for each of ",
               n, " sequences, (", n, ",), got lengths of shape ", lengths.shape(),
               "; x has shape ", x.shape());
  CATENA_CHECK(DeviceError, lengths.device().is_cpu() || lengths.device() == x.device(), kPacked,
               ": the lengths are on ", lengths.device(), ", x is on ", x.device(),
               "; give lengths that are on the CPU or beside x");
}

void refuse_capture(Device device) {
  CATENA_CHECK(Error, !cuda::is_capturing(device), kPacked,
               ": the host orders the sequences, which a captured graph cannot repeat; make the "
               "PackedSequences before the capture, and use with_rows() in the step");
}

std::vector<int64_t> read_lengths(const Array& lengths, const Variable& x, int64_t n,
                                  int64_t steps) {
  check_lengths(lengths, x, n);
  refuse_capture(lengths.device());
  const Array host = lengths.to_cpu().contiguous();
  const auto length = [&](int64_t k) {
    return host.dtype() == Dtype::kInt32 ? host.data<int32_t>()[k] : host.data<int64_t>()[k];
  };
  std::vector<int64_t> read;
  for (int64_t k = 0; k < n; ++k) read.push_back(length(k));
  for (size_t k = 0; k < read.size(); ++k)
    CATENA_CHECK(ValueError, read[k] >= 1 && read[k] <= steps, kPacked, ": length ", read[k],
                 " of sequence ", k, " is outside [1, ", steps,
                 read[k] == 0 ? "]; leave sequences without steps out of the batch" : "]");
  return read;
}

void refuse_bool(const Variable& x) {
  CATENA_CHECK(DtypeError, x.dtype() != Dtype::kBool, kPacked, ": expected numbers, got bool");
}

// The sequences by length, the longest first; of equal ones in their order.
Rows longest_first_of(const std::vector<int64_t>& lengths) {
  Rows order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return lengths[size_t(a)] > lengths[size_t(b)]; });
  return order;
}

// How many sequences have each step.
std::vector<int64_t> counts_of(const std::vector<int64_t>& lengths) {
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<int64_t> counts(size_t(longest), 0);
  for (const int64_t length : lengths) ++counts[size_t(length - 1)];
  for (size_t t = counts.size() - 1; t > 0; --t) counts[t - 1] += counts[t];
  return counts;
}

// Where each of these extents begins when they follow one another.
Rows begins_of(const std::vector<int64_t>& extents) {
  Rows begins(extents.size(), 0);
  for (size_t k = 1; k < extents.size(); ++k) begins[k] = begins[k - 1] + extents[k - 1];
  return begins;
}

Rows inverse_of(const Rows& order) {
  Rows inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[size_t(order[i])] = int64_t(i);
  return inverse;
}

// Positions among `among` things.
struct List {
  const Rows& positions;
  int64_t among;
  bool changes_nothing() const {
    Rows all(static_cast<size_t>(among));
    std::iota(all.begin(), all.end(), 0);
    return positions == all;
  }
};

// The lists in one array on the device, so that there is one copy; undefined arrays for those that
// change nothing.
std::vector<Array> on_device(const std::vector<List>& lists, Device device) {
  Rows all;
  for (const List& list : lists)
    all.insert(all.end(), list.positions.begin(), list.positions.end());
  const Array whole = array(all, ArrayOptions(Dtype::kInt64, device));
  std::vector<Array> arrays;
  int64_t begin = 0;
  for (const List& list : lists) {
    const int64_t end = begin + static_cast<int64_t>(list.positions.size());
    arrays.push_back(list.changes_nothing() ? Array() : whole.at({Slice(begin, end)}));
    begin = end;
  }
  return arrays;
}

}  // namespace

struct PackedSequences::Plan {
  // `steps` are those of padded(). `is_list`: the source is the sequences one after the other.
  Plan(std::vector<int64_t> given, int64_t steps, bool batch_first, bool is_list, Device device);

  int64_t size() const { return static_cast<int64_t>(lengths.size()); }
  std::vector<int64_t> lengths, counts;
  int64_t rows, steps;
  bool batch_first;
  Device device;
  // Positions; undefined where all things are in their order.
  Array from_source;         // of each row among those of the source
  Array to_padded, to_list;  // of what is at each place, among the rows
  Array reversed;            // of each row among those of the reversed sequences
  Array order, rank;         // of the longest sequence first among those given, and the other way
};

PackedSequences::Plan::Plan(std::vector<int64_t> given, int64_t all_steps, bool first_is_batch,
                            bool is_list, Device on)
    : lengths(std::move(given)),
      counts(counts_of(lengths)),
      rows(std::accumulate(lengths.begin(), lengths.end(), int64_t(0))),
      steps(all_steps),
      batch_first(first_is_batch),
      device(on) {
  refuse_capture(device);
  const int64_t n = size();
  const Rows by_length = longest_first_of(lengths), place = inverse_of(by_length),
             of_step = begins_of(counts), of_sequence = begins_of(lengths);
  const Rows nothing(static_cast<size_t>(rows));
  Rows source = nothing, listed = nothing, backwards = nothing;
  Rows filled(static_cast<size_t>(steps * n), kPadding);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t length = lengths[size_t(k)], own = place[size_t(k)];
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = of_step[size_t(t)] + own, in_list = of_sequence[size_t(k)] + t,
                    in_padded = batch_first ? k * steps + t : t * n + k;
      source[size_t(row)] = is_list ? in_list : in_padded;
      filled[size_t(in_padded)] = listed[size_t(in_list)] = row;
      backwards[size_t(row)] = of_step[size_t(length - 1 - t)] + own;
    }
  }
  const std::vector<Array> arrays = on_device({{source, is_list ? rows : steps * n},
                                               {filled, rows},
                                               {listed, rows},
                                               {backwards, rows},
                                               {by_length, n},
                                               {place, n}},
                                              device);
  from_source = arrays[0], to_padded = arrays[1], to_list = arrays[2];
  reversed = arrays[3], order = arrays[4], rank = arrays[5];
}

std::shared_ptr<const PackedSequences::Plan> PackedSequences::plan_of(
    const Variable& x, const std::optional<Array>& lengths, bool batch_first) {
  refuse_bool(x);
  const Shape& shape = x.shape();
  CATENA_CHECK(ShapeError, shape.ndim() >= 2 && shape[0] > 0 && shape[1] > 0, kPacked,
               ": expected x as ", batch_first ? "(n, steps, ...)" : "(steps, n, ...)",
               ", at least one sequence of at least one step, got shape ", shape);
  const int64_t n = shape[batch_first ? 0 : 1], steps = shape[batch_first ? 1 : 0];
  return std::make_shared<const Plan>(
      lengths ? read_lengths(*lengths, x, n, steps) : std::vector<int64_t>(size_t(n), steps), steps,
      batch_first, false, x.device());
}

std::shared_ptr<const PackedSequences::Plan> PackedSequences::plan_of(const Variables& sequences) {
  CATENA_CHECK(ValueError, !sequences.empty(), kPacked, ": expected at least one sequence");
  std::vector<int64_t> lengths;
  for (size_t k = 0; k < sequences.size(); ++k) {
    const Variable& x = sequences[k];
    CATENA_CHECK(ValueError, x.defined() && x.ndim() >= 1 && x.shape()[0] > 0, kPacked,
                 ": expected sequences as (length, ...) of at least one step, got ",
                 x.defined() ? message("shape ", x.shape()) : "an undefined variable",
                 " as sequence ", k, "; leave sequences without steps out of the batch");
    refuse_bool(x);
    lengths.push_back(x.shape()[0]);
  }
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  return std::make_shared<const Plan>(std::move(lengths), longest, false, true,
                                      sequences[0].device());
}

PackedSequences::PackedSequences(std::shared_ptr<const Plan> plan, Variable rows)
    : plan_(std::move(plan)), rows_(std::move(rows)) {}

PackedSequences::PackedSequences(const VariableOperand& operand,
                                 const std::optional<Array>& lengths, YesNo batch_first)
    : plan_(plan_of(operand.variable(kPacked), lengths, batch_first)) {
  const Variable& x = operand.variable(kPacked);
  Shape flat(x.shape().begin() + 1, x.shape().end());
  flat[0] = x.shape()[0] * x.shape()[1];
  rows_ = chosen(reshape(x, flat), 0, plan_->from_source);
}

PackedSequences::PackedSequences(const Variables& sequences) : plan_(plan_of(sequences)) {
  rows_ = chosen(concat(sequences, 0), 0, plan_->from_source);
}

PackedSequences PackedSequences::with_rows(const VariableOperand& operand) const {
  const Variable& rows = operand.variable(kPacked);
  CATENA_CHECK(ShapeError, rows.ndim() >= 1 && rows.shape()[0] == plan_->rows, kPacked,
               ": the sequences have ", plan_->rows,
               " steps together, so many rows are expected; "
               "got shape ",
               rows.shape());
  CATENA_CHECK(DeviceError, rows.device() == plan_->device, kPacked, ": the sequences are on ",
               plan_->device, ", the rows are on ", rows.device());
  return {plan_, rows};
}

PackedSequences PackedSequences::reversed() const {
  return {plan_, chosen(rows_, 0, plan_->reversed)};
}

Variable PackedSequences::padded() const {
  const Variable all = chosen(rows_, 0, plan_->to_padded);
  Shape shape = all.shape();
  shape[0] = plan_->batch_first ? plan_->steps : size();
  shape.insert(shape.begin(), plan_->batch_first ? size() : plan_->steps);
  return reshape(all, shape);
}

Variables PackedSequences::sequences() const {
  Axes cuts;
  for (size_t k = 0; k + 1 < lengths().size(); ++k)
    cuts.push_back((k == 0 ? 0 : cuts.back()) + lengths()[k]);
  return split_axis(chosen(rows_, 0, plan_->to_list), cuts, 0);
}

int64_t PackedSequences::size() const { return plan_->size(); }
int64_t PackedSequences::longest() const { return static_cast<int64_t>(plan_->counts.size()); }
bool PackedSequences::equally_long() const { return plan_->counts.back() == size(); }
const std::vector<int64_t>& PackedSequences::lengths() const { return plan_->lengths; }
const std::vector<int64_t>& PackedSequences::counts() const { return plan_->counts; }

const Variable& PackedSequences::checked_states(const VariableOperand& operand) const {
  const Variable& states = operand.variable(kPacked);
  CATENA_CHECK(ShapeError, states.ndim() >= 2 && states.shape()[1] == size(), kPacked,
               ": expected states of ", size(), " sequences, (layers, ", size(),
               ", out), got shape ", states.shape());
  CATENA_CHECK(DeviceError, states.device() == plan_->device, kPacked, ": the sequences are on ",
               plan_->device, ", the states are on ", states.device());
  return states;
}

Variable PackedSequences::longest_first(const VariableOperand& states) const {
  return chosen(checked_states(states), 1, plan_->order);
}
Variable PackedSequences::as_given(const VariableOperand& states) const {
  return chosen(checked_states(states), 1, plan_->rank);
}

}  // namespace catena::functions
