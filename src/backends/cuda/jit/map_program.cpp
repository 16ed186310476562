// Programs of table operations. See map_program.h.
#include "backends/cuda/jit/map_program.h"

#include "catena/core/error.h"

namespace catena::jit {

namespace {

using OpTable = std::array<std::array<std::atomic<Program*>, kDtypeCount>, kElementwiseRows>;
OpTable g_same_dtype[kMaxArchs];
ProgramTable g_mixed[kMaxArchs];

std::string describe(const MapSpec& spec) {
  const ElementwiseInfo& row = info(spec.op);
  std::string text = std::string(row.name) + "(";
  for (int k = 0; k < row.inputs; ++k)
    text += (k ? ", " : "") + std::string(name(spec.memory[1 + k]));
  text += std::string(") -> ") + name(spec.memory[0]);
  if (spec.memory[0] != row.natural_result(spec.compute))
    text += std::string(" in ") + name(spec.compute);
  return text;
}

constexpr std::initializer_list<const char*> kKernels = {"catena_flat", "catena_rows",
                                                         "catena_strided", "catena_tiled"};

uint64_t key_of(const MapSpec& spec) {
  uint64_t key = 1 + static_cast<uint64_t>(spec.op);
  key = key * kDtypeCount + static_cast<uint64_t>(spec.compute);
  for (const Dtype d : spec.memory) key = key * kDtypeCount + static_cast<uint64_t>(d);
  return key;
}

[[gnu::cold, gnu::noinline]] Program& load_same_dtype(int device, ElementwiseOp op, Dtype compute,
                                                      std::atomic<Program*>& place) {
  const MapSpec spec = same_dtype_spec(op, compute);
  Program* program = make_program(device, describe(spec), map_source(spec), kKernels);
  Program* expected = nullptr;
  return place.compare_exchange_strong(expected, program, std::memory_order_acq_rel) ? *program
                                                                                     : *expected;
}

}  // namespace

Program& same_dtype_program(int device, ElementwiseOp op, Dtype compute) {
  std::atomic<Program*>& place = g_same_dtype[arch_slot(device)][size_t(op)][size_t(compute)];
  Program* program = place.load(std::memory_order_acquire);
  if (program == nullptr) [[unlikely]]
    return load_same_dtype(device, op, compute, place);
  return *program;
}

Program* map_program(int device, const MapSpec& spec, bool may_compile) {
  ProgramTable& table = g_mixed[arch_slot(device)];
  const uint64_t key = key_of(spec);
  if (Program* program = table.find(key)) return program;
  return table.get(key, [&] {
    const std::string what = describe(spec), source = map_source(spec);
    return may_compile ? make_program(device, what, source, kKernels)
                       : find_program(device, what, source, kKernels);
  });
}

}  // namespace catena::jit
