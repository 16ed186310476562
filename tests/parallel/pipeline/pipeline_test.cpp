// Pipelines against the same model without stages.
#include "catena/parallel/pipeline/pipeline.h"

#include "catena/parallel/data_parallel.h"
#include "parallel/pipeline/model.h"
#include "parallel/pipeline/unit_numbers.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

// What a pipeline of one stage does, by hand.
Outcome train_by_hand(int micro_batches, const Training& training) {
  Sequence model = filled(training.with);
  const auto rule = make_rule(training.rule);
  rule->setup(model);
  UnitNumbers numbers(0);
  numbers.set_seed(*training.options.seed);
  Outcome outcome;
  for (int i = 0; i < training.steps; ++i) {
    const Batch batch = batch_of(i, training.samples, training.with.dtype);
    rule->zero_grads();
    numbers.begin_step(cpu(0));
    double sum = 0;
    for (int m = 0; m < micro_batches; ++m) {
      const auto [begin, end] = shard(training.samples, m, micro_batches);
      Variables h{Variable::constant(batch.x(Slice(begin, end)))};
      for (size_t u = 0; u < model.size(); ++u) {
        const RandomSourceScope scope(numbers.of(int(u), m));
        h = model.run(u, h);
      }
      const Variable loss = cross_entropy(h[0], batch.t(Slice(begin, end)));
      const double weight = double(end - begin) / double(training.samples);
      parallel::backward(loss, weight);
      sum += loss.item<double>() * weight;
    }
    rule->update();
    numbers.end_step();
    outcome.losses.push_back(sum);
  }
  note_values(model, outcome);
  for (const auto& [path, p] : model.named_parameters())
    outcome.gradients[path] = p.grad().to_vector<double>();
  return outcome;
}

TEST(Pipeline, OneStageEqualsALoopByHand) {
  const Outcome pipeline = train_without_stages(4), loop = train_by_hand(4, {});
  EXPECT_EQ(pipeline.parameters, loop.parameters);
  EXPECT_EQ(pipeline.persistents, loop.persistents);
  EXPECT_EQ(pipeline.gradients, loop.gradients);
  for (size_t i = 0; i < loop.losses.size(); ++i)
    EXPECT_NEAR(pipeline.losses[i], loop.losses[i], 1e-6);
}

}  // namespace
}  // namespace catena::parallel::pipeline
