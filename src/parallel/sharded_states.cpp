#include "catena/parallel/sharded_states.h"

#include <algorithm>
#include <utility>

#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/parallel/gradient_reducer.h"
#include "parallel/gathers/parameter_gathers.h"
#include "parallel/gathers/units.h"

namespace catena::parallel {
namespace {

BucketOptions uncut() {
  BucketOptions options;
  options.sharding = Sharding::kStates;
  options.first_bytes = options.bucket_bytes = options.last_bytes = 0;
  return options;
}

}  // namespace

ShardedStates::ShardedStates(const BatchRanks& ranks) : ShardedStates(ranks, uncut()) {}
ShardedStates::ShardedStates(const BatchRanks& ranks, const BucketOptions& options)
    : ranks_(ranks),
      comm_(ranks.shard()),
      options_(options),
      is_on_(options.sharding != Sharding::kAuto),
      gathers_(ParameterGathers::create(comm_, options)) {}
ShardedStates::~ShardedStates() = default;

// One rank has nothing to cut for, but norms of slices are to be sums over the same arenas.
optimizers::ArenaCuts ShardedStates::cuts() const {
  if (!is_on_ || (comm_.size() == 1 && options_.slices == 0)) return {};
  if (options_.sharding != Sharding::kParameters)
    return {{}, options_.first_bytes, options_.bucket_bytes, options_.last_bytes};
  return {[units = options_.units](const std::string& name) { return unit_of(name, units); }};
}

optimizers::Processes::Share ShardedStates::share() const {
  if (!is_on_) return {};
  return {comm_.rank(), comm_.size(), comm_.size() > 1 && options_.sharding >= Sharding::kGradients,
          gathers_units(comm_, options_),
          [this](const Array& whole) { ranks_.all().broadcast(whole, 0); }};
}

namespace {

// Of the smallest size that copies move: from this many blocks on, 128 MiB, steps were measured to
// be faster than with whole states.
constexpr int64_t kLeastBlocks = 8;

}  // namespace

bool ShardedStates::is_worthwhile(const Optimizer& optimizer, const Parameters& parameters) const {
  int64_t bytes = 0;
  for (const Parameter& p : parameters)
    if (itemsize(p.dtype()) <= 4) bytes += p.size() * int64_t(itemsize(p.dtype()));
  return comm::internals(comm_).moves_by_copies(size_t(bytes / kLeastBlocks)) &&
         optimizer.can_be_sharded();
}

void ShardedStates::before_setup(Optimizer& optimizer, const Parameters& parameters) {
  leave_last_setup();
  was_on_ = is_on_;
  if (options_.sharding != Sharding::kAuto) return;
  const auto here = int(is_worthwhile(optimizer, parameters));
  is_on_ = ranks_.all().all_reduce_value(here, comm::Reduction::kMin) == 1;
  if (is_on_ && ranks_.all().rank() == 0)
    logging::info("create_multi_node_optimizer: the states of the optimizer are spread over ",
                  comm_.size(),
                  " ranks, which makes Optimizer::state() collective; .sharding = Sharding::kNone "
                  "keeps them whole");
}

// Nobody brings the values of the last model any more.
void ShardedStates::leave_last_setup() {
  if (optimizer_ == nullptr) return;
  optimizer_->layout().in_place() ? gathers_->gather_all() : gathers_->finish();
}

void ShardedStates::after_setup(Optimizer& optimizer) {
  optimizer_ = is_on_ ? &optimizer : nullptr;
  loads_ = 0;
  lacks_a_load_ = false;
  if (!is_on_) return gathers_->detach();
  for (const auto& stage : optimizer.stages())
    if (const auto* reducer = dynamic_cast<const GradientReducer*>(stage.get()))
      number_ = reducer->number();
  gathers_->attach(optimizer, number_);
}

void ShardedStates::prepare_for_capture(Optimizer&) {
  if (is_on_) gathers_->prepare_for_capture();
}

void ShardedStates::run(optimizers::UpdateContext&) {
  if (is_on_) gathers_->after_rule();
}

void ShardedStates::discard(Optimizer&) {
  if (is_on_) gathers_->step_begins();
}

void ShardedStates::gather_parameters() {
  CATENA_CHECK(ValueError, optimizer_ != nullptr,
               "gather_parameters: the optimizer is not set up; call setup(model) first");
  CATENA_CHECK(ValueError, !cuda::is_capturing(comm_.device()),
               "gather_parameters: called while a graph is captured; call it before the capture or "
               "between replays");
  optimizer_->settle_layout();
  gathers_->gather_all();
}

bool ShardedStates::are_loaded_alike() {
  const auto& arenas = optimizer_->layout().arenas();
  const bool has_any = std::any_of(arenas.begin(), arenas.end(), [](const auto& arena) {
    return arena.master().defined() || !arena.states().empty();
  });
  if (!has_any) return true;
  const std::vector<int64_t> loads = ranks_.all().all_gather_object(loads_);
  const bool are_equal =
      std::all_of(loads.begin(), loads.end(), [&](int64_t count) { return count == loads[0]; });
  lacks_a_load_ = !are_equal || (lacks_a_load_ && loads[0] == 0);
  loads_ = 0;
  return !lacks_a_load_;
}

bool ShardedStates::gathers_in_use() const { return is_on_ && gathers_units(comm_, options_); }

int64_t ShardedStates::gathers() const { return gathers_->count(); }

// Sums over ranks ---------------------------------------------------------------------------------

Array ShardedStates::gather(const Array& part) {
  if (!is_on_) return {};
  const Array all = Array::uninitialized({part.size() * comm_.size()}, part.dtype(), part.device());
  comm_.all_gather_async(part, all, current_stream(part.device()),
                         {comm::TagKind::kStates, static_cast<uint16_t>(number_), 0});
  return all;
}

bool ShardedStates::has_parts_of_gradients() const {
  if (!is_on_) return false;
  const auto& arenas = optimizer_->layout().arenas();
  return std::any_of(arenas.begin(), arenas.end(),
                     [](const auto& arena) { return !arena.has_whole_gradient(); });
}

// Each has the sums of squares of whole parameters when they were summed over parts.
void ShardedStates::sum(const Arrays& arrays, Sum of) {
  const bool differ = of == Sum::kParts ? is_on_ : of != Sum::kSquares && has_parts_of_gradients();
  if (!differ) return;
  for (const Array& one : arrays) comm_.all_reduce(one, {}, one);
}

// Gradients of which parts were kept are gone: they are laid out as this rank had them.
void ShardedStates::before_layout_moves(Optimizer& optimizer) {
  if (!is_on_) return;
  for (size_t i = 0; i < optimizer.layout().arenas().size(); ++i) {
    optimizer.arena(i).reopen_gradient();
    optimizer.arena(i).collect_gradient();
  }
  gathers_->layout_moves();
}

namespace {

// Values are where the rule writes them.
class BeforeRule final : public optimizers::UpdateStage {
 public:
  explicit BeforeRule(std::shared_ptr<ShardedStates> states, ParameterGathers& gathers)
      : states_(std::move(states)), gathers_(gathers) {}
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "own parameters"; }
  bool reads_gradients(const Optimizer&) const override { return false; }
  void run(optimizers::UpdateContext&) override {
    if (states_->is_on()) gathers_.before_rule();
  }

 private:
  std::shared_ptr<ShardedStates> states_;  // keeps gathers_
  ParameterGathers& gathers_;
};

}  // namespace

std::shared_ptr<optimizers::UpdateStage> ShardedStates::before_rule(
    const std::shared_ptr<ShardedStates>& states) {
  return std::make_shared<BeforeRule>(states, *states->gathers_);
}

void ShardedStates::give_up() {
  if (optimizer_ == nullptr) return;
  gathers_->finish();
  for (size_t i = 0; i < optimizer_->layout().arenas().size(); ++i)
    optimizer_->arena(i).reopen_gradient();
  for (const Parameter& p : optimizer_->layout().parameters())
    if (!p.state()->gradient_memory().defined()) p.zero_grad();
}

}  // namespace catena::parallel
