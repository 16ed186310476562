// Every known schedule, and random ones, against the same micro-batches without stages: bit by bit.
#include <cstdlib>

#include "parallel/pipeline/model.h"
#include "parallel/pipeline/random_schedules.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

constexpr int kMicroBatches = 5;

std::vector<Schedule> known_schedules(int ranks, int micro_batches) {
  return {gpipe(ranks, micro_batches), one_forward_one_backward(ranks, micro_batches),
          interleaved(ranks, 2, micro_batches), zero_bubble(ranks, micro_batches),
          zb_v(ranks, micro_batches)};
}

class KnownSchedules : public ::testing::TestWithParam<int> {};

TEST_P(KnownSchedules, OverRanksEqualOneProcess) {
  const Outcome expected = train_without_stages(kMicroBatches);
  for (const Schedule& schedule : known_schedules(GetParam(), kMicroBatches))
    expect_equal(train_on_threads(schedule), expected, schedule.name);
}

TEST_P(KnownSchedules, OverDevicesEqualOneDevice) {
  const Outcome expected = train_without_stages(kMicroBatches);
  std::vector<Device> devices;  // cpu:0 to cpu:3, several ranks on some of them
  for (int r = 0; r < GetParam(); ++r) devices.push_back(cpu(r % 4));
  for (const Schedule& schedule : known_schedules(GetParam(), kMicroBatches))
    expect_equal(train_in_process(schedule, devices), expected, schedule.name);
}

TEST_P(KnownSchedules, WithRecomputationAndClipping) {
  Training training{.samples = 13, .steps = 4};
  training.options.clip_norm = 0.02;
  const Outcome expected = train_without_stages(kMicroBatches, training);
  training.options.recompute = {0, 1};
  for (const Schedule& schedule : known_schedules(GetParam(), kMicroBatches)) {
    expect_equal(train_on_threads(schedule, training), expected, schedule.name);
    training.options.keep = Keep::kProducts;  // of the schedules behind the first
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, KnownSchedules, ::testing::Values(2, 3, 4, 6, 8),
                         [](const auto& info) { return std::to_string(info.param) + "_ranks"; });

TEST(RandomSchedules, EqualOneProcess) {
  const bool all = std::getenv("CATENA_TEST_FULL_COMBINATION") != nullptr;
  const Training training{.samples = 13, .steps = 2};
  std::map<int, Outcome> expected;  // by micro-batches
  for (unsigned seed = 0; seed < (all ? 1000 : 220); ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.updates = false});
    const int m = schedule.micro_batches;
    if (expected.count(m) == 0) expected[m] = train_without_stages(m, training);
    expect_equal(train_on_threads(schedule, training), expected[m], schedule.name);
    if (seed % 10 > 0) continue;
    const std::vector<Device> devices(size_t(schedule.ranks()), cpu(0));
    expect_equal(train_in_process(schedule, devices, training), expected[m], schedule.name);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace catena::parallel::pipeline
