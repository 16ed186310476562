// State of the values of sharded parameters: with the ranks that update them, on their way, or
// here. This file has what is common; when values are gathered and let go is decided by
// update_gathers.h (kStates, kGradients) and unit_gathers.h (kParameters).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"

namespace catena::parallel {

// Gathers the arenas of one optimizer. Decisions depend on the arenas, the uses, the captures and
// the options alone, so that all ranks that use the parameters in one order make the same calls.
class ParameterGathers : public BackwardObserver {
 public:
  // UnitGathers for kParameters on several ranks, else UpdateGathers.
  static std::unique_ptr<ParameterGathers> create(Communicator& comm, const BucketOptions& options);

  // After setup of the optimizer. Errors name its calls by the number. ValueError for units that it
  // does not have.
  void attach(Optimizer& optimizer, int number);
  // Holds nothing of an optimizer any more. Call finish() before: what is on its way is dropped.
  void detach();

  // In zero_grads.
  virtual void step_begins() = 0;
  // Outside of a capture, before one that has a step or uses parameters.
  virtual void prepare_for_capture() = 0;
  // In update, before the rule writes this rank's part, and after it.
  virtual void before_rule() = 0;
  virtual void after_rule() = 0;

  // All values are here until the next update. Collective unless they are.
  void gather_all();
  // What is on its way has arrived; sends nothing.
  void finish();
  // Before the arenas are laid out anew: gathers all, and forgets them until the next call.
  void layout_moves();
  // How often an arena was gathered.
  int64_t count() const { return count_; }

  void gradient_is_final(ParameterState&) override {}

 protected:
  // Which calls of parameters it needs. Uses cost a look at each operand of each function.
  enum class Watch {
    kNothing,
    kReads,  // and uses while watch_uses is on
    kUses,   // from setup on
  };
  ParameterGathers(Communicator& comm, const BucketOptions& options, Watch watch)
      : comm_(comm), options_(options), watch_(watch) {}

  // The arenas are known; are forgotten; all of them are here.
  virtual void attached() {}
  virtual void detached() {}
  virtual void all_gathered() {}
  // An arena's values are about to be sent for.
  virtual void about_to_gather() {}
  // Lets an arena's values go until somebody asks for them.
  virtual void let_go(size_t index) = 0;
  // The running capture gathers values, or changes them.
  virtual void watch_launches() = 0;

  const Optimizer& optimizer() const { return *optimizer_; }
  size_t arena_count() const { return arrivals_.size(); }
  optimizers::ParameterArena& arena(size_t index) const { return optimizer_->arena(index); }
  int64_t bytes_of(size_t index) const {
    return arena(index).size() * int64_t(itemsize(arena(index).dtype()));
  }
  bool is_here(size_t index) const { return arena(index).has_whole_data(); }
  bool is_coming(size_t index) const { return arrivals_[index].whole.defined(); }
  const std::string& first_name(size_t index) const {
    return optimizer_->layout().name(size_t(arena(index).slots()[0].index));
  }
  // The arenas, the one with the parameter that was declared first in front: the likely order of
  // first uses.
  const std::vector<size_t>& by_declaration() const { return by_declaration_; }
  // The parameter's arena; nothing for other parameters, and while the layout moves.
  std::optional<size_t> arena_of(const ParameterState& parameter) const;
  // The capture of the calling thread, if it may hold work of the ranks; 0: none.
  uint64_t current_capture() const;
  // Where the layout has moved, attaches to what it is now.
  void attach_again();
  // That, and what is on its way has arrived.
  void settle() {
    attach_again();
    finish();
  }

  // Sends for an arena's values unless they are here or on their way.
  void start(size_t index);
  // The same of all arenas, by_declaration, in one batch.
  void start_all();
  // Makes the current stream wait for an arena's values, which it sends for if nobody has.
  // ValueError in a capture that began when they were on their way.
  void arrive(size_t index);
  // Makes the current stream wait for values that arrived on another one.
  void wait_until_here(size_t index) const;
  // When the values that are here came; undefined for those that were here before.
  const Event& arrival_of(size_t index) const { return presences_[index].event; }
  // Whether the running capture has gathered the values that are here; true outside of captures for
  // those that no capture has gathered.
  bool is_of_this_capture(size_t index) const;
  // What a capture has gathered comes with the launches of its graph only: until one of them, and
  // where the capture failed, the values are neither here nor on their way.
  void forget_captured(size_t index);
  void forget_captured();
  // Counts gathers that were made elsewhere.
  void add_to_count(int64_t gathers) { count_ += gathers; }

  // Whether the running capture has sent for values.
  bool gathers_in_this_capture() const;
  // True for the first call in each capture.
  bool is_new_to_launches();
  // True for the first call in each capture that uses values which were here before it.
  bool is_first_reader(size_t index);
  // Runs before each launch of the graph that is being captured, while this object lives.
  void before_launches(std::function<void()> hook);

  Communicator& comm_;
  const BucketOptions options_;

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
  bool is_away(size_t index) const { return !is_here(index) && !is_coming(index); }
  void send_for(size_t index, bool follows);
  Array memory_for(const optimizers::ParameterArena& arena) const;

  const Watch watch_;
  Optimizer* optimizer_ = nullptr;
  int number_ = 0;
  std::unordered_map<const ParameterState*, size_t> arena_of_;
  std::vector<size_t> by_declaration_;
  std::vector<Arrival> arrivals_;    // of each arena
  std::vector<Presence> presences_;  // of each arena
  bool has_moved_ = false;           // arenas are others than those that are known here
  int64_t count_ = 0;
  uint64_t gathered_in_ = 0;  // the last capture that sent for values
  uint64_t watched_in_ = 0;   // the last that changed or gathered values
  uint64_t read_in_ = 0;      // the last that used values which were here before
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what hooks ask
};

}  // namespace catena::parallel
