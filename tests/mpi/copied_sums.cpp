// Sums and gathers of an optimizer's arenas by the copy engines of GPUs, in the job of
// suite_main.cpp. The environment makes them go this way from one byte on.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/comm/factory.h"
#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "operands.h"

namespace catena {
namespace {

using comm::CallTag;
using comm::Reduction;
using comm::TagKind;
using mpi_test::expected;
using mpi_test::Floats;
using mpi_test::operands;
using mpi_test::Placed;

constexpr CallTag kOfAnArena{TagKind::kBucket, 1, 0};

class CopiedSums : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    all_ = create_communicator();
    if (all_->name() == "nccl")
      comm_ = mpi_test::made_with(*all_, {{"CATENA_COPIED_SUM", "1"},
                                          {"CATENA_COPIED_GATHER", "1"},
                                          {"CATENA_SHARED_MEMORY", "peers"}});
    if (comm_) comm::internals(*comm_).prepare_scattered_sums(1);
  }
  static void TearDownTestSuite() {
    comm_.reset();
    all_.reset();
  }
  void SetUp() override {
    if (!comm_) GTEST_SKIP() << "SKIPPED over " << all_->name() << ": no GPUs";
    const std::string ways = comm::internals(*comm_).ways();
    if (ways.find("mapped by all ranks") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: the GPUs do not share memory (" << ways << ")";
    ASSERT_NE(ways.find("scattered sums of arenas from 1 bytes; gathers of arenas from 1 bytes by"),
              std::string::npos)
        << ways;
  }

  static Array on_gpu(const Floats& values) { return array(values, cpu(0)).to(comm_->device()); }
  // On the side stream, behind which the current one goes on.
  static void end(const Event& event) { current_stream(comm_->device()).wait(event); }
  static void scatter(const Array& x, Reduction kind, const Array& own) {
    end(comm_->reduce_scatter_async(x, kind, own, comm_->side_stream(), kOfAnArena));
  }
  static void gather(const Array& own, const Array& all) {
    end(comm_->all_gather_async(own, all, comm_->side_stream(), kOfAnArena));
  }
  static Floats part_of(const Floats& all, int64_t part, int rank) {
    return Floats(all.begin() + rank * part, all.begin() + (rank + 1) * part);
  }

  static inline CommunicatorPtr all_, comm_;
};

// Arenas of all ranks are at the same place, which need not be aligned.
TEST_F(CopiedSums, AreMadeInTheOrderOfTheRanksAndGathered) {
  const int rank = comm_->rank(), ranks = comm_->size();
  for (const int64_t part : {1, 6, 100, 5000, 30003}) {
    const Placed all(*comm_, true, part * ranks, part % 4), own(*comm_, false, part, rank % 3);
    all.view.assign(on_gpu(operands(rank, part * ranks)));
    scatter(all.view, Reduction::kSum, own.view);
    EXPECT_TRUE(own.view.to_vector<float>() ==
                part_of(expected(Reduction::kSum, ranks, part * ranks), part, rank))
        << part;
    scatter(all.view, Reduction::kMean, own.view);
    const Floats sums = expected(Reduction::kMean, ranks, part * ranks);
    EXPECT_TRUE(own.view.to_vector<float>() == part_of(sums, part, rank)) << part;
    // In place, and from elsewhere.
    all.view.assign(on_gpu(operands(rank, part * ranks)));
    const Array place = all.view(Slice(rank * part, (rank + 1) * part));
    scatter(all.view, Reduction::kMean, place);
    EXPECT_TRUE(place.to_vector<float>() == part_of(sums, part, rank)) << part;
    gather(place, all.view);
    EXPECT_TRUE(all.view.to_vector<float>() == sums) << part;
    all.view.fill(0);
    gather(own.view, all.view);
    EXPECT_TRUE(all.view.to_vector<float>() == sums) << part;
    EXPECT_TRUE(all.is_intact() && own.is_intact()) << part;
  }
}

// More than there is room for at a time.
TEST_F(CopiedSums, GoPieceByPiece) {
  const int ranks = comm_->size();
  const int64_t part = (140 << 20) / 4 / ranks + 7;
  const Placed x(*comm_, true, part * ranks, 1), own(*comm_, false, part, 0);
  const Array places = arange(0, double(part * ranks), 1, {Dtype::kInt32, comm_->device()});
  const Array small = subtract(remainder(places, 2039), 1000).astype(Dtype::kFloat32);
  x.view.assign(small * float(comm_->rank() + 1));
  scatter(x.view, Reduction::kSum, own.view);
  const Array of_part = small(Slice(comm_->rank() * part, (comm_->rank() + 1) * part));
  EXPECT_TRUE(all(equal(own.view, of_part * float(ranks * (ranks + 1) / 2))).item<bool>());
  EXPECT_TRUE(own.is_intact());
}

TEST_F(CopiedSums, OfSixteenBitsAreRoundedOnce) {
  const int64_t part = 20002, n = part * comm_->size();
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    const auto small = [&](int rank) { return array(operands(rank, n), cpu(0)).astype(dtype); };
    const auto seen = [](const Array& a) {
      return a.to(cpu(0)).astype(Dtype::kFloat32).to_vector<float>();
    };
    Floats sums = seen(small(0));
    for (int r = 1; r < comm_->size(); ++r) {
      const Floats x = seen(small(r));
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += x[i];
    }
    const Array own = empty({part}, {dtype, comm_->device()});
    scatter(small(comm_->rank()).to(comm_->device()), Reduction::kSum, own);
    EXPECT_TRUE(seen(own) == part_of(seen(array(sums, cpu(0)).astype(dtype)), part, comm_->rank()))
        << dtype;
  }
}

// Gathers of a batch meet once; sums and other calls come between batches.
TEST_F(CopiedSums, GathersFollowEachOtherInBatches) {
  const int rank = comm_->rank(), ranks = comm_->size();
  constexpr int64_t kPart = 40001;
  std::vector<Placed> arenas;
  for (int i = 0; i < 4; ++i) arenas.emplace_back(*comm_, true, kPart * ranks, 0);
  for (int round = 0; round < 20; ++round) {
    std::vector<Event> arrivals;
    for (size_t i = 0; i < arenas.size(); ++i) {
      const Array& whole = arenas[i].view;
      const Array own = whole(Slice(rank * kPart, (rank + 1) * kPart));
      whole.fill(-1);
      own.fill(float(100 * round + 10 * int(i) + rank));
    }
    for (size_t i = 0; i < arenas.size(); ++i) {
      const Array& whole = arenas[i].view;
      const CallTag tag{i == 0 ? TagKind::kBucket : TagKind::kFollowing, 1, int32_t(i)};
      arrivals.push_back(comm_->all_gather_async(whole(Slice(rank * kPart, (rank + 1) * kPart)),
                                                 whole, comm_->side_stream(), tag));
    }
    for (size_t i = 0; i < arenas.size(); ++i) {
      end(arrivals[i]);
      const Array rows = arenas[i].view.reshape({ranks, kPart});
      for (int r = 0; r < ranks; ++r)
        ASSERT_TRUE(all(equal(rows(r), double(100 * round + 10 * int(i) + r))).item<bool>())
            << round << ": arena " << i << ", rank " << r;
    }
    const Array own = arenas[0].view(Slice(rank * kPart, (rank + 1) * kPart));
    if (round % 3 == 0) scatter(arenas[0].view, Reduction::kMean, own);
  }
}

TEST_F(CopiedSums, AreReplayed) {
  const Device gpu = comm_->device();
  const int rank = comm_->rank(), ranks = comm_->size();
  constexpr int64_t kPart = 50001;
  const Placed x(*comm_, true, kPart * ranks, 0), y(*comm_, true, kPart * ranks, 2);
  const Slice slice(rank * kPart, (rank + 1) * kPart);
  const Array own = y.view(slice), own_x = x.view(slice);
  const auto step = [&] {
    scatter(x.view, Reduction::kMean, own_x);
    gather(own_x, x.view);
    scatter(y.view, Reduction::kMean, own);
    own.assign(own * float(rank + 1));
    gather(own, y.view);
    x.view.assign(x.view * float(rank + 1) + y.view);
  };
  const auto run = [&](const std::function<void()>& once) {
    for (const Placed* placed : {&x, &y})
      placed->view.assign(on_gpu(operands(rank, placed->view.size())));
    for (int i = 0; i < 10; ++i) once();
    Floats result = x.view.to_vector<float>();
    const Floats more = y.view.to_vector<float>();
    result.insert(result.end(), more.begin(), more.end());
    return result;
  };
  const Floats eager = run(step);
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  EXPECT_TRUE(run([&] { graph.launch(); }) == eager);
  EXPECT_TRUE(run(step) == eager);
  EXPECT_TRUE(run([&] { graph.launch(); }) == eager);
}

}  // namespace
}  // namespace catena
