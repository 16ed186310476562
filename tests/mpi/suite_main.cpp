// Run by mpirun or catena-run: every process runs the same cases, one rank each, over the
// communicator that the first argument names ("mpi").
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "catena/array/math.h"
#include "catena/comm/factory.h"
#include "catena/comm/transport.h"
#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "comm/suite.h"
#include "error_text.h"

namespace catena {
namespace {

std::string implementation = "mpi";

CommunicatorPtr make_communicator(double timeout) {
  return create_communicator(implementation, {.timeout = timeout});
}

// Shared by the cases that leave it alive; main closes it.
CommunicatorPtr& shared_world() {
  static CommunicatorPtr comm = make_communicator(60);
  return comm;
}
Communicator& world() { return *shared_world(); }

// What only mpi does, or does in this way.
#define CATENA_MPI_ONLY(why) \
  if (implementation != "mpi") GTEST_SKIP() << "SKIPPED over " << implementation << ": " << (why)

class ProcessSuite : public ::testing::TestWithParam<comm_suite::Case> {};
TEST_P(ProcessSuite, GivesExactResults) {
  world().barrier();
  GetParam().body(world());
}
const auto kName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Collectives, ProcessSuite,
                         ::testing::ValuesIn(comm_suite::collective_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Objects, ProcessSuite, ::testing::ValuesIn(comm_suite::object_cases()),
                         kName);

class ProcessMismatch : public ::testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(ProcessMismatch, IsNamedOnAllRanks) {
  CATENA_MPI_ONLY("a rank that notices one later than others is only told that they are gone");
  world().barrier();
  const CommunicatorPtr comm = make_communicator(30);
  comm_suite::expect_mismatch(*comm, GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, ProcessMismatch, ::testing::ValuesIn(comm_suite::mismatch_cases()),
                         kName);

TEST(Process, SumsInTheOrderOfThreads) {
  CATENA_MPI_ONLY("it adds in an order of its own");
  Communicator& comm = world();
  const auto input = [](int rank, int64_t n) {
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(float((i * 7 + rank * 13) % 101) / 3.f - 11.f);
    return x;
  };
  // The small path, one chunk and several, and a chunk that does not divide.
  for (int64_t n : {5, 30001, 1200007}) {
    std::vector<float> want;
    comm::run_threads(comm.size(), [&](Communicator& rank) {
      const auto got =
          rank.all_reduce(array(input(rank.rank(), n), rank.device())).to_vector<float>();
      if (rank.rank() == 0) want = got;
    });
    const Array x = array(input(comm.rank(), n), comm.device());
    EXPECT_EQ(comm.all_reduce(x).to_vector<float>(), want) << n;
    comm.all_reduce(x, comm::Reduction::kSum, x);
    EXPECT_EQ(x.to_vector<float>(), want) << n;
  }
}

TEST(Process, KnowsThatAllRanksAreOnOneHost) {
  EXPECT_EQ(world().inter_size(), 1);
  EXPECT_EQ(world().intra_size(), world().size());
  EXPECT_EQ(world().intra_rank(), world().rank());
  EXPECT_EQ(world().name(), implementation);
}

TEST(Process, SendAgainstCollectiveIsNamed) {
  CATENA_MPI_ONLY("the records of messages and of collectives are not compared");
  world().barrier();
  const CommunicatorPtr comm = make_communicator(30);
  const Array x = comm_suite::make(*comm, {4}, Dtype::kFloat32, 0);
  try {
    if (comm->rank() == 0)
      comm->send(x, 1);
    else
      comm->all_reduce(x);
    ADD_FAILURE() << "nothing was noticed";
  } catch (const CommError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("send #1"), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce #1"), std::string::npos) << text;
  }
}

TEST(Process, ExchangeWithoutGroupIsADeadlockThatIsNamed) {
  CATENA_MPI_ONLY("small messages are buffered");
  world().barrier();
  const CommunicatorPtr comm = make_communicator(30);
  const Array x = comm_suite::make(*comm, {4}, Dtype::kFloat32, 0);
  const std::string text = error_of<CommError>([&] {
    // Round a ring: everybody sends before anybody receives.
    comm->send(x, (comm->rank() + 1) % comm->size());
    comm->recv(x, (comm->rank() + comm->size() - 1) % comm->size());
  });
  expect_contains(text, {"rank 0 waited in send #1 float32[4] to rank 1", "group"});
  EXPECT_EQ(text.find("root 1"), std::string::npos) << text;
}

TEST(Process, ExceptionEndsTheOthers) {
  world().barrier();
  try {
    const CommunicatorPtr comm = make_communicator(30);
    if (comm->rank() == 1) throw std::runtime_error("mine");
    comm->barrier();
    ADD_FAILURE() << "nothing was noticed";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 failed"), std::string::npos) << error.what();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
  // Who caught it goes on, however late: here, later than the next look at who has ended.
  if (world().rank() != 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  make_communicator(30)->barrier();
}

TEST(Process, CheckIsQuietWhenAllIsWell) {
  for (int i = 0; i < 1500; ++i) world().all_reduce_value(i);
  world().check();
}

// Kernels before, beside and after collectives of the current and of the side stream: what is
// recorded between them must make each wait for what it reads.
TEST(Process, ReplayedStepsGiveWhatEagerOnesGive) {
  if (implementation != "nccl") GTEST_SKIP() << "SKIPPED over " << implementation << ": no graphs";
  Communicator& comm = world();
  for (const int64_t n : {1, 1000, 1 << 20}) {
    const Array x = comm_suite::make(comm, {n}, Dtype::kFloat32, comm.rank());
    const Array sum = zeros({n}, {Dtype::kFloat32, comm.device()});
    const auto step = [&] {
      const Array mine = x * 0.5f + 1.f;  // read by the side stream
      const Event reduced = comm.all_reduce_async(mine, comm::Reduction::kSum, comm.side_stream());
      const Array beside = x + 1.f;
      current_stream(comm.device()).wait(reduced);
      const Array joined = mine + beside;
      comm.all_reduce(joined, comm::Reduction::kSum, joined);
      x.assign(joined * 0.125f);
      sum.assign(sum + x);
    };
    const auto run = [&](const std::function<void()>& once) {
      x.assign(comm_suite::make(comm, {n}, Dtype::kFloat32, comm.rank()));
      sum.fill(0);
      for (int i = 0; i < 20; ++i) once();
      return sum.to_vector<float>();
    };
    const std::vector<float> eager = run(step);
    cuda::Graph graph = cuda::Graph::capture(comm.device(), step);
    EXPECT_EQ(run([&] { graph.launch(); }), eager) << n;
  }
}

#undef CATENA_MPI_ONLY

}  // namespace
}  // namespace catena

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) catena::implementation = argv[1];
  const int failures = RUN_ALL_TESTS();
  // Before what it needs goes: all ranks have run the same cases, so all come here.
  catena::shared_world().reset();
  return failures;
}
