#include "catena/parallel/no_sync.h"

#include <gtest/gtest.h>

#include "catena/comm/factory.h"

namespace catena::parallel {
namespace {

TEST(NoSync, Nests) {
  comm::run_threads(1, [](Communicator& comm) {
    EXPECT_TRUE(synchronizes(comm));
    {
      const NoSync outer(comm);
      const NoSync inner(comm);
      EXPECT_FALSE(synchronizes(comm));
    }
    EXPECT_TRUE(synchronizes(comm));
  });
}

TEST(NoSync, IsOfOneCommunicator) {
  comm::run_threads(1, [](Communicator& comm) {
    const CommunicatorPtr part = comm.split(0);
    const NoSync scope(*part);
    EXPECT_TRUE(synchronizes(comm));
    EXPECT_FALSE(synchronizes(*part));
  });
}

}  // namespace
}  // namespace catena::parallel
