// The step of training, captured once and replayed.
#include "catena/training/captured_updater.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "training/number_sums.h"

namespace catena::training {
namespace {

constexpr int64_t kEagerSteps = 3;

}  // namespace

CapturedUpdater::CapturedUpdater(datasets::ResidentIterator& batches, Optimizer& optimizer,
                                 parallel::MultiNodeOptimizer* ranks, Step step)
    : StandardUpdater(batches, std::move(step)),
      data_(batches),
      optimizer_(optimizer),
      ranks_(ranks),
      sums_(std::make_shared<NumberSums>()) {
  const Device device = data_.device();
  CATENA_CHECK(DeviceError, device.is_cuda(),
               "CapturedUpdater: CUDA graphs need a GPU, training runs on ", device);
  share_ = datasets::scatter(data_.batch_size(), data_.who());
  CATENA_CHECK(ValueError, share_.size() > 0, "CapturedUpdater: a batch of ", data_.batch_size(),
               " samples leaves none for rank ", data_.who().rank, " of ", data_.who().ranks,
               "; use larger batches or fewer ranks");
  order_ = empty({data_.size()}, {dtype::int64, device});
  cursor_ = zeros({}, {dtype::int64, device});
  offsets_ = arange(share_.begin, share_.end, 1, {dtype::int64, device});
}

CapturedUpdater::CapturedUpdater(datasets::ResidentIterator& batches, Optimizer& optimizer,
                                 Step step)
    : CapturedUpdater(batches, optimizer, nullptr, std::move(step)) {}
CapturedUpdater::CapturedUpdater(datasets::ResidentIterator& batches,
                                 parallel::MultiNodeOptimizer& optimizer, Step step)
    : CapturedUpdater(batches, optimizer.actual_optimizer(), &optimizer, std::move(step)) {}

// What is captured: the step on the batch at the cursor.
void CapturedUpdater::step_at_cursor() {
  const Array positions = take(order_, offsets_ + cursor_, 0, OutOfRange::kClip);
  datasets::Batch batch;
  for (const Array& column : data_.columns())
    batch.arrays.push_back(take(column, positions, 0, OutOfRange::kClip));
  batch.global_count = data_.batch_size();
  batch.weight = share_.weight;
  batch.place = data_.place();
  const Numbers numbers = run_step(batch);
  if (sums_->empty()) sums_->begin(numbers);
  sums_->add(numbers);
  cursor_ += data_.batch_size();
}

// The first step, a new epoch and a resumed run begin elsewhere than where the last step ended.
void CapturedUpdater::place_cursor() {
  const datasets::IteratorState& at = data_.state();
  if (order_epoch_ != at.epoch || order_seed_ != at.seed) order_.assign(data_.order_of(at.epoch));
  if (cursor_at_ != at.position) cursor_.fill(at.position);
  order_epoch_ = at.epoch;
  order_seed_ = at.seed;
  cursor_at_ = at.position;
}

void CapturedUpdater::replay() {
  // Replays read the weight on the device, which a shorter batch has set to its own.
  if (ranks_) {
    ranks_->set_replayed_weight(share_.size(), data_.batch_size());
    ranks_->set_batch_order(order_of(data_.place()));
  }
  if (!graph_.defined()) {
    optimizer_.prepare_for_capture();
    graph_ = cuda::Graph::capture(data_.device(), [this] { step_at_cursor(); });
  }
  graph_.launch();
}

void CapturedUpdater::update(Means& means) {
  const datasets::IteratorState& at = data_.state();
  const bool ended = !data_.repeats() && at.epoch > 0;  // which the eager step refuses
  if (ended || at.position + data_.batch_size() > data_.size())
    return StandardUpdater::update(means);
  place_cursor();
  if (eager_steps_ < kEagerSteps) {
    step_at_cursor();
    ++eager_steps_;
  } else {
    replay();
  }
  ++summed_;
  cursor_at_ += data_.batch_size();
  data_.skip();
}

void CapturedUpdater::settle(Means& means) {
  if (summed_ == 0) return;
  means.add_counted(sums_->means(double(summed_)), double(summed_ * share_.size()));
  sums_->clear();
  summed_ = 0;
}

}  // namespace catena::training
