// One include is enough for a program: each line here is from a header that catena.h must bring.
#include "catena/catena.h"

#include <gtest/gtest.h>

namespace catena {
namespace {

TEST(CatenaHeader, BringsWhatProgramsUse) {
  const Array x = arange(4.);
  const auto doubled = fuse([](Fused a) { return a + a; });
  EXPECT_EQ(Array(doubled(x)).to_vector<double>(), (std::vector<double>{0, 2, 4, 6}));
  const auto square = memoize([](int64_t n) { return n * n; });
  EXPECT_EQ(square(3), 9);
  const MemoryProfile profile;
  const Memory memory(64, cpu());
  EXPECT_EQ(memory.device(), cpu());
  const MemoryPool pool;
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_FALSE(cuda::get_device(x).has_value());
  const Event done = set_async(x, ones({4}).raw_data(), current_stream(cpu()));
  done.synchronize();
  EXPECT_EQ(sum(x).item<double>(), 4);
}

}  // namespace
}  // namespace catena
