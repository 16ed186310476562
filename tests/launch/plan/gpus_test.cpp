#include "plan/gpus.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

TEST(Gpus, VisibleDevices) {
  const std::vector<std::string> uuids = {"GPU-aa", "GPU-ab", "GPU-c"};
  EXPECT_EQ(visible_positions(nullptr, uuids), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(visible_positions("2,0", uuids), (std::vector<int>{2, 0}));
  EXPECT_EQ(visible_positions("", uuids), std::vector<int>{});
  EXPECT_EQ(visible_positions("1,7,0", uuids), std::vector<int>{1}) << "as CUDA: ends there";
  EXPECT_EQ(visible_positions("GPU-ab,GPU-c", uuids), (std::vector<int>{1, 2}));
  EXPECT_EQ(visible_positions("GPU-c,GPU-a", uuids), (std::vector<int>{2, 0})) << "beginnings";
  EXPECT_EQ(visible_positions("-1", uuids), std::vector<int>{});
}

}  // namespace
}  // namespace catena::launch
