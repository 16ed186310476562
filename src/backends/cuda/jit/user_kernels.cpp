// Users' kernels on a GPU: arguments, programs, launches.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "array/user_kernels/kernel_compiler.h"
#include "backends/common/family.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "backends/cuda/jit/host_args.h"
#include "backends/cuda/jit/map_program.h"
#include "backends/cuda/jit/user_reduction.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/streams.h"
#include "core/scalar_bits.h"

namespace catena::jit {

namespace {

constexpr unsigned kUserThreads = 128;
constexpr size_t kMaxUserOperands = 32;
static_assert(kUserDims >= kMaxDims);

// The number of blocks of a loop. Few elements are spread over the device, one for each thread.
// With more elements a thread takes the four that it reads at once, because its start-up costs as
// much as several elements.
int64_t blocks_for(int64_t size, int64_t multiprocessors) {
  const int64_t ones = (size + kUserThreads - 1) / kUserThreads, spread = multiprocessors * 8;
  return std::clamp((ones + 3) / 4, std::min(ones, spread), multiprocessors * 64);
}

// The arguments of a kernel that are not raw, outputs first, and the raw ones.
struct UserOperands {
  const KernelArgument* list[kMaxUserOperands];
  size_t count = 0;
  std::vector<UserRaw> raws;

  UserOperands(const std::string& who, std::span<const KernelArgument> arguments);
  // The first that is an array, or null.
  const Array* first_array() const {
    for (size_t k = 0; k < count; ++k) {
      if (list[k]->array.defined()) return &list[k]->array;
    }
    return nullptr;
  }
};

// Dimensions of a loop, innermost first. It allocates no memory, because a launch takes
// microseconds.
struct UserLoop {
  int ndim = 0;
  int64_t size = 1;
  int64_t extent[kUserDims];
  int64_t stride[kUserDims][kMaxUserOperands];  // bytes

  // Called for the axes in descending order. stride_of(k) is the stride of operand k. A dimension
  // that continues the previous one is merged with it if `join`.
  template <class StrideOf>
  void add(int64_t length, size_t operands, const StrideOf& stride_of, bool join) {
    size *= length;
    if (length == 1) return;
    int64_t* strides = stride[ndim];
    for (size_t k = 0; k < operands; ++k) strides[k] = stride_of(k);
    bool even = join && ndim > 0;
    for (size_t k = 0; even && k < operands; ++k)
      even = strides[k] == stride[ndim - 1][k] * extent[ndim - 1];
    if (even)
      extent[ndim - 1] *= length;
    else
      extent[ndim++] = length;
  }
};

// UserArgs<N, D> with numbers known only at run time: the same layout in a buffer.
class UserArgsBuffer {
 public:
  UserArgsBuffer(size_t operands, int dims)
      : operands_(std::max<size_t>(operands, 1)), dims_(static_cast<size_t>(dims)) {
    std::fill_n(words_, size_in_words(operands_, dims_), uint64_t{0});
  }
  UserArgsBuffer(const UserOperands& operands, int dims, const UserLoop& loop)
      : UserArgsBuffer(operands.count, dims) {
    for (size_t k = 0; k < operands.count; ++k) set_operand(k, *operands.list[k]);
    set_loop(loop, operands.count);
  }
  void* data() { return words_; }

  static constexpr size_t size_in_words(size_t operands, size_t dims) {
    return strides_at(operands) + dims * (operands + 1) + (dims * sizeof(Divider) + 8 + 7) / 8;
  }

 private:
  static constexpr size_t strides_at(size_t operands) { return 2 * operands + 1; }
  void set_operand(size_t k, const KernelArgument& argument) {
    if (argument.array.defined()) {
      words_[k] = reinterpret_cast<uint64_t>(argument.array.raw_data());
      return;
    }
    words_[operands_ + k] =
        argument.bits ? *argument.bits : scalar_bits(argument.scalar, argument.dtype);
    immediate_ |= 1u << k;
  }
  void set_loop(const UserLoop& loop, size_t operands) {
    words_[2 * operands_] = static_cast<uint64_t>(loop.size);
    uint64_t* strides = words_ + strides_at(operands_);
    uint64_t* extents = strides + dims_ * operands_;
    char* end = reinterpret_cast<char*>(extents + dims_);
    for (int d = 0; d < loop.ndim; ++d) {
      for (size_t k = 0; k < operands; ++k)
        strides[static_cast<size_t>(d) * operands_ + k] = static_cast<uint64_t>(loop.stride[d][k]);
      extents[d] = static_cast<uint64_t>(loop.extent[d]);
      const Divider divider = make_divider(static_cast<uint32_t>(
          std::max<int64_t>(1, std::min<int64_t>(loop.extent[d], 0x7fffffff))));
      std::memcpy(end + static_cast<size_t>(d) * sizeof divider, &divider, sizeof divider);
    }
    end += dims_ * sizeof(Divider);
    const int32_t ndim = loop.ndim;
    std::memcpy(end, &immediate_, sizeof immediate_);
    std::memcpy(end + sizeof immediate_, &ndim, sizeof ndim);
  }

  size_t operands_, dims_;
  uint32_t immediate_ = 0;
  uint64_t words_[2 * kMaxUserOperands + 1 + kUserDims * (kMaxUserOperands + 1) +
                  (kUserDims * sizeof(Divider) + 8 + 7) / 8];
};
static_assert(sizeof(UserArgs<3>) == 8 * UserArgsBuffer::size_in_words(3, kUserDims));
static_assert(sizeof(UserArgs<3, 1>) == 8 * UserArgsBuffer::size_in_words(3, 1));

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

UserOperands::UserOperands(const std::string& who, std::span<const KernelArgument> arguments) {
  for (const KernelArgument& argument : arguments) {
    if (argument.parameter->raw) {
      raws.push_back(raw_argument(argument.array));
      continue;
    }
    CATENA_CHECK(ValueError, count < kMaxUserOperands, who, ": ", arguments.size(),
                 " arguments; expected at most ", kMaxUserOperands, " that are not raw");
    list[count++] = &argument;
  }
}

// The arguments as the kernel texts see them.
std::vector<UserParameter> parameters_of(std::span<const KernelArgument> arguments) {
  std::vector<UserParameter> result;
  for (const KernelArgument& argument : arguments)
    result.push_back({argument.parameter->name, argument.dtype, argument.parameter->raw});
  return result;
}

// The key under which a kernel's programs are kept: architecture and dtypes.
std::string program_key(int device, std::span<const KernelArgument> arguments) {
  std::string key(1, static_cast<char>(arch_slot(device)));
  for (const KernelArgument& argument : arguments) key += static_cast<char>(argument.dtype);
  return key;
}

// Libraries of raw kernels by text and options, for each architecture; their kernels by name.
Program& raw_program(int device, const RawKernel::Source& source) {
  static std::mutex mutex;
  static std::map<std::string, Program*> libraries;
  static std::map<std::pair<Program*, std::string>, Program*> kernels;
  std::string key = std::to_string(arch_slot(device)) + '\n';
  for (const std::string& option : source.options) key += option + '\n';
  key += source.image ? *source.image : source.code;
  const std::lock_guard lock(mutex);
  Program*& library = libraries[key];
  if (library == nullptr) {
    const std::string what = source.name.empty() ? "module" : source.name;
    library = source.image ? load_image(device, what, *source.image, {})
                           : make_program(device, what, source.code, {}, source.options);
  }
  if (source.name.empty()) return *library;
  Program*& kernel = kernels[{library, source.name}];
  if (kernel == nullptr) kernel = program_kernel(*library, source.name);
  return *kernel;
}

// Whether the reduced elements of every array are contiguous, and every run of four that starts at
// a multiple of four is aligned.
bool in_runs_of_four(const UserOperands& operands, size_t outputs, const UserLoop& kept,
                     const UserLoop& reduced) {
  if (reduced.ndim != 1) return false;
  for (size_t k = outputs; k < operands.count; ++k) {
    const KernelArgument& operand = *operands.list[k];
    if (!operand.array.defined()) continue;
    const int64_t item = static_cast<int64_t>(itemsize(operand.dtype)),
                  alignment = std::min<int64_t>(4 * item, 16);
    if (reduced.stride[0][k] != item ||
        reinterpret_cast<uintptr_t>(operand.array.raw_data()) % alignment != 0)
      return false;
    for (int d = 0; d < kept.ndim; ++d)
      if (kept.stride[d][k] % alignment != 0) return false;
  }
  return true;
}

}  // namespace

void launch_user_reduction(const UserReductionLaunch& launch) {
  UserOperands operands(launch.program->what, launch.arguments);
  UserLoop kept_loop, reduced_loop;
  const Shape& shape = launch.shape;
  bool neighbours = false;  // adjacent results are closer in memory than the elements of one
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    const bool is_reduced = (launch.axes >> d) & 1;
    const auto stride_of = [&](size_t k) -> int64_t {
      const Array& a = operands.list[k]->array;
      return !a.defined() || (is_reduced && k < launch.outputs) ? 0 : a.strides()[size_t(d)];
    };
    if (reduced_loop.size * kept_loop.size == 1 && shape[size_t(d)] > 1) neighbours = !is_reduced;
    (is_reduced ? reduced_loop : kept_loop)
        .add(shape[size_t(d)], operands.count, stride_of, launch.reduce_dims);
  }
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
  const cudaStream_t stream = gpu::launch_stream(launch.device);
  UserArgsBuffer kept(operands, kUserDims, kept_loop), reduced(operands, kUserDims, reduced_loop);
  long long per_split = plan.per_split;
  int width = plan.width, splits = plan.splits;
  bool wide = plan.width == 1 && in_runs_of_four(operands, launch.outputs, kept_loop, reduced_loop);
  void* raws = operands.raws.data();
  void* parameters[] = {kept.data(), reduced.data(), &partial_data, &per_split,
                        &width,      &wide,          raws};
  launch_program(*launch.program, 0, launch.device.index(), uint64_t(plan.blocks),
                 unsigned(plan.splits), unsigned(plan.threads), parameters, stream);
  if (plan.splits == 1) return;
  void* finish[] = {kept.data(), reduced.data(), &partial_data, &splits, raws};
  launch_program(*launch.program, 1, launch.device.index(), uint64_t(plan.finish_blocks), 1, 128,
                 finish, stream);
}

namespace {

class CudaKernelCompiler final : public KernelCompiler {
 public:
  void elementwise(const ElementwiseKernel::Definition& kernel,
                   std::span<const KernelArgument> arguments, UserLetters letters, int64_t size,
                   Device device) override {
    UserOperands operands(kernel.name, arguments);
    UserLoop loop;
    fill_loop(loop, operands, size, kernel.options.reduce_dims);
    const int dims = loop.ndim <= 1 ? 1 : kUserDims;
    std::string key = program_key(device.index(), arguments);
    key += static_cast<char>(dims);
    Program& program = *static_cast<Program*>(kernel.programs->get(key, [&] {
      const size_t outputs = kernel.outputs.size();
      return make_program(
          device.index(), kernel.name,
          user_elementwise_source(kernel, parameters_of(arguments.first(outputs)),
                                  parameters_of(arguments.subspan(outputs)), letters, dims),
          {"catena_user"}, kernel.options.options);
    }));
    UserArgsBuffer args(operands, dims, loop);
    void* parameters[] = {args.data(), operands.raws.data()};
    const int64_t blocks = blocks_for(size, gpu::device_info(device.index()).multiprocessors);
    const cudaStream_t stream = gpu::launch_stream(device);
    launch_program(program, 0, device.index(), uint64_t(blocks), 1, kUserThreads, parameters,
                   stream);
    gpu::note_user_kernel(program.what, device.index(), stream);
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
    gpu::note_user_kernel(launch.program->what, device.index(), gpu::launch_stream(device));
  }

  void raw(const RawKernel::Source& source, RawKernel::Grid grid, RawKernel::Grid block,
           std::span<const void* const> arguments, unsigned shared_memory, Device device) override {
    Program& program = raw_program(device.index(), source);
    std::vector<void*> pointers;
    for (const void* argument : arguments) pointers.push_back(const_cast<void*>(argument));
    const cudaStream_t stream = gpu::launch_stream(device);
    launch_raw(program, device.index(), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
               shared_memory, pointers.data(), stream);
    gpu::note_user_kernel(program.what, device.index(), stream);
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
  static void fill_loop(UserLoop& loop, const UserOperands& operands, int64_t size, bool join) {
    const Array* first = operands.first_array();
    if (first == nullptr) {
      loop.add(
          size, operands.count, [](size_t) { return 0; }, join);
      return;
    }
    for (int d = first->ndim() - 1; d >= 0; --d) {
      const auto stride_of = [&](size_t k) -> int64_t {
        const Array& a = operands.list[k]->array;
        return a.defined() ? a.strides()[size_t(d)] : 0;
      };
      loop.add(first->shape()[size_t(d)], operands.count, stride_of, join);
    }
  }
};

}  // namespace

Program* make_reduction_program(int device, const ReductionKernel::Definition& kernel,
                                std::span<const KernelArgument> arguments, UserLetters letters) {
  const size_t count = kernel.outputs.size();
  const auto outputs = parameters_of(arguments.first(count)),
             inputs = parameters_of(arguments.subspan(count));
  return make_program(device, kernel.name, user_reduction_source(kernel, outputs, inputs, letters),
                      {"catena_user_reduce", "catena_user_finish"}, kernel.options);
}

}  // namespace catena::jit

CATENA_FAMILY(cuda, user_kernels) {
  static jit::CudaKernelCompiler compiler;
  register_kernel_compiler(DeviceType::kCuda, &compiler);
}
