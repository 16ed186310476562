// Which ranks the others wait for, as their records on the board tell.
#include <gtest/gtest.h>

#include "comm/communicator_state.h"

namespace catena::comm {
namespace {

TEST(SlowestRanks, MadeTheFewestCalls) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(4)),
                         {2, 0, -1, 1}};
  EXPECT_EQ(slowest_ranks(place, 7), std::vector<int>());
  CallHistory histories[] = {CallHistory(7), CallHistory(7), CallHistory(7)};
  const auto call = [&](int slot) {
    place.board->slot(slot).begin_call(histories[slot].next(CallOp::all_reduce, 11, 0, -1, 8));
  };
  call(2);
  EXPECT_EQ(slowest_ranks(place, 7), (std::vector<int>{1, 3})) << "they made none";
  call(0);
  EXPECT_EQ(slowest_ranks(place, 7), (std::vector<int>{3}));
  call(1);
  EXPECT_EQ(slowest_ranks(place, 7), std::vector<int>());
  call(2);
  call(2);
  call(0);
  EXPECT_EQ(slowest_ranks(place, 7), (std::vector<int>{3})) << "not those that lag behind one";
  EXPECT_EQ(slowest_ranks({}, 7), std::vector<int>()) << "without a board";
}

// Its records of the communicator are gone, and with them what it did.
TEST(SlowestRanks, AreNotThoseWithManyCallsElsewhere) {
  const BoardPlace place{std::make_shared<StatusBoard>(StatusBoard::create_private(2)), {0, 1}};
  CallHistory first(7), second(7), elsewhere(9);
  const auto call = [&](int slot, CallHistory& history) {
    place.board->slot(slot).begin_call(history.next(CallOp::all_reduce, 11, 0, -1, 8));
  };
  call(0, first);
  call(1, second);
  call(1, second);
  EXPECT_EQ(slowest_ranks(place, 7), (std::vector<int>{0}));
  EXPECT_EQ(late_ranks(place, 7, 2), (std::vector<int>{0}));
  for (int i = 0; i < StatusBoard::kRingSize; ++i) call(0, elsewhere);
  EXPECT_EQ(slowest_ranks(place, 7), std::vector<int>());
  EXPECT_EQ(late_ranks(place, 7, 2), std::vector<int>());
}

}  // namespace
}  // namespace catena::comm
