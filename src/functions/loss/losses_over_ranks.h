// Losses of tokens of whose scores each rank has some, and what their gradient needs of all ranks.
#pragma once

#include "core/compute_dtype.h"
#include "functions/loss/classes_over_ranks.h"

namespace catena::functions {

// The operands as kernels take them: h (tokens, size), W contiguous, b or an undefined array, t
// int32 (tokens, 1).
struct Matrices {
  Array h, W, b, t;
  int64_t tokens() const { return h.shape()[0]; }
  int64_t classes() const { return W.shape()[0]; }
  Dtype wide() const { return compute_dtype(h.dtype()); }
};

// What all ranks say about the scores of some tokens, on its way.
struct Statistics {
  Array all;  // (ranks, rows of a message, tokens)
  Event arrival;
};

// Chunks come in the order of their tokens, each with one message: of every token the largest
// score, the logarithm of the sum of exponentials and the score of the label, for label smoothing a
// sum of scores, and what shows that the ranks fit together. `who` is what errors name.
class LossesOverRanks {
 public:
  LossesOverRanks(const char* who, const Matrices& m, const LinearCrossEntropyOptions& options,
                  const ClassesOverRanks& ranks);

  // Sends the statistics of the scores z, (part, classes).
  Statistics send(const Array& z, const Slice& part) const;
  // Waits for those of all ranks: the scores become their gradient, unless losses alone are wanted.
  // factors: of the tokens, (part, 1), or undefined for 1.
  void receive(const Array& z, const Slice& part, const Statistics& statistics,
               const Array& factors, bool losses_only);
  // Begins to add the gradient of h of a chunk over the ranks; finish() waits for it.
  void sum(const Array& gh) { sum_ = ranks_.sum(gh); }
  // Sets losses, (tokens, 1). ValueError on a CPU, else NaN, where ranks do not fit together.
  void finish(const Array& losses) const;

 private:
  void measure(const Array& z, const Slice& part, const Array& message) const;
  Array factors_of(const Array& lse, const Array& given, int64_t count) const;

  const char* who_;
  const Matrices& m_;
  const LinearCrossEntropyOptions& options_;
  const ClassesOverRanks& ranks_;
  Array labels_;   // int32 (tokens, 1), counted from the first class here
  Array is_own_;   // bool (tokens, 1)
  Array known_;    // the rows of messages that are known without scores, (rows, tokens)
  Array spread_;   // (classes)
  Array nothing_;  // 0-d: what kernels set or read and nobody wants
  Arrays messages_, lse_;
  Event sum_;
};

}  // namespace catena::functions
