// Gathers unit by unit, just before functions use the parameters, forward and backward, and frees
// them after it (Sharding::kParameters).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "parallel/gathers/parameter_gathers.h"

namespace catena::parallel {

class UnitGathers final : public ParameterGathers {
 public:
  UnitGathers(Communicator& comm, const BucketOptions& options)
      : ParameterGathers(comm, options, Watch::kUses) {}

  void step_begins() override;
  void prepare_for_capture() override { free_all(); }
  void before_rule() override;
  void after_rule() override;

  void before_use(ParameterState& parameter) override;
  // Values that are on their way come first: they would replace what is written to the part.
  std::optional<KeptValues> kept_values(ParameterState& parameter) override;

 private:
  void attached() override;
  void detached() override;
  void all_gathered() override;
  void about_to_gather() override { note_stream(); }
  // The memory is freed.
  void let_go(size_t index) override { arena(index).keep_own_data(true); }
  void watch_launches() override;

  void free_all();
  void start_following(size_t index);
  void note_use(size_t unit);
  void note_stream();
  void require_own_capture(size_t index) const;
  void watch_kept_values(size_t index);

  struct Use {
    size_t unit;
    uint64_t call;  // current_use() of the last one
  };
  std::vector<size_t> units_;           // of each arena
  std::vector<int64_t> bytes_;          // of each unit
  int64_t most_bytes_ = 0;              // of units in use, unless one call uses more
  std::deque<Use> recent_;              // units used last, the last one first
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
