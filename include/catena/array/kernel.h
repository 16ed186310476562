// Kernels that users write in CUDA C++: element by element, as reductions, or whole.
//
// They are compiled at first use for the dtypes they are called with, cached in the process and on
// disk (CATENA_CACHE_DIR), and run on arrays of CUDA devices only; on others they throw
// DeviceError.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// One parameter of a kernel: "[raw] type name". The type is a NumPy dtype name, or one letter that
// stands for the dtype of the argument; equal letters are equal dtypes.
struct KernelParameter {
  bool raw = false;
  char letter = 0;  // 0: `dtype` is fixed
  Dtype dtype = Dtype::kFloat32;
  std::string name;
};
// Throws ValueError for a reserved name (i, n, names beginning with _), DtypeError for a type.
std::vector<KernelParameter> parse_kernel_parameters(const std::string& text);

// Further texts around an operation, and how its loop may be laid out.
struct KernelOptions {
  std::string preamble;     // at the top of the file
  std::string loop_prep;    // before the loop over elements
  std::string after_loop;   // behind it
  bool reduce_dims = true;  // merge dimensions that all arguments step through evenly
};

// What a kernel call returns: one array, or several.
class KernelOutputs {
 public:
  explicit KernelOutputs(std::vector<Array> arrays) : arrays_(std::move(arrays)) {}
  // ValueError unless there is exactly one.
  operator Array() const;
  const Array& operator[](size_t index) const { return arrays_.at(index); }
  size_t size() const { return arrays_.size(); }

 private:
  std::vector<Array> arrays_;
};

// CuPy's ElementwiseKernel:
//
//   ElementwiseKernel squared_diff("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
//   Array z = squared_diff(a, b);
//
// The operation is the body of a loop over all elements of the broadcast arguments; it sees i (the
// element's index in C order), n (their number) and _ind.size() (the same). Inputs are constants,
// outputs may also be read when the caller gave them. 16-bit floats appear as float. `raw`
// arguments take no part in broadcasting: name[index] with a C-order linear index or an int array
// of one index a dimension, name.size(), name.shape(), name.strides().
class ElementwiseKernel {
 public:
  ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                    std::string operation, std::string name = "kernel", KernelOptions options = {});

  // Inputs, or inputs and outputs. Outputs that are not given are allocated; their letters must
  // occur among the inputs. Scalars take the dtype of their parameter. Zero elements: nothing is
  // run. ValueError: wrong number of arguments, no size with raw arguments only; DtypeError:
  // letters that do not agree; ShapeError; DeviceError.
  template <class... Arguments>
  KernelOutputs operator()(const Arguments&... arguments) const {
    return call({Operand(arguments)...});
  }
  // With the loop's size, needed (and allowed) when every array argument is raw.
  KernelOutputs call(const std::vector<Operand>& arguments, std::optional<int64_t> size = {}) const;

  struct Definition;

 private:
  std::shared_ptr<const Definition> definition_;
};

// CuPy's ReductionKernel: each element is mapped, the results are folded by `reduce_expr` over a
// and b from `identity`, and `post_map_expr` makes the output out of a.
//
//   ReductionKernel l2norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
//   Array norms = l2norm(x, 1);
class ReductionKernel {
 public:
  // An empty identity is none: zero elements are then a ValueError. reduce_type is the C++ type of
  // a and b; empty: the output's.
  ReductionKernel(const std::string& in_params, const std::string& out_params, std::string map_expr,
                  std::string reduce_expr, std::string post_map_expr, std::string identity,
                  std::string name = "reduce_kernel", std::string reduce_type = "",
                  std::string preamble = "");

  // One input over the given axes (empty: all).
  Array operator()(const Operand& input, const Axes& axes = {}, bool keepdims = false) const {
    return call({input}, axes, keepdims);
  }
  Array operator()(const Operand& input, int64_t axis, bool keepdims = false) const {
    return call({input}, Axes{axis}, keepdims);
  }
  // All inputs, broadcast together; raw arguments are not supported. ValueError, DtypeError,
  // ShapeError, DeviceError as above.
  Array call(const std::vector<Operand>& inputs, const Axes& axes = {},
             bool keepdims = false) const;

  struct Definition;

 private:
  std::shared_ptr<const Definition> definition_;
};

// A whole kernel: CUDA C++ that defines extern "C" __global__ void name(...). Arrays are passed as
// pointers to their first element (strides are the caller's business), bool, int32, int64, uint32,
// float and double by value as their C++ types.
class RawKernel {
 public:
  RawKernel(std::string code, std::string name);

  class Argument {
   public:
    Argument(const Array& array) : array_(array) { bits_.pointer = array.raw_data(); }
    Argument(bool value) { bits_.b = value; }
    Argument(int32_t value) { bits_.i32 = value; }
    Argument(uint32_t value) { bits_.u32 = value; }
    Argument(int64_t value) { bits_.i64 = value; }
    Argument(float value) { bits_.f32 = value; }
    Argument(double value) { bits_.f64 = value; }
    const Array& array() const { return array_; }
    const void* address() const { return &bits_; }

   private:
    union {
      void* pointer;
      bool b;
      int32_t i32;
      uint32_t u32;
      int64_t i64;
      float f32;
      double f64;
    } bits_{};
    Array array_;
  };
  struct Grid {
    unsigned x = 1, y = 1, z = 1;
  };

  // Enqueues on the current stream of the arrays' device (the current device without arrays).
  void operator()(Grid grid, Grid block, const std::vector<Argument>& arguments,
                  unsigned shared_memory = 0) const;

 private:
  std::string code_, name_;
};

namespace cuda {

// The kernel of these texts, made once.
const ElementwiseKernel& elementwise(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name,
                                     const KernelOptions& options = {});
const ReductionKernel& reduce(const std::string& in_params, const std::string& out_params,
                              const std::string& map_expr, const std::string& reduce_expr,
                              const std::string& post_map_expr, const std::string& identity,
                              const std::string& name);
const RawKernel& raw(const std::string& code, const std::string& name);

}  // namespace cuda

// Where the kernels of this process came from.
struct KernelCacheStatistics {
  uint64_t bundle_hits = 0;  // programs of the build-time bundle
  uint64_t disk_hits = 0;    // of the cache folder
  uint64_t compiled = 0;     // compiled by NVRTC in this process
  uint64_t missing = 0;      // not in the bundle
  std::string description;   // bundle file, cache folder, NVRTC version
};
// Loads the cuda plug-in; throws DeviceError where it cannot be used.
KernelCacheStatistics kernel_cache_statistics(int device = 0);

}  // namespace catena
