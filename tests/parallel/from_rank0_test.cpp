// Checkpoints that rank 0 reads for all ranks.
#include "catena/parallel/from_rank0.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/serializers/checkpoint.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::parallel {
namespace {

TEST(FromRank0, AllRanksGetWhatRank0Reads) {
  const TempFolder folder;
  const std::string path = folder / "checkpoint.npz";
  {
    int64_t epoch = 7;
    Array numbers = arange(5);
    serializers::Checkpoint checkpoint;
    checkpoint.add("epoch", epoch);
    checkpoint.add("numbers", numbers);
    checkpoint.save(path);
  }
  comm::run_threads(3, [&](Communicator& comm) {
    int64_t epoch = 0;
    Array numbers = zeros({5}, dtype::int64);
    serializers::Checkpoint checkpoint;
    checkpoint.add("epoch", epoch);
    checkpoint.add("numbers", numbers);
    // The others do not have the file, as on hosts without a shared file system.
    checkpoint.load(comm.rank() == 0 ? path : "/nowhere/checkpoint.npz", from_rank_0(&comm));
    EXPECT_EQ(epoch, 7);
    EXPECT_EQ(numbers(4).item<int64_t>(), 4);
  });
}

TEST(FromRank0, ErrorsOfRank0AreToldToAll) {
  comm::run_threads(2, [](Communicator& comm) {
    serializers::Checkpoint checkpoint;
    const std::string text =
        error_of<IoError>([&] { checkpoint.load("/nowhere/checkpoint.npz", from_rank_0(&comm)); });
    expect_contains(text, {"/nowhere/checkpoint.npz"});
    EXPECT_EQ(text.find("rank 0: "), comm.rank() == 0 ? std::string::npos : 0u);
    comm.barrier();  // which still works
  });
}

TEST(FromRank0, WithoutACommunicatorOnlyReads) {
  const NamedArrays arrays = from_rank_0(nullptr)([] { return NamedArrays{{"a", ones({2})}}; });
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].first, "a");
}

}  // namespace
}  // namespace catena::parallel
