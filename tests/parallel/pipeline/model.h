// The model, data and training runs of the tests that hold pipelines against one process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catena/array/random_source.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "parallel/network.h"

namespace catena::parallel::pipeline::test {

using namespace catena::testing;  // NOLINT: the layers and data of the tests of parallel training

constexpr int kUnits = 18, kHidden = 8;

// Of the first variable of a list; the others pass.
struct FirstNormalized : FunctionSet {
  F::BatchNormalization bn{kHidden};
  CATENA_FUNCTIONS(bn)
  Variables operator()(const Variables& xs) const { return {bn(xs[0]), xs[1]}; }
};

struct Joined : FunctionSet {
  F::Linear a, b;
  explicit Joined(Dtype dtype) : a(layer(kHidden, 8, dtype, 3)), b(layer(kHidden, 8, dtype, 4)) {}
  CATENA_FUNCTIONS(a, b)
  Variable operator()(const Variables& xs) const { return F::tanh(a(xs[0]) + b(xs[1])); }
};

struct Squashed : FunctionSet {
  F::Linear l;
  Squashed(Dtype dtype, double phase) : l(layer(kHidden, kHidden, dtype, phase)) {}
  CATENA_FUNCTIONS(l)
  Variable operator()(const Variable& h) const { return h + F::tanh(l(h)); }
};

// A product with a weight that it shares.
struct Projection : FunctionSet {
  Parameter W;
  explicit Projection(const Parameter& shared) : W(shared) {}
  CATENA_FUNCTIONS(W)
  Variable operator()(const Variable& h) const { return F::tanh(F::matmul(h, W)); }
};

struct Ingredients {
  bool normalization = true, dropout = true;
  Dtype dtype = dtype::float32;
};

// Two variables pass some of the boundaries, one of them through several units; units with and
// without parameters.
inline void fill(Sequence& model, const Ingredients& with = {}) {
  const double ratio = with.dropout ? 0.3 : 0;
  const Dtype dtype = with.dtype;
  const DeviceScope scope(cpu(0));
  model.add(layer(kInputs, kHidden, dtype, 1));
  model.add("fork", [](const Variable& h) { return Variables{F::tanh(h), h}; });
  if (with.normalization)
    model.add("bn", FirstNormalized());
  else
    model.add("bn", [](const Variables& xs) { return xs; });
  model.add("drop", [ratio](const Variables& xs) {
    return Variables{F::dropout(xs[0], ratio), xs[1]};
  });
  model.add("joined", Joined(dtype));
  model.add("middle", layer(kHidden, kHidden, dtype, 5));
  model.add("noise", [ratio](const Variable& h) { return F::dropout(F::tanh(h), ratio); });
  model.add(layer(kHidden, kHidden, dtype, 6));
  if (with.normalization)
    model.add(F::BatchNormalization(kHidden));
  else
    model.add([](const Variable& h) { return h; });
  model.add([](const Variable& h) { return F::tanh(h); });
  for (int i = 0; i < 7; ++i) model.add(Squashed(dtype, 10 + i));
  model.add("head", layer(kHidden, kClasses, dtype, 7));
}
inline Sequence filled(const Ingredients& with = {}) {
  Sequence model;
  fill(model, with);
  return model;
}
// The same between units that share a weight.
inline Sequence filled_with_ties(const Ingredients& with) {
  const DeviceScope scope(cpu(0));
  const Parameter shared(wave({kInputs, kInputs}, 40, with.dtype, 0.5));
  Sequence model;
  model.add("first", Projection(shared));
  fill(model, with);
  model.add("back", layer(kClasses, kInputs, with.dtype, 41));
  model.add("again", Projection(shared));
  model.add("end", layer(kInputs, kClasses, with.dtype, 42));
  return model;
}

// Stages of about equal numbers of units.
inline Cut even_cut(int stages, int units = kUnits) {
  Cut cut;
  for (int s = 0; s < stages; ++s) cut.first.push_back(s * units / stages);
  return cut;
}

inline Variable cross_entropy(const Variable& y, const Array& t) {
  return F::softmax_cross_entropy(y, t);
}

using Named = std::map<std::string, std::vector<double>>;

// What training ends with: exact, so that it can be compared bit by bit.
struct Outcome {
  Named parameters, persistents, gradients;  // of the last step
  Named averages;                            // of parameters, if the test keeps them
  std::vector<double> losses;                // of every step
};

struct Training {
  int64_t samples = 22;  // of a step
  int steps = 20;
  Ingredients with = {};
  PipelineOptions options = {.seed = 5};
  std::string rule = "Adam";
};

inline void note_gradients(Pipeline& pipeline, Named& gradients) {
  for (int s = 0; s < pipeline.schedule().stages(); ++s) {
    if (!pipeline.has_stage(s)) continue;
    const int begin = pipeline.cut().first[size_t(s)];
    const int end = pipeline.cut().end(s, pipeline.model().size());
    for (int u = begin; u < end; ++u) {
      if (Parameterized* unit = pipeline.model().layer(size_t(u)))
        for (const auto& [path, p] : unit->named_parameters())
          gradients[pipeline.model().name(size_t(u)) + "/" + path] = p.grad().to_vector<double>();
    }
  }
}

inline Named named_values(const Sequence& model) {
  Named values;
  for (const auto& [path, p] : model.named_parameters())
    values[path] = p.data().to_vector<double>();
  return values;
}

inline void note_values(const Sequence& model, Outcome& outcome) {
  outcome.parameters = named_values(model);
  for (const auto& [path, p] : model.named_persistents())
    outcome.persistents[path] = p.data().to_vector<double>();
}

// The steps of one process or rank.
inline void run_steps(Pipeline& pipeline, const Training& training, Outcome& outcome) {
  pipeline.setup([&] { return make_rule(training.rule); });
  for (int i = 0; i < training.steps; ++i) {
    const Batch batch = batch_of(i, training.samples, training.with.dtype);
    pipeline.step(batch.x, batch.t, cross_entropy);
    outcome.losses.push_back(pipeline.loss());
  }
}

inline Outcome train_in_process(const Schedule& schedule, const std::vector<Device>& devices,
                                const Training& training = {}) {
  Sequence model = filled(training.with);
  Pipeline pipeline(model, even_cut(schedule.stages()), schedule, devices, training.options);
  Outcome outcome;
  run_steps(pipeline, training, outcome);
  note_values(model, outcome);
  note_gradients(pipeline, outcome.gradients);
  return outcome;
}

// Ranks as threads, on CPU devices of their own.
inline Outcome train_on_threads(const Schedule& schedule, const Training& training = {}) {
  std::vector<Outcome> outcomes(static_cast<size_t>(schedule.ranks()));
  comm::run_threads(schedule.ranks(), [&](Communicator& comm) {
    Sequence model = filled(training.with);
    Pipeline pipeline(model, even_cut(schedule.stages()), schedule, comm, training.options);
    Outcome& outcome = outcomes[size_t(comm.rank())];
    run_steps(pipeline, training, outcome);
    note_gradients(pipeline, outcome.gradients);
    pipeline.collect();
    if (comm.rank() == 0) note_values(model, outcome);
  });
  for (size_t r = 1; r < outcomes.size(); ++r) {
    EXPECT_EQ(outcomes[r].losses, outcomes[0].losses) << "rank " << r;
    outcomes[0].gradients.merge(outcomes[r].gradients);
  }
  return outcomes[0];
}

// The names of what differs.
inline std::string difference(const Named& got, const Named& expected) {
  std::string names;
  for (const auto& [name, values] : expected) {
    const auto found = got.find(name);
    if (found == got.end() || found->second != values) names += name + " ";
  }
  return names;
}

inline void expect_equal(const Outcome& got, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(got.losses, expected.losses) << what;
  EXPECT_EQ(difference(got.parameters, expected.parameters), "") << what;
  EXPECT_EQ(difference(got.persistents, expected.persistents), "") << what;
  EXPECT_EQ(difference(got.gradients, expected.gradients), "") << what;
}

// A schedule by hand: all forwards, then all backwards, a stage on each rank.
inline Schedule all_forwards_first(int stages, int micro_batches) {
  Schedule schedule{"all forwards first", micro_batches, {}, {}};
  for (int s = 0; s < stages; ++s) {
    schedule.rank_of_stage.push_back(s);
    std::vector<Action>& list = schedule.actions.emplace_back();
    for (int m = 0; m < micro_batches; ++m) {
      if (s > 0) list.push_back({Kind::kRecvInput, s, m});
      list.push_back({Kind::kForward, s, m});
      if (s + 1 < stages) list.push_back({Kind::kSendOutput, s, m});
    }
    for (int m = 0; m < micro_batches; ++m) {
      if (s + 1 < stages) list.push_back({Kind::kRecvGradient, s, m});
      list.push_back({Kind::kBackward, s, m});
      if (s > 0) list.push_back({Kind::kSendGradient, s, m});
    }
    list.push_back({Kind::kReduce, s, 0});
    list.push_back({Kind::kUpdate, s, 0});
  }
  return schedule;
}

// The same micro-batches on one device.
inline Outcome train_without_stages(int micro_batches, const Training& training = {}) {
  return train_in_process(all_forwards_first(1, micro_batches), {cpu(0)}, training);
}

}  // namespace catena::parallel::pipeline::test
