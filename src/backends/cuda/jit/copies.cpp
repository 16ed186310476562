// The slots copy, fill, arange and concatenate on a GPU. Copies and fills run the operation
// `positive`: as a cast if the dtypes differ, otherwise on unsigned words of the items' size.
#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/jit/host_args.h"
#include "backends/cuda/jit/map_launch.h"
#include "backends/cuda/jit/map_program.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise_ops.h"
#include "core/scalar_bits.h"

namespace catena::jit {

namespace {

Dtype word_of(int64_t itemsize) {
  return itemsize == 1   ? Dtype::kUInt8
         : itemsize == 2 ? Dtype::kUInt16
         : itemsize == 4 ? Dtype::kUInt32
                         : Dtype::kUInt64;
}

void copy(const CopyCall& call) {
  const auto& [source, destination] = call;
  if (destination.size() == 0) return;
  const int device = destination.device().index();
  const bool same = source.dtype() == destination.dtype();
  if (same && source.is_contiguous() && destination.is_contiguous()) {
    CATENA_CUDA_CHECK(cudaMemcpyAsync(destination.raw_data(), source.raw_data(),
                                      size_t(source.nbytes()), cudaMemcpyDeviceToDevice,
                                      gpu::launch_stream(destination.device())));
    return;
  }
  const MapSpec cast{ops::positive, source.dtype(), {destination.dtype(), source.dtype()}};
  Program* const program =
      same ? &same_dtype_program(device, ops::positive, word_of(source.itemsize()))
           : map_program(device, cast, true);
  launch_map({program, 2, {MapOperand::of(destination), MapOperand::of(source)}});
}

// Whether all bytes of the pattern are equal, so that memset can fill it.
bool one_byte(uint64_t bits, int64_t itemsize) {
  for (int64_t b = 1; b < itemsize; ++b) {
    if (((bits >> (8 * b)) & 255) != (bits & 255)) return false;
  }
  return true;
}

void fill(const FillCall& call) {
  const auto& [destination, value] = call;
  const uint64_t bits = scalar_bits(value, destination.dtype());
  if (destination.is_contiguous() && one_byte(bits, destination.itemsize())) {
    CATENA_CUDA_CHECK(cudaMemsetAsync(destination.raw_data(), static_cast<int>(bits & 255),
                                      size_t(destination.nbytes()),
                                      gpu::launch_stream(destination.device())));
    return;
  }
  Program& program = same_dtype_program(destination.device().index(), ops::positive,
                                        word_of(destination.itemsize()));
  const int item = static_cast<int>(destination.itemsize());
  launch_map({&program, 2, {MapOperand::of(destination), {nullptr, bits, item}}});
}

ProgramTable g_programs[kMaxArchs];

void arange(const ArangeCall& call) {
  const auto& [destination, start, step] = call;
  if (destination.size() == 0) return;
  const int device = destination.device().index();
  Program* program = g_programs[arch_slot(device)].get(1 + uint64_t(destination.dtype()), [&] {
    return make_program(device, std::string("arange of ") + name(destination.dtype()),
                        arange_source(destination.dtype()), {"catena_arange"});
  });
  ArangeArgs args{};
  args.output = destination.raw_data();
  args.size = destination.size();
  if (is_float(destination.dtype())) {
    args.start = start.to_double();
    args.step = step.to_double();
  } else {
    args.integer_start = start.to<int64_t>();
    args.integer_step = step.to<int64_t>();
  }
  const int64_t blocks = std::min<int64_t>((args.size + kMapThreads - 1) / kMapThreads, 1 << 16);
  launch(*program, 0, device, uint64_t(blocks), 1, kMapThreads, args,
         gpu::launch_stream(destination.device()));
}

// The part of the output that one input fills.
Array output_part(const Array& output, int axis, int64_t start, int64_t extent) {
  Shape shape = output.shape();
  shape[size_t(axis)] = extent;
  const int64_t offset = static_cast<char*>(output.raw_data()) -
                         static_cast<char*>(output.storage()->data) +
                         start * output.strides()[size_t(axis)];
  return Array::from_storage(output.storage(), offset, shape, output.strides(), output.dtype());
}

// Up to kConcatInputs contiguous inputs; input k starts at byte columns[k] of a row.
void launch_concatenate(const std::vector<const Array*>& inputs,
                        const std::vector<int64_t>& columns, int64_t rows, int64_t row_bytes,
                        const Array& output) {
  // The widest word that divides every row and every address.
  uint64_t bits = uint64_t(row_bytes) | reinterpret_cast<uintptr_t>(output.raw_data()) | 16;
  for (size_t k = 0; k < inputs.size(); ++k) {
    bits |= reinterpret_cast<uintptr_t>(inputs[k]->raw_data()) | uint64_t(columns[k]) |
            uint64_t(inputs[k]->nbytes() / rows);
  }
  const int64_t word = static_cast<int64_t>(bits & (~bits + 1));
  const int device = output.device().index();
  Program* program = g_programs[arch_slot(device)].get(uint64_t(100 + word), [&] {
    return make_program(device, "concatenate", concatenate_source(static_cast<int>(word)),
                        {"catena_concatenate"});
  });
  ConcatArgs args{};
  args.output = output.raw_data();
  args.output_width = row_bytes / word;
  args.rows = rows;
  args.count = static_cast<int32_t>(inputs.size());
  constexpr int64_t kTile = kMapThreads * 4;
  int64_t blocks = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    args.input[k] = inputs[k]->raw_data();
    args.width[k] = inputs[k]->nbytes() / rows / word;
    args.column[k] = columns[k] / word;
    args.first_block[k] = static_cast<uint32_t>(blocks);
    blocks += (args.width[k] * rows + kTile - 1) / kTile;
  }
  args.first_block[inputs.size()] = static_cast<uint32_t>(blocks);
  launch(*program, 0, device, uint64_t(blocks), 1, kMapThreads, args,
         gpu::launch_stream(output.device()));
}

void concatenate(const ConcatenateCall& call) {
  const auto& [inputs, axis, output] = call;
  if (output.size() == 0) return;
  int64_t rows = 1;
  for (int d = 0; d < axis; ++d) rows *= output.shape()[size_t(d)];
  const int64_t row_bytes = output.nbytes() / rows, step = output.strides()[size_t(axis)];
  std::vector<const Array*> together;
  std::vector<int64_t> columns;
  int64_t start = 0;
  for (const Array& input : inputs) {
    const int64_t extent = input.shape()[size_t(axis)];
    if (input.size() > 0 && !input.is_contiguous()) {
      copy({input, output_part(output, axis, start, extent)});
    } else if (input.size() > 0) {
      together.push_back(&input);
      columns.push_back(start * step);
    }
    start += extent;
    if (together.size() == size_t(kConcatInputs)) {
      launch_concatenate(together, columns, rows, row_bytes, output);
      together.clear();
      columns.clear();
    }
  }
  if (!together.empty()) launch_concatenate(together, columns, rows, row_bytes, output);
}

}  // namespace

}  // namespace catena::jit

CATENA_FAMILY(cuda, copies) {
  kernels::copy.provide<&jit::copy>(DeviceType::kCuda, "nvrtc");
  kernels::fill.provide<&jit::fill>(DeviceType::kCuda, "nvrtc");
  kernels::arange.provide<&jit::arange>(DeviceType::kCuda, "nvrtc");
  kernels::concatenate.provide<&jit::concatenate>(DeviceType::kCuda, "nvrtc");
}
