// Calls that wait for each other in a circle: found at the call that closes it, over threads. Over
// processes: tests/mpi/deadlocks.cpp; groups, collectives and parts of jobs:
// diagnosis/deadlock_test.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "catena/comm/factory.h"
#include "comm/suite.h"
#include "error_text.h"

namespace catena {
namespace {

using comm::run_threads;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Array some(Communicator& comm) { return comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank()); }

struct Outcome {
  std::vector<std::string> texts;  // of every rank; "" if it threw nothing
  double seconds = 0;
};

Outcome outcome_of(int n, const std::function<void(Communicator&)>& fn) {
  const auto start = Clock::now();
  std::vector<std::string> texts = comm_suite::texts_of(n, fn);
  return {std::move(texts), std::chrono::duration<double>(Clock::now() - start).count()};
}

TEST(ThreadsDeadlock, TwoRanksThatReceiveFromEachOther) {
  const Outcome o = outcome_of(2, [](Communicator& comm) {
    comm.recv(some(comm), 1 - comm.rank());
    comm.send(some(comm), 1 - comm.rank());
  });
  for (const std::string& text : o.texts)
    expect_contains(text, {"deadlock", "rank 0 waited in recv #1 float32[4] from rank 1",
                           "rank 1 waited in recv #1 float32[4] from rank 0", "group"});
  EXPECT_LT(o.seconds, 1.5) << "waits are looked at after two seconds";
}

// It ends the others as well, who would not wait for each other.
TEST(ThreadsDeadlock, DoesNotWaitForRanksThatCompute) {
  const Outcome o = outcome_of(3, [](Communicator& comm) {
    if (comm.rank() == 2) std::this_thread::sleep_for(milliseconds(500));
    if (comm.rank() < 2) comm.recv(some(comm), 1 - comm.rank());
    comm.barrier();
  });
  for (const std::string& text : o.texts) expect_contains(text, {"deadlock", "rank 0 waited in"});
  EXPECT_LT(o.seconds, 1.8);
}

// Orders without a deadlock, with late ranks, many times.
TEST(ThreadsDeadlock, IsNotFoundInOrdersThatEnd) {
  const Outcome o = outcome_of(4, [](Communicator& comm) {
    const Array x = some(comm), y = some(comm);
    const int next = (comm.rank() + 1) % 4, previous = (comm.rank() + 3) % 4;
    for (int round = 0; round < 300; ++round) {
      if (round % 7 == comm.rank()) std::this_thread::yield();
      if (comm.rank() % 2 == 0) {
        comm.send(x, next);
        comm.recv(y, previous);
      } else {
        comm.recv(y, previous);
        comm.send(x, next);
      }
      comm.group([&] {
        comm.recv(y, previous);
        comm.recv(y, next);
        comm.send(x, next);
        comm.send(x, previous);
      });
      if (round % 5 == 0) comm.all_reduce(x);
    }
  });
  for (const std::string& text : o.texts) EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace catena
