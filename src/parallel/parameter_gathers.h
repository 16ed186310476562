// Where the values of sharded parameters are: gathered after an update, ahead of their first use,
// or unit by unit.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"

namespace catena::parallel {

// The unit of a parameter, by its name ("/l1/W"): the longest of `units` that it is in, else the
// direct child of the model.
std::string unit_of(const std::string& name, const std::vector<std::string>& units);

// Decisions depend on the arenas, the uses and the options alone, so that all ranks that use the
// parameters in one order make the same calls.
class ParameterGathers final : public BackwardObserver {
 public:
  ParameterGathers(Communicator& comm, const BucketOptions& options)
      : comm_(comm), options_(options) {}

  // The optimizer, by whose number errors name its calls, was set up.
  void attach(Optimizer& optimizer, int number);
  // It holds nothing of an optimizer.
  void detach();
  // zero_grads; the gradients of an update are there; its rule has run.
  void step_begins();
  void prepare_for_capture();
  void before_rule();
  void after_rule();
  // All values are here until the next update. Collective unless they are.
  void gather_all();
  // What is on its way has arrived: nothing is sent.
  void finish();
  // And units are away.
  void settle();
  void layout_moves();
  int64_t count() const { return count_; }

  void before_use(ParameterState& parameter) override;
  void before_read(ParameterState& parameter) override;
  void gradient_is_final(ParameterState&) override {}

 private:
  // An arena's values on their way.
  struct Arrival {
    Array whole;  // undefined: none is
    Event event;
    uint64_t capture = 0;  // in which they were sent for; 0: in none
  };
  // When values that are here came, and the stream that has waited for it.
  struct Presence {
    Event event;
    Stream waited;
    uint64_t capture = 0;
  };
  bool by_units() const { return options_.sharding == Sharding::kParameters && comm_.size() > 1; }
  size_t arena_count() const { return arrivals_.size(); }
  optimizers::ParameterArena& arena(size_t index) const { return optimizer_->arena(index); }
  bool is_coming(size_t index) const { return arrivals_[index].whole.defined(); }
  bool is_away(size_t index) const { return !arena(index).has_whole_data() && !is_coming(index); }
  const std::string& first_name(size_t index) const {
    return optimizer_->layout().name(size_t(arena(index).slots()[0].index));
  }
  Array memory_for(const optimizers::ParameterArena& arena);
  void gather_now(const std::vector<size_t>& arenas);
  void start(size_t index, bool follows = false);
  void start_all();
  void start_ahead();
  void let_go();
  void arrive(size_t index);
  void start_following(size_t index);
  void wait_until_here(size_t index) const;
  void note_use(size_t unit);
  void note_stream();
  void forget_captured(size_t index);
  void forget_captured();
  void require_own_capture(size_t index) const;
  void leave_other_capture(size_t index);
  void watch_kept_values(size_t index);
  bool all_are_here() const;
  void free_unit(size_t unit);
  void attach_again();
  void watch_launches();

  Communicator& comm_;
  BucketOptions options_;
  Optimizer* optimizer_ = nullptr;
  int number_ = 0;
  std::unordered_map<const ParameterState*, size_t> arena_of_;
  std::vector<size_t> by_use_;          // arenas in the order of declaration
  std::vector<size_t> units_;           // of each arena
  std::vector<Arrival> arrivals_;       // of each arena
  std::vector<Presence> presences_;     // of each arena
  std::deque<size_t> recent_;           // units used last, the last one first
  std::vector<size_t> order_, before_;  // arenas that arrived in this step, and in that before
  size_t place_ = 0;                    // in before_, of the next arrival
  bool has_moved_ = false;              // arenas are others than those that are known here
  bool stays_ = false;                  // all values are here until the next update
  bool is_new_ = false;                 // no step has begun since setup: and until that
  int64_t count_ = 0;
  uint64_t capture_ = 0;          // the last that an update was part of
  uint64_t gathered_in_ = 0;      // the last that gathered values for their first use
  uint64_t capture_of_kept_ = 0;  // the last that used values which stay
  int64_t times_freed_ = 0;       // how often values that stayed have gone
  // The streams that used values or memory of units last: in no capture, and in the last one.
  Stream user_, captured_user_;
  uint64_t capture_of_user_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace catena::parallel
