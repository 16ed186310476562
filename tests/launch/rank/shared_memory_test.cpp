#include "rank/shared_memory.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

constexpr double kMebibyte = 1 << 20;

TEST(SharedMemory, EachRankOfAHostNeedsRoom) {
  EXPECT_EQ(shared_memory_problem(1024 * kMebibyte, 1000 * kMebibyte, 8), "");
  EXPECT_EQ(shared_memory_problem(64 * kMebibyte, 60 * kMebibyte, 8), "");
  EXPECT_EQ(
      shared_memory_problem(65536, 65536, 2),
      "/dev/shm is too small: 64 KiB, 64 KiB free, where each of 2 ranks needs 4.0 MiB; start "
      "containers with --shm-size=1g, elsewhere mount -o remount,size=1g /dev/shm");
  const std::string many = shared_memory_problem(64 * kMebibyte, 60 * kMebibyte, 16);
  EXPECT_TRUE(many.starts_with("/dev/shm is too small: 64.0 MiB, 60.0 MiB free")) << many;
}

TEST(SharedMemory, MayBeFull) {
  const std::string full = shared_memory_problem(1024 * kMebibyte, 0.5 * kMebibyte, 2);
  EXPECT_TRUE(full.starts_with("/dev/shm is full: 1.0 GiB, 512 KiB free")) << full;
  EXPECT_NE(full.find("remove what is left there"), std::string::npos) << full;
}

}  // namespace
}  // namespace catena::launch
