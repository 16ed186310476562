// Checkpoints that processes write together and others read.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "catena/training/checkpoint_folder.h"
#include "parallel/network.h"

namespace catena {
namespace {

using namespace testing;  // NOLINT: the network

struct Session {
  Net net{dtype::float32};
  MultiNodeOptimizer optimizer;
  serializers::Checkpoint state;

  Session(const CommunicatorPtr& comm, parallel::Sharding sharding)
      : optimizer(
            create_multi_node_optimizer(optimizers::Adam(0.01), comm, {.sharding = sharding})) {
    net.to(comm->device());
    optimizer.setup(net);
    state.add("model", net);
    state.add("optimizer", optimizer.actual_optimizer());
  }
  void train(int first, int last) {
    for (int i = first; i < last; ++i) {
      optimizer.zero_grads();
      const Batch batch = part(batch_of(i, 6, dtype::float32), 0, 6, optimizer.comm().device());
      loss_of(net, batch).backward();
      optimizer.update();
    }
  }
};

// A folder that all ranks know and the first one removes.
class SharedFolder {
 public:
  explicit SharedFolder(const CommunicatorPtr& comm) : comm_(comm) {
    std::string pattern = (std::filesystem::temp_directory_path() / "catena-mpi-XXXXXX").string();
    if (comm->rank() == 0 && ::mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("no temporary folder");
    path_ = comm->broadcast_object(pattern);
  }
  ~SharedFolder() {
    comm_->barrier();
    std::error_code ignored;
    if (comm_->rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  CommunicatorPtr comm_;
  std::string path_;
};

TEST(MpiCheckpoints, GoOnWithTheSameBits) {
  const CommunicatorPtr comm = create_communicator("mpi");
  const SharedFolder folder(comm);
  Session whole(comm, parallel::Sharding::kNone);
  whole.train(0, 6);
  {
    Session first(comm, parallel::Sharding::kStates);
    first.train(0, 2);
    training::CheckpointFolder checkpoints(folder.path(), comm.get());
    checkpoints.save_async(first.state, 2);
    first.train(2, 4);
    checkpoints.save_async(first.state, 4);
    first.train(4, 5);
  }
  comm->barrier();  // rank 0 has waited for all
  for (const parallel::Sharding sharding :
       {parallel::Sharding::kNone, parallel::Sharding::kStates}) {
    Session second(comm, sharding);
    training::CheckpointFolder checkpoints(folder.path(), comm.get());
    EXPECT_EQ(checkpoints.load(second.state), 4);
    second.train(4, 6);
    EXPECT_EQ(values_of(second.net), values_of(whole.net));
    second.optimizer.check_state();
  }
}

}  // namespace
}  // namespace catena
