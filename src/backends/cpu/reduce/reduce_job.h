// Job of a reduction, in all of its forms: the elements, the order in which partial results are
// combined, and how a result is written.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "array/iteration.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/reduce/reduce_source.h"
#include "catena/array/array.h"
#include "catena/kernels/reduce.h"

namespace catena::host {

// Elements of one call of a row loop, where blocks are not combined pairwise.
inline constexpr int64_t kLongRowBlock = 8 * kRowBlock;
// Elements of a segment, the unit of work.
inline constexpr int64_t kSegment = int64_t{1} << 17;

struct ReduceJob {
  ReduceOp op;
  const ReduceEntry* loops;
  Dtype loop_dtype;   // of the elements the loops read
  int64_t item;       // its size
  Dtype accumulator;  // dtype of the accumulators
  int64_t accumulator_size;
  bool pairwise;  // combine partial results as a tree
  CastLoop cast;  // input -> loop_dtype; used if `convert` is set or strides need it
  bool convert;
  ReduceRow unconverted_row = nullptr;  // reads unconverted elements; may be null
  int64_t input_item;                   // their size
  bool cached;                          // the input is so small that a cache may hold it
  ReduceSource* computed = nullptr;  // values that are not in memory: addresses only count elements
  const char* input;
  char* output;
  Dtype output_dtype;
  double factor = 1, divisor = 1;  // of sums of floats; one of them is 1
  bool accumulate;
  LoopPlan kept;     // operand 0: input, 1: output
  LoopPlan reduced;  // operand 0: input; without its inner dimension where rows are columns
  int64_t row_block = kRowBlock;
  int64_t row_size = 1;  // elements of the rows whose results are columns; their stride is below
  int64_t row_stride = 0;

  // Reads n elements from `source` on, in the dtype of the loops.
  void read(const char* source, int64_t stride, char* buffer, int64_t n) const {
    if (computed)
      computed->read((source - input) / computed->item, buffer, n);
    else
      cast(source, stride, buffer, item, n);
  }
};

// Combines partial results (vectors of `width` accumulators) in order, or as a balanced tree where
// the job is pairwise: level k holds the result of 2^k pieces.
class Combiner {
 public:
  Combiner(const ReduceJob& job, int64_t width)
      : job_(job), width_(width), bytes_(width * job.accumulator_size) {
    if (width == 1) levels_ = single_;
  }

  void add(const char* piece) {
    int k = 0;
    if (job_.pairwise) {
      for (uint64_t c = count_; c & 1; c >>= 1) {
        job_.loops->combine(at(k), k == 0 ? piece : at(k - 1), width_);
        ++k;
      }
      reserve(k);
      std::memcpy(at(k), k == 0 ? piece : at(k - 1), size_t(bytes_));
    } else if (count_ == 0) {
      reserve(0);
      std::memcpy(at(0), piece, size_t(bytes_));
    } else {
      job_.loops->combine(at(0), piece, width_);
    }
    ++count_;
  }

  // Writes the total to `result`. At least one piece must have been added.
  void finish(char* result) {
    bool first = true;
    for (int k = 0; k < 64; ++k) {
      const bool occupied = job_.pairwise ? (count_ >> k) & 1 : k == 0;
      if (!occupied) continue;
      if (!first) job_.loops->combine(at(k), result, width_);
      std::memcpy(result, at(k), size_t(bytes_));
      first = false;
    }
  }

 private:
  char* at(int k) { return levels_ + k * bytes_; }
  void reserve(int k) {
    if (width_ == 1) return;
    many_.resize(std::max(many_.size(), size_t((k + 1) * bytes_)));
    levels_ = many_.data();
  }

  const ReduceJob& job_;
  int64_t width_, bytes_;
  uint64_t count_ = 0;
  char* levels_ = nullptr;
  alignas(8) char single_[64 * 8];
  std::vector<char> many_;
};

// Writes accumulators, which it overwrites, to output elements: divided, added to the old value on
// request, rounded once.
void store_results(const ReduceJob& job, char* accumulators, char* output, int64_t stride,
                   int64_t n);
// Calls loops->row for n elements `stride` bytes apart. Elements that the loop cannot read directly
// go through a buffer of kRowBlock elements.
void reduce_block(const ReduceJob& job, const char* source, int64_t stride, int64_t n, char* buffer,
                  char* result);

// The form whose accumulators are adjacent kept elements, or the results of rows of row_size.
void reduce_columns(const ReduceJob& job);

}  // namespace catena::host
