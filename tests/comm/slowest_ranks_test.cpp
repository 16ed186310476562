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

}  // namespace
}  // namespace catena::comm
