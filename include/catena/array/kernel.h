// Kernels that users write: element by element or as reductions, in CUDA C++ text for GPUs and as
// C++ lambdas for CPUs.
//
// The text is compiled at first use for the dtypes it is called with and cached in the process and
// on disk (CATENA_CACHE_DIR). A kernel without a lambda for the arguments' dtypes (on_cpu) throws
// DeviceError for arrays of a CPU.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/host_kernel.h"
#include "catena/array/raw_kernel.h"
#include "catena/array/reduction.h"

namespace catena {

// One parameter of a kernel: "[raw] type name". The type is a NumPy dtype name, or one letter that
// stands for the dtype of the argument; equal letters are equal dtypes.
struct KernelParameter {
  bool raw = false;
  char letter = 0;  // 0: `dtype` is fixed
  Dtype dtype = Dtype::kFloat32;
  std::string name = {};
};
// Throws ValueError for a reserved name (i, n, names beginning with _) and for an entry that is
// empty, DtypeError for a type.
std::vector<KernelParameter> parse_kernel_parameters(const std::string& text);

// Further texts around an operation, and how its loop may be laid out.
struct KernelOptions {
  std::string preamble = {};              // at the top of the file
  std::string loop_prep = {};             // before the loop over elements
  std::string after_loop = {};            // behind it
  bool reduce_dims = true;                // merge dimensions that all arguments step through evenly
  std::vector<std::string> options = {};  // for the compiler, beside the library's own
};
// Options of a ReductionKernel, with CuPy's names.
struct ReductionKernelOptions {
  std::string reduce_type = {};  // the C++ type of a and b; empty: the first output's
  std::string preamble = {};
  bool reduce_dims = true;
  std::vector<std::string> options = {};
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
// of one index a dimension, name.size(), name.shape(), name.strides(). Outputs that overlap inputs
// change nothing in what the loop reads, as in the library's own operations: such inputs are copied
// first; what a raw argument shares with others is the caller's business.
class ElementwiseKernel {
 public:
  // ValueError unless all parameters have different names and one is an output.
  ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                    std::string operation, std::string name = "kernel", KernelOptions options = {});

  // Handles to a shared definition, also after a move.
  ElementwiseKernel(const ElementwiseKernel&) = default;
  ElementwiseKernel& operator=(const ElementwiseKernel&) = default;

  // Inputs, or inputs and outputs. Outputs that are not given are allocated; their letters must
  // occur among the inputs. Scalars take the dtype of their parameter. Zero elements: nothing is
  // run. ValueError: wrong number of arguments, no size with raw arguments only; DtypeError:
  // letters that do not agree; ShapeError; DeviceError.
  template <class... Arguments>
  KernelOutputs operator()(const Arguments&... arguments) const {
    const std::array<Operand, sizeof...(Arguments)> list{Operand(arguments)...};
    return run(list, {});
  }
  // With the loop's size, needed (and allowed) when every array argument is raw.
  KernelOutputs call(const std::vector<Operand>& arguments,
                     std::optional<int64_t> size = {}) const {
    return run(arguments, size);
  }

  // The same kernel with a lambda for arrays of a CPU; a kernel may have one for each list of
  // dtypes. Parameters in the order inputs, outputs: values, references for outputs, RawView for
  // `raw` ones, and KernelIndex first of all if it is wanted; a single output may be returned
  // instead. ValueError when they do not agree with the parameter lists.
  //
  //   auto diff = ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff")
  //       .on_cpu<float, double>([]<class T>(T x, T y, T& z) { z = (x - y) * (x - y); });
  template <class F>
  ElementwiseKernel on_cpu(F function) const {
    return with_host(detail::HostSignature<F>::make(std::move(function)));
  }
  template <class T, class... More, class F>
  requires kIsDtypeStorage<T> ElementwiseKernel on_cpu(F function)
  const {
    ElementwiseKernel result = with_host(detail::make_generic_host<T>(function));
    if constexpr (sizeof...(More) > 0)
      return result.on_cpu<More...>(std::move(function));
    else
      return result;
  }
  // The kernel of one list of C parameters; see cuda::elementwise.
  static ElementwiseKernel of_c_arguments(const std::string& arguments, std::string operation,
                                          std::string name, KernelOptions options = {});
  // A kernel of a lambda alone.
  static ElementwiseKernel of_host(std::shared_ptr<const detail::HostElementwise> host,
                                   std::string name);

  struct Definition;

 private:
  explicit ElementwiseKernel(std::shared_ptr<const Definition> definition)
      : definition_(std::move(definition)) {}
  ElementwiseKernel with_host(std::shared_ptr<const detail::HostElementwise> host) const;
  KernelOutputs run(std::span<const Operand> arguments, std::optional<int64_t> size) const;

  std::shared_ptr<const Definition> definition_;
};

// CuPy's ReductionKernel: each element is mapped, the results are folded by `reduce_expr` over a
// and b from `identity`, and `post_map_expr` makes the output out of a.
//
//   ReductionKernel l2norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
//   Array norms = l2norm(x, 1);
class ReductionKernel {
 public:
  // An empty identity is none: zero elements are then a ValueError. The expressions see _i, the
  // C-order index of the result, and the map _j, the index of the element in the broadcast inputs
  // with the reduced axes moved to the front. `raw` inputs are indexed by the map itself.
  ReductionKernel(const std::string& in_params, const std::string& out_params, std::string map_expr,
                  std::string reduce_expr, std::string post_map_expr, std::string identity,
                  std::string name = "reduce_kernel", ReductionKernelOptions options = {});

  // Handles to a shared definition, also after a move.
  ReductionKernel(const ReductionKernel&) = default;
  ReductionKernel& operator=(const ReductionKernel&) = default;

  // One input over the given axes (empty: all).
  Array operator()(const Operand& input, const AxisList& axes = none,
                   YesNo keepdims = false) const {
    return call({input}, axes, keepdims);
  }
  // All inputs; those that are not raw are broadcast together. With a raw input the reduced axes
  // must be the leading ones, so that _j is its C-order index. `out` receives the result of a
  // kernel with one output. ValueError, DtypeError, ShapeError, DeviceError.
  KernelOutputs call(const std::vector<Operand>& inputs, const AxisList& axes = none,
                     YesNo keepdims = false, const Out& out = {}) const;

  // The same kernel with lambdas for arrays of a CPU; one set for each list of dtypes. `map` takes
  // the inputs by value and gives an accumulator (of identity's type), `fold` joins two, `post`
  // takes one and returns the output, or writes outputs through references.
  //
  //   norm.on_cpu(0.0f, [](float x) { return x * x; }, [](float a, float b) { return a + b; },
  //               [](float a) { return std::sqrt(a); });
  template <class A, class Map, class Fold, class Post>
  ReductionKernel on_cpu(A identity, Map map, Fold fold, Post post) const {
    return with_host(
        detail::make_host_reduction(identity, std::move(map), std::move(fold), std::move(post)));
  }
  // The kernel of one list of C parameters; see cuda::reduce.
  static ReductionKernel of_c_arguments(const std::string& arguments, std::string map_expr,
                                        std::string reduce_expr, std::string identity,
                                        std::string name, Dtype dtype,
                                        ReductionKernelOptions options = {});
  static ReductionKernel of_host(std::shared_ptr<const detail::HostReduction> host,
                                 std::string name);

  struct Definition;

 private:
  explicit ReductionKernel(std::shared_ptr<const Definition> definition)
      : definition_(std::move(definition)) {}
  ReductionKernel with_host(std::shared_ptr<const detail::HostReduction> host) const;

  std::shared_ptr<const Definition> definition_;
};

namespace detail {
template <class Tuple, size_t... I>
auto call_host_elementwise(const Tuple& arguments, std::index_sequence<I...>) {
  using F = std::tuple_element_t<sizeof...(I), Tuple>;
  using Signature = HostSignature<std::decay_t<F>>;
  const KernelOutputs outputs =
      ElementwiseKernel::of_host(Signature::make(std::get<sizeof...(I)>(arguments)), "elementwise")
          .call({Operand(std::get<I>(arguments))...});
  if constexpr (Signature::kOutputs == 1)
    return outputs[0];
  else
    return outputs;
}
// Anything but arrays and numbers. A generic operator() is rejected later, with a reason.
template <class F>
concept KernelFunction =
    std::is_function_v<std::remove_pointer_t<F>> || !std::is_constructible_v<Operand, const F&>;
template <class... A>
concept ArraysThenFunction =
    KernelFunction<std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>>;
}  // namespace detail

// elementwise(array..., lambda) on arrays of a CPU: the lambda's values are the inputs, its
// references and its return value the outputs, which are allocated unless given. One output is
// returned as an Array, several as KernelOutputs. Dtypes must be those of the lambda (DtypeError);
// numbers are converted. For a function on both devices, see ElementwiseKernel::on_cpu and fuse.
//
//   Array z = elementwise(x, y, [](float a, float b) { return a > b ? a - b : 0; });
template <class... A>
requires(sizeof...(A) >= 2 &&
         detail::ArraysThenFunction<A...>) auto elementwise(const A&... arguments) {
  return detail::call_host_elementwise(std::tie(arguments...),
                                       std::make_index_sequence<sizeof...(A) - 1>());
}

// reduce(arrays, identity, map, fold, post) on arrays of a CPU, over axes (empty: all): `map` gives
// an accumulator for the elements of the arrays, `fold` joins two, `post` makes the result.
//
//   Array dots = reduce({x, y}, 0.0, [](float a, float b) { return double(a) * b; },
//                       [](double a, double b) { return a + b; },
//                       [](double a) { return float(a); }, 1);
template <class A, class Map, class Fold, class Post>
KernelOutputs reduce(const std::vector<Operand>& arrays, A identity, Map map, Fold fold, Post post,
                     const AxisList& axes = none, YesNo keepdims = false) {
  return ReductionKernel::of_host(detail::make_host_reduction(identity, std::move(map),
                                                              std::move(fold), std::move(post)),
                                  "reduce")
      .call(arrays, axes, keepdims);
}

namespace cuda {

// The kernel of these texts, made once and remembered until clear_memo (memoize.h).
ElementwiseKernel elementwise(const std::string& in_params, const std::string& out_params,
                              const std::string& operation, const std::string& name,
                              const KernelOptions& options = {});
// The first versions' form: one list of C parameters, all arrays of one size, and an operation that
// writes the index i itself. The loop runs over the elements of the first array argument, in C
// order. On a CPU it takes a lambda of on_cpu with a RawView for each array.
//
//   cuda::elementwise("float* y, const float* x, float c", "y[i] = c * x[i]", "scale")(y, x, 2);
ElementwiseKernel elementwise(const std::string& arguments, const std::string& operation,
                              const std::string& name, const KernelOptions& options = {});
ReductionKernel reduce(const std::string& in_params, const std::string& out_params,
                       const std::string& map_expr, const std::string& reduce_expr,
                       const std::string& post_map_expr, const std::string& identity,
                       const std::string& name, const ReductionKernelOptions& options = {});
// The first versions' form of a reduction, all arrays of one size, from `neutral` over all elements
// of the first array argument to a 0-d array of `dtype`, in which it also folds (unless
// options.reduce_type is given). Its map writes the index i itself. ValueError for axes. Only for
// arrays of a GPU (DeviceError); the form above takes lambdas for a CPU.
//
//   auto dot = cuda::reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "dot");
//   Array product = dot.call({x, y});
ReductionKernel reduce(const std::string& arguments, const std::string& map_expr,
                       const std::string& reduce_expr, const std::string& neutral,
                       const std::string& name, Dtype dtype = Dtype::kFloat32,
                       const ReductionKernelOptions& options = {});
RawKernel raw(const std::string& code, const std::string& name,
              const std::vector<std::string>& options = {});

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
