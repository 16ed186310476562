// The kernel that copies matrices to other alignments and longer rows, run on the host one thread
// after the other, against plain loops.
#include "backends/cuda/matmul/line_copies.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace catena {
namespace {

using gpu::LineCopy;

constexpr char kUntouched = 0x55;
const gpu::Launch kLaunch{nullptr, 1, 0, false};

class LineCopies : public ::testing::Test {
 protected:
  std::mt19937 engine_{5};

  int64_t between(int64_t low, int64_t high) {
    return low + int64_t(engine_() % uint64_t(high - low + 1));
  }
  // Places in memory of their own, which is larger on both sides.
  struct Side {
    std::vector<char> memory;
    LineCopy::Place place;
  };
  Side side(int64_t line, int64_t lines, int64_t batch, int64_t item, bool aligned) {
    const auto apart = [&] { return aligned ? between(0, 2) * 16 : between(0, 9) * item; };
    const auto up = [&](int64_t bytes) { return aligned ? (bytes + 15) / 16 * 16 : bytes; };
    Side s;
    s.place = {nullptr, line, lines, up(line) + apart(), 0};
    s.place.batch_step = s.place.step * lines + apart();
    const int64_t offset = aligned ? 0 : between(0, 7) * item;
    s.memory.resize(size_t(s.place.batch_step * batch + 160), kUntouched);
    char* begin = s.memory.data() + 32;
    begin += -reinterpret_cast<uintptr_t>(begin) % 16;
    s.place.data = begin + offset;
    return s;
  }
  void fill(Side& s) {
    for (char& c : s.memory) c = char(engine_());
  }
};

// What the copies make of the memory of the second.
std::vector<char> expected(const LineCopy& copy, const std::vector<char>& memory) {
  std::vector<char> result = memory;
  for (int64_t b = 0; b < copy.batch; ++b)
    for (int64_t i = 0; i < copy.to.lines; ++i)
      for (int64_t k = 0; k < copy.to.line; ++k) {
        const bool is_there = i < copy.from.lines && k < copy.from.line;
        const int64_t place =
            (copy.to.data - memory.data()) + b * copy.to.batch_step + i * copy.to.step + k;
        result[size_t(place)] =
            is_there ? copy.from.data[b * copy.from.batch_step + i * copy.from.step + k] : char(0);
      }
  return result;
}

// Into longer rows and back, of any alignment; one to four copies in a launch.
TEST_F(LineCopies, AgreeWithLoops) {
  for (int round = 0; round < 400; ++round) {
    const int count = int(between(1, gpu::kMostLineCopies));
    std::vector<Side> from, to;
    std::vector<LineCopy> copies;
    std::vector<std::vector<char>> results;
    for (int j = 0; j < count; ++j) {
      const int64_t item = int64_t{2} << between(0, 2), batch = between(1, 3);
      const auto length = [&] { return between(1, 60) * item; };
      from.push_back(side(length(), between(1, 9), batch, item, between(0, 2) == 0));
      to.push_back(side(length(), between(1, 9), batch, item, between(0, 1) == 0));
      fill(from.back());
      copies.push_back({from.back().place, to.back().place, batch});
      results.push_back(expected(copies.back(), to.back().memory));
    }
    gpu::launch_line_copies(copies.data(), count, kLaunch);
    for (int j = 0; j < count; ++j)
      ASSERT_EQ(to[size_t(j)].memory, results[size_t(j)]) << "round " << round << " copy " << j;
  }
}

// One matrix for the whole batch, and one of which there is no batch.
TEST_F(LineCopies, StepsOfZero) {
  Side from = side(30, 3, 1, 2, false), to = side(32, 4, 3, 2, true);
  fill(from);
  LineCopy copy{from.place, to.place, 3};
  copy.from.batch_step = 0;
  const std::vector<char> result = expected(copy, to.memory);
  gpu::launch_line_copies(&copy, 1, kLaunch);
  EXPECT_EQ(to.memory, result);
}

}  // namespace
}  // namespace catena
