// Sequences of different lengths without padding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// n sequences of different lengths, in any order, as the rows of their steps: what recurrent layers
// compute on, so that no step behind an end is computed. Row by row it has step 0 of all sequences,
// then step 1 of those that have one, and so on, at each step the longest sequence first. Padding
// is never read: what is behind an end, NaN too, is in no result, and its gradient is 0.
//
//   const F::PackedSequences xs(x, lengths);            // x: (steps, n, ...)
//   const auto [hy, cy, ys] = lstm({}, {}, xs);
//   const Variable y = ys.padded();                     // (steps, n, out), 0 behind the ends
//
// What works on each step by itself works on the rows: xs.with_rows(linear(xs.rows())).
//
// The lengths are read on the host, which waits for the GPU if they are there. Error while a CUDA
// graph is captured: make the object before, and use with_rows() in the step. Copies share what
// does not change.
class PackedSequences {
 public:
  // Sequence k has the first lengths[k] steps of x, (steps, n, ...), or (n, steps, ...) with
  // batch_first; all steps without lengths. lengths: (n), int32 or int64 (DtypeError), on the CPU
  // or on x's device (DeviceError). ValueError that names the first length outside [1, steps];
  // ShapeError for another number of lengths, and for x with less than two axes or without a step.
  explicit PackedSequences(const VariableOperand& x, const std::optional<Array>& lengths = {},
                           YesNo batch_first = false);
  // Sequences (length, ...), which differ in their first extent only. ValueError for none and for
  // one without steps, InvalidType where the rest differs.
  explicit PackedSequences(const Variables& sequences);

  // The rows of all steps, (sum of the lengths, ...).
  const Variable& rows() const { return rows_; }
  // The same sequences with other rows, in the same order. ShapeError for another number of them.
  PackedSequences with_rows(const VariableOperand& rows) const;
  // Each sequence backwards, from its own last step to its first.
  PackedSequences reversed() const;
  // The sequences in one array, 0 behind their ends: in the axes and with the number of steps of
  // the x that they come from, else (longest, n, ...).
  Variable padded() const;
  // One variable for each sequence, (length, ...).
  Variables sequences() const;

  // The number of sequences, and of the steps of the longest one.
  int64_t size() const;
  int64_t longest() const;
  // Whether all are as long as the longest one.
  bool equally_long() const;
  // The length of each sequence, and how many of them have each step.
  const std::vector<int64_t>& lengths() const;
  const std::vector<int64_t>& counts() const;
  // States of the sequences, (layers, n, ...): from the order given into that of the rows, and
  // back. ShapeError for those of another number of sequences.
  Variable longest_first(const VariableOperand& states) const;
  Variable as_given(const VariableOperand& states) const;

 private:
  struct Plan;
  static std::shared_ptr<const Plan> plan_of(const Variable& x, const std::optional<Array>& lengths,
                                             bool batch_first);
  static std::shared_ptr<const Plan> plan_of(const Variables& sequences);
  PackedSequences(std::shared_ptr<const Plan> plan, Variable rows);
  const Variable& checked_states(const VariableOperand& states) const;

  std::shared_ptr<const Plan> plan_;
  Variable rows_;
};

}  // namespace catena::functions
