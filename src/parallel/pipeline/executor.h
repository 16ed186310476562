// Executor of a pipeline: what it consists of, and the calls that all of it takes part in.
//
// pipeline.cpp has the interface, executor_setup.cpp setup, executor.cpp how a step or test pass
// begins and fails, step_runner.h what it does, updates.h how it ends.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "parallel/pipeline/plan.h"
#include "parallel/pipeline/step_runner.h"
#include "parallel/pipeline/updates.h"

namespace catena::parallel::pipeline {

class Pipeline::Executor {
 public:
  // While it lives, other calls are refused: one from a unit or a loss, or from another thread,
  // would find half of what it needs.
  struct EndOfCall {
    void operator()(std::atomic<const char*>* running) const { *running = nullptr; }
  };
  using OnlyCall = std::unique_ptr<std::atomic<const char*>, EndOfCall>;
  using MakeRule = std::function<std::unique_ptr<Optimizer>()>;

  explicit Executor(Plan plan);
  OnlyCall begin_call(const char* who);
  void setup(const MakeRule& make_rule);
  // Notes when its actions run in `recorder`; null: does not.
  Array step(const Samples& x, const Samples& t, const Loss& loss, Recorder* recorder);
  Arrays predict(const Samples& x);
  void require_setup(const char* who) const;

  const Plan plan;
  Updates updates;
  UnitNumbers numbers;
  StepRunner runner;
  int64_t calls = 0;             // of step and predict, those that threw included
  std::optional<double> weight;  // of this replica
  // A step that throws stays in it until the next one.
  enum class State : uint8_t { kNew, kSetUp, kInStep, kStepped };
  State state = State::kNew;

 private:
  void make_optimizers(const MakeRule& make_rule);
  int64_t samples_to_train(const Samples& x, const Samples& t);
  void refuse_synchronised_layers();
  template <class F>
  auto or_end_all(const char* what, F part);
  void end_all(const std::string& text, bool by_peer);

  std::atomic<const char*> running_{nullptr};  // the name of the call, null for none
};

}  // namespace catena::parallel::pipeline
