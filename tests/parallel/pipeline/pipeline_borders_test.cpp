// Models whose input reaches a border between stages, and steps whose gradients are not used.
#include <atomic>
#include <optional>

#include "catena/autograd/grad_mode.h"
#include "catena/functions/recompute.h"

#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "rank_results.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

// Losses and weights after some steps, in stages over ranks (or on one device, for one stage).
struct Trained {
  std::vector<double> losses;
  Named values;
};

Trained train(const std::function<void(Sequence&)>& fill_model, const Cut& cut, bool on_ranks) {
  Trained result;
  const auto run = [&](Sequence& model, Pipeline& pipeline, bool notes) {
    pipeline.setup([] { return optimizers::Adam(0.01); });
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i) {
      const Batch batch = batch_of(i, 9, dtype::float32);
      pipeline.step(batch.x, batch.t, cross_entropy);
      losses.push_back(pipeline.loss());
    }
    pipeline.collect();
    if (!notes) return;
    result.losses = losses;
    result.values = named_values(model);
  };
  const Schedule schedule = all_forwards_first(cut.stages(), 2);
  if (!on_ranks) {
    Sequence model;
    fill_model(model);
    Pipeline pipeline(model, cut, schedule, std::vector<Device>(size_t(cut.stages()), cpu(0)));
    run(model, pipeline, true);
    return result;
  }
  comm::run_threads(cut.stages(), [&](Communicator& comm) {
    Sequence model;
    fill_model(model);
    Pipeline pipeline(model, cut, schedule, comm);
    run(model, pipeline, comm.rank() == 0);
  });
  return result;
}

void expect_stages_change_nothing(const std::function<void(Sequence&)>& fill_model,
                                  const Cut& cut) {
  const Trained alone = train(fill_model, Cut{{0}}, false);
  for (const bool on_ranks : {false, true}) {
    const Trained stages = train(fill_model, cut, on_ranks);
    EXPECT_EQ(stages.losses, alone.losses) << on_ranks;
    EXPECT_EQ(stages.values, alone.values) << on_ranks;
  }
}

TEST(PipelineBorders, AFirstStageWithoutParameters) {
  expect_stages_change_nothing(
      [](Sequence& model) {
        model.add([](const Variable& x) { return x * 2.f; });
        model.add("in", layer(kInputs, kHidden, dtype::float32, 1));
        model.add("head", layer(kHidden, kClasses, dtype::float32, 2));
      },
      Cut{{0, 1, 2}});
}

TEST(PipelineBorders, ASkipThatHandsTheInputOn) {
  struct First : FunctionSet {
    F::Linear l{layer(kInputs, kInputs, dtype::float32, 1)};
    CATENA_FUNCTIONS(l)
    Variables operator()(const Variable& x) const { return {l(x), x}; }
  };
  expect_stages_change_nothing(
      [](Sequence& model) {
        model.add("first", First());
        model.add([](const Variables& xs) { return Variables{F::tanh(xs[0]), xs[1]}; });
        model.add([](const Variables& xs) { return xs[0] + xs[1]; });
        model.add("head", layer(kInputs, kClasses, dtype::float32, 2));
      },
      Cut{{0, 1, 2}});
}

// Layers that are frozen for some steps ---------------------------------------------------------

// The weights after some steps; the first layer is frozen from step `begin` to step `end`.
Named train_frozen(Sequence& model, Pipeline& pipeline, int begin, int end) {
  pipeline.setup([] { return optimizers::SGD(0.1); });
  for (int i = 0; i < 5; ++i) {
    if (pipeline.has_stage(0) && i == begin) pipeline.optimizer(0).freeze(*model.layer(0));
    if (pipeline.has_stage(0) && i == end) pipeline.optimizer(0).unfreeze(*model.layer(0));
    const Batch batch = batch_of(i, 8, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
  }
  pipeline.collect();
  return named_values(model);
}

void fill_three(Sequence& model) {
  model.add("in", layer(kInputs, kHidden, dtype::float32, 1));
  model.add("middle", layer(kHidden, kHidden, dtype::float32, 2));
  model.add("head", layer(kHidden, kClasses, dtype::float32, 3));
}

Named frozen_in_process(int stages, int begin, int end) {
  Sequence model;
  fill_three(model);
  Pipeline pipeline(model, even_cut(stages, 3), with_updates(zero_bubble(stages, 2)),
                    std::vector<Device>(size_t(stages), cpu(0)));
  return train_frozen(model, pipeline, begin, end);
}

TEST(PipelineBorders, AStageThatIsFrozenForSomeSteps) {
  for (const auto& [begin, end] : {std::pair{1, 3}, {0, 2}}) {
    const Named alone = frozen_in_process(1, begin, end);
    EXPECT_NE(alone, frozen_in_process(1, -1, -1));
    EXPECT_EQ(difference(frozen_in_process(3, begin, end), alone), "") << begin;
  }
  const Named alone = frozen_in_process(1, 1, 3);
  comm::run_threads(3, [&](Communicator& comm) {
    Sequence model;
    fill_three(model);
    Pipeline pipeline(model, even_cut(3, 3), zero_bubble(3, 2), comm);
    const Named values = train_frozen(model, pipeline, 1, 3);
    if (comm.rank() == 0) {
      EXPECT_EQ(difference(values, alone), "");
    }
  });
}

// The next rank has learnt that no gradient is wanted.
TEST(PipelineBorders, AStageThatWasFrozenAtFirstIsAnErrorOverRanks) {
  for (const std::string& text : errors_of_ranks(AfterError::kGoOn, 3, [](Communicator& comm) {
         Sequence model;
         fill_three(model);
         Pipeline pipeline(model, even_cut(3, 3), zero_bubble(3, 2), comm);
         train_frozen(model, pipeline, 0, 2);
       }))
    expect_contains(text,
                    {"result 0 of stage 0 wants a gradient now", "frozen then", "a new pipeline"});
}

// Gradients without updates -----------------------------------------------------------------------

void fill_tied(Sequence& model) {
  const DeviceScope scope(cpu(0));
  model.add("in", layer(kInputs, kHidden, dtype::float32, 1));
  const Parameter shared(wave({kHidden, kHidden}, 2, dtype::float32, 0.6));
  model.add("first", Projection(shared));
  model.add("second", Projection(shared));
  model.add("head", layer(kHidden, kClasses, dtype::float32, 4));
}

Schedule without_ends(const Schedule& whole, const std::vector<int>& stages) {
  Schedule schedule = whole;
  for (const int s : stages) {
    auto& list = schedule.actions[size_t(s)];
    list.resize(list.size() - 2);  // kReduce, kUpdate
  }
  return schedule;
}

TEST(PipelineWithoutUpdates, SumsTheGradientsOfTiedWeights) {
  const Batch batch = batch_of(0, 8, dtype::float32);
  Sequence alone;
  fill_tied(alone);
  cross_entropy(alone(Variable::constant(batch.x)), batch.t).backward();
  const std::vector<double> expected =
      alone.named_parameters()[2].second.grad().to_vector<double>();
  ASSERT_EQ(alone.named_parameters()[2].first, "first/W");
  comm::run_threads(2, [&](Communicator& comm) {
    Sequence model;
    fill_tied(model);
    Pipeline pipeline(model, even_cut(2, 4), without_ends(all_forwards_first(2, 2), {0, 1}), comm,
                      {.updates = false});
    pipeline.setup([] { return optimizers::SGD(1); });
    const std::vector<double> before =
        model.named_parameters()[2].second.data().to_vector<double>();
    pipeline.step(batch.x, batch.t, cross_entropy);
    const auto& tied = dynamic_cast<Projection&>(*model.layer(comm.rank() == 0 ? 1 : 2)).W;
    const std::vector<double> got = tied.grad().to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
    EXPECT_EQ(tied.data().to_vector<double>(), before);
  });
}

// A model whose third unit uses the weight of its first one. All is made on the device of the rank,
// so that a weight that no pipeline has moved is there, too.
void fill_tied_lambda(Sequence& model,
                      const std::function<void(Sequence&, const Parameter&)>& add) {
  const Parameter W(wave({kInputs, kInputs}, 2, dtype::float32, 0.6).to(current_device()));
  model.add("in", [](const Variable& x, const Parameters& p) { return F::matmul(x, p[0]); }, {W});
  model.add("squash", [](const Variable& h) { return F::tanh(h); });
  add(model, W);
  model.add("head", layer(kInputs, kClasses, dtype::float32, 4));
}

TEST(PipelineTies, OfLambdasEqualOneStage) {
  const auto fill_model = [](Sequence& model) {
    fill_tied_lambda(model, [](Sequence& rest, const Parameter& W) {
      rest.add("again", [](const Variable& h, const Parameters& p) { return F::matmul(h, p[0]); },
               {W});
    });
  };
  const Trained whole = train(fill_model, {{0}}, false);
  for (const bool on_ranks : {false, true}) {
    const Trained cut = train(fill_model, {{0, 2}}, on_ranks);
    EXPECT_EQ(cut.values.at("in/0"), cut.values.at("again/0"));
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(cut.losses[i], whole.losses[i], 1e-6);
  }
}

// How a lambda uses a parameter that it captures.
using Use = std::function<Variable(const Variable&, const Parameter&)>;

Variable product(const Variable& h, const Parameter& W) { return F::matmul(h, W); }

Use recomputed(const Use& use, const F::RecomputeOptions& options) {
  return [=](const Variable& h, const Parameter& W) {
    return F::recompute([=](const Variable& x) { return use(x, W); }, options, h);
  };
}

// Ways to hide the use, each of which is recorded.
std::map<std::string, Use> hidden_uses() {
  std::map<std::string, Use> uses{{"plain", product},
                                  {"budget", recomputed(product, {.budget = 1 << 20})}};
  const std::map<std::string, Keep> keeps{{"nothing", Keep::kNothing},
                                          {"attention", Keep::kAttention},
                                          {"products", Keep::kProducts},
                                          {"everything", Keep::kEverything}};
  for (const auto& [name, keep] : keeps) {
    uses[name] = recomputed(product, {.keep = keep});
    uses[name + ", nested"] = recomputed(uses[name], {.keep = Keep::kNothing});
  }
  uses["forced"] = recomputed(
      [](const Variable& h, const Parameter& W) {
        const NoBackprop off;
        const ForceBackprop on;
        return recomputed(product, {})(h, W);
      },
      {});
  return uses;
}

// What runs before the step.
using Before = std::function<void(Sequence&, Pipeline&)>;

// A step in two stages, the second of which hides a parameter of the first.
void step_with_hidden(const Use& use, const std::vector<int>& recompute, Communicator* comm,
                      const std::vector<Device>& devices, const Before& before) {
  Sequence model;
  fill_tied_lambda(model, [&](Sequence& rest, const Parameter& W) {
    rest.add("again", [use, W](const Variable& h) { return use(h, W); });
  });
  const Schedule schedule = all_forwards_first(2, 2);
  const PipelineOptions options{.recompute = recompute};
  const Cut cut{{0, 2}};
  std::optional<Pipeline> pipeline;
  if (comm != nullptr)
    pipeline.emplace(model, cut, schedule, *comm, options);
  else
    pipeline.emplace(model, cut, schedule, devices, options);
  pipeline->setup([] { return optimizers::SGD(0.1); });
  if (before) before(model, *pipeline);
  const Batch batch = batch_of(0, 9, dtype::float32);
  pipeline->step(batch.x, batch.t, cross_entropy);
}

// Its error on two devices, twice on one device, and over two ranks.
std::vector<std::string> errors_of_hidden(const Use& use, const std::vector<int>& recompute = {},
                                          const Before& before = {}) {
  std::vector<std::string> texts;
  for (const Device second : {cpu(1), cpu(0)})
    texts.push_back(error_of<Error>([&] {
      step_with_hidden(use, recompute, nullptr, {cpu(0), second}, before);
    }));
  texts.push_back(error_of<Error>([&] {
    comm::run_threads(
        2, [&](Communicator& comm) { step_with_hidden(use, recompute, &comm, {}, before); });
  }));
  return texts;
}

TEST(PipelineTies, WhatALambdaHidesIsAnError) {
  EXPECT_NO_THROW(train(
      [](Sequence& model) {
        fill_tied_lambda(model, [](Sequence& rest, const Parameter& W) {
          rest.add("again", [W](const Variable& h) { return recomputed(product, {})(h, W); });
        });
      },
      {{0}}, false))
      << "one stage owns it";
  for (const auto& [name, use] : hidden_uses())
    for (const std::vector<int>& recompute : {std::vector<int>{}, {1}})
      for (const std::string& text : errors_of_hidden(use, recompute)) {
        SCOPED_TRACE(name + (recompute.empty() ? "" : ", in a stage that recomputes"));
        expect_contains(text, {"unit 2 ('again') of stage 1 uses parameter 'in/0'", "{parameter}"});
      }
}

// On one device of one process, and over ranks: on another device it is an error of the product.
TEST(PipelineTies, WhatIsHiddenAndNotTrainedIsNoError) {
  const auto expect_none = [](const Use& use) {
    for (const std::vector<int>& recompute : {std::vector<int>{}, {1}}) {
      const std::vector<std::string> texts = errors_of_hidden(use, recompute);
      EXPECT_EQ(texts[1], "no error");
      EXPECT_EQ(texts[2], "no error");
    }
  };
  const Use constant = [](const Variable& h, const Parameter& W) {
    return F::matmul(h, Variable::constant(W.data()));
  };
  const Use off = [](const Variable& h, const Parameter& W) {
    const NoBackprop scope;
    const Variable y = F::matmul(h, W);
    return h + recomputed(product, {})(y, W).data();
  };
  for (const Use& use : {constant, off}) {
    expect_none(use);
    expect_none(recomputed(use, {}));
    expect_none(recomputed(recomputed(use, {}), {.keep = Keep::kProducts}));
  }
}

TEST(PipelineTies, WhatIsHiddenAndFrozenIsNoErrorInOneProcess) {
  const auto freeze = [](Sequence& model, Pipeline& pipeline) {
    if (pipeline.has_stage(0)) pipeline.optimizer(0).freeze(*model.layer(0));
  };
  for (const Use& use : {Use(product), recomputed(product, {})})
    EXPECT_EQ(errors_of_hidden(use, {}, freeze)[1], "no error");
}

TEST(PipelineTies, WhatIsHiddenMayPredict) {
  for (const Use& use : {Use(product), recomputed(product, {})})
    for (const std::vector<int>& recompute : {std::vector<int>{}, {1}}) {
      std::atomic<int> predictions = 0;
      errors_of_hidden(use, recompute, [&](Sequence&, Pipeline& pipeline) {
        pipeline.predict(batch_of(0, 9, dtype::float32).x);
        ++predictions;
      });
      EXPECT_EQ(predictions, 3) << "on one device, and on both ranks";
    }
}

// A variable that fans out, at once or over several units, is summed in one order.
TEST(PipelineBits, OfAFanOutDoNotDependOnCutAndSchedule) {
  const auto run = [](const Cut& cut, const Schedule& schedule, std::vector<int> recompute) {
    const DeviceScope scope(cpu(0));
    Sequence model;
    const auto mixed = [](const Variable& h) { return F::tanh(h) * 0.3 + F::sin(h) * h; };
    model.add("in", layer(kInputs, kHidden, dtype::float32, 1));
    model.add("fork", [](const Variable& h) { return Variables{h, h}; });
    for (int i = 0; i < 3; ++i)
      model.add([mixed](const Variables& xs) { return Variables{mixed(xs[0]), xs[1]}; });
    model.add("join", [](const Variables& xs) { return xs[0] + xs[1]; });
    model.add("head", layer(kHidden, kClasses, dtype::float32, 4));
    const std::vector<Device> devices(schedule.actions.size(), cpu(0));
    Pipeline pipeline(model, cut, schedule, devices, {.recompute = std::move(recompute)});
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 12, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    std::vector<std::vector<float>> values;
    for (const Parameter& p : model.parameters()) values.push_back(p.data().to_vector<float>());
    return values;
  };
  const auto whole = run({{0}}, one_forward_one_backward(1, 4), {});
  for (int border = 1; border < 7; ++border) {
    const Cut cut{{0, border}};
    EXPECT_EQ(run(cut, one_forward_one_backward(2, 4), {}), whole) << border;
    EXPECT_EQ(run(cut, one_forward_one_backward(2, 4), {0, 1}), whole) << border;
    EXPECT_EQ(run(cut, zero_bubble(2, 4), {}), whole) << border;
  }
}

TEST(PipelineWithoutUpdates, RefusesWhatNeedsThem) {
  const Schedule whole = all_forwards_first(3, 2);
  const std::vector<Device> devices(3, cpu(0));
  const auto problem = [&](const Schedule& schedule, const PipelineOptions& options) {
    Sequence model = filled();
    return error_of<ValueError>([&] { Pipeline(model, even_cut(3), schedule, devices, options); });
  };
  expect_contains(problem(without_ends(whole, {0, 1, 2}), {.clip_norm = 1, .updates = false}),
                  {"clip_norm is 1", "no updates", "updates = true"});
  EXPECT_EQ(problem(without_ends(whole, {0, 1, 2}), {.updates = false}), "no error");
  EXPECT_EQ(problem(whole, {.clip_norm = 1, .updates = false}), "no error");
  expect_contains(problem(without_ends(whole, {1, 2}), {}),
                  {"kUpdate for stages 0, and none for stages 1, 2"});
}

}  // namespace
}  // namespace catena::parallel::pipeline
