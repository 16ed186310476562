// Users' kernels up to the compiler: parameter lists, dtypes, broadcasting, outputs.
#include "catena/array/kernel.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "array/kernel_compiler.h"
#include "catena/core/backend.h"
#include "catena/core/memory_profile.h"

namespace catena {

namespace {

std::array<std::atomic<KernelCompiler*>, kDeviceTypeCount> g_compilers;

KernelCompiler& compiler_of(const std::string& who, Device device) {
  CATENA_CHECK(DeviceError, !device.is_cpu(), who,
               ": kernels written in CUDA C++ need arrays of a CUDA device, got ", device,
               "; move them with to_gpu()");
  require_device(device);
  KernelCompiler* compiler = g_compilers[size_t(device.type())].load();
  CATENA_CHECK(DeviceError, compiler != nullptr, who, ": the plug-in of ", device,
               " compiles no kernels");
  return *compiler;
}

std::string trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n", at)) != std::string::npos) {
    const size_t end = text.find_first_of(" \t\n", at);
    words.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end;
  }
  return words;
}

KernelParameter parse_parameter(const std::string& text) {
  std::vector<std::string> words = words_of(text);
  KernelParameter parameter;
  if (!words.empty() && words[0] == "raw") {
    parameter.raw = true;
    words.erase(words.begin());
  }
  CATENA_CHECK(ValueError, words.size() == 2, "kernel parameter '", trim(text),
               "': expected '[raw] type name'");
  const std::string& type = words[0];
  if (type.size() == 1 &&
      ((type[0] >= 'A' && type[0] <= 'Z') || (type[0] >= 'a' && type[0] <= 'z'))) {
    parameter.letter = type[0];
  } else {
    parameter.dtype = parse_dtype(type);
    CATENA_CHECK(ValueError, type == name(parameter.dtype), "kernel parameter '", trim(text),
                 "': the type must be a dtype's name,"
                 " such as ",
                 name(parameter.dtype), ", or one letter");
  }
  parameter.name = words[1];
  CATENA_CHECK(ValueError,
               parameter.name != "i" && parameter.name != "n" && parameter.name[0] != '_',
               "kernel parameter '", trim(text),
               "': the names i, n and those beginning with _ are reserved");
  return parameter;
}

// The dtypes that letters stand for.
class Letters {
 public:
  explicit Letters(const std::string& kernel) : kernel_(kernel) {}

  void bind(const KernelParameter& parameter, Dtype dtype) {
    if (parameter.letter == 0) {
      CATENA_CHECK(DtypeError, parameter.dtype == dtype, kernel_, ": type is mismatched: argument ",
                   parameter.name, " must be ", parameter.dtype, ", got ", dtype);
      return;
    }
    const Dtype* known = find(parameter.letter);
    CATENA_CHECK(DtypeError, known == nullptr || *known == dtype, kernel_,
                 ": type is mismatched: ", std::string(1, parameter.letter), " is ",
                 known ? *known : dtype, " elsewhere, but argument ", parameter.name, " is ",
                 dtype);
    if (known == nullptr) bound_.emplace_back(parameter.letter, dtype);
  }
  Dtype resolve(const KernelParameter& parameter, const char* kind) const {
    if (parameter.letter == 0) return parameter.dtype;
    const Dtype* known = find(parameter.letter);
    CATENA_CHECK(DtypeError, known != nullptr, kernel_, ": the type ",
                 std::string(1, parameter.letter), " of ", kind, " ", parameter.name,
                 " is decided by no argument; give an array");
    return *known;
  }
  // Numbers alone decide a letter by their own dtype.
  void bind_scalar(const KernelParameter& parameter, const Scalar& value) {
    if (parameter.letter != 0 && find(parameter.letter) == nullptr)
      bound_.emplace_back(parameter.letter, value.default_dtype());
  }
  const std::vector<std::pair<char, Dtype>>& bound() const { return bound_; }

 private:
  const Dtype* find(char letter) const {
    for (const auto& [known, dtype] : bound_) {
      if (known == letter) return &dtype;
    }
    return nullptr;
  }
  const std::string& kernel_;
  std::vector<std::pair<char, Dtype>> bound_;
};

Device common_device(const std::string& who, const std::vector<Operand>& arguments) {
  const Array* first = nullptr;
  for (const Operand& argument : arguments) {
    if (argument.array() == nullptr) continue;
    CATENA_CHECK(ValueError, argument.array()->defined(), who,
                 ": an argument is an undefined array");
    if (first)
      check_same_device(who.c_str(), *first, *argument.array());
    else
      first = argument.array();
  }
  return first ? first->device() : current_device();
}

KernelArgument resolved(const KernelParameter& parameter, Dtype dtype, const Operand& argument) {
  KernelArgument result{&parameter, dtype, {}, {}};
  if (argument.array())
    result.array = *argument.array();
  else
    result.scalar = argument.scalar();
  return result;
}

}  // namespace

void register_kernel_compiler(DeviceType type, KernelCompiler* compiler) {
  g_compilers[size_t(type)].store(compiler);
}

std::vector<KernelParameter> parse_kernel_parameters(const std::string& text) {
  std::vector<KernelParameter> result;
  size_t at = 0;
  while (at < text.size() && !trim(text).empty()) {
    const size_t comma = text.find(',', at);
    result.push_back(parse_parameter(text.substr(at, comma - at)));
    if (comma == std::string::npos) break;
    at = comma + 1;
  }
  return result;
}

KernelOutputs::operator Array() const {
  CATENA_CHECK(ValueError, arrays_.size() == 1, "a kernel with ", arrays_.size(),
               " outputs returns no single array; index the result");
  return arrays_[0];
}

// ---- ElementwiseKernel --------------------------------------------------------------------------

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     std::string operation, std::string name, KernelOptions options)
    : definition_(std::make_shared<Definition>(
          Definition{parse_kernel_parameters(in_params), parse_kernel_parameters(out_params),
                     std::move(operation), std::move(name), std::move(options)})) {}

KernelOutputs ElementwiseKernel::call(const std::vector<Operand>& arguments,
                                      std::optional<int64_t> size) const {
  const Definition& kernel = *definition_;
  const size_t inputs = kernel.inputs.size(), outputs = kernel.outputs.size();
  const bool outputs_given = arguments.size() == inputs + outputs;
  CATENA_CHECK(ValueError, outputs_given || arguments.size() == inputs, kernel.name,
               ": wrong number of arguments: expected ", inputs, " inputs or ", inputs + outputs,
               " with outputs, got ", arguments.size());
  const Device device = common_device(kernel.name, arguments);
  KernelCompiler& compiler = compiler_of(kernel.name, device);

  Letters letters(kernel.name);
  Shape shape;
  bool any_shape = false;
  for (size_t k = 0; outputs_given && k < outputs; ++k) {
    const Array* given = arguments[inputs + k].array();
    CATENA_CHECK(ValueError, given != nullptr, kernel.name, ": output ", kernel.outputs[k].name,
                 " must be an array");
    letters.bind(kernel.outputs[k], given->dtype());
  }
  for (size_t k = 0; k < inputs; ++k) {
    const Array* given = arguments[k].array();
    CATENA_CHECK(ValueError, given != nullptr || !kernel.inputs[k].raw, kernel.name,
                 ": raw argument ", kernel.inputs[k].name, " must be an array");
    if (given == nullptr) continue;
    letters.bind(kernel.inputs[k], given->dtype());
    if (kernel.inputs[k].raw) continue;
    shape =
        any_shape ? broadcast_shapes(kernel.name.c_str(), shape, given->shape()) : given->shape();
    any_shape = true;
  }
  for (size_t k = 0; k < inputs; ++k) {
    if (arguments[k].array() == nullptr)
      letters.bind_scalar(kernel.inputs[k], arguments[k].scalar());
  }
  for (size_t k = 0; outputs_given && k < outputs; ++k) {
    if (kernel.outputs[k].raw) continue;
    const Shape& given = arguments[inputs + k].array()->shape();
    shape = any_shape ? broadcast_shapes(kernel.name.c_str(), shape, given) : given;
    any_shape = true;
  }
  CATENA_CHECK(ValueError, !(any_shape && size), kernel.name,
               ": a size is allowed only when every array argument is raw");
  if (size) shape = Shape{*size};
  CATENA_CHECK(ValueError, any_shape || size, kernel.name,
               ": loop size is undecided: every array argument is raw; pass a size");

  std::vector<KernelArgument> all;
  std::vector<Array> results;
  for (size_t k = 0; k < outputs; ++k) {
    const KernelParameter& parameter = kernel.outputs[k];
    const Dtype dtype = letters.resolve(parameter, "output");
    const CallScope scope(kernel.name.c_str());
    Array result;
    if (outputs_given) {
      result = *arguments[inputs + k].array();
      check_writable(kernel.name.c_str(), *result.storage());
      CATENA_CHECK(ShapeError, parameter.raw || result.shape() == shape, kernel.name, ": output ",
                   parameter.name, " has shape ", result.shape(), ", expected ", shape);
    } else {
      CATENA_CHECK(ValueError, !parameter.raw, kernel.name, ": raw output ", parameter.name,
                   " must be given");
      result = Array::uninitialized(shape, dtype, device);
    }
    results.push_back(result);
    all.push_back({&parameter, dtype, result, {}});
  }
  for (size_t k = 0; k < inputs; ++k) {
    const KernelParameter& parameter = kernel.inputs[k];
    KernelArgument argument =
        resolved(parameter, letters.resolve(parameter, "input"), arguments[k]);
    if (argument.array.defined() && !parameter.raw)
      argument.array = argument.array.broadcast_to(shape);
    all.push_back(std::move(argument));
  }
  const int64_t count = element_count(shape);
  if (count > 0) {
    compiler.elementwise(kernel, all, letters.bound(), count, device);
    for (const Array& result : results) result.note_write();
  }
  return KernelOutputs(std::move(results));
}

// ---- ReductionKernel ----------------------------------------------------------------------------

ReductionKernel::ReductionKernel(const std::string& in_params, const std::string& out_params,
                                 std::string map_expr, std::string reduce_expr,
                                 std::string post_map_expr, std::string identity, std::string name,
                                 std::string reduce_type, std::string preamble)
    : definition_(std::make_shared<Definition>(Definition{
          parse_kernel_parameters(in_params), parse_kernel_parameters(out_params),
          std::move(map_expr), std::move(reduce_expr), std::move(post_map_expr),
          std::move(identity), std::move(name), std::move(reduce_type), std::move(preamble)})) {
  CATENA_CHECK(ValueError, definition_->outputs.size() == 1, definition_->name,
               ": a reduction kernel has one output, got ", definition_->outputs.size());
  for (const auto* list : {&definition_->inputs, &definition_->outputs}) {
    for (const KernelParameter& parameter : *list) {
      CATENA_CHECK(ValueError, !parameter.raw, definition_->name, ": raw parameter ",
                   parameter.name, ": reductions take no raw arguments");
    }
  }
}

Array ReductionKernel::call(const std::vector<Operand>& inputs, const Axes& axes,
                            bool keepdims) const {
  const Definition& kernel = *definition_;
  CATENA_CHECK(ValueError, inputs.size() == kernel.inputs.size(), kernel.name,
               ": wrong number of arguments: expected ", kernel.inputs.size(), ", got ",
               inputs.size());
  const Device device = common_device(kernel.name, inputs);
  KernelCompiler& compiler = compiler_of(kernel.name, device);
  Letters letters(kernel.name);
  Shape shape;
  bool any = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Array* given = inputs[k].array();
    if (given == nullptr) continue;
    letters.bind(kernel.inputs[k], given->dtype());
    shape = any ? broadcast_shapes(kernel.name.c_str(), shape, given->shape()) : given->shape();
    any = true;
  }
  CATENA_CHECK(ValueError, any, kernel.name, ": at least one argument must be an array");
  std::vector<KernelArgument> arguments;
  for (size_t k = 0; k < inputs.size(); ++k) {
    arguments.push_back(
        resolved(kernel.inputs[k], letters.resolve(kernel.inputs[k], "input"), inputs[k]));
    if (arguments.back().array.defined())
      arguments.back().array = arguments.back().array.broadcast_to(shape);
  }
  const Axes reduced = normalize_axes(kernel.name.c_str(), axes, shape.ndim());
  uint32_t mask = 0;
  Shape kept = shape, squeezed;
  for (const int64_t axis : reduced) {
    mask |= 1u << axis;
    kept[size_t(axis)] = 1;
  }
  for (int d = 0; d < shape.ndim(); ++d) {
    if (!((mask >> d) & 1)) squeezed.push_back(shape[size_t(d)]);
  }
  const CallScope scope(kernel.name.c_str());
  const Array result =
      Array::uninitialized(kept, letters.resolve(kernel.outputs[0], "output"), device);
  CATENA_CHECK(ValueError,
               element_count(shape) > 0 || result.size() == 0 || !kernel.identity.empty(),
               kernel.name, ": zero elements cannot be reduced without an identity; shape ", shape);
  if (result.size() > 0) {
    compiler.reduction(kernel, {&kernel.outputs[0], result.dtype(), result, {}}, arguments,
                       letters.bound(), shape, mask, device);
  }
  return keepdims ? result : result.reshape(squeezed);
}

// ---- RawKernel, memoised kernels ----------------------------------------------------------------

RawKernel::RawKernel(std::string code, std::string name)
    : code_(std::move(code)), name_(std::move(name)) {}

void RawKernel::operator()(Grid grid, Grid block, const std::vector<Argument>& arguments,
                           unsigned shared_memory) const {
  std::vector<Operand> arrays;
  std::vector<const void*> addresses;
  for (const Argument& argument : arguments) {
    if (argument.array().defined()) arrays.emplace_back(argument.array());
    addresses.push_back(argument.address());
  }
  const Device device = common_device(name_, arrays);
  compiler_of(name_, device).raw(code_, name_, grid, block, addresses, shared_memory, device);
  for (const Operand& array : arrays) array.array()->note_write();
}

namespace {

// One kernel for each list of texts, for the life of the process.
template <class Kernel, class Make>
const Kernel& memoised(const std::vector<std::string>& texts, const Make& make) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::unique_ptr<Kernel>> kernels;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Kernel>& kernel = kernels[texts];
  if (!kernel) kernel = std::make_unique<Kernel>(make());
  return *kernel;
}

}  // namespace

namespace cuda {

const ElementwiseKernel& elementwise(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name,
                                     const KernelOptions& options) {
  return memoised<ElementwiseKernel>(
      {in_params, out_params, operation, name, options.preamble, options.loop_prep,
       options.after_loop, options.reduce_dims ? "1" : "0"},
      [&] { return ElementwiseKernel(in_params, out_params, operation, name, options); });
}

const ReductionKernel& reduce(const std::string& in_params, const std::string& out_params,
                              const std::string& map_expr, const std::string& reduce_expr,
                              const std::string& post_map_expr, const std::string& identity,
                              const std::string& name) {
  return memoised<ReductionKernel>(
      {in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name}, [&] {
        return ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr,
                               identity, name);
      });
}

const RawKernel& raw(const std::string& code, const std::string& name) {
  return memoised<RawKernel>({code, name}, [&] { return RawKernel(code, name); });
}

}  // namespace cuda

KernelCacheStatistics kernel_cache_statistics(int device) {
  return compiler_of("kernel_cache_statistics", cuda_device(device)).statistics(device);
}

}  // namespace catena
