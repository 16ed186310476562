#include "catena/core/memory_profile.h"

#include <gtest/gtest.h>

#include <thread>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/testing.h"

namespace catena {
namespace {

MemoryProfile::Entry entry(const MemoryProfile& profile, const std::string& call) {
  for (const auto& e : profile.entries()) {
    if (e.call == call) return e;
  }
  ADD_FAILURE() << "no entry " << call << " in\n" << profile.report();
  return {};
}

class MemoryProfileOn : public ::testing::TestWithParam<Device> {};

TEST_P(MemoryProfileOn, TellsWhoHoldsWhat) {
  const DeviceScope scope(GetParam());
  MemoryProfile profile;
  const Array kept = ones({1000}, Dtype::kFloat32);
  {
    const CallScope step("step");
    const Array sum = kept + 1;
    const CallScope inner("inner");
    const Array more = sum * 2;
    EXPECT_EQ(entry(profile, "step/add").blocks, 1u);
    EXPECT_EQ(entry(profile, "step/inner/multiply").blocks, 1u);
    EXPECT_EQ(entry(profile, "step/add").device, GetParam());
  }
  EXPECT_GE(entry(profile, "ones").held, 4000u);
  const auto add = entry(profile, "step/add");
  EXPECT_EQ(add.held, 0u);
  EXPECT_EQ(add.blocks, 0u);
  EXPECT_EQ(add.allocations, 1u);
  EXPECT_GE(add.peak, 4000u);
  EXPECT_EQ(add.peak, add.total);
  EXPECT_EQ(profile.entries().front().call, "ones") << "what holds most comes first";
  expect_contains(profile.report(), {"step/inner/multiply"});
}

TEST_P(MemoryProfileOn, NamesTheCalls) {
  const DeviceScope scope(GetParam());
  const Array a = ones({64, 64}, Dtype::kFloat32);
  const Array view = a.T();
  MemoryProfile profile;
  std::vector<Array> kept = {matmul(a, a),
                             sum(a, 0),
                             random::uniform({10}),
                             a.astype(Dtype::kInt8),
                             view.copy(),
                             maximum(a, 3),
                             zeros({3}),
                             arange(4),
                             argmax(a, 1)};
  for (const char* call :
       {"matmul", "sum", "uniform", "astype", "copy", "maximum", "zeros", "arange", "argmax"})
    EXPECT_GE(entry(profile, call).blocks, 1u) << call;
  for (const auto& e : profile.entries()) EXPECT_NE(e.call, "(unnamed)");
}

TEST(MemoryProfiles, FollowsThreadsAndOutlivedArrays) {
  Array survivor;
  {
    MemoryProfile profile;
    std::thread([&] {
      const CallScope scope("worker");
      survivor = Array::uninitialized({100}, Dtype::kFloat64, cpu(0));
    }).join();
    const Array mine = Array::uninitialized({10}, Dtype::kFloat64, cpu(0));
    EXPECT_GE(entry(profile, "worker").held, 800u);
    EXPECT_GE(entry(profile, "(unnamed)").held, 80u);
  }
  survivor = {};  // after the end of the profile
}

TEST(MemoryProfile, SeesOnlyWhatBeginsInIt) {
  const Array before = zeros({100});
  MemoryProfile outer;
  const Array between = zeros({100});
  size_t held = 0;
  {
    MemoryProfile inner;
    const Array both = zeros({100});
    EXPECT_EQ(entry(inner, "zeros").allocations, 1u);
    EXPECT_EQ(entry(outer, "zeros").allocations, 2u);
    held = entry(outer, "zeros").held;
  }
  EXPECT_LT(entry(outer, "zeros").held, held);
  EXPECT_EQ(entry(outer, "zeros").blocks, 1u);
}

TEST(MemoryProfile, CountsAnAllocatorsMemoryOnce) {
  MemoryProfile profile;
  AllocatorScope scope([](Device device, size_t bytes) { return allocate(device, bytes); });
  const Array a = zeros({100});
  EXPECT_EQ(entry(profile, "zeros").allocations, 1u);
  EXPECT_GE(entry(profile, "zeros").held, 800u);
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryProfileOn, ::testing::ValuesIn(catena::testing::devices()));

}  // namespace
}  // namespace catena
