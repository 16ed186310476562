#include "catena/parallel/tensor/placement.h"

#include <gtest/gtest.h>

#include "catena/comm/mesh.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/tensor/functions.h"
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

// A cut over two axes together, of three.
TEST(Placement, OverTwoAxesTogetherCountsOnceInNorms) {
  run_alike(8, [](Communicator& comm) {
    Mesh mesh(comm, {{"context", 2}, {"expert", 2}, {"tensor", 2}});
    const Parameter part(part_of_whole(zeros({8}, {dtype::float64, comm.device()}),
                                       mesh.over({"context", "tensor"}), 0));
    optimizers::SGD optimizer(0.1);
    F::Linear unused(1, 1);
    share_norms(optimizer, unused, mesh.over({"context", "expert", "tensor"}));
    optimizer.setup(Parameters{part});
    part.set_grad(ones_like(part.data()));
    EXPECT_DOUBLE_EQ(optimizer.compute_grads_norm(), std::sqrt(8));
  });
}

// A rank whose pieces are all empty takes part in sums over the ranks.
TEST(Placement, OfNothingTakesPartInNorms) {
  run_alike(3, [](Communicator& comm) {
    const Parameter part(
        part_of_whole(ones({6}, {dtype::float64, comm.device()}), comm, 0, {4, 0, 2}));
    const auto rule_with = [&](auto rule) {
      F::Linear unused(1, 1);
      rule.add_hook("clip", optimizers::gradient_clipping(1));
      share_norms(rule, unused, comm);
      rule.setup(Parameters{part});
      part.set_grad(ones_like(part.data()));
      EXPECT_DOUBLE_EQ(rule.compute_grads_norm(), std::sqrt(6));
      rule.update();
    };
    rule_with(optimizers::SGD(std::sqrt(6)));
    EXPECT_EQ(part.size(), comm.rank() == 0 ? 4 : comm.rank() == 1 ? 0 : 2);
    for (const double value : part.data().to_vector<double>()) EXPECT_NEAR(value, 0, 1e-12);
    part.data().fill(1);
    rule_with(optimizers::LAMB(0.5, {.decay = 0}));
    for (const double value : part.data().to_vector<double>()) EXPECT_NEAR(value, 0.5, 1e-5);
  });
}

struct Inner : Parameterized {
  OwnedParameter up, down;
  CATENA_PARAMETERS(up, down)
  Inner(Communicator& comm, const std::vector<int64_t>& sizes, double phase)
      : up(part_of_whole(wave({5, 3}, phase, dtype::float64), comm, 0, sizes)),
        down(part_of_whole(wave({3, 5}, phase + 1, dtype::float64), comm, 1, sizes)),
        comm_(comm.shared_from_this()) {
    to(comm.device());
  }
  Variable operator()(const Variable& x) const {
    const Variable own = F::copy_to_ranks(x, *comm_);
    return F::sum_of_ranks(F::linear(F::tanh(F::linear(own, up)), down), *comm_);
  }

 private:
  CommunicatorPtr comm_;
};

// The loss of the fourth step of two stages that clip.
double loss_of_stages(const std::vector<int64_t>& sizes) {
  double loss = 0;
  run_alike(2 * int(sizes.size()), [&](Communicator& comm) {
    Mesh mesh(comm, {{"pipeline", 2}, {"tensor", -1}});
    pipeline::Sequence model;
    model.add(Inner(mesh["tensor"], sizes, 1)).add(Inner(mesh["tensor"], sizes, 3));
    pipeline::Pipeline stages(model, {{0, 1}}, pipeline::gpipe(2, 2), mesh["pipeline"],
                              DataAxes{mesh, {}}, {.clip_norm = 0.1});
    stages.setup([] { return optimizers::SGD(0.5); });
    const Array x = wave({4, 3}, 7, dtype::float64).to(comm.device());
    for (int step = 0; step < 4; ++step)
      stages.step(x, x, [](const Variable& y, const Array& t) {
        return F::mean(F::square(y - Variable::constant(t)));
      });
    const double last = stages.loss();
    if (comm.rank() == 0) loss = last;
  });
  return loss;
}

// Stages of which a rank has no element have an optimizer there all the same.
TEST(Placement, OfNothingTakesPartInPipelines) {
  const double expected = loss_of_stages({5});
  EXPECT_NEAR(loss_of_stages({5, 0}), expected, 1e-12);
  EXPECT_NEAR(loss_of_stages({2, 0, 3}), expected, 1e-12);
}

// Ranks that average have the same pieces: rank 0's values would replace those of the others.
TEST(Placement, IsNotAveragedAlongItsAxis) {
  run_alike(8, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}, {"expert", 2}, {"tensor", 2}});
    const auto part = [&](Communicator& over) {
      return Parameter(part_of_whole(arange(8, {dtype::float64, comm.device()}), over, 0));
    };
    const DataAxes both{mesh, {"data", "expert"}};
    for (const Parameter& p : {part(mesh["expert"]), part(mesh.over({"expert", "tensor"}))}) {
      const std::vector<double> values = p.data().to_vector<double>();
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), both);
      expect_contains(error_of<ValueError>([&] { optimizer.setup(Parameters{p}); }),
                      {"'/0' is cut along 'expert", "averages over 'data+expert'", "other axes"});
      EXPECT_EQ(p.data().to_vector<double>(), values);
      auto other = create_multi_node_optimizer(optimizers::SGD(0.1), mesh["data"]);
      other.setup(Parameters{p});
    }
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), both);
    optimizer.setup(Parameters{part(mesh["tensor"])});
  });
}

}  // namespace
}  // namespace catena::parallel
