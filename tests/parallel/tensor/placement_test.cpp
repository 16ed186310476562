#include "catena/parallel/tensor/placement.h"

#include <gtest/gtest.h>

#include "catena/comm/mesh.h"
#include "catena/functions/connection/linear.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/parallel/tensor/norms.h"
#include "error_text.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel {
namespace {

namespace F = functions;

using namespace testing;  // NOLINT: waves and ranks

TEST(Placement, OfUnevenPiecesIsTheBoxThatIsHere) {
  run_alike(3, [](Communicator& comm) {
    const Array whole = arange(24, {dtype::float32, comm.device()}).reshape({2, 12});
    const OwnedParameter part = part_of_whole(whole, comm, 1, {5, 0, 7});
    const int64_t begin[] = {0, 5, 5}, size[] = {5, 0, 7};
    const int r = comm.rank();
    EXPECT_EQ(part.data().to_vector<float>(),
              whole(Slice(), Slice(begin[r], begin[r] + size[r])).to_vector<float>());
    ASSERT_NE(part.placement(), nullptr);
    EXPECT_EQ(part.placement()->whole, (Shape{2, 12}));
    EXPECT_EQ(part.placement()->begin, (Shape{0, begin[r]}));
    EXPECT_EQ(part.placement()->boxes(), 3);
    const char* const texts[] = {"5 of 12 columns, ranks 0/3", "0 of 12 columns, ranks 1/3",
                                 "7 of 12 columns, ranks 2/3"};
    EXPECT_EQ(part.placement()->text(part.shape()), texts[r]);
  });
}

TEST(Placement, StaysWithCopiesAndMoves) {
  run_alike(2, [](Communicator& comm) {
    ColumnParallelLinear layer(4, 6, comm);
    const ColumnParallelLinear copy = layer;
    const ColumnParallelLinear moved = std::move(layer);
    for (const auto* each : {&copy, &moved}) {
      ASSERT_NE(each->W.placement(), nullptr);
      EXPECT_EQ(each->W.placement()->whole, (Shape{6, 4}));
      EXPECT_EQ(each->b.placement()->begin, Shape{3 * comm.rank()});
    }
    const Persistent mean(zeros({3}), OverRanks::kMean);
    mean.place(piece_of({6}, comm, 0));
    EXPECT_EQ(mean.clone().placement()->whole, Shape{6});
  });
}

TEST(Placement, IsCheckedAgainstTheArray) {
  run_alike(2, [](Communicator& comm) {
    const Array whole = zeros({4, 6});
    expect_contains(error_of<ShapeError>([&] { part_of_whole(whole, comm, 2); }),
                    {"piece_of: axis 2", "(4, 6)"});
    expect_contains(error_of<ValueError>([&] { part_of_whole(zeros({5}), comm, 0); }),
                    {"5 elements", "2 ranks", "give the size"});
    expect_contains(error_of<ValueError>([&] {
                      part_of_whole(whole, comm, 0, {1, 2});
                    }),
                    {"sum 4", "(1, 2)"});
    const Parameter p(zeros({4, 6}));
    expect_contains(error_of<ShapeError>([&] {
                      p.place(piece_of({2, 6}, comm, 0));
                    }),
                    {"Parameter::place", "shape (4, 6)", "a whole of shape (2, 6)"});
    const Persistent own(zeros({2}), OverRanks::kPerRank);
    expect_contains(error_of<ValueError>([&] { own.place(piece_of({4}, comm, 0)); }),
                    {"Persistent::place", "kPerRank"});
  });
}

// What is cut along one of two axes is there once along the other, and counts once in norms.
TEST(Placement, OverOneOfTwoAxesCountsOnceInNorms) {
  run_alike(4, [](Communicator& comm) {
    Mesh mesh(comm, {{"expert", 2}, {"tensor", 2}});
    const auto part = [](int64_t size, Communicator& over) {
      return Parameter(part_of_whole(zeros({size}, {dtype::float64, over.device()}), over, 0));
    };
    const Parameter rows = part(8, mesh["tensor"]), experts = part(6, mesh["expert"]);
    const Parameter whole(zeros({3}, {dtype::float64, comm.device()}));
    EXPECT_EQ(rows.placement()->text(rows.shape()),
              message("4 of 8 rows, tensor ", comm.rank() % 2, "/2"));
    optimizers::SGD optimizer(0.1);
    F::Linear unused(1, 1);
    share_norms(optimizer, unused, mesh.over({"expert", "tensor"}));
    optimizer.setup(Parameters{rows, experts, whole});
    for (const Parameter& p : {rows, experts, whole}) p.set_grad(ones_like(p.data()));
    EXPECT_DOUBLE_EQ(optimizer.compute_grads_norm(), std::sqrt(8 + 6 + 3));
  });
}

}  // namespace
}  // namespace catena::parallel
