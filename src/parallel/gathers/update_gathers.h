// Values that are gathered with the update that changed them: at once, or on the side stream ahead
// of their first use (BucketOptions::gather_ahead).
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/gathers/parameter_gathers.h"

namespace catena::parallel {

class UpdateGathers final : public ParameterGathers {
 public:
  UpdateGathers(Communicator& comm, const BucketOptions& options)
      : ParameterGathers(comm, options) {}

  void step_begins() override;
  void prepare_for_capture() override;
  void before_rule() override;
  void after_rule() override;

  void before_use(ParameterState& parameter) override;
  void before_read(ParameterState& parameter) override;

 private:
  // Those that are gathered at once are never waited for.
  bool observes() const override { return options_.gather_ahead; }
  bool watches_from_the_start() const override {
    return options_.gather_ahead && comm_.device().is_cuda();
  }
  void let_go(size_t index) override { arena(index).keep_own_data(false); }
  void was_captured(uint64_t capture) override;

  void settle();
  void let_go_all();
  void start_ahead();
  void gather_now(const std::vector<size_t>& arenas);
  bool gathers_first(uint64_t capture) const { return capture != 0 && gathered_in_ == capture; }
  bool is_any_coming() const;
  bool are_all_here() const;
  void watch_launches();
  void watch_kept_values(size_t index);

  uint64_t gathered_in_ = 0;  // the last capture that gathered values for their first use
};

}  // namespace catena::parallel
