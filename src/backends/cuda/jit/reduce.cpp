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

void reduce(const ReduceCall& call) {
  if (call.output->size() == 0) return;
  const Array& input = *call.input;
  const int device = input.device().index();
  const cudaStream_t stream = gpu::launch_stream(input.device());
  Program& program = reduce_program(device, call.op, input.dtype(), call.output->dtype());
  ReduceShape shape{input.shape(),
                    input.strides(),
                    call.output->strides(),
                    call.axes,
                    static_cast<int>(input.itemsize()),
                    static_cast<int>(call.output->itemsize()),
                    accumulator_bytes(call.output->dtype()),
                    reinterpret_cast<uintptr_t>(input.raw_data()),
                    gpu::device_info(device).multiprocessors};
  ReducePlan plan = plan_reduce(shape);
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
  ReduceArgs& args = plan.args;
  args.input = input.raw_data();
  args.output = call.output->raw_data();
  args.divisor = call.divisor;
  args.accumulate = call.accumulate;
  StoragePtr workspace;
  if (args.splits > 1) {
    workspace = allocate(input.device(), plan.partial_bytes);
    args.partial = workspace->data;
  }
  launch(program, plan.kernel, device, plan.blocks, static_cast<unsigned>(args.splits),
         kReduceThreads, args, stream);
  if (args.splits > 1) {
    // The finishing kernel stores the results even if there are several splits.
    args.group_shift = plan.finish_shift;
    launch(program, kReduceFinish, device, plan.finish_blocks, 1, kReduceThreads, args, stream);
  }
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
  const int device = input.device().index();
  const cudaStream_t stream = gpu::launch_stream(input.device());
  Program& program = arg_reduce_program(device, input.dtype());
  constexpr int kCandidateBytes = 16;
  ReduceShape shape{input.shape(),
                    input.strides(),
                    call.output->strides(),
                    1u << call.axis,
                    static_cast<int>(input.itemsize()),
                    8,
                    kCandidateBytes,
                    reinterpret_cast<uintptr_t>(input.raw_data()),
                    gpu::device_info(device).multiprocessors,
                    true};
  const ReducePlan plan = plan_reduce(shape);
  if (!plan.fits && !input.is_contiguous()) {
    ArgReduceCall again = call;
    const Array dense = input.copy();
    again.input = &dense;
    return arg_reduce(again);
  }
  CATENA_CHECK(ShapeError, plan.fits, "argmax/argmin: shape ", input.shape(),
               " has more than 2^31 results; divide the array");
  ArgReduceArgs args{};
  args.input = input.raw_data();
  args.output = call.output->raw_data();
  args.outputs = plan.args.outputs;
  args.reduced = plan.args.reduced;
  args.per_split = plan.args.per_split;
  args.stride = plan.args.reduced_stride[0];
  std::copy(std::begin(plan.args.kept_stride), std::end(plan.args.kept_stride), args.kept_stride);
  std::copy(std::begin(plan.args.result_stride), std::end(plan.args.result_stride),
            args.result_stride);
  std::copy(std::begin(plan.args.kept), std::end(plan.args.kept), args.kept);
  args.blocks = plan.args.blocks;
  args.kept_dims = plan.args.kept_dims;
  args.splits = plan.args.splits;
  args.group_shift = plan.args.group_shift;
  args.maximum = call.maximum;
  args.vectors = plan.args.vectors;
  StoragePtr workspace;
  if (args.splits > 1) {
    workspace = allocate(input.device(), plan.partial_bytes);
    args.partial = workspace->data;
  }
  // The kernels of a program have the same numbers as those of a reduction.
  launch(program, plan.kernel, device, plan.blocks, static_cast<unsigned>(args.splits),
         kReduceThreads, args, stream);
  if (args.splits > 1) {
    args.group_shift = plan.finish_shift;
    launch(program, kReduceFinish, device, plan.finish_blocks, 1, kReduceThreads, args, stream);
  }
}

}  // namespace

}  // namespace catena::jit

CATENA_FAMILY(cuda, reduce) {
  kernels::reduce.provide<&jit::reduce>(DeviceType::kCuda, "nvrtc");
  kernels::arg_reduce.provide<&jit::arg_reduce>(DeviceType::kCuda, "nvrtc");
}
