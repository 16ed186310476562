// Values that are gathered unit by unit just before they are used, forward and backward, and freed
// after it (Sharding::kParameters).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "parallel/gathers/parameter_gathers.h"

namespace catena::parallel {

// The unit of a parameter, by its name ("/l1/W"): the longest of `units` that it is in, else the
// direct child of the model.
std::string unit_of(const std::string& name, const std::vector<std::string>& units);

// ValueError unless each of BucketOptions::units has a parameter of the optimizer.
void check_units(const Optimizer& optimizer, const std::vector<std::string>& units);

class UnitGathers final : public ParameterGathers {
 public:
  UnitGathers(Communicator& comm, const BucketOptions& options) : ParameterGathers(comm, options) {}

  void step_begins() override;
  void prepare_for_capture() override { settle(); }
  void before_rule() override;
  void after_rule() override { attach_again(); }
  void gather_all() override;

  void before_use(ParameterState& parameter) override;

 private:
  bool observes() const override { return true; }
  bool watches_from_the_start() const override { return true; }
  void attached() override;
  void detached() override;
  void let_go(size_t index) override { arena(index).keep_own_data(true); }
  void was_captured(uint64_t) override { watch_launches(); }
  void start(size_t index, bool follows) override;

  void settle();
  void start_following(size_t index);
  void note_use(size_t unit);
  void note_stream();
  void require_own_capture(size_t index) const;
  void leave_other_capture(size_t index);
  void watch_launches();
  void watch_kept_values(size_t index);

  std::vector<size_t> units_;           // of each arena
  std::deque<size_t> recent_;           // units used last, the last one first
  std::vector<size_t> order_, before_;  // arenas that arrived in this step, and in that before
  size_t place_ = 0;                    // in before_, of the next arrival
  bool stays_ = false;                  // all values are here until the next update
  bool is_new_ = false;                 // no step has begun since setup: and until that
  int64_t times_freed_ = 0;             // how often values that stayed have gone
  // The streams that used values or memory of units last: in no capture, and in the last one.
  Stream user_, captured_user_;
  uint64_t capture_of_user_ = 0;
};

}  // namespace catena::parallel
