// Users' kernels before compilation: parameter lists, dtypes, broadcasting, outputs.
#include "catena/array/kernel.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "array/overlap.h"
#include "array/result_into.h"
#include "array/user_kernels/kernel_compiler.h"
#include "catena/core/backend.h"
#include "catena/core/call_scope.h"
#include "catena/core/entry_scope.h"

namespace catena {

namespace {

std::array<std::atomic<KernelCompiler*>, kDeviceTypeCount> g_compilers;

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
    if (known == nullptr) add(parameter.letter, dtype);
  }
  Dtype resolve(const KernelParameter& parameter, const char* kind) const {
    if (parameter.letter == 0) return parameter.dtype;
    const Dtype* known = find(parameter.letter);
    CATENA_CHECK(DtypeError, known != nullptr, kernel_, ": the type ",
                 std::string(1, parameter.letter), " of ", kind, " ", parameter.name,
                 " is decided by no argument; give an array");
    return *known;
  }
  // If a letter has only numbers, their own dtype decides.
  void bind_scalar(const KernelParameter& parameter, const Scalar& value) {
    if (parameter.letter != 0 && find(parameter.letter) == nullptr)
      add(parameter.letter, value.default_dtype());
  }
  std::span<const std::pair<char, Dtype>> bound() const { return {bound_, count_}; }

 private:
  const Dtype* find(char letter) const {
    for (const auto& [known, dtype] : bound()) {
      if (known == letter) return &dtype;
    }
    return nullptr;
  }
  void add(char letter, Dtype dtype) { bound_[count_++] = {letter, dtype}; }

  const std::string& kernel_;
  std::pair<char, Dtype> bound_[2 * 26];  // for every letter
  size_t count_ = 0;
};

Device common_device(const std::string& who, std::span<const Operand> arguments) {
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

// The compiler of a GPU; null if a lambda runs.
KernelCompiler* compiler_or_host(const std::string& who, Device device, bool has_host,
                                 bool has_text) {
  if (device.is_cpu() && has_host) return nullptr;
  CATENA_CHECK(DeviceError, has_text, who,
               ": a function given as a C++ lambda runs on arrays of a ", "CPU, got ", device,
               "; write an ElementwiseKernel or ReductionKernel with a CUDA "
               "text and this lambda as its on_cpu, or use fuse()");
  return &compiler_of(who, device, ", or give the kernel a lambda for the CPU with on_cpu");
}

// The arguments of an old form: pointers take arrays, all other parameters take numbers.
void check_old_form(const std::string& who, const std::vector<KernelParameter>& parameters,
                    const std::vector<Operand>& arguments, const Axes& axes) {
  CATENA_CHECK(ValueError, axes.empty(), who,
               ": a reduction of one list of C parameters goes over ", "all elements, but axes ",
               axes, " were given");
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Array* array = arguments[k].array();
    CATENA_CHECK(ValueError, array == nullptr || parameters[k].raw, who, ": argument ",
                 parameters[k].name, " is not a pointer and takes a number, got an array of shape ",
                 array->shape());
  }
}

int64_t first_array_size(const std::string& who, std::span<const Operand> arguments) {
  for (const Operand& argument : arguments) {
    if (argument.array()) return argument.array()->size();
  }
  fail<ValueError>(who, ": at least one argument must be an array");
}

// Copies an input that overlaps an output, so that the loop reads the original elements.
void separate(Array& input, const std::vector<KernelParameter>& parameters,
              const std::vector<Array>& outputs) {
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (parameters[k].raw || !overlaps(input, outputs[k])) continue;
    input = input.copy();
    return;
  }
}

bool has_array(std::span<const Operand> arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Operand& argument) { return argument.array() != nullptr; });
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

KernelCompiler& compiler_of(const std::string& who, Device device, const char* instead) {
  CATENA_CHECK(DeviceError, !device.is_cpu(), who,
               ": kernels written in CUDA C++ need arrays of a CUDA device, got ", device,
               "; move them with to_gpu()", instead);
  require_device(device);
  KernelCompiler* compiler = g_compilers[size_t(device.type())].load();
  CATENA_CHECK(DeviceError, compiler != nullptr, who, ": the plug-in of ", device,
               " compiles no kernels");
  return *compiler;
}

void register_kernel_compiler(DeviceType type, KernelCompiler* compiler) {
  g_compilers[size_t(type)].store(compiler);
}

KernelOutputs::operator Array() const {
  CATENA_CHECK(ValueError, arrays_.size() == 1, "a kernel with ", arrays_.size(),
               " outputs returns no single array; index the result");
  return arrays_[0];
}

// ---- ElementwiseKernel --------------------------------------------------------------------------

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     std::string operation, std::string name,
                                     KernelOptions options) {
  Definition d{parse_kernel_parameters(in_params), parse_kernel_parameters(out_params),
               std::move(operation), std::move(name), std::move(options)};
  check_parameters(d.name, d.inputs, d.outputs);
  CATENA_CHECK(ValueError, !d.outputs.empty(), d.name,
               ": an element-wise kernel needs an output, but the list of outputs is empty");
  definition_ = std::make_shared<Definition>(std::move(d));
}

ElementwiseKernel ElementwiseKernel::of_c_arguments(const std::string& arguments,
                                                    std::string operation, std::string name,
                                                    KernelOptions options) {
  auto definition = std::make_shared<Definition>();
  definition->inputs = parse_c_arguments(arguments);
  definition->operation = std::move(operation);
  definition->name = std::move(name);
  definition->options = std::move(options);
  definition->old_form = true;
  check_parameters(definition->name, definition->inputs, {});
  return ElementwiseKernel(std::shared_ptr<const Definition>(std::move(definition)));
}

namespace {

// One call of an element-wise kernel. Small calls take microseconds, so all arguments are in one
// block of memory and all results in another.
class ElementwiseCall {
 public:
  ElementwiseCall(const ElementwiseKernel::Definition& kernel, std::span<const Operand> arguments)
      : kernel_(kernel),
        inputs_(arguments.first(std::min(arguments.size(), kernel.inputs.size()))),
        outputs_(arguments.subspan(inputs_.size())),
        letters_(kernel.name) {
    CATENA_CHECK(ValueError,
                 inputs_.size() == kernel.inputs.size() &&
                     (outputs_.empty() || outputs_.size() == kernel.outputs.size()),
                 kernel.name, ": wrong number of arguments: expected ", kernel.inputs.size(),
                 " inputs or ", kernel.inputs.size() + kernel.outputs.size(), " with outputs, got ",
                 arguments.size());
    device_ = common_device(kernel.name, arguments);
    compiler_ =
        compiler_or_host(kernel.name, device_, !kernel.host.empty(), !kernel.operation.empty());
    bind_letters();
  }

  std::vector<Array> run(std::optional<int64_t> size) {
    decide_shape(size);
    resolved_.reserve(kernel_.outputs.size() + inputs_.size());
    resolve_outputs();
    resolve_inputs();
    const int64_t count = element_count(shape_);
    if (count == 0) return std::move(results_);
    if (compiler_)
      compiler_->elementwise(kernel_, resolved_, letters_.bound(), count, device_);
    else
      run_on_host(kernel_, resolved_, shape_);
    note_writes();
    return std::move(results_);
  }

 private:
  // Outputs first, because they decide a letter before the inputs do.
  void bind_letters() {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Array* given = outputs_[k].array();
      CATENA_CHECK(ValueError, given != nullptr, kernel_.name, ": output ", kernel_.outputs[k].name,
                   " must be an array");
      letters_.bind(kernel_.outputs[k], given->dtype());
    }
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Array* given = inputs_[k].array();
      CATENA_CHECK(ValueError, given != nullptr || !kernel_.inputs[k].raw, kernel_.name,
                   ": raw argument ", kernel_.inputs[k].name, " must be an array");
      if (given) letters_.bind(kernel_.inputs[k], given->dtype());
    }
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].array()) letters_.bind_scalar(kernel_.inputs[k], inputs_[k].scalar());
    }
  }

  void decide_shape(std::optional<int64_t> size) {
    bool any = false;
    const auto add = [&](const KernelParameter& parameter, const Operand& operand) {
      if (parameter.raw || !operand.array()) return;
      const Shape& given = operand.array()->shape();
      if (!any)
        shape_ = given;
      else if (shape_ != given)
        shape_ = broadcast_shapes(kernel_.name.c_str(), shape_, given);
      any = true;
    };
    for (size_t k = 0; k < inputs_.size(); ++k) add(kernel_.inputs[k], inputs_[k]);
    for (size_t k = 0; k < outputs_.size(); ++k) add(kernel_.outputs[k], outputs_[k]);
    if (kernel_.old_form && !size) size = first_array_size(kernel_.name, inputs_);
    CATENA_CHECK(ValueError, !(any && size), kernel_.name,
                 ": a size is allowed only when every array argument is raw");
    CATENA_CHECK(ValueError, size.value_or(0) >= 0, kernel_.name, ": a loop of ", size.value_or(0),
                 " elements; expected a size of 0 or more");
    if (size) shape_ = Shape{*size};
    CATENA_CHECK(ValueError, any || size, kernel_.name, ": loop size is undecided: ",
                 has_array(inputs_) || has_array(outputs_)
                     ? "every array argument is raw; pass a size to call()"
                     : "no argument is an array; give one, or a size to call()");
  }

  void resolve_outputs() {
    const CallScope scope(kernel_.name.c_str());
    results_.reserve(kernel_.outputs.size());
    for (size_t k = 0; k < kernel_.outputs.size(); ++k) {
      const KernelParameter& parameter = kernel_.outputs[k];
      const Dtype dtype = letters_.resolve(parameter, "output");
      results_.push_back(outputs_.empty() ? new_output(parameter, dtype)
                                          : given_output(parameter, *outputs_[k].array()));
      resolved_.push_back({&parameter, dtype, results_.back(), {}});
    }
  }
  Array new_output(const KernelParameter& parameter, Dtype dtype) const {
    CATENA_CHECK(ValueError, !parameter.raw, kernel_.name, ": raw output ", parameter.name,
                 " must be given");
    return Array::uninitialized(shape_, dtype, device_);
  }
  const Array& given_output(const KernelParameter& parameter, const Array& given) const {
    check_writable(kernel_.name.c_str(), given);
    CATENA_CHECK(ShapeError, parameter.raw || given.shape() == shape_, kernel_.name, ": output ",
                 parameter.name, " has shape ", given.shape(), ", expected ", shape_);
    return given;
  }

  void resolve_inputs() {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const KernelParameter& parameter = kernel_.inputs[k];
      resolved_.push_back(resolved(parameter, letters_.resolve(parameter, "input"), inputs_[k]));
      Array& input = resolved_.back().array;
      if (!input.defined() || parameter.raw) continue;
      if (input.shape() != shape_) input = input.broadcast_to(shape_);
      separate(input, kernel_.outputs, results_);
    }
  }

  void note_writes() const {
    for (const Array& result : results_) result.note_write();
    if (!kernel_.old_form) return;
    for (const Operand& argument : inputs_) {
      if (argument.array()) argument.array()->note_write();
    }
  }

  const ElementwiseKernel::Definition& kernel_;
  const std::span<const Operand> inputs_, outputs_;
  Letters letters_;
  Device device_;
  KernelCompiler* compiler_ = nullptr;  // null: a lambda runs
  Shape shape_;
  std::vector<KernelArgument> resolved_;
  std::vector<Array> results_;
};

}  // namespace

KernelOutputs ElementwiseKernel::run(std::span<const Operand> arguments,
                                     std::optional<int64_t> size) const {
  return KernelOutputs(ElementwiseCall(*definition_, arguments).run(size));
}

// ---- ReductionKernel ----------------------------------------------------------------------------

ReductionKernel::ReductionKernel(const std::string& in_params, const std::string& out_params,
                                 std::string map_expr, std::string reduce_expr,
                                 std::string post_map_expr, std::string identity, std::string name,
                                 ReductionKernelOptions options) {
  Definition d{parse_kernel_parameters(in_params),
               parse_kernel_parameters(out_params),
               std::move(map_expr),
               std::move(reduce_expr),
               std::move(post_map_expr),
               std::move(identity),
               std::move(name),
               std::move(options.reduce_type),
               std::move(options.preamble),
               options.reduce_dims,
               std::move(options.options)};
  check_parameters(d.name, d.inputs, d.outputs);
  CATENA_CHECK(ValueError, !d.outputs.empty(), d.name, ": a reduction kernel needs an output");
  for (const KernelParameter& parameter : d.outputs) {
    CATENA_CHECK(ValueError, !parameter.raw, d.name, ": raw output ", parameter.name,
                 ": the outputs of a reduction are not raw");
  }
  definition_ = std::make_shared<Definition>(std::move(d));
}

ReductionKernel ReductionKernel::of_c_arguments(const std::string& arguments, std::string map_expr,
                                                std::string reduce_expr, std::string identity,
                                                std::string name, Dtype dtype,
                                                ReductionKernelOptions options) {
  Definition d{parse_c_arguments(arguments),
               {{false, 0, dtype, "_result"}},
               std::move(map_expr),
               std::move(reduce_expr),
               "_result = a",
               std::move(identity),
               std::move(name),
               std::move(options.reduce_type),
               std::move(options.preamble),
               options.reduce_dims,
               std::move(options.options)};
  d.old_form = true;
  check_parameters(d.name, d.inputs, d.outputs);
  return ReductionKernel(std::make_shared<const Definition>(std::move(d)));
}

namespace {

// The axes that are reduced, and the results' shapes.
struct ReducedShape {
  uint32_t mask = 0;
  Shape kept, squeezed;

  ReducedShape(const std::string& who, const Shape& shape, const Axes& axes) : kept(shape) {
    for (const int64_t axis : normalize_axes(who.c_str(), axes, shape.ndim())) {
      mask |= 1u << axis;
      kept[size_t(axis)] = 1;
    }
    for (int d = 0; d < shape.ndim(); ++d) {
      if (!((mask >> d) & 1)) squeezed.push_back(shape[size_t(d)]);
    }
  }
  bool leading() const { return (mask & (mask + 1)) == 0; }
};

// The result for the caller. `out` receives a copy unless it was written directly.
Array delivered(const Array& result, const ReducedShape& reduced, bool keepdims, const Array* out) {
  const Array shaped = keepdims ? result : result.reshape(reduced.squeezed);
  if (out == nullptr) return shaped;
  out->assign(shaped);
  return *out;
}

// The array that `given` names, if any; its errors name the kernel.
const Array* destination_of(const std::string& kernel, const Out& given) {
  const EntryScope call(kernel.c_str());
  return destination(given);
}

}  // namespace

KernelOutputs ReductionKernel::call(const std::vector<Operand>& inputs, const AxisList& axes,
                                    YesNo keepdims, const Out& given) const {
  const Definition& kernel = *definition_;
  const Array* const out = destination_of(kernel.name, given);
  CATENA_CHECK(ValueError, inputs.size() == kernel.inputs.size(), kernel.name,
               ": wrong number of arguments: expected ", kernel.inputs.size(), ", got ",
               inputs.size());
  CATENA_CHECK(ValueError, out == nullptr || kernel.outputs.size() == 1, kernel.name,
               ": out is for kernels with one output, this one has ", kernel.outputs.size());
  const Device device = common_device(kernel.name, inputs);
  if (kernel.old_form) check_old_form(kernel.name, kernel.inputs, inputs, axes);
  KernelCompiler* const compiler =
      kernel.old_form
          ? &compiler_of(kernel.name, device, ", or call reduce() with lambdas on a CPU")
          : compiler_or_host(kernel.name, device, !kernel.host.empty(), !kernel.map.empty());
  Letters letters(kernel.name);
  if (out) {
    CATENA_CHECK(ValueError, out->defined(), kernel.name, ": out is an undefined array");
    letters.bind(kernel.outputs[0], out->dtype());
  }
  Shape shape;
  bool any = false, any_raw = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Array* given = inputs[k].array();
    CATENA_CHECK(ValueError, given != nullptr || !kernel.inputs[k].raw, kernel.name,
                 ": raw argument ", kernel.inputs[k].name, " must be an array");
    if (given == nullptr) continue;
    letters.bind(kernel.inputs[k], given->dtype());
    any_raw = any_raw || kernel.inputs[k].raw;
    if (kernel.inputs[k].raw) continue;
    shape = any ? broadcast_shapes(kernel.name.c_str(), shape, given->shape()) : given->shape();
    any = true;
  }
  if (kernel.old_form) {
    shape = Shape{first_array_size(kernel.name, inputs)};
    any = true;
  }
  CATENA_CHECK(ValueError, any, kernel.name,
               ": at least one argument that is not raw must be an array");
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].array() == nullptr) letters.bind_scalar(kernel.inputs[k], inputs[k].scalar());
  }
  const ReducedShape reduced(kernel.name, shape, axes);
  CATENA_CHECK(ValueError, !any_raw || reduced.leading(), kernel.name,
               ": with raw arguments the reduced axes must be the leading ones, 0 or (0, 1, ...); "
               "got ",
               axes, " of shape ", shape);
  if (out) {
    const Shape& wanted = keepdims ? reduced.kept : reduced.squeezed;
    CATENA_CHECK(ShapeError, out->shape() == wanted, kernel.name, ": out has shape ", out->shape(),
                 ", expected ", wanted);
    check_same_device(kernel.name.c_str(), *out, Array::uninitialized({}, out->dtype(), device));
  }
  const CallScope scope(kernel.name.c_str());
  std::vector<KernelArgument> arguments;
  for (const KernelParameter& parameter : kernel.outputs) {
    const Dtype dtype = letters.resolve(parameter, "output");
    arguments.push_back({&parameter, dtype, Array::uninitialized(reduced.kept, dtype, device), {}});
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    arguments.push_back(
        resolved(kernel.inputs[k], letters.resolve(kernel.inputs[k], "input"), inputs[k]));
    if (arguments.back().array.defined() && !kernel.inputs[k].raw)
      arguments.back().array = arguments.back().array.broadcast_to(shape);
  }
  const int64_t results = element_count(reduced.kept);
  CATENA_CHECK(ValueError, element_count(shape) > 0 || results == 0 || !kernel.identity.empty(),
               kernel.name, ": zero elements cannot be reduced without an identity; shape ", shape);
  if (results > 0) {
    if (compiler)
      compiler->reduction(kernel, arguments, letters.bound(), shape, reduced.mask, device);
    else
      run_on_host(kernel, arguments, shape, reduced.mask);
  }
  std::vector<Array> delivery;
  for (size_t k = 0; k < kernel.outputs.size(); ++k)
    delivery.push_back(delivered(arguments[k].array, reduced, keepdims, out));
  return KernelOutputs(std::move(delivery));
}

}  // namespace catena
