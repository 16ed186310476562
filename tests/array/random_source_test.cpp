#include "catena/array/random_source.h"

#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/array/random_log.h"

namespace catena {
namespace {

std::vector<float> draw(int64_t n) {
  return random::uniform({n}, 0, 1, dtype::float32).to_vector<float>();
}

TEST(RandomSource, GivesNumbersOfItsPlaceAndLeavesStatesAlone) {
  random::seed(4);
  const std::vector<float> usual = draw(5), next = draw(5);
  random::seed(4);
  EXPECT_EQ(draw(5), usual);
  std::vector<float> first, second, again;
  {
    const RandomSourceScope scope({7, 1000, nullptr});
    first = draw(3);
    second = draw(3);
    EXPECT_NE(first, second);
    {
      const RandomSourceScope inner({7, 1000, nullptr});
      again = draw(3);
    }
    RandomState other(99);  // any state
    EXPECT_NE(other.uniform({3}, 0, 1, dtype::float32).to_vector<float>(), second);
  }
  EXPECT_EQ(again, first);
  EXPECT_EQ(draw(5), next) << "the default state went on";
  const RandomSourceScope elsewhere({8, 1000, nullptr});
  EXPECT_NE(draw(3), first);
}

TEST(RandomSource, IsNotedAndRepeated) {
  RandomLog log;
  std::vector<float> first;
  {
    const RandomLogScope note(log, RandomLogScope::Mode::kNote);
    const RandomSourceScope scope({7, 5, nullptr});
    first = draw(4);
  }
  const RandomLogScope repeat(log, RandomLogScope::Mode::kRepeat);
  const RandomSourceScope other({1, 1, nullptr});
  EXPECT_EQ(draw(4), first);
}

}  // namespace
}  // namespace catena
