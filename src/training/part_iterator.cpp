#include "catena/training/part_iterator.h"

#include <algorithm>

#include "catena/array/indexing.h"
#include "catena/comm/internals.h"
#include "catena/training/scatter_dataset.h"
#include "comm/agreement.h"

namespace catena::training {
namespace {

using datasets::Arrays;
using datasets::Batch;
using datasets::IteratorState;

constexpr const char* kPartIterator = "PartIterator";

datasets::PositionIterator order_of(int64_t samples, int64_t batch, const PartOptions& options) {
  datasets::OrderPtr order;
  if (options.shuffle)
    order = std::make_shared<datasets::ShuffledOrder>(samples);
  else
    order = std::make_shared<datasets::SequentialOrder>(samples);
  return {order, batch, {.repeat = options.repeat}, options.seed};
}

}  // namespace

// The parts of all ranks.
struct PartIterator::Plan {
  int64_t batch, samples = 0;
  std::vector<int64_t> begins{0};
  int ranks = 1;

  // Of the numbers of samples of all parts.
  Plan(int64_t batch_size, const std::vector<int64_t>& parts)
      : batch(batch_size), ranks(int(parts.size())) {
    int64_t longest = 0;
    for (const int64_t part : parts) {
      samples += part;
      longest = std::max(longest, part);
    }
    CATENA_CHECK(ValueError, batch > 0, kPartIterator, ": the batch size is ", batch,
                 ", expected at least 1");
    CATENA_CHECK(ValueError, samples > 0, kPartIterator, ": the parts of all ranks are empty");
    for (int64_t begin = 0; begin < longest; begin += batch) {
      int64_t of_all = 0;
      for (const int64_t part : parts) of_all += std::clamp<int64_t>(part - begin, 0, batch);
      begins.push_back(begins.back() + of_all);
    }
  }
};

namespace {

std::vector<int64_t> parts_of_all(const datasets::DatasetPtr& part, int64_t batch,
                                  const CommunicatorPtr& comm, const PartOptions& options) {
  CATENA_CHECK(ValueError, part != nullptr, kPartIterator,
               ": no part was given; a rank without samples gives an empty one");
  if (comm == nullptr) return {part->size()};
  const comm::PurposeScope purpose(comm.get(), kPartIterator);
  const auto difference = comm::Agreement()
                              .add("the batch size", batch)
                              .add(".seed", options.seed)
                              .add(".shuffle", options.shuffle)
                              .add(".repeat", options.repeat)
                              .compare(*comm);
  if (difference)
    fail<ValueError>(kPartIterator, ": ", difference->text(), "; all ranks must give the same");
  return comm->all_gather_object(part->size());
}

}  // namespace

PartIterator::PartIterator(datasets::DatasetPtr part, int64_t batch, Device device,
                           const CommunicatorPtr& comm, const PartOptions& options)
    : PartIterator(part, device, Plan(batch, parts_of_all(part, batch, comm, options)), options) {}

PartIterator::PartIterator(datasets::DatasetPtr part, Device device, const Plan& plan,
                           const PartOptions& options)
    : BatchIterator(create_empty_dataset(plan.samples),
                    order_of(plan.samples, plan.batch * plan.ranks, options), device),
      part_(std::move(part)),
      batch_(plan.batch),
      begins_(plan.begins) {
  set_batches_per_epoch(int64_t(begins_.size()) - 1);
  if (part_->size() > 0)
    own_ = std::make_unique<datasets::PrefetchIterator>(
        part_, order_of(part_->size(), batch_, options), device, datasets::RankOf(),
        options.prefetch);
}

namespace {

// Arrays of no samples. Where samples are of any shape the first one says theirs; a part without
// samples has no arrays then.
datasets::Arrays empty_columns(const datasets::Dataset& part) {
  if (part.has_columns() || part.size() == 0) return part.batch({});
  const int64_t first[] = {0};
  datasets::Arrays columns;
  for (const Array& column : part.batch(first)) columns.push_back(column(Slice(0, 0)));
  return columns;
}

}  // namespace

// The samples of this rank in the next batch of the epoch.
std::optional<Batch> PartIterator::own_batch() {
  if (own_ && int64_t(next_) * batch_ < part_->size()) return own_->next();
  Batch none;
  for (const Array& column : empty_columns(*part_)) none.arrays.push_back(column.to(device()));
  none.count = 0;
  return none;
}

std::optional<Batch> PartIterator::next() {
  if (!repeats() && epoch() > 0) return {};
  std::optional<Batch> batch = own_batch();
  batch->global_count = begins_[next_ + 1] - begins_[next_];
  batch->weight = double(batch->size()) / double(batch->global_count);
  IteratorState after = state();
  after.position = begins_[++next_];
  const bool ends = next_ + 1 == begins_.size();
  if (ends) {
    after.position = 0;
    ++after.epoch;
    next_ = 0;
  }
  handed_out(after, ends);
  batch->place = place();
  return batch;
}

void PartIterator::set_state(const IteratorState& state) {
  const auto at = std::find(begins_.begin(), begins_.end() - 1, state.position);
  CATENA_CHECK(ValueError, state.size == size() && at != begins_.end() - 1, kPartIterator,
               ": the saved state (position ", state.position, " of ", state.size,
               " samples) is not between two batches of these parts of ", size(),
               " samples; resume with the data, the ranks and the batch size of the run before");
  next_ = size_t(at - begins_.begin());
  if (own_) {
    const int64_t own = int64_t(next_) * batch_;
    const bool ended = own >= part_->size();
    own_->set_state({part_->size(), state.seed, state.epoch + (ended ? 1 : 0), ended ? 0 : own});
  }
  handed_out(state, state.position == 0 && state.epoch > 0);
}

}  // namespace catena::training
