// The slot of fused chains on a GPU: one generated kernel for each call.
#include "backends/common/family.h"
#include "backends/cuda/jit/compile/fused_source.h"
#include "backends/cuda/jit/map_launch.h"
#include "backends/cuda/jit/user_reduction.h"
#include "catena/kernels/elementwise.h"

namespace catena::jit {

namespace {

static_assert(kMaxFusedOperands <= kMaxMapOperands);

// What is kept with a FusedProgram for each architecture. A reduction depends on the call too, but
// a program has one output, so there is one reduction for it.
struct CompiledMap {
  Program* program;
};
struct CompiledReduction {
  Program* program;
  ReductionKernel::Definition kernel;
  int partial_bytes;
};

template <class Compiled, class Make>
Compiled& compiled(const FusedProgram& program, int device, const Make& make) {
  static_assert(kMaxArchs <= std::tuple_size_v<decltype(program.compiled)>);
  std::atomic<void*>& place = program.compiled[size_t(arch_slot(device))];
  if (void* known = place.load(std::memory_order_acquire)) return *static_cast<Compiled*>(known);
  auto made = std::make_unique<Compiled>(make());
  void* expected = nullptr;
  if (place.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *static_cast<Compiled*>(expected);
}

void run_map(const FusedCall& call, Device device) {
  const FusedProgram& program = *call.program;
  const CompiledMap& made = compiled<CompiledMap>(program, device.index(), [&] {
    return CompiledMap{
        make_program(device.index(), fused_name(program), fused_source(program),
                     {"catena_flat", "catena_rows", "catena_strided", "catena_tiled"})};
  });
  MapLaunch launch{made.program, 0, {}};
  launch.outputs = static_cast<int>(program.outputs.size());
  for (int k = 0; k < launch.outputs; ++k)
    launch.operand[launch.operands++] = MapOperand::of(*call.outputs[k]);
  for (size_t k = 0; k < program.inputs.size(); ++k) {
    launch.operand[launch.operands++] = {call.inputs[k], call.inputs[k] ? 0 : call.numbers[k],
                                         static_cast<int>(itemsize(program.inputs[k].dtype))};
  }
  launch_map(launch);
}

void run_reduction(const FusedCall& call, Device device) {
  const FusedProgram& program = *call.program;
  const Dtype output = call.outputs[0]->dtype();
  std::vector<KernelArgument> arguments;
  const auto fill_arguments = [&](const ReductionKernel::Definition& kernel) {
    arguments.clear();
    arguments.push_back({&kernel.outputs[0], output, *call.outputs[0], {}});
    for (size_t k = 0; k < program.inputs.size(); ++k) {
      KernelArgument argument{&kernel.inputs[k], program.inputs[k].dtype, {}, {}};
      if (call.inputs[k])
        argument.array = *call.inputs[k];
      else
        argument.bits = call.numbers[k];
      arguments.push_back(std::move(argument));
    }
  };
  const CompiledReduction& made = compiled<CompiledReduction>(program, device.index(), [&] {
    CompiledReduction result{nullptr, fused_reduction(program, call.reduction, call.mean, output),
                             0};
    fill_arguments(result.kernel);
    result.program = make_reduction_program(device.index(), result.kernel, arguments, {});
    result.partial_bytes = reduced_bytes(result.kernel, output);
    return result;
  });
  fill_arguments(made.kernel);
  UserReductionLaunch launch;
  launch.program = made.program;
  launch.partial_bytes = made.partial_bytes;
  launch.arguments = arguments;
  launch.shape = call.shape;
  launch.axes = call.axes;
  launch.device = device;
  launch_user_reduction(launch);
}

void fused(const FusedCall& call) {
  const Device device = call.outputs[0]->device();
  if (call.reduces)
    run_reduction(call, device);
  else
    run_map(call, device);
}

}  // namespace

}  // namespace catena::jit

CATENA_FAMILY(cuda, fused) { kernels::fused.provide<&jit::fused>(DeviceType::kCuda, "nvrtc"); }
