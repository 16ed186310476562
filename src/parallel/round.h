// Progress of the reductions of one step, from zero_grads to the update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "catena/autograd/parameter_state.h"
#include "catena/parallel/gradient_reducer.h"

namespace catena::parallel {

// Buckets start in order of index, each once, when all of their parameters are final.
//
//   kIdle      zero_grads: kOpen
//   kOpen      a synchronised pass begins: kReducing
//              gradients_are_final(): kNamed
//              a pass begins whose parts are added up: kAdding
//   kAdding    it ends: kOpen
//   kReducing  it ends: kReduced
//   kNamed     all parameters are named: kReduced
//
// An update reduces what is left in any state, and leads back to kIdle.
class Round {
 public:
  enum class State : uint8_t {
    kIdle,      // gradients may be those of passes for another optimizer
    kOpen,      // gradients are this rank's own, of this step, but for sums of passes before
    kAdding,    // buckets are reduced as a pass makes them final, and added to such sums
    kReducing,  // buckets are reduced as a pass makes them final
    kNamed,     // as the caller names their parameters
    kReduced    // gradients are averages
  };
  // Why gradients of which parts were kept are none to update with.
  enum class Spoiled : uint8_t { kNot, kByPass, kByMove };

  bool is(State state) const { return state_ == state; }
  // Whether nothing has been reduced in this step.
  bool is_open() const { return is(State::kIdle) || is(State::kOpen); }

  // The step begins.
  void open() { *this = Round(State::kOpen); }
  // Its reductions begin: kAdding, kReducing or kNamed.
  void begin(const std::vector<Bucket>& buckets, State how) {
    state_ = how;
    has_counted_ = has_agreed_ = false;
    remaining_.clear();
    for (const Bucket& b : buckets) remaining_.push_back(b.last - b.first);
    next_ = 0;
    named_.clear();
  }
  void end() {
    has_sums_ = has_sums_ || is(State::kAdding);
    state_ = is(State::kAdding) ? State::kOpen : State::kReduced;
  }
  // Whether parts of gradients of passes before have been added up.
  bool has_sums() const { return has_sums_; }
  // Whether a pass makes buckets final.
  bool is_in_pass() const { return is(State::kAdding) || is(State::kReducing); }
  // The update was made.
  void finish() { *this = Round(State::kIdle); }

  // Passes of the step were not synchronised: the caller weighs them.
  void weigh_by_hand() { by_hand_ = true; }
  bool is_weighed_by_hand() const { return by_hand_; }
  // Such a pass may come, and this rank leave it out; true once, for the next pass.
  void expect_by_hand() { expects_by_hand_ = true; }
  bool takes_expected() { return std::exchange(expects_by_hand_, false); }
  // This rank may leave out a pass whose parts the others add up.
  void leave_out(bool may) { is_left_out_ = may; }
  bool is_left_out() const { return is_left_out_; }
  void spoil(Spoiled why) { spoiled_ = why; }
  bool is_spoiled(Spoiled why) const { return spoiled_ == why; }

  // A parameter of the bucket is final.
  void is_final(size_t bucket) { --remaining_[bucket]; }
  // The same for one that the caller names; once is enough.
  void name(const ParameterState& parameter, size_t bucket) {
    if (named_.insert(&parameter).second) is_final(bucket);
  }
  bool is_named(const ParameterState& parameter) const {
    return !named_.empty() && named_.count(&parameter) != 0;
  }
  // Whether the caller names parameters, or has named all.
  bool is_by_caller() const { return is(State::kNamed) || !named_.empty(); }
  bool is_next_ready() const { return has_next() && remaining_[next_] == 0; }
  bool has_next() const { return next_ < remaining_.size(); }
  size_t take_next() { return next_++; }
  size_t started() const { return next_; }
  // True once in a step: for what all ranks do before its first bucket, and with the first that is
  // reduced.
  bool counts_losses() { return !std::exchange(has_counted_, true); }
  bool agrees() { return !std::exchange(has_agreed_, true); }

  Round() = default;

 private:
  explicit Round(State state) : state_(state) {}

  State state_ = State::kIdle;
  Spoiled spoiled_ = Spoiled::kNot;
  bool by_hand_ = false, has_counted_ = false, has_agreed_ = false;
  bool has_sums_ = false, is_left_out_ = false, expects_by_hand_ = false;
  std::vector<size_t> remaining_;  // parameters of each bucket that are not final
  size_t next_ = 0;                // first bucket that has not started
  std::unordered_set<const ParameterState*> named_;
};

}  // namespace catena::parallel
