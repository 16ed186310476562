// The same over slices, and over micro-batches of pipelines: see loss_weight_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "catena/comm/factory.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "deterministic_scope.h"
#include "parallel/loss_divisions.h"

namespace catena::parallel::divided {
namespace {

// Slices ------------------------------------------------------------------------------------------

Array sliced(const Division& d, Communicator& comm) {
  Net net;
  auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm, {.slices = 4});
  optimizer.setup(net);
  const Batch batch = batch_of(d);
  const int64_t begin = slice_bounds(d.samples, comm.rank() * 4 / comm.size(), 4).begin,
                end = slice_bounds(d.samples, (comm.rank() + 1) * 4 / comm.size() - 1, 4).end;
  const Batch own = batch.rows(begin, end);
  optimizer.zero_grads();
  for (const auto& slice : optimizer.slices(own.size(), d.samples))
    loss_of(d, net.l(slice(own.x)), slice(own.t)).backward();
  optimizer.update();
  return net.l.W.data().copy();
}

TEST(LossWeight, SlicesGiveTheBitsOfOneRankAndOnePass) {
  const DeterministicScope deterministic;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Division d{.seed = seed,
                     .samples = int64_t(5 + seed),
                     .loss = seed % 2 ? Division::Loss::kClassWeights : Division::Loss::kIgnored};
    Array alone;
    for (const int ranks : {1, 2, 4})
      comm::run_threads(ranks, [&](Communicator& comm) {
        const Array w = sliced(d, comm);
        if (comm.rank() != 0) return;
        if (ranks == 1) alone = w;
        EXPECT_TRUE(array_equal(w, alone)) << ranks << " ranks, seed " << seed;
        EXPECT_LE(relative_difference(w, one_pass(d)), 1e-12) << text_of(d);
      });
  }
}

// Pipelines ---------------------------------------------------------------------------------------

using pipeline::Pipeline;
using pipeline::Sequence;

Sequence filled_sequence() {
  Sequence model;
  RandomState random(5);
  const auto add = [&](int64_t in, int64_t out) {
    F::Linear layer(in, out, {.nobias = true, .dtype = dtype::float64});
    layer.W.data().assign(random.normal({out, in}, 0, 0.5, dtype::float64));
    model.add(std::move(layer));
  };
  add(kInputs, 5);
  add(5, 5);
  add(5, kClasses);
  return model;
}

Array weights_of(Sequence& model) {
  Arrays flat;
  for (const auto& [name, p] : model.named_parameters())
    flat.push_back(p.data().reshape({-1}).to(cpu(0)));
  return concatenate(flat);
}

// The loss and the parameters after one step in one process.
std::pair<double, Array> one_step(const Division& d) {
  Sequence model = filled_sequence();
  optimizers::SGD optimizer(1);
  optimizer.setup(model);
  const Batch batch = batch_of(d);
  optimizer.zero_grads();
  const Variable loss = loss_of(d, model(Variable::constant(batch.x)), batch.t);
  loss.backward();
  optimizer.update();
  return {loss.item<double>(), weights_of(model)};
}

Division pipeline_division(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr Division::Loss kLosses[] = {Division::Loss::kIgnored, Division::Loss::kClassWeights,
                                        Division::Loss::kUser};
  return {.seed = random(), .samples = int64_t(8 + random() % 20), .loss = kLosses[seed % 3]};
}

// The loss of one micro-batch alone declares what it counts: a part of its samples. The others
// count by theirs.
TEST(LossWeight, MicroBatchesOfWhichOneDeclaresACountAreOnePass) {
  // Micro-batch `declaring` counts `part` of its samples, or, without one, all weigh the same.
  const auto weights_after = [](int declaring, double part, const std::vector<double>& weights) {
    Sequence model = filled_sequence();
    Pipeline p(model, pipeline::partition(model, 2), pipeline::one_forward_one_backward(2, 4),
               {cpu(0), cpu(1)});
    p.setup([] { return optimizers::SGD(1); });
    int calls = 0;
    const Batch batch = batch_of({.samples = 10});
    p.step(batch.x, batch.t, [&](const Variable& y, const Array&) {
      const Variable mean = F::mean(F::square(y));
      const auto n = double(y.shape()[0]);
      const int m = calls++;
      if (m == declaring) return F::mean_over(mean * (n * part), full({}, n * part), n);
      return mean * weights[size_t(m)];
    });
    return weights_of(model);
  };
  const std::vector<double> equal(4, 1);
  for (const int m : {0, 2}) {
    EXPECT_LE(relative_difference(weights_after(m, 1, equal), weights_after(-1, 1, equal)), 1e-12);
    const double samples = m < 2 ? 3 : 2, rest = 10 - samples, part = 0.5;
    const double counted = rest + samples * part;
    std::vector<double> weights(4, 10 / counted);
    weights[size_t(m)] *= part;
    EXPECT_LE(relative_difference(weights_after(m, part, equal), weights_after(-1, 1, weights)),
              1e-12);
  }
}

// Each stage's gradients are those of the mean times a number of its own.
TEST(LossWeight, TheNormOverStagesOfOneDeviceIsThatOfOnePass) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Division d = pipeline_division(seed);
    const Batch batch = batch_of(d);
    Sequence model = filled_sequence(), one = filled_sequence();
    Pipeline p(model, pipeline::partition(model, 3), pipeline::one_forward_one_backward(3, 4),
               {cpu(0), cpu(0), cpu(0)}, {.clip_norm = 0.01});
    p.setup([] { return optimizers::SGD(1); });
    p.step(batch.x, batch.t, [&](const Variable& y, const Array& t) { return loss_of(d, y, t); });
    optimizers::SGD optimizer(1);
    optimizer.setup(one);
    optimizer.zero_grads();
    loss_of(d, one(Variable::constant(batch.x)), batch.t).backward();
    optimizer.clip_grads(0.01);
    optimizer.update();
    EXPECT_LE(relative_difference(weights_of(model), weights_of(one)), 1e-13) << text_of(d);
  }
}

TEST(LossWeight, MicroBatchesOverRanksAndReplicasAreOnePass) {
  for (const int replicas : {1, 2}) {
    comm::run_threads(2 * replicas, [&](Communicator& comm) {
      for (uint64_t seed = 0; seed < 12; ++seed) {
        const Division d = pipeline_division(seed);
        const Batch batch = batch_of(d);
        Grid grid(comm, {replicas, 2, 1});
        Sequence model = filled_sequence();
        Pipeline p(model, pipeline::partition(model, 2), pipeline::one_forward_one_backward(2, 4),
                   grid);
        p.setup([] { return optimizers::SGD(1); });
        const int replica = grid.replica();
        const int64_t cut = replicas == 1 ? d.samples : 4 + int64_t(seed % 3) * (d.samples - 8) / 2;
        const Batch own = replica == 0 ? batch.rows(0, cut) : batch.rows(cut, d.samples);
        if (replicas > 1) p.set_batch_weight(own.size(), d.samples);
        p.step(own.x, own.t, [&](const Variable& y, const Array& t) { return loss_of(d, y, t); });
        const auto [loss, weights] = one_step(d);
        EXPECT_NEAR(p.loss(), loss, 1e-12 * std::abs(loss)) << text_of(d);
        p.collect();
        if (comm.rank() != 0) continue;
        EXPECT_LE(relative_difference(weights_of(model), weights), 1e-12) << text_of(d);
      }
    });
  }
}

}  // namespace
}  // namespace catena::parallel::divided
