// A convolution that is ready to run: oneDNN's primitive, and the reorders between the arrays and
// its layouts.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/common/convolution_problem.h"
#include "backends/onednn/dnnl_compat.h"

namespace catena::onednn {

// A convolution and the number of threads that compute it.
struct Problem : ConvolutionProblem {
  int64_t threads;

  template <class Key>
  void describe(Key& key) const {
    ConvolutionProblem::describe(key);
    key << threads;
  }
};

// The arrays of a call: x or gx, W or gW, the bias or null, y or gy.
struct Pointers {
  void* x;
  void* w;
  void* b;
  void* y;
};

// Used by one thread only, because it holds the addresses of the running call.
class Plan {
 public:
  explicit Plan(const Problem& problem);
  // False if oneDNN has no implementation, or only its slow reference loops.
  bool usable() const { return usable_; }
  void run(const Pointers& pointers);

 private:
  struct Argument {
    int name;  // DNNL_ARG_...
    void* Pointers::*pointer;
    bool is_result;
    dnnl::memory given;       // in the array's layout
    dnnl::memory inner;       // in the primitive's layout; empty if it takes the array itself
    dnnl::primitive reorder;  // from one to the other; for results the way back
    size_t offset = 0;        // of inner in the scratch memory
  };
  void build(const Problem& problem);
  void build_forward(const Problem& problem);
  void build_grad_x(const Problem& problem);
  void build_grad_w(const Problem& problem);
  template <class Descriptor>
  bool accept(const Descriptor& descriptor);
  void add(int name, void* Pointers::*pointer, const MemoryDesc& given, const MemoryDesc& inner,
           bool is_result = false, bool accumulate = false);
  void reserve(size_t bytes, size_t* offset);

  bool usable_ = false;
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  std::unordered_map<int, dnnl::memory> names_;
  dnnl::memory scratchpad_;
  size_t scratchpad_offset_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace catena::onednn
