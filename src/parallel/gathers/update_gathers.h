// Gathers for an update: at once behind the rule, or ahead of the first uses on the side stream
// (BucketOptions::gather_ahead).
#pragma once

#include <vector>

#include "parallel/gathers/parameter_gathers.h"

namespace catena::parallel {

// An eager step that gathers ahead sends for the values as its update ends. A captured one lets
// them go there, and sends for them as it begins.
class UpdateGathers final : public ParameterGathers {
 public:
  UpdateGathers(Communicator& comm, const BucketOptions& options);

  void step_begins() override;
  void prepare_for_capture() override;
  void before_rule() override;
  void after_rule() override;

  void before_use(ParameterState& parameter) override;
  void before_read(ParameterState& parameter) override;

 private:
  // The block stays.
  void let_go(size_t index) override { arena(index).keep_own_data(false); }
  void watch_launches() override;

  void let_go_all();
  void start_ahead();
  void gather_now(const std::vector<size_t>& arenas);
  bool is_any_coming() const;
  bool are_all_here() const;
  void watch_kept_values(size_t index);
};

}  // namespace catena::parallel
