// Fused chains on the CPU: the program interpreted block by block. A block's values lie in the
// first-level cache, so that memory is passed once; the steps are the loops of the single
// operations, so that results are theirs bit for bit.
#pragma once

#include <memory>
#include <vector>

#include "array/fusion/fused_program.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {

// The elements of one input in C order of the loop.
struct BlockInput {
  const char* base = nullptr;
  CastLoop load = nullptr;  // memory -> the dtype of the loops
  bool direct = false;      // may be read where it is
  bool constant = false;    // one element for all
  int64_t item = 0;         // in memory
  int ndim = 0;             // collapsed dimensions, outermost first
  int64_t shape[kMaxDims], strides[kMaxDims];
};

struct BlockStep {
  Loop loop = nullptr;                         // null: a cast by `first` and `second`, or an input
  CastLoop first = nullptr, second = nullptr;  // of a cast; of a loop's result: its rounding
  int64_t middle = 0;                          // bytes of an element between the two
  int input = -1;
  int sources[3] = {-1, -1, -1};
  int source_count = 0;
  int64_t source_items[3] = {0, 0, 0};
  int64_t item = 0;  // of the result, in the loops
  int place = -1;    // register; -1: none needed
  int output = -1;   // its result is this output as it is
  bool takes_scalars = false;
  bool single = false;  // a constant that is only read by loops that repeat one element
};

struct BlockOutput {
  int value;
  CastLoop store;  // null: the step has written it
  int64_t item;
};

// A program bound to the arrays of one call; shared by the call's threads.
class BlockProgram {
 public:
  // `output` gives the dtype in which each output is wanted.
  BlockProgram(const FusedCall& call, const std::vector<Dtype>& wanted);

  int64_t size() const { return size_; }
  int64_t block() const { return block_; }    // elements
  int64_t weight() const { return weight_; }  // nanoseconds an element, roughly
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  friend class BlockRun;
  void bind_input(const FusedCall& call, int k);
  void add_step(const FusedCall& call, size_t v);
  void add_outputs(const std::vector<Dtype>& wanted, const FusedProgram& program);
  void place_registers();

  std::vector<BlockStep> steps_;  // one a value
  std::vector<BlockInput> inputs_;
  std::vector<BlockOutput> outputs_;
  Shape shape_;
  int64_t size_ = 0, block_ = 0, weight_ = 0, item_ = 4;
  int64_t singles_ = 0;  // where single constants begin
  size_t scratch_bytes_ = 0;
};

// One thread's registers.
class BlockRun {
 public:
  explicit BlockRun(const BlockProgram& program);
  // Elements [first, first + n) into outputs[k], which are those of element `first`.
  void run(int64_t first, int64_t n, char* const* outputs);

 private:
  char* place(int place) const;
  void run_block(int64_t first, int64_t n, char* const* outputs);
  void load(const BlockStep& step, size_t v, int64_t first, int64_t n);

  const BlockProgram& program_;
  struct Free {
    void operator()(char* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<char[], Free> scratch_;
  std::vector<char*> values_;  // where each value of the block is
};

}  // namespace catena::host
