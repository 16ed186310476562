#include "catena/functions/recompute_plan.h"

#include <atomic>
#include <optional>
#include <string>

#include "catena/array/random_log.h"
#include "catena/autograd/grad_mode.h"
#include "catena/core/memory_profile.h"
#include "functions/recompute_bytes.h"

namespace catena::functions {
namespace {

constexpr const char* kPlan = "RecomputePlan";

// Follows the memory that this thread allocates in a scope: its path has a name that no other
// measurement has.
class HeldMemory {
 public:
  const char* name() const { return name_.c_str(); }
  size_t bytes() const {
    size_t held = 0;
    for (const MemoryProfile::Entry& entry : profile_.entries())
      if (entry.call.find(name_) != std::string::npos) held += entry.held;
    return held;
  }

 private:
  static std::string next_name() {
    static std::atomic<uint64_t> number{0};
    return message(kPlan, " ", number.fetch_add(1, std::memory_order_relaxed), ":");
  }
  std::string name_ = next_name();
  MemoryProfile profile_;
};

// Runs the block, whose input `x` becomes its result, at the beginning of a separate graph. What
// parameters keep of the run, such as 16-bit copies, does not count.
RecomputeBytes measure(const RecomputedBlock& block, Variable& x, RandomLog& drawn) {
  const RepeatedForward nothing_moves;
  const RandomLogScope numbers(drawn, RandomLogScope::Mode::kNote);
  const HeldMemory held;
  RecomputeBytes bytes;
  Variable y;
  {
    const CallScope scope(held.name());
    KeptResults kept(Keep::kProducts);
    const KeptResultsScope keeping(kept, KeptResultsScope::Mode::kNote);
    y = block.function.call({x})[0];
    bytes = bytes_kept(kept, {y.data()});
  }
  const bool wants_gradient = y.requires_grad();
  const Array result = y.data();
  const size_t with_graph = held.bytes();
  y = Variable();
  x = wants_gradient ? Variable(result) : Variable::constant(result);
  bytes.of(Keep::kEverything) = with_graph - held.bytes() + bytes.of(Keep::kNothing);
  return bytes;
}

struct Choice {
  std::vector<Keep> keep;
  size_t bytes = 0;
};

Choice choose(const std::vector<RecomputeBytes>& blocks, size_t budget) {
  Choice choice{std::vector<Keep>(blocks.size(), Keep::kNothing)};
  for (const RecomputeBytes& block : blocks) choice.bytes += block.of(Keep::kNothing);
  CATENA_CHECK(ValueError, choice.bytes <= budget, kPlan, ": the results of the ", blocks.size(),
               " blocks alone take ", choice.bytes, " bytes, the budget is ", budget,
               "; raise it to at least that, or take a smaller batch or fewer, larger blocks");
  for (const Keep more : {Keep::kAttention, Keep::kProducts, Keep::kEverything}) {
    for (size_t i = blocks.size(); i-- > 0;) {
      const size_t bytes = choice.bytes - blocks[i].of(choice.keep[i]) + blocks[i].of(more);
      if (bytes > budget) continue;
      choice.bytes = bytes;
      choice.keep[i] = more;
    }
  }
  return choice;
}

}  // namespace

// Settles what to keep. Where blocks have run to be measured: the numbers that each drew.
std::vector<RandomLog> RecomputePlan::settle(const std::vector<RecomputedBlock>& blocks,
                                             const Variable& input) {
  check_options(options_);
  if (!options_.budget) {
    kept_.assign(blocks.size(), options_.keep);
    return {};
  }
  const size_t input_bytes = size_t(input.data().nbytes());
  if (kept_.size() == blocks.size() && input_bytes <= input_bytes_) return {};
  std::vector<RandomLog> drawn(blocks.size());
  std::vector<RecomputeBytes> bytes;
  Variable x = input.requires_grad() ? Variable(input.data()) : Variable::constant(input.data());
  for (size_t i = 0; i < blocks.size(); ++i) bytes.push_back(measure(blocks[i], x, drawn[i]));
  Choice choice = choose(bytes, *options_.budget);
  kept_ = std::move(choice.keep);
  bytes_ = choice.bytes;
  input_bytes_ = input_bytes;
  return drawn;
}

Variable RecomputePlan::operator()(const std::vector<RecomputedBlock>& blocks,
                                   const VariableOperand& operand) {
  Variable h = operand.variable(kPlan);
  // Backward follows a repeated run at once, and frees nothing before.
  const bool keeps_all = !is_recording() || (options_.budget && is_repeated_forward());
  std::vector<RandomLog> drawn;
  if (!keeps_all) drawn = settle(blocks, h);
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::optional<RandomLogScope> same_numbers;
    if (!drawn.empty()) same_numbers.emplace(drawn[i], RandomLogScope::Mode::kRepeat);
    RecomputeOptions options{.keep = keeps_all ? Keep::kEverything : kept_[i]};
    options.offload = !keeps_all && options_.offload;
    h = recompute(blocks[i].function, options, Variables{h})[0];
  }
  return h;
}

}  // namespace catena::functions
