// Mistakes have an error that says what to do, on every rank, and hang nowhere.
#include <functional>

#include "catena/autograd/grad_mode.h"
#include "catena/optimizers/loss_scale.h"

#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "rank_results.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

const std::vector<Device> kTwo{cpu(0), cpu(1)};

// What is wrong with a pipeline of this process.
template <class E = ValueError>
std::string problem_of(const Cut& cut, const Schedule& schedule, const std::vector<Device>& devices,
                       const PipelineOptions& options = {}) {
  Sequence model = filled();
  return error_of<E>([&] { Pipeline pipeline(model, cut, schedule, devices, options); });
}

TEST(PipelineMistakes, OfStagesCutsAndDevices) {
  const Schedule schedule = all_forwards_first(2, 2);
  EXPECT_EQ(problem_of(even_cut(2), schedule, kTwo), "no error");
  expect_contains(problem_of(even_cut(3), schedule, kTwo),
                  {"the cut has 3 stages", "all forwards first", "2; use partition("});
  expect_contains(problem_of(even_cut(2), schedule, {cpu(0)}),
                  {"is for 2 ranks, got 1 devices", "the same one several times"});
  expect_contains(problem_of(Cut{{0, 18}}, schedule, kTwo), {"stage 1 of 2 begins with unit 18"});
  expect_contains(problem_of(Cut{{0, 0}}, schedule, kTwo), {"stage 0 of 2", "at least one"});
  expect_contains(problem_of(Cut{{1, 3}}, schedule, kTwo), {"must begin with unit 0"});
  expect_contains(problem_of(even_cut(2), schedule, kTwo, {.clip_norm = -1}), {"clip_norm", "-1"});
  expect_contains(problem_of(even_cut(2), schedule, kTwo, {.recompute = {2}}),
                  {"stage 2 is to be recomputed, of 2 stages"});
  Schedule broken = schedule;
  broken.actions[1].erase(broken.actions[1].begin());  // a receive
  EXPECT_NE(problem_of(even_cut(2), broken, kTwo), "no error");
}

TEST(PipelineMistakes, OfBatchesAndLosses) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), kTwo);
  const Batch batch = batch_of(0, 8, dtype::float32);
  const auto step = [&](const Samples& x, const Samples& t, const Loss& loss) {
    return [&, x, t, loss] { pipeline.step(x, t, loss); };
  };
  expect_contains(error_of<ValueError>(step(batch.x, batch.t, cross_entropy)),
                  {"Pipeline::step", "not set up", "call setup("});
  expect_contains(error_of<ValueError>([&] { pipeline.predict(batch.x); }), {"not set up"});
  expect_contains(error_of<ValueError>([&] { pipeline.optimizer(0); }), {"not set up"});
  expect_contains(error_of<ValueError>([&] { pipeline.loss(); }), {"no step yet"});
  pipeline.setup([] { return optimizers::SGD(0.1); });
  expect_contains(error_of<ValueError>([&] { pipeline.setup([] { return optimizers::SGD(1); }); }),
                  {"set up already"});
  expect_contains(
      error_of<ValueError>(step(batch.x(Slice(0, 3)), batch.t(Slice(0, 3)), cross_entropy)),
      {"a batch of 3 samples", "4 micro-batches", "all forwards first"});
  expect_contains(error_of<ShapeError>(step(batch.x, batch.t(Slice(0, 3)), cross_entropy)),
                  {"Pipeline::step", "(3,)", "the first axis must be the samples"});
  expect_contains(error_of<ValueError>(step(batch.x, {}, cross_entropy)), {"last one t"});
  expect_contains(error_of<ValueError>(step({}, batch.t, cross_entropy)), {"first stage needs x"});
  expect_contains(error_of<ShapeError>(
                      step(batch.x, batch.t, [](const Variable& y, const Array&) { return y; })),
                  {"loss of a micro-batch has shape (2, 3)", "single element"});
  expect_contains(error_of<GradientError>(step(batch.x, batch.t,
                                               [](const Variable& y, const Array& t) {
                                                 return cross_entropy(Variable::constant(y.data()),
                                                                      t);
                                               })),
                  {"does not depend on anything that wants a gradient"});
  expect_contains(error_of<ValueError>(step(batch.x, {batch.t, batch.t}, cross_entropy)),
                  {"takes one result and one target, got 1 and 2"});
  expect_contains(error_of<ValueError>([&] { pipeline.set_batch_weight(1, 2); }),
                  {"no replicas", "Grid"});
  expect_contains(error_of<ValueError>([&] { pipeline.has_stage(2); }), {"stage 2 of 2"});
  pipeline.step(batch.x, batch.t, cross_entropy);  // a step that failed leaves nothing behind
}

TEST(PipelineMistakes, UnitsThatCameLater) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), kTwo);
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const size_t size = model.size();
  model.add([](const Variable& h) { return F::tanh(h); });
  const Batch batch = batch_of(0, 8, dtype::float32);
  const std::string had = message("has ", size + 1, " units, and had ", size);
  expect_contains(error_of<ValueError>([&] { pipeline.step(batch.x, batch.t, cross_entropy); }),
                  {"Pipeline::step", had.c_str(), "make it after the last add()"});
  expect_contains(error_of<ValueError>([&] { pipeline.predict(batch.x); }),
                  {"Pipeline::predict", had.c_str()});
}

// A micro-batch has 4 samples, of 3 classes each.
TEST(PipelineMistakes, PredictionsThatAreNotOfSamples) {
  const auto text_of = [](std::function<Variable(const Variable&)> last) {
    Sequence model;
    model.add(layer(6, 3, dtype::float32, 2));
    model.add(std::move(last));
    Pipeline pipeline(model, Cut{{0, 1}}, all_forwards_first(2, 2), kTwo);
    pipeline.setup([] { return optimizers::SGD(0.1); });
    return error_of<ShapeError>([&] { pipeline.predict(batch_of(0, 8, dtype::float32).x); });
  };
  expect_contains(text_of([](const Variable& h) { return F::sum(h); }),
                  {"result 0 of the last stage has shape () for a micro-batch of 4 samples",
                   "a value for each sample"});
  expect_contains(text_of([](const Variable& h) { return F::mean(h, 0); }),
                  {"Pipeline::predict: result 0 of the last stage has shape (3,) for a micro-batch "
                   "of 4 samples; expected the samples as the first axis"});
  expect_contains(text_of([](const Variable& h) { return F::mean(h, 0, true); }),
                  {"has shape (1, 3) for a micro-batch of 4 samples"});
}

TEST(PipelineMistakes, AStageThatChangesItsShape) {
  int64_t width = 3;
  Sequence model;
  model.add(layer(6, 6, dtype::float32, 2));
  model.add([&width](const Variable& h) { return h(Slice(), Slice(0, width)); });
  model.add([](const Variable& h) { return F::tanh(h); });
  Pipeline pipeline(model, Cut{{0, 2}}, all_forwards_first(2, 2), kTwo);
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const Batch batch = batch_of(0, 8, dtype::float32);
  const auto step = [&] {
    pipeline.step(batch.x, batch.t, [](const Variable& y, const Array&) { return F::sum(y); });
  };
  step();
  width = 2;
  expect_contains(error_of<ShapeError>(step),
                  {"stage 0 gave (4, 2) float32 for a micro-batch of 4 samples",
                   "(4, 3) float32 in earlier ones"});
  width = 3;
  step();
}

// A loss that calls back, or another thread, would find half a step.
TEST(PipelineMistakes, CallsWithinACall) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), kTwo);
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const Batch batch = batch_of(0, 8, dtype::float32);
  const std::function<void()> calls[] = {[&] { pipeline.predict(batch.x(Slice(0, 2))); },
                                         [&] { pipeline.step(batch.x, batch.t, cross_entropy); },
                                         [&] { pipeline.loss(); }, [&] { pipeline.collect(); }};
  const char* const names[] = {"predict", "step", "loss", "collect"};
  for (size_t i = 0; i < std::size(calls); ++i) {
    const std::string text = error_of<ValueError>([&] {
      pipeline.step(batch.x, batch.t, [&](const Variable& y, const Array& t) {
        calls[i]();
        return cross_entropy(y, t);
      });
    });
    const std::string expected = message("Pipeline::", names[i], ": called while Pipeline::step");
    expect_contains(text, {expected.c_str(), "by the loss or by another thread"});
  }
  pipeline.step(batch.x, batch.t, cross_entropy);  // the guard is gone with the call
  pipeline.predict(batch.x);
}

// One object cannot hold the copies of two stages: its weights would be updated twice.
TEST(PipelineMistakes, ALayerObjectInTwoUnits) {
  struct Net : FunctionSet {
    F::Linear in{layer(6, 6, dtype::float32, 1)}, out{layer(6, 3, dtype::float32, 2)};
    CATENA_FUNCTIONS(in, out)
    Variable operator()(const Variable& x) const { return out(F::tanh(in(x))); }
  };
  Net net;
  Sequence twice, parts;
  twice.add("a", std::ref(net.in)).add("b", std::ref(net.in)).add("head", std::ref(net.out));
  parts.add("part", std::ref(net.in)).add("whole", std::ref(net));
  const Batch batch = batch_of(0, 8, dtype::float32);
  EXPECT_EQ(twice(Variable::constant(batch.x)).shape(), (Shape{8, 3}));  // without stages it runs
  const auto problem = [](Sequence& model) {
    return error_of<ValueError>([&] {
      Pipeline pipeline(model, Cut{{0, 1}}, all_forwards_first(2, 2), kTwo);
    });
  };
  expect_contains(problem(twice), {"units 0 ('a') and 1 ('b') are one layer object",
                                   "make a layer for each, with the same Parameter"});
  expect_contains(problem(parts), {"units 0 ('part') and 1 ('whole')"});
}

// A setup that has thrown may be repeated.
TEST(PipelineMistakes, ASecondSetup) {
  const Batch batch = batch_of(0, 8, dtype::float32);
  std::vector<std::vector<float>> weights;
  for (const bool fails : {false, true}) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), kTwo, {.seed = 1});
    int calls = 0;
    const auto rule = [&] {
      if (fails && ++calls == 2) throw std::runtime_error("no rule");
      return optimizers::SGD(calls == 1 ? 5 : 0.1);
    };
    if (fails) {
      EXPECT_EQ(error_of<std::runtime_error>([&] { pipeline.setup(rule); }), "no rule");
    }
    pipeline.setup(rule);
    pipeline.step(batch.x, batch.t, cross_entropy);
    std::vector<float>& all = weights.emplace_back();
    for (const Parameter& p : model.parameters())
      for (const float w : p.data().to_vector<float>()) all.push_back(w);
  }
  EXPECT_EQ(weights[1], weights[0]);
}

TEST(PipelineMistakes, LossScalesOfSomeStages) {
  const auto setup = [](Pipeline& pipeline, double first, double second) {
    pipeline.setup([&, calls = 0]() mutable {
      optimizers::SGD rule(0.1);
      const double initial = pipeline.has_stage(0) && calls++ == 0 ? first : second;
      if (initial > 0) optimizers::add_loss_scale(rule, {.initial = initial});
      return rule;
    });
  };
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), kTwo);
  expect_contains(error_of<ValueError>([&] { setup(pipeline, 1024, 0); }),
                  {"the stages have different rules: the stages of an update are ", "loss scale, ",
                   "on stage 1; ", "the same for all stages"});
  for (const std::string& text : errors_of_ranks(AfterError::kGoOn, 2, [&](Communicator& comm) {
         Sequence own = filled();
         Pipeline ranks(own, even_cut(2), all_forwards_first(2, 2), comm);
         setup(ranks, 1024, 512);
       }))
    expect_contains(text, {"loss scale 'initial' is 1024 on stage 0, 512 on stage 1"});
}

// Where the stages of one pipeline, the replicas of a stage, or the ranks that share its layers
// have another rule.
TEST(PipelineMistakes, HyperParametersThatDiffer) {
  struct Case {
    GridShape shape;
    const char* text;
  };
  for (const Case& c : {Case{{1, 3},
                             "the stages have different rules: hyper-parameter 'lr' is 0.1 "
                             "on stages 0, 2, 0.2 on stage 1"},
                        Case{{3, 1},
                             "the ranks have different rules: hyper-parameter 'lr' is 0.1 "
                             "on ranks 0, 2, 0.2 on rank 1"},
                        Case{{1, 1, 3},
                             "the ranks have different rules: hyper-parameter 'lr' is "
                             "0.1 on ranks 0, 2, 0.2 on rank 1"}})
    for (const std::string& text : errors_of_ranks(AfterError::kLeave, 3, [&](Communicator& comm) {
           const Grid grid(comm, c.shape);
           Sequence model = filled();
           const int stages = c.shape.pipeline;
           Pipeline pipeline(model, even_cut(stages), all_forwards_first(stages, 2), grid);
           pipeline.setup([&] { return optimizers::SGD(comm.rank() == 1 ? 0.2 : 0.1); });
         }))
      expect_contains(text, {"Pipeline::setup: ", c.text});
}

TEST(PipelineMistakes, AModelThatHasMoved) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), kTwo);
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const Batch batch = batch_of(0, 8, dtype::float32);
  const auto step = [&] { pipeline.step(batch.x, batch.t, cross_entropy); };
  step();
  model.to(cpu(5));
  expect_contains(error_of<DeviceError>(step), {"the parameters of stage 0 are on cpu:5",
                                                "setup has put them on cpu:0", "new pipeline"});
}

// The shapes between stages that a failed step has seen bind no later one.
TEST(PipelineMistakes, AFailedFirstStepIsForgotten) {
  Sequence model;
  model.add([](const Variable& x) { return F::tanh(x); });
  model.add(layer(6, 3, dtype::float32, 2));
  Pipeline pipeline(model, Cut{{0, 1}}, all_forwards_first(2, 2), kTwo);
  pipeline.setup([] { return optimizers::SGD(0.1); });
  const Batch batch = batch_of(0, 8, dtype::float32);
  {
    const NoBackprop off;
    expect_contains(
        error_of<GradientError>([&] { pipeline.step(batch.x, batch.t, cross_entropy); }),
        {"Pipeline::step: called under NoBackprop", "call predict"});
  }
  const Array narrow = batch.x(Slice(), Slice(0, 5));
  EXPECT_NE(error_of<Error>([&] { pipeline.step(narrow, batch.t, cross_entropy); }), "no error");
  EXPECT_NE(error_of<Error>([&] { pipeline.predict(narrow); }), "no error");
  pipeline.step(batch.x, batch.t, cross_entropy);
  EXPECT_EQ(pipeline.predict(batch.x)[0].shape(), (Shape{8, 3}));
  // What a step that succeeded has seen does.
  expect_contains(error_of<ShapeError>([&] { pipeline.step(narrow, batch.t, cross_entropy); }),
                  {"stage 0 gave (4, 5) float32"});
  pipeline.step(batch.x, batch.t, cross_entropy);
}

TEST(PipelineMistakes, OfTheNumberOfRanks) {
  for (const std::string& text : errors_of_ranks(AfterError::kLeave, 3, [](Communicator& comm) {
         Sequence model = filled();
         Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), comm);
       }))
    expect_contains(text, {"is for 2 ranks, the communicator has 3"});
}

TEST(PipelineMistakes, PlansThatDiffer) {
  for (const std::string& text : errors_of_ranks(AfterError::kLeave, 3, [](Communicator& comm) {
         Sequence model = filled();
         const Cut cut = comm.rank() == 1 ? Cut{{0, 4, 8}} : Cut{{0, 3, 7}};
         Pipeline pipeline(model, cut, all_forwards_first(3, 2), comm);
         pipeline.setup([] { return optimizers::SGD(0.1); });
       }))
    expect_contains(text, {"the ranks have different pipelines: the first unit of stage 1 is 3 on "
                           "ranks 0, 2, 4 on rank 1; make"});
  for (const std::string& text : errors_of_ranks(AfterError::kLeave, 2, [](Communicator& comm) {
         Sequence model = filled();
         Pipeline pipeline(model, even_cut(2), all_forwards_first(2, comm.rank() == 0 ? 2 : 4),
                           comm);
         pipeline.setup([] { return optimizers::SGD(0.1); });
       }))
    expect_contains(text, {"the ranks have different pipelines", "of 2 micro-batches"});
}

// A step on which one rank fails.
std::vector<std::string> failed_step(int ranks,
                                     const std::function<Samples(int, const Array&)>& x_of,
                                     const Loss& loss, int failing_rank = -1) {
  return errors_of_ranks(AfterError::kLeave, ranks, [&](Communicator& comm) {
    Sequence model = filled();
    int calls = 0;
    model.add([&](const Variable& y) {
      if (comm.rank() == failing_rank && ++calls == 5) throw std::runtime_error("no disk");
      return y;
    });
    Pipeline pipeline(model, even_cut(ranks), all_forwards_first(ranks, 2), comm);
    pipeline.setup([] { return optimizers::SGD(0.1); });
    const Batch batch = batch_of(0, 8, dtype::float32);
    for (int i = 0; i < 4; ++i) {
      const Samples x = x_of(comm.rank(), batch.x);
      pipeline.step(x, x.empty() ? batch.t : batch.t(Slice(0, x.arrays()[0].length())), loss);
    }
  });
}

TEST(PipelineMistakes, OfOneRankAreNamedOnAll) {
  const auto all = [](int, const Array& x) { return Samples(x); };
  const auto texts = failed_step(3, all, [](const Variable& y, const Array&) { return y; });
  expect_contains(texts[2], {"loss of a micro-batch has shape (4, 3)"});
  for (int r : {0, 1}) expect_contains(texts[size_t(r)], {"rank 2", "loss of a micro-batch"});

  const auto thrown = failed_step(3, all, cross_entropy, 2);
  EXPECT_EQ(thrown[2], "no disk");
  for (int r : {0, 1}) expect_contains(thrown[size_t(r)], {"rank 2", "no disk"});

  const auto shorter = [](int rank, const Array& x) {
    return Samples(rank == 1 ? x(Slice(0, 6)) : x);
  };
  for (const std::string& text : failed_step(2, shorter, cross_entropy))
    EXPECT_NE(text, "no error");
  const auto nothing = [](int rank, const Array& x) { return rank == 0 ? Samples() : Samples(x); };
  const auto missing = failed_step(2, nothing, cross_entropy);
  expect_contains(missing[0], {"first stage needs x"});
  EXPECT_NE(missing[1], "no error");
}

}  // namespace
}  // namespace catena::parallel::pipeline
