// Users' kernels on a GPU: arguments, programs, launches.

#include <algorithm>
#include <map>
#include <mutex>

#include "array/kernel_compiler.h"
#include "backends/cuda/device.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "backends/cuda/jit/host_args.h"
#include "backends/cuda/jit/map_program.h"
#include "backends/cuda/jit/register.h"
#include "backends/cuda/jit/user_reduction.h"
#include "backends/cuda/streams.h"

namespace catena::jit {

namespace {

constexpr unsigned kUserThreads = 128;

// Dimensions of a loop, innermost first.
struct UserLoop {
  std::vector<int64_t> extent;
  std::vector<std::vector<int64_t>> stride;  // [dimension][operand]
  int64_t size = 1;

  // Goes from the last axis to the first: call with axes in descending order.
  void add(int64_t length, std::vector<int64_t> strides, bool fuse) {
    size *= length;
    if (length == 1) return;
    bool even = fuse && !extent.empty();
    for (size_t k = 0; even && k < strides.size(); ++k)
      even = strides[k] == stride.back()[k] * extent.back();
    if (even) {
      extent.back() *= length;
    } else {
      extent.push_back(length);
      stride.push_back(std::move(strides));
    }
  }
};

// UserArgs<N> of a number of operands known at run time only: the same layout in a byte buffer.
class UserArgsBuffer {
 public:
  explicit UserArgsBuffer(size_t operands) : operands_(std::max<size_t>(operands, 1)) {
    // pointer[N], value[N], size, stride[kUserDims][N], extent, divider, immediate, ndim
    words_.resize(2 * operands_ + 1 + kUserDims * operands_ + kUserDims +
                  (kUserDims * sizeof(Divider)) / 8 + 1);
  }
  void set_array(size_t k, void* data) { words_[k] = reinterpret_cast<uint64_t>(data); }
  void set_number(size_t k, uint64_t bits) {
    words_[operands_ + k] = bits;
    immediate_ |= 1u << k;
  }
  void set_loop(const UserLoop& loop) {
    words_[2 * operands_] = static_cast<uint64_t>(loop.size);
    uint64_t* strides = &words_[2 * operands_ + 1];
    uint64_t* extents = strides + kUserDims * operands_;
    Divider* dividers = reinterpret_cast<Divider*>(extents + kUserDims);
    for (size_t d = 0; d < loop.extent.size(); ++d) {
      for (size_t k = 0; k < loop.stride[d].size(); ++k)
        strides[d * operands_ + k] = static_cast<uint64_t>(loop.stride[d][k]);
      extents[d] = static_cast<uint64_t>(loop.extent[d]);
      dividers[d] = make_divider(static_cast<uint32_t>(
          std::max<int64_t>(1, std::min<int64_t>(loop.extent[d], 0x7fffffff))));
    }
    ndim_ = static_cast<int32_t>(loop.extent.size());
  }
  void* finish() {
    words_.back() = immediate_ | (static_cast<uint64_t>(ndim_) << 32);
    return words_.data();
  }

 private:
  size_t operands_;
  std::vector<uint64_t> words_;
  uint32_t immediate_ = 0;
  int32_t ndim_ = 0;
};
static_assert(sizeof(UserArgs<3>) ==
              8 * (2 * 3 + 1 + kUserDims * 3 + kUserDims + kUserDims * 12 / 8 + 1));

UserRaw raw_argument(const Array& a) {
  UserRaw raw{};
  raw.data = a.raw_data();
  raw.size = a.size();
  raw.ndim = a.ndim();
  raw.contiguous = a.is_contiguous();
  std::copy(a.shape().begin(), a.shape().end(), raw.shape);
  std::copy(a.strides().begin(), a.strides().end(), raw.stride);
  return raw;
}

void set_operand(UserArgsBuffer& args, size_t k, const KernelArgument& argument) {
  if (argument.array.defined())
    args.set_array(k, argument.array.raw_data());
  else
    args.set_number(k,
                    argument.bits ? *argument.bits : scalar_bits(argument.scalar, argument.dtype));
}

UserParameter parameter_of(const KernelArgument& argument) {
  return {argument.parameter->name, argument.dtype, argument.parameter->raw};
}

// Where a kernel's programs are kept: architecture and dtypes.
std::string program_key(int device, std::span<const KernelArgument> arguments) {
  std::string key(1, static_cast<char>(arch_slot(device)));
  for (const KernelArgument& argument : arguments) key += static_cast<char>(argument.dtype);
  return key;
}

// Programs of raw kernels by text, options and name, for each architecture.
Program& raw_program(int device, const RawKernel::Source& source) {
  static std::mutex mutex;
  static std::map<std::string, Program*> programs;
  std::string key = std::to_string(arch_slot(device)) + ' ' + source.name + '\n';
  for (const std::string& option : source.options) key += option + '\n';
  key += source.image ? *source.image : source.code;
  const std::lock_guard lock(mutex);
  Program*& program = programs[key];
  if (program != nullptr) return *program;
  if (source.image) {
    program = source.name.empty()
                  ? load_image(device, "module", *source.image, {})
                  : load_image(device, source.name, *source.image, {source.name.c_str()});
  } else {
    program = source.name.empty() ? make_program(device, "module", source.code, {}, source.options)
                                  : make_program(device, source.name, source.code,
                                                 {source.name.c_str()}, source.options);
  }
  return *program;
}

// Whether the reduced elements of every input that is not a number lie side by side, and any four
// of them from a multiple of four on are aligned.
bool in_runs_of_four(std::span<const KernelArgument* const> operands, size_t outputs,
                     const UserLoop& kept, const UserLoop& reduced) {
  if (reduced.extent.size() != 1) return false;
  for (size_t k = outputs; k < operands.size(); ++k) {
    if (!operands[k]->array.defined()) continue;
    const int64_t item = static_cast<int64_t>(itemsize(operands[k]->dtype)),
                  alignment = std::min<int64_t>(4 * item, 16);
    if (reduced.stride[0][k] != item ||
        reinterpret_cast<uintptr_t>(operands[k]->array.raw_data()) % alignment != 0)
      return false;
    for (const std::vector<int64_t>& strides : kept.stride)
      if (strides[k] % alignment != 0) return false;
  }
  return true;
}

}  // namespace

void launch_user_reduction(const UserReductionLaunch& launch) {
  const std::span<const KernelArgument> arguments = launch.arguments;
  std::vector<const KernelArgument*> operands;
  std::vector<UserRaw> raws;
  for (const KernelArgument& argument : arguments) {
    if (argument.parameter->raw)
      raws.push_back(raw_argument(argument.array));
    else
      operands.push_back(&argument);
  }
  CATENA_CHECK(ValueError, operands.size() <= 32, launch.program->what, ": ", operands.size(),
               " arguments; at most 32 that are not raw");
  UserArgsBuffer kept(operands.size()), reduced(operands.size());
  for (size_t k = 0; k < operands.size(); ++k) set_operand(kept, k, *operands[k]);
  UserLoop kept_loop, reduced_loop;
  const Shape& shape = launch.shape;
  bool neighbours = false;  // results lie closer together than the elements behind one
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    const bool is_reduced = (launch.axes >> d) & 1;
    std::vector<int64_t> strides;
    for (size_t k = 0; k < operands.size(); ++k) {
      const bool none = !operands[k]->array.defined() || (is_reduced && k < launch.outputs);
      strides.push_back(none ? 0 : operands[k]->array.strides()[size_t(d)]);
    }
    if (reduced_loop.size * kept_loop.size == 1 && shape[size_t(d)] > 1) neighbours = !is_reduced;
    (is_reduced ? reduced_loop : kept_loop)
        .add(shape[size_t(d)], std::move(strides), launch.reduce_dims);
  }
  kept.set_loop(kept_loop);
  reduced.set_loop(reduced_loop);
  const UserReducePlan plan =
      plan_user_reduction(kept_loop.size, reduced_loop.size, neighbours, launch.partial_bytes,
                          gpu::device_info(launch.device.index()).multiprocessors);
  StoragePtr partial;
  void* partial_data = nullptr;
  if (plan.splits > 1) {
    partial = allocate(launch.device,
                       size_t(plan.splits) * size_t(kept_loop.size) * size_t(launch.partial_bytes));
    partial_data = partial->data;
  }
  if (raws.empty()) raws.emplace_back();
  const cudaStream_t stream = gpu::launch_stream(launch.device);
  void* kept_args = kept.finish();
  void* reduced_args = reduced.finish();
  long long per_split = plan.per_split;
  int width = plan.width, splits = plan.splits;
  bool wide = plan.width == 1 && in_runs_of_four(operands, launch.outputs, kept_loop, reduced_loop);
  void* parameters[] = {kept_args,  reduced_args, raws.data(), &partial_data,
                        &per_split, &width,       &wide};
  launch_program(*launch.program, 0, launch.device.index(), uint64_t(plan.blocks),
                 unsigned(plan.splits), unsigned(plan.threads), parameters, stream);
  if (plan.splits == 1) return;
  void* finish[] = {kept_args, reduced_args, raws.data(), &partial_data, &splits};
  launch_program(*launch.program, 1, launch.device.index(), uint64_t(plan.finish_blocks), 1, 128,
                 finish, stream);
}

namespace {

class CudaKernelCompiler final : public KernelCompiler {
 public:
  void elementwise(const ElementwiseKernel::Definition& kernel,
                   std::span<const KernelArgument> arguments, UserLetters letters, int64_t size,
                   Device device) override {
    std::vector<UserParameter> outputs, inputs;
    std::vector<const KernelArgument*> operands;
    std::vector<UserRaw> raws;
    for (size_t k = 0; k < arguments.size(); ++k) {
      (k < kernel.outputs.size() ? outputs : inputs).push_back(parameter_of(arguments[k]));
      if (arguments[k].parameter->raw)
        raws.push_back(raw_argument(arguments[k].array));
      else
        operands.push_back(&arguments[k]);
    }
    CATENA_CHECK(ValueError, operands.size() <= 32, kernel.name, ": ", operands.size(),
                 " arguments; at most 32 that are not raw");
    Program& program =
        *static_cast<Program*>(kernel.programs->get(program_key(device.index(), arguments), [&] {
          return make_program(device.index(), kernel.name,
                              user_elementwise_source(kernel, outputs, inputs, letters),
                              {"catena_user"}, kernel.options.options);
        }));
    UserArgsBuffer args(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) set_operand(args, k, *operands[k]);
    args.set_loop(loop_of(operands, size, kernel.options.reduce_dims));
    if (raws.empty()) raws.emplace_back();
    void* parameters[] = {args.finish(), raws.data()};
    const int64_t most = int64_t(gpu::device_info(device.index()).multiprocessors) * 64;
    const int64_t blocks = std::min<int64_t>((size + kUserThreads - 1) / kUserThreads, most);
    launch_program(program, 0, device.index(), uint64_t(blocks), 1, kUserThreads, parameters,
                   gpu::launch_stream(device));
  }

  void reduction(const ReductionKernel::Definition& kernel,
                 std::span<const KernelArgument> arguments, UserLetters letters, const Shape& shape,
                 uint32_t axes, Device device) override {
    UserReductionLaunch launch;
    launch.program =
        static_cast<Program*>(kernel.programs->get(program_key(device.index(), arguments), [&] {
          return make_reduction_program(device.index(), kernel, arguments, letters);
        }));
    launch.partial_bytes = reduced_bytes(kernel, arguments[0].dtype);
    launch.arguments = arguments;
    launch.outputs = kernel.outputs.size();
    launch.shape = shape;
    launch.axes = axes;
    launch.reduce_dims = kernel.reduce_dims;
    launch.device = device;
    launch_user_reduction(launch);
  }

  void raw(const RawKernel::Source& source, RawKernel::Grid grid, RawKernel::Grid block,
           std::span<const void* const> arguments, unsigned shared_memory, Device device) override {
    Program& program = raw_program(device.index(), source);
    std::vector<void*> pointers;
    for (const void* argument : arguments) pointers.push_back(const_cast<void*>(argument));
    launch_raw(program, device.index(), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
               shared_memory, pointers.data(), gpu::launch_stream(device));
  }

  std::pair<void*, size_t> global(const RawKernel::Source& module, const std::string& name,
                                  Device device) override {
    return program_global(raw_program(device.index(), module), device.index(), name);
  }

  KernelCacheStatistics statistics(int device) override {
    const JitStatistics now = jit_statistics();
    return {now.bundle_hits, now.disk_hits, now.compiled, now.missing, describe_jit(device)};
  }

 private:
  static UserLoop loop_of(const std::vector<const KernelArgument*>& operands, int64_t size,
                          bool fuse) {
    UserLoop loop;
    const Array* first = nullptr;
    for (const KernelArgument* operand : operands) {
      if (operand->array.defined() && first == nullptr) first = &operand->array;
    }
    if (first == nullptr) {
      loop.add(size, std::vector<int64_t>(operands.size(), 0), fuse);
      return loop;
    }
    for (int d = first->ndim() - 1; d >= 0; --d) {
      std::vector<int64_t> strides;
      for (const KernelArgument* operand : operands) {
        strides.push_back(operand->array.defined() ? operand->array.strides()[size_t(d)] : 0);
      }
      loop.add(first->shape()[size_t(d)], std::move(strides), fuse);
    }
    return loop;
  }
};

}  // namespace

Program* make_reduction_program(int device, const ReductionKernel::Definition& kernel,
                                std::span<const KernelArgument> arguments, UserLetters letters) {
  std::vector<UserParameter> outputs, inputs;
  for (size_t k = 0; k < arguments.size(); ++k)
    (k < kernel.outputs.size() ? outputs : inputs).push_back(parameter_of(arguments[k]));
  return make_program(device, kernel.name, user_reduction_source(kernel, outputs, inputs, letters),
                      {"catena_user_reduce", "catena_user_finish"}, kernel.options);
}

void register_user_kernels() {
  static CudaKernelCompiler compiler;
  register_kernel_compiler(DeviceType::kCuda, &compiler);
}

}  // namespace catena::jit
