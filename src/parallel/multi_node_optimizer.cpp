#include "catena/parallel/multi_node_optimizer.h"

#include <memory>

#include "catena/comm/communicator.h"
#include "catena/comm/internals.h"
#include "catena/core/log.h"
#include "catena/optimizers/arena_memory.h"
#include "catena/parallel/persistents.h"
#include "slice_run.h"
#include "synchronised_layers.h"

namespace catena::parallel {
namespace {

// Arenas in memory of the communicator, in which its collectives are fastest. Data and gradients
// are exchanged, and come from the communicator if it has memory to give; all else, and these
// otherwise, comes from the pools.
class SharedArenas : public optimizers::ArenaMemory {
 public:
  explicit SharedArenas(Communicator& comm) : comm_(comm.weak_from_this()) {}
  Array allocate(optimizers::ArenaBlock block, int64_t elements, Dtype dtype,
                 Device device) override {
    using optimizers::ArenaBlock;
    const CommunicatorPtr comm = comm_.lock();
    const bool is_exchanged = block == ArenaBlock::kData || block == ArenaBlock::kGradient;
    if (comm && is_exchanged && device == comm->device()) {
      const auto size = int64_t(itemsize(dtype));
      const Shape shape{elements};
      const StoragePtr storage = comm::internals(*comm).allocate_shared(size_t(elements * size));
      if (storage)
        return Array::from_storage(storage, 0, shape, contiguous_strides(shape, size), dtype);
    }
    return Array::uninitialized({elements}, dtype, device);
  }

 private:
  // Optimizers may outlive it; a communicator that nobody shares is not used.
  std::weak_ptr<Communicator> comm_;
};

// Whether setup may choose to spread states: alike on all ranks.
bool may_spread(const BatchRanks& ranks, const BucketOptions& options) {
  if (ranks.shard().size() == 1 || options.slices > 0) return false;
  // Not all groups need have copy engines.
  return ranks.across() != nullptr ||
         comm::internals(ranks.shard()).moves_by_copies(size_t(options.bucket_bytes));
}

}  // namespace

MultiNodeOptimizer::MultiNodeOptimizer(Optimizer& optimizer, const BatchRanks& ranks,
                                       const BucketOptions& options)
    : optimizer_(&optimizer), reducer_(std::make_shared<GradientReducer>(ranks, options)) {
  for (const auto& stage : optimizer.stages())
    CATENA_CHECK(
        ValueError, stage->phase() != optimizers::UpdatePhase::kReduce,
        "create_multi_node_optimizer: the optimizer belongs to a multi-node optimizer already");
  CATENA_CHECK(
      ValueError, !optimizer.is_set_up() || !optimizer.is_sharded(),
      "create_multi_node_optimizer: the states of the optimizer were spread over ranks by "
      "a multi-node optimizer that is gone; make a new optimizer, and load what was saved");
  optimizer.add_stage(reducer_);
  try {
    add_sharding(ranks, options);
  } catch (...) {
    optimizer.remove_stage(*reducer_);
    throw;
  }
}

void MultiNodeOptimizer::add_sharding(const BatchRanks& ranks, const BucketOptions& options) {
  Optimizer& optimizer = *optimizer_;
  Communicator& comm = options.sharding == Sharding::kNone ? ranks.all() : ranks.shard();
  const bool may_choose = !optimizer.is_set_up() && !optimizer.has_memory();
  // Sharding that lets blocks go in each step would ask all ranks for memory in each step.
  const bool keeps_blocks = options.sharding < Sharding::kGradients;
  if (comm.device().is_cuda() && keeps_blocks && may_choose)
    optimizer.set_memory(std::make_shared<SharedArenas>(comm));
  if (options.sharding == Sharding::kNone) return;
  if (options.sharding == Sharding::kAuto && !(may_choose && may_spread(ranks, options))) return;
  sharded_ = optimizer.add_stage(std::make_shared<ShardedStates>(ranks, options));
  if (options.gather_ahead || options.sharding == Sharding::kParameters)
    before_rule_ = optimizer.add_stage(ShardedStates::before_rule(sharded_));
}

MultiNodeOptimizer::MultiNodeOptimizer(std::unique_ptr<Optimizer> optimizer,
                                       const BatchRanks& ranks, const BucketOptions& options)
    : MultiNodeOptimizer(*optimizer, ranks, options) {
  owned_ = std::move(optimizer);
}

MultiNodeOptimizer::~MultiNodeOptimizer() {
  if (!reducer_) return;  // after a move
  if (sharded_) {
    try {
      sharded_->give_up();
    } catch (const Error& error) {
      logging::warning("~MultiNodeOptimizer: ", error.what());
    }
    optimizer_->remove_stage(*sharded_);
  }
  if (before_rule_) optimizer_->remove_stage(*before_rule_);
  optimizer_->remove_stage(*reducer_);
}

void MultiNodeOptimizer::setup(Parameterized& model) {
  reducer_->check_options();  // before a rank refuses what another has not asked for
  CATENA_CHECK(ValueError, slice_count() == 0 || !has_synchronised_layer(model),
               "setup: the model has a SyncBatchNormalization, whose results depend on the number "
               "of ranks with slices; use BatchNormalization, which normalizes each slice");
  optimizer_->setup(model);
}

void MultiNodeOptimizer::setup(const Parameters& parameters) { optimizer_->setup(parameters); }

void MultiNodeOptimizer::set_batch_weight(int64_t n_local, int64_t n_global) {
  CATENA_CHECK(ValueError, slice_count() == 0,
               "set_batch_weight: the optimizer has .slices = ", slice_count(),
               ", whose loop weighs them: call slices(n_local, n_global) instead");
  reducer_->set_batch_weight(n_local, n_global);
}

BatchSlices MultiNodeOptimizer::slices(int64_t n_local, int64_t n_global) {
  reducer_->set_batch_weight(n_local, n_global);
  return BatchSlices(reducer_->slice_run(), n_local, n_global);
}

int MultiNodeOptimizer::slice_count() const {
  return reducer_->slice_run() ? reducer_->slice_run()->slices() : 0;
}

void MultiNodeOptimizer::broadcast_state() {
  optimizer_->settle_layout();
  CATENA_CHECK(ValueError, !sharded() || sharded_->are_loaded_alike(),
               "broadcast_state: the optimizer's state was not loaded equally often on all ranks. "
               "The states are spread over the ranks, and each keeps its part of what it is given: "
               "call load_state() on all ranks, or read the file with from_rank_0()");
  gather_parameters();
  for (const auto& arena : optimizer_->layout().arenas())
    comm().broadcast(arena.data().part({0, arena.size()}), 0);
  broadcast_persistents(optimizer_->persistents(), comm());
  const NamedArrays own = optimizer_->state();
  std::map<std::string, Array> state;
  for (const auto& [name, array] : comm().broadcast_object(own)) state[name] = array;
  optimizer_->load_state(state);
  reducer_->check_state("broadcast_state");
}

void MultiNodeOptimizer::check_state() {
  if (optimizer_->is_set_up()) gather_parameters();
  reducer_->check_state("check_state");
}

void MultiNodeOptimizer::average_persistents() {
  if (optimizer_->is_set_up()) gather_parameters();
  parallel::average_persistents(optimizer_->persistents(), &comm());
}

}  // namespace catena::parallel
