#include "backends/cuda/matmul/padding.h"

#include <algorithm>

namespace catena::gpu {
namespace {

constexpr double kLeastWork = double(int64_t{1} << 31);  // multiplications
constexpr int64_t kLeastExtent = 64;                     // of the result: none less is measured

// The unit of time is what a copy takes for a byte that it reads or writes: 1 / (3 TB/s) on an H200
// with cuBLASLt 13.1, where these come from. Kernels for odd extents multiply as fast in 16 bits as
// in tf32, 52 to 101 multiplications a picosecond, and move numbers one by one.
constexpr double kOddMultiplications = 23, kOddRead = 3.5, kOddWrite = 6;
constexpr double kMultiplications16 = 117, kMultiplicationsTf32 = 60;
constexpr double kLeastGain = 1.15;

// A part is not thinner, for products of few columns leave multiprocessors idle; parts begin at
// multiples of kColumnStep, so that addresses within operands are as aligned in each of them.
constexpr int64_t kLeastColumns = 512, kColumnStep = 128;

double work_of(const LibraryProduct& p) {
  return double(p.rows) * double(p.columns) * double(p.depth) * double(p.batch);
}

bool begins_at_packs(const LibraryMatrix& m, int64_t pack, int64_t batch) {
  return reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.leading % pack == 0 &&
         (batch == 1 || m.batch_step % pack == 0);
}

bool has_depth_along_memory(const LibraryProduct& p) { return p.a.transposed || !p.b.transposed; }

// Copies without regard to what they cost, without parts; empty if nothing is odd.
std::optional<Padding> whole_packs_of(const LibraryProduct& p, const Packs& packs) {
  const int64_t pack = packs.operand;
  Padding padding{};
  padding.rows = up_to(pack, p.rows);
  padding.depth = has_depth_along_memory(p) ? up_to(pack, p.depth) : p.depth;
  const bool more_rows = padding.rows > p.rows, more_depth = padding.depth > p.depth,
             odd_columns = p.b.transposed && p.columns % pack != 0;
  padding.a = more_rows || more_depth || !begins_at_packs(p.a, pack, p.batch);
  padding.c = more_rows || !begins_at_packs(p.c, packs.result, p.batch);
  padding.pads_columns = odd_columns && padding.c;
  padding.b = more_depth || padding.pads_columns || !begins_at_packs(p.b, pack, p.batch);
  padding.bias = more_rows && p.bias != nullptr;
  padding.columns = p.columns - (odd_columns && !padding.c ? p.columns % pack : 0);
  if (!padding.a && !padding.b && !padding.c && padding.columns == p.columns) return {};
  return padding;
}

// Numbers, or bytes, of all matrices of a batch.
struct Sizes {
  double a, b, c;
};
Sizes numbers_of(const LibraryProduct& p) {
  const auto count = [&](const LibraryMatrix& m, int64_t rows, int64_t columns) {
    return double(rows) * double(columns) * double(m.batch_step == 0 ? 1 : p.batch);
  };
  return {count(p.a, p.rows, p.depth), count(p.b, p.depth, p.columns),
          count(p.c, p.rows, p.columns)};
}

// Whether copies and the product of them take less than kernels for odd extents.
bool copies_pay(const LibraryProduct& p, const Padding& padding, const Packs& packs) {
  const Sizes numbers = numbers_of(p);
  const double passes = p.accumulate ? 2 : 1, size = 16.0 / double(packs.operand);
  const Sizes bytes{numbers.a * size, numbers.b * size,
                    numbers.c * passes * 16 / double(packs.result)};
  const double read = numbers.a + numbers.b + (passes - 1) * numbers.c,
               moved = bytes.a + bytes.b + bytes.c,
               copied = padding.a * bytes.a + padding.b * bytes.b + padding.c * bytes.c;
  const double multiplications = packs.operand == 8 ? kMultiplications16 : kMultiplicationsTf32;
  const double odd = std::max(work_of(p) / kOddMultiplications,
                              read * kOddRead + numbers.c * kOddWrite),
               whole = std::max(work_of(p) / multiplications, moved);
  return odd >= kLeastGain * (whole + 2 * copied);
}

// Scratch memory in bytes: of a's copy, and of each column of b's and the result's.
struct ScratchBytes {
  int64_t whole, each_column;
};
ScratchBytes scratch_bytes_of(const Padding& padding, const Packs& packs) {
  const int64_t size = 16 / packs.operand, result_size = 16 / packs.result;
  return {padding.a ? padding.rows * padding.depth * size : 0,
          (padding.b ? padding.depth * size : 0) + (padding.c ? padding.rows * result_size : 0)};
}

// Cuts the product into parts whose copies fit; false if none does.
bool set_parts(const LibraryProduct& p, const Packs& packs, int64_t most, Padding& padding) {
  const ScratchBytes scratch = scratch_bytes_of(padding, packs);
  const int64_t columns = up_to(packs.operand, padding.columns),
                of_matrix = std::max<int64_t>(1, scratch.whole + columns * scratch.each_column);
  padding.columns_of_part = columns;
  padding.batch_of_part = std::clamp<int64_t>(most / of_matrix, 1, p.batch);
  if (of_matrix <= most) return true;
  if (scratch.whole > most / 2 || scratch.each_column == 0) return false;
  const int64_t fitting = (most - scratch.whole) / scratch.each_column / kColumnStep * kColumnStep;
  if (fitting < kLeastColumns) return false;
  const int64_t parts = (columns + fitting - 1) / fitting;
  padding.columns_of_part = up_to(kColumnStep, (columns + parts - 1) / parts);
  return true;
}

}  // namespace

Packs packs_of(Dtype dtype, bool wide) {
  const int64_t size = int64_t(itemsize(dtype));
  return {16 / size, wide ? 4 : 16 / size};
}

std::optional<Padding> padding_of(const LibraryProduct& p, const Packs& packs,
                                  int64_t most_scratch) {
  if (p.before != nullptr || work_of(p) < kLeastWork || std::min(p.rows, p.columns) < kLeastExtent)
    return {};
  std::optional<Padding> padding = whole_packs_of(p, packs);
  if (!padding || !copies_pay(p, *padding, packs) || !set_parts(p, packs, most_scratch, *padding))
    return {};
  return padding;
}

}  // namespace catena::gpu
