// The interface of the plug-in that compiles users' kernels, for the array layer.
#pragma once

#include <mutex>
#include <span>

#include "catena/array/kernel.h"
#include "catena/core/fork_mutex.h"

namespace catena {

// What a plug-in has compiled for a kernel, by the dtypes of its arguments.
class KernelPrograms {
 public:
  // Calls make() for a new key.
  template <class Make>
  void* get(const std::string& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, program] : list_) {
        if (known == key) return program;
      }
    }
    void* program = make();
    const std::lock_guard lock(mutex_);
    list_.emplace_back(key, program);
    return program;
  }

 private:
  ForkMutex mutex_;
  std::vector<std::pair<std::string, void*>> list_;
};

struct ElementwiseKernel::Definition {
  std::vector<KernelParameter> inputs, outputs;
  std::string operation, name;
  KernelOptions options;
  bool old_form = false;  // the loop has the size of the first array
  std::vector<std::shared_ptr<const detail::HostElementwise>> host;
  std::shared_ptr<KernelPrograms> programs = std::make_shared<KernelPrograms>();
};

struct ReductionKernel::Definition {
  std::vector<KernelParameter> inputs, outputs;
  std::string map, reduce, post_map, identity, name, reduce_type, preamble;
  bool reduce_dims = true;
  std::vector<std::string> options;
  bool old_form = false;  // over the elements of the first array; the map sees their index as i
  std::vector<std::shared_ptr<const detail::HostReduction>> host;
  std::shared_ptr<KernelPrograms> programs = std::make_shared<KernelPrograms>();
};

// One resolved argument: an array (broadcast to the loop's shape unless raw) or a number.
struct KernelArgument {
  const KernelParameter* parameter;
  Dtype dtype;
  Array array;  // null: `scalar`
  Scalar scalar;
  std::optional<uint64_t> bits = {};  // the number's bits in dtype, if they are known already
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // Outputs first, then inputs. `letters` gives the dtype of each placeholder ('A' - 'z').
  virtual void elementwise(const ElementwiseKernel::Definition& kernel,
                           std::span<const KernelArgument> arguments,
                           std::span<const std::pair<char, Dtype>> letters, int64_t size,
                           Device device) = 0;
  // Outputs first, then inputs. Inputs that are not raw have the same shape. Outputs have extent 1
  // at every reduced axis (bit k of axes).
  virtual void reduction(const ReductionKernel::Definition& kernel,
                         std::span<const KernelArgument> arguments,
                         std::span<const std::pair<char, Dtype>> letters, const Shape& shape,
                         uint32_t axes, Device device) = 0;
  virtual void raw(const RawKernel::Source& source, RawKernel::Grid grid, RawKernel::Grid block,
                   std::span<const void* const> arguments, unsigned shared_memory,
                   Device device) = 0;
  // Address and bytes of a module's variable.
  virtual std::pair<void*, size_t> global(const RawKernel::Source& module, const std::string& name,
                                          Device device) = 0;
  virtual KernelCacheStatistics statistics(int device) = 0;
};
// "float* y, const float* x, int64_t count" as parameters: pointers are raw. Throws ValueError.
std::vector<KernelParameter> parse_c_arguments(const std::string& text);
// Throws ValueError unless all parameters of a kernel have different names.
void check_parameters(const std::string& who, const std::vector<KernelParameter>& inputs,
                      const std::vector<KernelParameter>& outputs);

// Called by a plug-in's entry function.
void register_kernel_compiler(DeviceType type, KernelCompiler* compiler);
// The compiler of a device. If it has none, throws DeviceError, which names `who` and says what can
// be done for arrays of a CPU.
KernelCompiler& compiler_of(const std::string& who, Device device, const char* instead = "");

// The lambda for the arguments' dtypes (outputs first) over arrays of a CPU. Throws DeviceError if
// the kernel has none.
void run_on_host(const ElementwiseKernel::Definition& kernel,
                 std::span<const KernelArgument> arguments, const Shape& shape);
void run_on_host(const ReductionKernel::Definition& kernel,
                 std::span<const KernelArgument> arguments, const Shape& shape, uint32_t axes);

}  // namespace catena
