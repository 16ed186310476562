// What the forms of a reduction share: the job, the order in which partial results are combined,
// and how a result is written.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "array/iteration.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/reduce_source.h"

namespace catena::host {

// Elements that one call of a row loop takes, where blocks are not combined pairwise.
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
  CastLoop cast;  // input -> loop_dtype; used where `convert` or strides ask for it
  bool convert;
  ReduceRow unconverted_row = nullptr;  // takes elements of the input itself, where there is one
  int64_t input_item;                   // their size
  bool cached;                          // the input is so small that a cache may hold it
  ReduceSource* computed = nullptr;  // the input is not in memory: its addresses are only counted
  const char* input;
  char* output;
  Dtype output_dtype;
  double scale;
  bool accumulate;
  LoopPlan kept;     // operand 0: input, 1: output
  LoopPlan reduced;  // operand 0: input; without its inner dimension where rows are columns
  int64_t row_block = kRowBlock;
  int64_t row_size = 1;  // elements of the rows whose results are columns, and their distance
  int64_t row_stride = 0;

  // n elements from `source` on, as the loops read them.
  void read(const char* source, int64_t stride, char* buffer, int64_t n) const {
    if (computed)
      computed->read((source - input) / computed->item, buffer, n);
    else
      cast(source, stride, buffer, item, n);
  }
};

// Combines partial results (vectors of `width` accumulators) in order, as a balanced tree where the
// job asks for it: level k holds the result of 2^k pieces.
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

  // Into `result`; at least one piece was added.
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

// Accumulators, which are lost, to output elements: scaled, added to what is there, rounded once.
void store_results(const ReduceJob& job, char* accumulators, char* output, int64_t stride,
                   int64_t n);
// loops->row of n elements `stride` bytes apart, through a buffer of kRowBlock elements where they
// do not lie as the loops read them.
void reduce_block(const ReduceJob& job, const char* source, int64_t stride, int64_t n, char* buffer,
                  char* result);

// The form whose accumulators are neighbouring kept elements, or the results of rows of row_size.
void reduce_columns(const ReduceJob& job);

}  // namespace catena::host
