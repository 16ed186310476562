// The snippets of docs/guide/communicators.md.
#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"

namespace catena {
namespace {

TEST(CommunicatorGuide, SnippetsRun) {
  comm::run_threads(4, [](Communicator& rank) {
    const CommunicatorPtr comm = rank.shared_from_this();
    Array x = ones({4}, {Dtype::kFloat32, comm->device()});
    x = comm->all_reduce(x);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{4, 4, 4, 4}));
    comm->all_reduce(x, comm::Reduction::kMean, x);
    EXPECT_EQ(x.to_vector<float>()[0], 4);
    const double my_samples = comm->rank() == 0 ? 5 : 1,
                 all_samples = comm->all_reduce_value(my_samples);
    comm->all_reduce(x, comm::weighted(my_samples / all_samples), x);
    EXPECT_EQ(x.to_vector<float>()[0], 4);
    EXPECT_EQ(comm->reduce_scatter(x).size(), 1);
    const Array all = comm->all_gather(x);
    EXPECT_EQ(all.size(), 16);
    comm->broadcast(x, 0);
    comm->gather(x, 0);
    const Array piece = zeros({4}, {Dtype::kFloat32, comm->device()});
    comm->scatter(all, piece, 0);
    comm->all_to_all(x);
    const int next = (comm->rank() + 1) % comm->size(),
              previous = (comm->rank() + 3) % comm->size();
    const Array y = zeros({4}, {Dtype::kFloat32, comm->device()});
    comm->group([&] {
      comm->send(x, next);
      comm->recv(y, previous);
    });
    EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(comm->broadcast_object(std::string("text"), 0), "text");
    EXPECT_EQ(comm->all_gather_object(7).size(), 4u);
    EXPECT_EQ(comm->all_reduce_value(2.0, comm::Reduction::kMean), 2.0);
  });
}

}  // namespace
}  // namespace catena
