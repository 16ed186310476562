// Gated activations and their gradients, a piece of a row at a time.
#include <algorithm>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/gated.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/gated.h"

namespace catena::host {
namespace {

constexpr int64_t kPiece = 4096;        // numbers of a row that a thread takes at a time
constexpr int64_t kNumbersPerNano = 2;  // estimated, for the number of threads

// Calls body(row, column, n) for each piece.
template <class Call, class Body>
void for_pieces(const Call& call, const Body& body) {
  const int64_t of_row = (call.columns + kPiece - 1) / kPiece;
  const int threads = threads_for(call.rows * call.columns / kNumbersPerNano);
  parallel_ranges(call.rows * of_row, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % of_row * kPiece;
      body(i / of_row, column, std::min(kPiece, call.columns - column));
    }
  });
}

// Null for what is not wanted.
char* number_at(const GatedRows& rows, int64_t row, int64_t column) {
  if (rows.array == nullptr) return nullptr;
  return static_cast<char*>(rows.array->raw_data()) +
         (row * rows.step + column) * rows.array->itemsize();
}

void gated(const GatedCall& call) {
  const auto loop = loops_of<GatedTables>(call.gate.array->dtype()).forward[int(call.function)];
  for_pieces(call, [&](int64_t row, int64_t column, int64_t n) {
    const auto at = [&](const GatedRows& rows) { return number_at(rows, row, column); };
    loop({at(call.gate), at(call.x), at(call.y)}, n);
  });
}
void gated_grad(const GatedGradCall& call) {
  const auto loop = loops_of<GatedTables>(call.gate.array->dtype()).backward[int(call.function)];
  for_pieces(call, [&](int64_t row, int64_t column, int64_t n) {
    const auto at = [&](const GatedRows& rows) { return number_at(rows, row, column); };
    loop({at(call.gate), at(call.x), at(call.gy), at(call.g_gate), at(call.gx)}, n);
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, gated) {
  kernels::gated.provide<&host::gated>(DeviceType::kCpu, "cpu");
  kernels::gated_grad.provide<&host::gated_grad>(DeviceType::kCpu, "cpu");
}
