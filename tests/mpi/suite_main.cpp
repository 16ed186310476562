// Run by mpirun: every process runs the same cases, one rank each.
#include <gtest/gtest.h>

#include "catena/comm/factory.h"
#include "catena/comm/transport.h"
#include "comm/suite.h"
#include "error_text.h"

namespace catena {
namespace {

// Shared by the cases that leave it alive.
Communicator& world() {
  static CommunicatorPtr comm = create_communicator("mpi", {.timeout = 60});
  return *comm;
}

class MpiSuite : public testing::TestWithParam<comm_suite::Case> {};
TEST_P(MpiSuite, GivesExactResults) {
  world().barrier();
  GetParam().body(world());
}
const auto kName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Collectives, MpiSuite, testing::ValuesIn(comm_suite::collective_cases()),
                         kName);
INSTANTIATE_TEST_SUITE_P(Objects, MpiSuite, testing::ValuesIn(comm_suite::object_cases()), kName);

class MpiMismatch : public testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(MpiMismatch, IsNamedOnAllRanks) {
  world().barrier();
  const CommunicatorPtr comm = create_communicator("mpi", {.timeout = 30});
  comm_suite::expect_mismatch(*comm, GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, MpiMismatch, testing::ValuesIn(comm_suite::mismatch_cases()), kName);

TEST(Mpi, SumsInTheOrderOfThreads) {
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

TEST(Mpi, KnowsThatAllRanksAreOnOneHost) {
  EXPECT_EQ(world().inter_size(), 1);
  EXPECT_EQ(world().intra_size(), world().size());
  EXPECT_EQ(world().intra_rank(), world().rank());
  EXPECT_EQ(world().name(), "mpi");
}

TEST(Mpi, SendAgainstCollectiveIsNamed) {
  world().barrier();
  const CommunicatorPtr comm = create_communicator("mpi", {.timeout = 30});
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

TEST(Mpi, ExchangeWithoutGroupIsADeadlockThatIsNamed) {
  world().barrier();
  const CommunicatorPtr comm = create_communicator("mpi", {.timeout = 30});
  const Array x = comm_suite::make(*comm, {4}, Dtype::kFloat32, 0);
  const std::string text = error_of<CommError>([&] {
    // Round a ring: everybody sends before anybody receives.
    comm->send(x, (comm->rank() + 1) % comm->size());
    comm->recv(x, (comm->rank() + comm->size() - 1) % comm->size());
  });
  expect_contains(text, {"rank 0 waits in send #1 float32[4] to rank 1", "group"});
  EXPECT_EQ(text.find("root 1"), std::string::npos) << text;
}

TEST(Mpi, ArraysOfOneCountAndOtherShapesAreReduced) {
  const bool odd = world().rank() == 1;
  const Array x = ones(odd ? Shape{3, 2} : Shape{2, 3}, dtype::float32);
  const Array y = world().all_reduce(x);
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(6, float(world().size())));
}

TEST(Mpi, ExceptionEndsTheOthers) {
  world().barrier();
  try {
    const CommunicatorPtr comm = create_communicator("mpi", {.timeout = 30});
    if (comm->rank() == 1) throw std::runtime_error("mine");
    comm->barrier();
    ADD_FAILURE() << "nothing was noticed";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 failed"), std::string::npos) << error.what();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
}

TEST(Mpi, CheckIsQuietWhenAllIsWell) {
  for (int i = 0; i < 1500; ++i) world().all_reduce_value(i);
  world().check();
}

}  // namespace
}  // namespace catena

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
