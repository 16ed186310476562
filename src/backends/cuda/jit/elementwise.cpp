// The slot of element-wise operations on a GPU.
#include "catena/kernels/elementwise.h"
#include "backends/common/family.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/map_launch.h"
#include "backends/cuda/jit/map_program.h"
#include "backends/cuda/runtime/capture.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"
#include "core/scalar_bits.h"

namespace catena::jit {

namespace {

void launch_call(const ElementwiseCall& call, const ElementwiseInfo& row, Program& program) {
  MapLaunch launch{&program, 1 + call.input_count, {MapOperand::of(*call.output)}};
  for (int k = 0; k < call.input_count; ++k) {
    MapOperand& operand = launch.operand[1 + k];
    if (call.arrays[k]) {
      operand = MapOperand::of(*call.arrays[k]);
    } else {
      const Dtype d = row.operand_dtype(k, call.dtype);
      operand = {nullptr, scalar_bits(call.scalars[k], d), static_cast<int>(itemsize(d))};
    }
  }
  launch_map(launch);
}

// Converts every operand first, then runs the operation: the kernels of the bundle suffice for it.
void run_with_casts(const ElementwiseCall& call, const ElementwiseInfo& row) {
  ElementwiseCall plain = call;
  Array converted[kMaxElementwiseInputs], result;
  for (int k = 0; k < call.input_count; ++k) {
    const Array* a = call.arrays[k];
    const Dtype d = row.operand_dtype(k, call.dtype);
    if (a == nullptr || a->dtype() == d) continue;
    converted[k] = Array::uninitialized(a->shape(), d, a->device());
    kernels::copy(a->device(), {*a, converted[k]});
    plain.arrays[k] = &converted[k];
  }
  const Dtype natural = row.natural_result(call.dtype);
  if (call.output->dtype() != natural) {
    result = Array::uninitialized(call.output->shape(), natural, call.output->device());
    plain.output = &result;
  }
  launch_call(plain, row, same_dtype_program(call.output->device().index(), call.op, call.dtype));
  if (result.defined()) kernels::copy(result.device(), {result, *call.output});
}

// Whether this combination of dtypes has been used often enough to compile a fused kernel for it.
bool worth_compiling(const MapSpec& spec) {
  constexpr uint32_t kUsesBefore = 3;
  static std::array<std::atomic<uint8_t>, 4096> uses;
  uint64_t key = static_cast<uint64_t>(spec.op);
  for (const Dtype d : spec.memory) key = key * kDtypeCount + static_cast<uint64_t>(d);
  std::atomic<uint8_t>& count = uses[key * 0x9e3779b97f4a7c15u >> 52];
  if (count.load(std::memory_order_relaxed) >= kUsesBefore) return true;
  count.fetch_add(1, std::memory_order_relaxed);
  return false;
}

[[gnu::noinline]] void run_mixed(const ElementwiseCall& call, const ElementwiseInfo& row) {
  MapSpec spec{call.op, call.dtype, {}};
  spec.memory[0] = call.output->dtype();
  for (int k = 0; k < call.input_count; ++k) {
    spec.memory[1 + k] =
        call.arrays[k] ? call.arrays[k]->dtype() : row.operand_dtype(k, call.dtype);
  }
  const int device = call.output->device().index();
  Program* program = map_program(device, spec, false);
  if (program == nullptr && !gpu::thread_capture() && worth_compiling(spec) &&
      !nvrtc_version().empty()) {
    program = map_program(device, spec, true);
  }
  if (program)
    launch_call(call, row, *program);
  else
    run_with_casts(call, row);
}

void elementwise(const ElementwiseCall& call) {
  const ElementwiseInfo& row = info(call.op);
  bool same = call.output->dtype() == row.natural_result(call.dtype);
  for (int k = 0; k < call.input_count; ++k) {
    same = same && (call.arrays[k] == nullptr ||
                    call.arrays[k]->dtype() == row.operand_dtype(k, call.dtype));
  }
  if (!same) [[unlikely]]
    return run_mixed(call, row);
  launch_call(call, row, same_dtype_program(call.output->device().index(), call.op, call.dtype));
}

}  // namespace

}  // namespace catena::jit

CATENA_FAMILY(cuda, elementwise) {
  kernels::elementwise.provide<&jit::elementwise>(DeviceType::kCuda, "nvrtc");
}
