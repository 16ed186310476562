// Where the values of sharded parameters are: with their ranks, on their way, or here. What all
// ways of gathering have in common; when values are gathered and let go is that of a way:
// update_gathers.h and unit_gathers.h.
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

// Decisions depend on the arenas, the uses and the options alone, so that all ranks that use the
// parameters in one order make the same calls.
class ParameterGathers : public BackwardObserver {
 public:
  // The way that the options ask for on these ranks.
  static std::unique_ptr<ParameterGathers> create(Communicator& comm, const BucketOptions& options);

  // The optimizer, by whose number errors name its calls, was set up.
  void attach(Optimizer& optimizer, int number);
  // It holds nothing of an optimizer.
  void detach();
  // zero_grads; the gradients of an update are there; its rule has run.
  virtual void step_begins() = 0;
  virtual void prepare_for_capture() = 0;
  virtual void before_rule() = 0;
  virtual void after_rule() = 0;
  // All values are here until the next update. Collective unless they are.
  virtual void gather_all();
  // What is on its way has arrived: nothing is sent.
  void finish();
  void layout_moves();
  int64_t count() const { return count_; }

  void gradient_is_final(ParameterState&) final {}

 protected:
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
  ParameterGathers(Communicator& comm, const BucketOptions& options)
      : comm_(comm), options_(options) {}

  // What a way adds.
  //
  // Whether its parameters are observed, and whether their uses are from the start.
  virtual bool observes() const = 0;
  virtual bool watches_from_the_start() const = 0;
  // The arenas are known, and are no longer.
  virtual void attached() {}
  virtual void detached() {}
  // Lets an arena's values go, until somebody asks for them.
  virtual void let_go(size_t index) = 0;
  // A capture has gathered values.
  virtual void was_captured(uint64_t capture) = 0;

  size_t arena_count() const { return arrivals_.size(); }
  optimizers::ParameterArena& arena(size_t index) const { return optimizer_->arena(index); }
  bool is_here(size_t index) const { return arena(index).has_whole_data(); }
  bool is_coming(size_t index) const { return arrivals_[index].whole.defined(); }
  bool is_away(size_t index) const { return !is_here(index) && !is_coming(index); }
  const std::string& first_name(size_t index) const {
    return optimizer_->layout().name(size_t(arena(index).slots()[0].index));
  }
  // The parameter's arena, if it is one of those that are known here.
  std::optional<size_t> arena_of(const ParameterState& parameter) const;
  // The capture of the calling thread, if it may hold work of the ranks.
  uint64_t capture() const;
  // The layout as it is now, where it has moved.
  void attach_again();

  // Sends for an arena's values; `follows` another in the same batch.
  virtual void start(size_t index, bool follows = false);
  // For all that are away, in the order in which they will be used, one behind the other.
  void start_all();
  // The current stream has them from here on.
  void arrive(size_t index);
  // Another stream than that of the first use waits as well.
  void wait_until_here(size_t index) const;
  // What a capture has gathered comes with the launches of its graph only: until one of them, and
  // where the capture failed, the values are not here.
  void forget_captured(size_t index);
  void forget_captured();

  // True once in each capture: at its first update or gather, and at its first use of values that
  // were here before it.
  bool is_first_update_of_capture();
  bool is_first_reader_of_capture(size_t index);
  // Runs before each launch of the graph that is being captured, while this object lives.
  void before_launches(std::function<void()> hook);

  Communicator& comm_;
  const BucketOptions options_;
  Optimizer* optimizer_ = nullptr;
  std::vector<size_t> by_use_;       // arenas in the order of declaration
  std::vector<Arrival> arrivals_;    // of each arena
  std::vector<Presence> presences_;  // of each arena
  int64_t count_ = 0;

 private:
  Array memory_for(const optimizers::ParameterArena& arena) const;

  int number_ = 0;
  std::unordered_map<const ParameterState*, size_t> arena_of_;
  bool has_moved_ = false;   // arenas are others than those that are known here
  uint64_t updated_in_ = 0;  // the last capture that an update was part of
  uint64_t read_in_ = 0;     // the last that used values which were here before
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace catena::parallel
