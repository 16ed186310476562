// Fused chains on the CPU: the program is interpreted block by block. The values of a block stay in
// the first-level cache, so memory is read and written once. Each step runs the loop of the single
// operation, so the results are the same bits.
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
  bool direct = false;      // may be read in memory
  bool constant = false;    // one element for the whole call
  int64_t item = 0;         // in memory
  int ndim = 0;             // collapsed dimensions, outermost first
  int64_t shape[kMaxDims], strides[kMaxDims];
};

struct BlockStep {
  Loop loop = nullptr;                         // null: an input, or a cast by `first` and `second`
  CastLoop first = nullptr, second = nullptr;  // steps of a cast, or rounding of a result
  int64_t middle = 0;                          // bytes of an element between `first` and `second`
  int input = -1;
  int sources[3] = {-1, -1, -1};
  int source_count = 0;
  int64_t source_items[3] = {0, 0, 0};
  int64_t item = 0;  // bytes of an element of the result, in the loops
  int place = -1;    // register; -1: none
  int output = -1;   // the step writes this output directly
  bool takes_scalars = false;
  bool single = false;  // a constant that is only read by loops that take scalars
};

struct BlockOutput {
  int value;
  CastLoop store;  // null: the step has already written it
  int64_t item;
};

// A program bound to the arrays of one call; shared by the call's threads.
class BlockProgram {
 public:
  // `wanted` is the dtype of each output.
  BlockProgram(const FusedCall& call, const std::vector<Dtype>& wanted);

  int64_t size() const { return size_; }
  int64_t block() const { return block_; }    // elements
  int64_t weight() const { return weight_; }  // nanoseconds an element, estimated
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  friend class BlockRun;
  void bind_input(const FusedCall& call, int k);
  void add_step(const FusedCall& call, size_t v);
  void add_outputs(const std::vector<Dtype>& wanted, const FusedProgram& program);
  void place_registers();

  std::vector<BlockStep> steps_;  // one for each value
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
  // Computes elements [first, first + n) into outputs[k], which points to element `first`.
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
