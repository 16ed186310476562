// RuleOptimizer: what the rules of catena/kernels/detail/optimizer_rules.def share. A rule is a row
// there, a functor in src/device/optimizer_rules.h, and a class that derives from this one. Its
// constructor takes the learning rate and, by position, at most one more number; more are options
// that are given by name.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/arguments.h"
#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// A rule that updates element by element, in one kernel over all parameters of a device and dtype.
// Parameters may be float16, bfloat16, float32 or float64; of 16 bits the rule has float32 states
// and master copies, unless it is made with another format.
class RuleOptimizer : public Optimizer {
 public:
  std::vector<std::pair<std::string, double>> hyper_parameters() const final;
  // A captured graph keeps the numbers that it was captured with, but for the learning rate.
  void set_hyper_parameter(const std::string& name, double value) final;

 protected:
  // `rule` names the row; the numbers are in its order. ValueError for one outside its range.
  // Another format than that by default is for rules that have kernels for it (kAnyFormat in
  // src/device/optimizer_rules.h). DtypeError unless its states are bfloat16.
  RuleOptimizer(std::string_view rule, double rate, std::initializer_list<double> numbers,
                const StateFormat& format = {});

  // A number by its place in the rule's row; ValueError outside its range.
  double number(size_t index) const { return numbers_[index]; }
  void set_number(size_t index, double value);

  std::vector<std::string> state_names() const final;
  std::vector<double> state_starts() const final;
  StateFormat state_format() const final { return format_; }
  bool updates_arenas() const final { return true; }
  bool counts_updates() const final { return true; }
  bool skips_updates() const final { return true; }
  bool reads_segments() const final { return true; }
  bool needs_norms() const final;
  bool needs_norms_of_steps() const final;
  void sum_step_squares(OptimizerCall& call, const Array& partial, const Array& sums) final;
  void update_arena(OptimizerCall& call) final;
  void check_dtype(Dtype dtype) const final;

 private:
  void complete(OptimizerCall& call) const;

  const OptimizerRule* rule_;
  StateFormat format_;
  std::array<double, kMaxRuleNumbers> numbers_{};
};

}  // namespace catena::optimizers
