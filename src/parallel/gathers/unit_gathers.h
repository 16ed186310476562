// Gathers unit by unit, just before functions use the parameters, forward and backward, and frees
// them after it (Sharding::kParameters).
#pragma once

#include <cstdint>
#include <deque>
#include <set>
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
  void backward_begins() override;
  void gradient_is_final(ParameterState& parameter) override;
  // Values that are on their way come first: they would replace what is written to the part.
  std::optional<KeptValues> kept_values(ParameterState& parameter) override;

 private:
  void attached() override;
  void detached() override;
  void all_gathered() override;
  void about_to_gather() override { note_stream(); }
  void let_go(size_t index) override;
  void watch_launches() override;

  void free_all();
  void start_following(size_t index);
  void kept_arrive();
  void note_use(size_t unit);
  bool keep_for_arrival(size_t unit, size_t used);
  void let_unit_go(size_t unit);
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
  std::set<size_t> kept_;     // arenas that stay for their next use, as if they arrived then
  std::vector<size_t> left_;  // parameters of each unit that the running pass may use
  bool stays_ = false;        // all values are here until the next update
  bool is_new_ = false;       // no step has begun since setup: and until that
  int64_t times_freed_ = 0;   // how often values that stayed have gone
  // The streams that used values or memory of units last: in no capture, and in the last one.
  Stream user_, captured_user_;
  uint64_t capture_of_user_ = 0;
};

}  // namespace catena::parallel
