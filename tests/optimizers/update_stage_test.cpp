// The list of stages of an update, and updates of ranges of arenas.
#include "catena/optimizers/update_stage.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/moving_average.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::expect_near;
using catena::testing::Model;

// Notes what it is asked for.
class Noting : public UpdateStage {
 public:
  Noting(UpdatePhase phase, const char* name, std::vector<std::string>& log)
      : phase_(phase), name_(name), log_(log) {}
  UpdatePhase phase() const override { return phase_; }
  const char* name() const override { return name_; }
  void run(UpdateContext&) override { note("run"); }
  void after_update(Optimizer&) override { note("after_update"); }
  void after_setup(Optimizer&) override { note("after_setup"); }
  void discard(Optimizer&) override { note("discard"); }
  void before_accumulate(Optimizer&) override { note("before_accumulate"); }

 private:
  void note(const std::string& what) { log_.push_back(std::string(name_) + " " + what); }

  UpdatePhase phase_;
  const char* name_;
  std::vector<std::string>& log_;
};

std::vector<std::string> names(const Optimizer& optimizer) {
  std::vector<std::string> result;
  for (const auto& stage : optimizer.stages()) result.emplace_back(stage->name());
  return result;
}

TEST(UpdateStages, RunInTheOrderOfTheirPhases) {
  using Log = std::vector<std::string>;
  Log log;
  Model model;
  SGD sgd;
  const auto add = [&](UpdatePhase phase, const char* name) {
    return sgd.add_stage(std::make_shared<Noting>(phase, name, log));
  };
  add(UpdatePhase::kGather, "gather");
  const auto second = add(UpdatePhase::kUnscale, "unscale");
  add(UpdatePhase::kReduce, "reduce");
  add(UpdatePhase::kUnscale, "unscale too");
  EXPECT_EQ(names(sgd), (Log{"reduce", "unscale", "unscale too", "hooks", "rule", "gather"}));
  EXPECT_THROW(sgd.add_stage(second), ValueError);
  EXPECT_TRUE(sgd.remove_stage(*second));
  EXPECT_FALSE(sgd.remove_stage(*second));
  EXPECT_EQ(log, Log{});

  sgd.setup(model);
  EXPECT_EQ(log, (Log{"reduce after_setup", "unscale too after_setup", "gather after_setup"}));
  log.clear();
  sgd.add_hook("hook", [&](UpdateContext&) { log.push_back("hook"); });
  sgd.zero_grads();
  EXPECT_EQ(log, (Log{"reduce discard", "unscale too discard", "gather discard"}));
  log.clear();
  sgd.update();
  EXPECT_EQ(log, (Log{"reduce run", "unscale too run", "hook", "gather run", "reduce after_update",
                      "unscale too after_update", "gather after_update"}));
  log.clear();
  sgd.compute_grads_norm();
  EXPECT_EQ(log, Log{"reduce run"});
  sgd.accumulate_grads(Model().gradients());
  EXPECT_EQ(log.size(), 4u);

  SGD other(0.1);
  other.setup(model);
  log.clear();
  other.add_stage(second);  // later than setup
  EXPECT_EQ(log, Log{"unscale after_setup"});
}

// Which arenas the rule asks for, if gradients may be on their way until then.
class Reducing : public UpdateStage {
 public:
  UpdatePhase phase() const override { return UpdatePhase::kReduce; }
  const char* name() const override { return "reducing"; }
  bool reads_gradients(const Optimizer&) const override { return reads; }
  void run(UpdateContext& update) override { waits_by_arena_ = update.waits_by_arena(); }
  void before_rule_reads(size_t index) override { asked_.push_back(index); }

  // In an update: the arenas; none if run() had to wait for all.
  std::vector<size_t> asked_by(Optimizer& optimizer) {
    asked_.clear();
    optimizer.update();
    EXPECT_EQ(waits_by_arena_, !asked_.empty());
    return asked_;
  }
  const std::vector<size_t>& asked() const { return asked_; }
  bool reads = false;

 private:
  bool waits_by_arena_ = false;
  std::vector<size_t> asked_;
};

// An arena for each dtype.
struct TwoArenas : FunctionSet {
  catena::testing::Pair first{5, 3, Dtype::kFloat32}, second{2, 5, Dtype::kFloat64};
  CATENA_FUNCTIONS(first, second)
};

template <class Rule>
std::vector<size_t> asked_by(Rule&& rule, const std::function<void(Optimizer&)>& prepare = {}) {
  TwoArenas model;
  const auto reducing = rule.add_stage(std::make_shared<Reducing>());
  if (prepare) prepare(rule);
  rule.setup(model);
  rule.zero_grads();
  return reducing->asked_by(rule);
}

// Multiplies gradients, restricts updates and skips them, as stages may.
class Restricting : public UpdateStage {
 public:
  std::vector<ElementRange> ranges;
  Array skip, factor;
  UpdatePhase phase() const override { return UpdatePhase::kUnscale; }
  const char* name() const override { return "restricting"; }
  bool skips_updates() const override { return true; }
  void run(UpdateContext& update) override {
    if (!ranges.empty()) update.update_only(0, ranges);
    if (factor.defined()) update.scale_gradients({factor});
    if (skip.defined()) update.skip_if({skip});
  }
};

using MakeRule = std::unique_ptr<Optimizer> (*)();
const MakeRule kRules[] = {
    [] { return std::unique_ptr<Optimizer>(new SGD(0.1)); },
    [] { return std::unique_ptr<Optimizer>(new MomentumSGD(0.1)); },
    [] { return std::unique_ptr<Optimizer>(new Adam(0.1)); },
    [] { return std::unique_ptr<Optimizer>(new AdamW(0.1)); },
    [] { return std::unique_ptr<Optimizer>(new LARS(0.1)); },
};
const Dtype kDtypes[] = {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16};

// The first arena has the parameters that were declared last, whose gradients come first.
TEST(UpdateStages, TheRuleWaitsForEachArenaWhereNothingElseReadsGradients) {
  using Arenas = std::vector<size_t>;
  EXPECT_EQ(asked_by(SGD()), (Arenas{0, 1}));
  EXPECT_EQ(asked_by(Adam(), [](Optimizer& rule) { add_moving_average(rule, 0.9); }),
            (Arenas{0, 1}));
  EXPECT_EQ(asked_by(LARS()), Arenas()) << "norms of all gradients";
  EXPECT_EQ(asked_by(SGD(), [](Optimizer& rule) { rule.add_hook("clip", gradient_clipping(1)); }),
            Arenas());
  EXPECT_EQ(
      asked_by(SGD(), [](Optimizer& rule) { rule.add_stage(std::make_shared<Restricting>()); }),
      Arenas());
}

TEST(UpdateStages, OfPhaseReduceMayReadGradients) {
  const auto add_reader = [](Optimizer& rule) {
    rule.add_stage(std::make_shared<Reducing>())->reads = true;
  };
  EXPECT_EQ(asked_by(SGD(), add_reader), std::vector<size_t>());
}

// A gradient that was cleared while others travel is zero for the rule.
TEST(UpdateStages, ClearedGradientsAreZeroWhereTheRuleWaits) {
  Model model;
  SGD sgd(1);
  sgd.add_stage(std::make_shared<Reducing>());
  sgd.setup(model);
  sgd.zero_grads();
  catena::testing::set_gradients(sgd.layout().parameters(), 1);
  const auto before = all_values(sgd.layout().parameters());
  model.l1.W.zero_grad();
  sgd.update();
  const auto after = all_values(sgd.layout().parameters());
  int kept = 0;
  for (size_t k = 0; k < after.size(); ++k) kept += after[k] == before[k];
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(model.l1.W.data().to_vector<double>(), before[0]);
}

// What a stage throws finds gradients that were waited for.
TEST(UpdateStages, GradientsAreWaitedForWhereAStageThrows) {
  TwoArenas model;
  SGD sgd;
  const auto reducing = sgd.add_stage(std::make_shared<Reducing>());
  const auto average = add_moving_average(sgd, 0.5);
  sgd.setup(model);
  sgd.zero_grads();
  sgd.update();
  const MovingAverage::Scope in_use(*average);
  EXPECT_THROW(sgd.update(), ValueError);
  EXPECT_EQ(reducing->asked(), (std::vector<size_t>{0, 1, 0, 1}));
}

// Ranges in any order that cover an arena once are the whole arena, and a step is counted once.
TEST(UpdateStages, ARuleOverRangesIsTheRuleOverTheWhole) {
  for (const MakeRule make : kRules) {
    for (const Dtype dtype : kDtypes) {
      for (const bool prepared : {false, true}) {
        Model parts(dtype), whole(dtype);
        const auto by_parts = make(), at_once = make();
        by_parts->setup(parts);
        at_once->setup(whole);
        if (prepared) by_parts->prepare_for_capture();
        for (Optimizer* rule : {by_parts.get(), at_once.get()}) {
          rule->add_hook("clip", gradient_clipping(0.5));
          rule->add_hook("decay", weight_decay(0.01));
        }
        const auto stage = by_parts->add_stage(std::make_shared<Restricting>());
        const int64_t size = by_parts->layout().arenas()[0].size();
        stage->ranges = {{37, 100}, {0, 37}, {100, 100}, {100, size}};
        for (int64_t t = 1; t <= 4; ++t) {
          step(*by_parts, parts, t);
          step(*at_once, whole, t);
        }
        EXPECT_EQ(all_values(parts.parameters()), all_values(whole.parameters())) << dtype;
        EXPECT_EQ(by_parts->t(), 4);
        const auto a = by_parts->state(), b = at_once->state();
        for (size_t i = 0; i < a.size(); ++i)
          EXPECT_EQ(a[i].second.to_vector<double>(), b[i].second.to_vector<double>()) << a[i].first;
      }
    }
  }
}

TEST(UpdateStages, MayScaleAndSkip) {
  for (const MakeRule make : kRules) {
    Model model;
    const auto rule = make();
    rule->setup(model);
    rule->prepare_for_capture();
    const auto stage = rule->add_stage(std::make_shared<Restricting>());
    stage->skip = ones({}, dtype::float64);
    const auto before = all_values(model.parameters());
    step(*rule, model, 1);
    EXPECT_EQ(all_values(model.parameters()), before);
    EXPECT_EQ(rule->t(), 0);
    stage->skip.fill(0);
    stage->factor = full({}, 0.25, dtype::float64);
    rule->add_hook("clip", gradient_clipping(0.3));

    Model twin;
    const auto plain = make();
    plain->setup(twin);
    plain->add_hook("clip", gradient_clipping(0.3));
    for (int64_t t = 1; t <= 3; ++t) {
      step(*rule, model, t);
      catena::testing::set_gradients(twin.parameters(), t);
      for (const Parameter& p : twin.parameters()) p.grad() *= 0.25;
      plain->update();
    }
    EXPECT_EQ(rule->t(), 3);
    expect_near(all_values(model.parameters()), all_values(twin.parameters()), 1e-6);
  }
}

// Gradients of other processes count in the norm that is clipped to.
TEST(UpdateStages, MayFinishNorms) {
  class Others : public UpdateStage, public Processes {
   public:
    UpdatePhase phase() const override { return UpdatePhase::kReduce; }
    const char* name() const override { return "others"; }
    void run(UpdateContext&) override {}
    Processes* processes() override { return this; }
    void sum(const Arrays& arrays, Sum of) override {
      EXPECT_EQ(of, Sum::kNorm);
      arrays[0] += 144.0;
    }
  };
  const Parameter p(zeros({2}, dtype::float64)), q(zeros({2}, {dtype::float64, cpu(1)}));
  SGD sgd(1);
  sgd.setup({p, q});
  sgd.add_stage(std::make_shared<Others>());
  p.set_grad(array<double>({3, 0}));
  q.set_grad(array<double>({0, 4}));
  EXPECT_DOUBLE_EQ(sgd.compute_grads_norm(), 13);
  sgd.add_hook("clip", gradient_clipping(6.5));
  sgd.update();
  EXPECT_EQ(p.data().to_vector<double>(), (std::vector<double>{-1.5, 0}));
  EXPECT_EQ(q.data().to_vector<double>(), (std::vector<double>{0, -2}));
}

// A rule as users write them.
struct Plain : Optimizer {
  Plain() : Optimizer("lr", 0.1) {}
  void update_one(const Array& p, const Array& g, const Arrays&) override { p -= g * lr(); }
};

TEST(UpdateStages, RulesOfUsersCannotSkipOrBeRestricted) {
  Plain plain;
  expect_contains(error_of<ValueError>([&] { plain.add_stage(std::make_shared<Restricting>()); }),
                  {"add_stage: the stage 'restricting' skips updates", "override update_arena"});
  EXPECT_EQ(names(plain), (std::vector<std::string>{"hooks", "rule"}));
  struct Only : Restricting {
    bool skips_updates() const override { return false; }
  };
  const auto stage = plain.add_stage(std::make_shared<Only>());
  stage->ranges = {{0, 1}};
  Model model;
  plain.setup(model);
  expect_contains(error_of<ValueError>([&] { plain.update(); }),
                  {"update_only", "updates parameter by parameter"});
}

TEST(UpdateStages, RangesAreChecked) {
  Model model;
  SGD sgd;
  sgd.setup(model);
  UpdateContext update(sgd);
  EXPECT_THROW(update.update_only(1, {{0, 1}}), ValueError);
  EXPECT_THROW(update.update_only(0, {}), ValueError);
}

// A rule of a user over arenas that can skip, and leaves counting to the optimizer.
struct Uncounted : Optimizer {
  Uncounted() : Optimizer("lr", 0.1) {}
  bool updates_arenas() const override { return true; }
  bool skips_updates() const override { return true; }
  void update_arena(OptimizerCall& call) override {
    if (call.skip != nullptr && call.skip->item<double>() != 0) return;
    *call.parameter -= *call.gradient * lr();
  }
};

TEST(UpdateStages, SkippedUpdatesOfUsersRulesDoNotCount) {
  Model model;
  Uncounted rule;
  rule.setup(model);
  const auto stage = rule.add_stage(std::make_shared<Restricting>());
  const auto update = [&](double skip) {
    stage->skip = full({}, skip, dtype::float64);
    step(rule, model, 1);
    return rule.t();
  };
  EXPECT_EQ(update(0), 1);
  EXPECT_EQ(update(1), 1);
  EXPECT_EQ(update(3), 1);
  EXPECT_EQ(update(0), 2);
}

// Whether the stage comes before setup or after it: counts are where the flags are.
TEST(UpdateStages, SkippedUpdatesDoNotCountOnTheHostEither) {
  for (const bool early : {false, true}) {
    Model model;
    SGD sgd(0.1);
    const auto stage = std::make_shared<Restricting>();
    if (early) sgd.add_stage(stage);
    sgd.setup(model);
    catena::testing::set_gradients(model.parameters(), 1);
    if (!early) {
      sgd.update();
      sgd.add_stage(stage);
    }
    const int64_t before = sgd.t();
    stage->skip = ones({}, dtype::float64);
    sgd.update();
    EXPECT_EQ(sgd.t(), before);
    model.to(cpu(1));
    stage->skip = zeros({}, {dtype::float64, cpu(1)});
    sgd.update();
    EXPECT_EQ(sgd.t(), before + 1);
  }
}

// Takes itself out of the optimizer, and puts another one in.
TEST(UpdateStages, MayChangeTheStages) {
  class Once : public UpdateStage {
   public:
    explicit Once(int& calls) : calls_(calls) {}
    UpdatePhase phase() const override { return UpdatePhase::kUnscale; }
    const char* name() const override { return "once"; }
    void run(UpdateContext& update) override {
      ++calls_;
      for (int i = 0; i < 20; ++i) update.optimizer().add_stage(std::make_shared<Restricting>());
      update.optimizer().remove_stage(*this);
      ++calls_;
    }
    void discard(Optimizer& optimizer) override {
      optimizer.add_stage(std::make_shared<Restricting>());
    }

   private:
    int& calls_;
  };
  Model model;
  SGD sgd;
  sgd.setup(model);
  int calls = 0;
  sgd.add_stage(std::make_shared<Once>(calls));
  step(sgd, model, 1);
  sgd.update();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(sgd.stages().size(), 2u + 21u);
}

}  // namespace
}  // namespace catena::optimizers
