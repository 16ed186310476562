// What the array layer asks of the plug-in that compiles users' kernels.
#pragma once

#include <span>

#include "catena/array/kernel.h"

namespace catena {

struct ElementwiseKernel::Definition {
  std::vector<KernelParameter> inputs, outputs;
  std::string operation, name;
  KernelOptions options;
};

struct ReductionKernel::Definition {
  std::vector<KernelParameter> inputs, outputs;
  std::string map, reduce, post_map, identity, name, reduce_type, preamble;
};

// One resolved argument: an array (broadcast to the loop's shape unless raw) or a number.
struct KernelArgument {
  const KernelParameter* parameter;
  Dtype dtype;
  Array array;  // null: `scalar`
  Scalar scalar;
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // Outputs first, then inputs. `letters` gives the dtype of each placeholder ('A' - 'z').
  virtual void elementwise(const ElementwiseKernel::Definition& kernel,
                           std::span<const KernelArgument> arguments,
                           std::span<const std::pair<char, Dtype>> letters, int64_t size,
                           Device device) = 0;
  // inputs have one shape; output has extent 1 at every reduced axis (bit k of axes).
  virtual void reduction(const ReductionKernel::Definition& kernel, const KernelArgument& output,
                         std::span<const KernelArgument> inputs,
                         std::span<const std::pair<char, Dtype>> letters, const Shape& shape,
                         uint32_t axes, Device device) = 0;
  virtual void raw(const std::string& code, const std::string& name, RawKernel::Grid grid,
                   RawKernel::Grid block, std::span<const void* const> arguments,
                   unsigned shared_memory, Device device) = 0;
  virtual KernelCacheStatistics statistics(int device) = 0;
};
// Called by a plug-in's entry function.
void register_kernel_compiler(DeviceType type, KernelCompiler* compiler);

}  // namespace catena
