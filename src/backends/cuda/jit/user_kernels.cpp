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
    args.set_number(k, scalar_bits(argument.scalar, argument.dtype));
}

UserParameter parameter_of(const KernelArgument& argument) {
  return {argument.parameter->name, argument.dtype, argument.parameter->raw};
}

// Programs by their source text, for each architecture.
Program& user_program(int device, const std::string& name, const std::string& source,
                      const char* kernel) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, Program*> programs;
  const std::lock_guard lock(mutex);
  Program*& program = programs[{arch_slot(device), source + kernel}];
  if (program == nullptr) program = make_program(device, name, source, {kernel});
  return *program;
}

class CudaKernelCompiler : public KernelCompiler {
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
    const std::string source = user_elementwise_source(kernel, outputs, inputs, letters);
    Program& program = user_program(device.index(), kernel.name, source, "catena_user");
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

  void reduction(const ReductionKernel::Definition& kernel, const KernelArgument& output,
                 std::span<const KernelArgument> inputs, UserLetters letters, const Shape& shape,
                 uint32_t axes, Device device) override {
    std::vector<UserParameter> parameters;
    for (const KernelArgument& input : inputs) parameters.push_back(parameter_of(input));
    const std::string source =
        user_reduction_source(kernel, parameter_of(output), parameters, letters);
    Program& program = user_program(device.index(), kernel.name, source, "catena_user_reduce");
    UserArgsBuffer kept(1 + inputs.size()), reduced(1 + inputs.size());
    set_operand(kept, 0, output);
    for (size_t k = 0; k < inputs.size(); ++k) set_operand(kept, k + 1, inputs[k]);
    UserLoop kept_loop, reduced_loop;
    for (int d = shape.ndim() - 1; d >= 0; --d) {
      const bool is_reduced = (axes >> d) & 1;
      std::vector<int64_t> strides{is_reduced ? 0 : output.array.strides()[size_t(d)]};
      for (const KernelArgument& input : inputs)
        strides.push_back(input.array.defined() ? input.array.strides()[size_t(d)] : 0);
      (is_reduced ? reduced_loop : kept_loop).add(shape[size_t(d)], std::move(strides), true);
    }
    kept.set_loop(kept_loop);
    reduced.set_loop(reduced_loop);
    unsigned threads = 32;
    while (threads < 256 && int64_t(threads) * 4 < reduced_loop.size) threads *= 2;
    const int64_t most = int64_t(gpu::device_info(device.index()).multiprocessors) * 64;
    void* arguments[] = {kept.finish(), reduced.finish()};
    launch_program(program, 0, device.index(), uint64_t(std::min(kept_loop.size, most)), 1, threads,
                   arguments, gpu::launch_stream(device));
  }

  void raw(const std::string& code, const std::string& name, RawKernel::Grid grid,
           RawKernel::Grid block, std::span<const void* const> arguments, unsigned shared_memory,
           Device device) override {
    Program& program = user_program(device.index(), name, code, name.c_str());
    std::vector<void*> pointers;
    for (const void* argument : arguments) pointers.push_back(const_cast<void*>(argument));
    launch_raw(program, device.index(), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
               shared_memory, pointers.data(), gpu::launch_stream(device));
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

void register_user_kernels() {
  static CudaKernelCompiler compiler;
  register_kernel_compiler(DeviceType::kCuda, &compiler);
}

}  // namespace catena::jit
