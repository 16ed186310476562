#include "job/stop_requests.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

TEST(StopRequests, TheFirstEndsTheJobAndTheSecondIsImpatient) {
  StopRequests requests;
  const auto first = requests.take();
  EXPECT_TRUE(first.is_the_reason);
  EXPECT_FALSE(first.at_once);
  const auto second = requests.take();
  EXPECT_TRUE(second.at_once);
  EXPECT_FALSE(second.is_the_reason);
}

TEST(StopRequests, AfterAFailureTheFirstIsNotTheReasonAndNotImpatient) {
  StopRequests requests;
  requests.note_failure();
  const auto first = requests.take();
  EXPECT_FALSE(first.is_the_reason);
  EXPECT_FALSE(first.at_once);
  EXPECT_TRUE(requests.take().at_once);
}

TEST(StopRequests, AFailureAfterTheRequestChangesNothing) {
  StopRequests requests;
  EXPECT_TRUE(requests.take().is_the_reason);
  requests.note_failure();
  EXPECT_TRUE(requests.take().at_once);
}

}  // namespace
}  // namespace catena::launch
