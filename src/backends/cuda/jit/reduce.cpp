// The slots reduce and arg_reduce on a GPU.
#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/jit/map_program.h"
#include "backends/cuda/jit/reduce_plan.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/array/array.h"
#include "catena/kernels/reduce.h"

namespace catena::jit {

namespace {

ProgramTable g_programs[kMaxArchs];

const char* const kReduceNames[] = {"sum", "prod", "max", "min", "all", "any", "sum of squares"};

Program& reduce_program(int device, ReduceOp op, Dtype input, Dtype output) {
  ProgramTable& table = g_programs[arch_slot(device)];
  const uint64_t key = 1 + uint64_t(op) + 16 * (uint64_t(input) + 16 * uint64_t(output));
  if (Program* program = table.find(key)) return *program;
  return *table.get(key, [&] {
    const std::string what =
        std::string(kReduceNames[int(op)]) + "(" + name(input) + ") -> " + name(output);
    return make_program(device, what, reduce_source(op, input, output),
                        {"catena_reduce_rows", "catena_reduce_columns", "catena_reduce_finish",
                         "catena_reduce_short"});
  });
}

int accumulator_bytes(Dtype output) {
  return std::max(static_cast<int>(itemsize(output)), is_float(output) ? 4 : 1);
}

// The plan of a reduction into `output`. `positions`: of extreme elements.
ReducePlan plan_of(const Array& input, const Array& output, uint32_t axes, int accumulator_bytes,
                   bool positions) {
  return plan_reduce({input.shape(), input.strides(), output.strides(), axes,
                      static_cast<int>(input.itemsize()), accumulator_bytes,
                      reinterpret_cast<uintptr_t>(input.raw_data()),
                      gpu::device_info(input.device().index()).multiprocessors, positions});
}

// The kernels of both kinds of programs have the same numbers.
void run(Program& program, ReducePlan& plan, const Array& input, const Array& output,
         cudaStream_t stream) {
  const int device = input.device().index();
  ReduceArgs& args = plan.args;
  args.input = input.raw_data();
  args.output = output.raw_data();
  StoragePtr workspace;
  if (args.splits > 1) {
    workspace = allocate(input.device(), plan.partial_bytes);
    args.partial = workspace->data;
  }
  launch(program, plan.kernel, device, plan.blocks, static_cast<unsigned>(args.splits),
         kReduceThreads, args, stream);
  if (args.splits == 1) return;
  // The finishing kernel stores the results even if there are several splits.
  args.group_shift = plan.finish_shift;
  launch(program, kReduceFinish, device, plan.finish_blocks, 1, kReduceThreads, args, stream);
}

void reduce(const ReduceCall& call) {
  if (call.output->size() == 0) return;
  const Array &input = *call.input, &output = *call.output;
  const cudaStream_t stream = gpu::launch_stream(input.device());
  Program& program = reduce_program(input.device().index(), call.op, input.dtype(), output.dtype());
  ReducePlan plan = plan_of(input, output, call.axes, accumulator_bytes(output.dtype()), false);
  if (!plan.fits && !input.is_contiguous()) {
    ReduceCall again = call;  // a contiguous array collapses further
    const Array dense = input.copy();
    again.input = &dense;
    return reduce(again);
  }
  CATENA_CHECK(
      ShapeError, plan.fits, kReduceNames[int(call.op)], ": a reduction of shape ", input.shape(),
      " over these axes has more than 2^31 results, or more than 2^31 elements that are not "
      "contiguous for each; reduce one axis after the other");
  plan.args.divisor = call.divisor;
  plan.args.accumulate = call.accumulate;
  run(program, plan, input, output, stream);
}

Program& arg_reduce_program(int device, Dtype input) {
  return *g_programs[arch_slot(device)].get(0x10000 + uint64_t(input), [&] {
    return make_program(
        device, std::string("argmax/argmin(") + name(input) + ")", arg_reduce_source(input),
        {"catena_arg_reduce", "catena_arg_reduce_columns", "catena_arg_reduce_finish"});
  });
}

void arg_reduce(const ArgReduceCall& call) {
  if (call.output->size() == 0) return;
  const Array& input = *call.input;
  const cudaStream_t stream = gpu::launch_stream(input.device());
  Program& program = arg_reduce_program(input.device().index(), input.dtype());
  constexpr int kCandidateBytes = 16;
  ReducePlan plan = plan_of(input, *call.output, 1u << call.axis, kCandidateBytes, true);
  if (!plan.fits && !input.is_contiguous()) {
    ArgReduceCall again = call;
    const Array dense = input.copy();
    again.input = &dense;
    return arg_reduce(again);
  }
  CATENA_CHECK(ShapeError, plan.fits, "argmax/argmin: shape ", input.shape(),
               " has more than 2^31 results; divide the array");
  plan.args.maximum = call.maximum;
  run(program, plan, input, *call.output, stream);
}

}  // namespace

}  // namespace catena::jit

CATENA_FAMILY(cuda, reduce) {
  kernels::reduce.provide<&jit::reduce>(DeviceType::kCuda, "nvrtc");
  kernels::arg_reduce.provide<&jit::arg_reduce>(DeviceType::kCuda, "nvrtc");
}
