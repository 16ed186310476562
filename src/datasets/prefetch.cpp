#include "catena/datasets/prefetch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "catena/core/backend.h"
#include "catena/core/memory.h"
#include "catena/core/stream.h"
#include "catena/core/trace.h"

namespace catena::datasets {
namespace {

constexpr size_t kAlignment = 256;  // of a column in the block of a batch

// The places of a batch's columns in one block of memory, so that one copy moves them all.
struct Layout {
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  std::vector<size_t> offsets;
  size_t bytes = 0;

  Layout(const Dataset& dataset, int64_t rows) {
    for (const auto& column : dataset.columns()) {
      Shape shape = column.shape;
      shape.insert(shape.begin(), rows);
      add(shape, column.dtype);
    }
  }
  explicit Layout(const Arrays& like) {
    for (const Array& a : like) add(a.shape(), a.dtype());
  }
  void add(const Shape& shape, Dtype dtype) {
    shapes.push_back(shape);
    dtypes.push_back(dtype);
    offsets.push_back(bytes);
    const size_t size = static_cast<size_t>(element_count(shape)) * itemsize(dtype);
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::vector<Array> arrays(const StoragePtr& storage) const {
    std::vector<Array> result;
    for (size_t k = 0; k < shapes.size(); ++k) {
      const Strides strides =
          contiguous_strides(shapes[k], static_cast<int64_t>(itemsize(dtypes[k])));
      result.push_back(Array::from_storage(storage, static_cast<int64_t>(offsets[k]), shapes[k],
                                           strides, dtypes[k]));
    }
    return result;
  }
};

void fill_counts(Batch& batch, const ScatteredIterator::Part& part) {
  batch.count = static_cast<int64_t>(part.positions.size());
  batch.global_count = part.global_count;
  batch.weight = part.weight;
}

}  // namespace

BatchIterator::BatchIterator(const DatasetPtr& dataset, const PositionIterator& order,
                             Device device)
    : device_(device),
      size_(order.size()),
      batches_per_epoch_(order.batches_per_epoch()),
      batch_size_(order.batch()),
      repeats_(order.repeats()),
      state_(order.state()),
      is_new_epoch_(order.is_new_epoch()) {
  CATENA_CHECK(ValueError, dataset != nullptr, "batch iterator: no data set was given");
  const int64_t expected = order.order().dataset_size();
  CATENA_CHECK(ValueError, dataset->size() == expected, "batch iterator: the data set has ",
               dataset->size(), " samples, the order ", expected);
  require_device(device);
}

// What the worker hands over.
struct PrefetchIterator::Item {
  std::optional<Batch> batch;  // nothing: the order is finished
  StoragePtr block;            // device memory behind the batch; null on the CPU
  Event copied;
  IteratorState state;  // after this batch
  bool is_new_epoch = false;
  std::exception_ptr error;
};

// The thread that makes batches ahead, at most `depth` that were not taken yet.
class PrefetchIterator::Worker {
 public:
  Worker(DatasetPtr dataset, ScatteredIterator source, Device device,
         const PrefetchOptions& options)
      : dataset_(std::move(dataset)),
        source_(std::move(source)),
        device_(device),
        depth_(static_cast<size_t>(options.depth)),
        collate_(options.collate),
        thread_([this] { run(); }) {}

  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Item take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty(); });
    const bool last = !ready_.front().batch;  // stays, for those who ask again
    Item item = ready_.front();
    if (!last) ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return item;
  }

 private:
  void run() {
    tracing::name_thread("batches ahead");
    try {
      DeviceScope on_device(device_);
      if (device_.is_cpu()) {
        loop([this](Item& item, const ScatteredIterator::Part& part) {
          item.batch->arrays = dataset_->batch(part.positions, device_, collate_);
        });
      } else {
        run_on_gpu();
      }
    } catch (...) {
      Item item;
      item.error = std::current_exception();
      put(std::move(item));
    }
  }

  void run_on_gpu() {
    const Stream side = Stream::create(device_);
    StreamScope on_side(side);
    const int64_t most = scatter(source_.order().batch(), {0, source_.who().ranks}).size();
    std::vector<Slot> slots(depth_);
    for (Slot& slot : slots) slot.reserve(Layout(*dataset_, most).bytes);
    size_t turn = 0;
    try {
      loop([&](Item& item, const ScatteredIterator::Part& part) {
        make_on_gpu(item, part, slots[turn++ % slots.size()], side);
      });
    } catch (...) {
      side.synchronize();
      throw;
    }
    side.synchronize();  // copies still read the pinned blocks
  }

  struct Slot {
    StoragePtr pinned;
    size_t bytes = 0;
    Event copied;  // of the copy that read it last

    void reserve(size_t needed) {
      if (pinned && needed <= bytes) return;
      pinned = allocate_pinned(cpu(0), needed);
      bytes = needed;
    }
  };
  void make_on_gpu(Item& item, const ScatteredIterator::Part& part, Slot& slot,
                   const Stream& side) {
    const bool in_place = dataset_->has_columns() && !collate_;
    const Arrays made = in_place ? Arrays() : dataset_->batch(part.positions, cpu(0), collate_);
    const Layout layout =
        in_place ? Layout(*dataset_, static_cast<int64_t>(part.positions.size())) : Layout(made);
    if (slot.copied) slot.copied.synchronize();
    slot.reserve(layout.bytes);
    const Arrays pinned = layout.arrays(slot.pinned);
    if (in_place) dataset_->gather(part.positions, pinned);
    for (size_t k = 0; k < made.size(); ++k) pinned[k].assign(made[k]);
    item.block =
        allocate(device_, layout.bytes);  // returns to the side stream when the user drops it
    if (layout.bytes > 0) {
      backend(device_.type())
          .copy_bytes(item.block->data, device_, slot.pinned->data, cpu(0), layout.bytes, side);
    }
    item.copied = side.record();
    slot.copied = item.copied;
    item.batch->arrays = layout.arrays(item.block);
  }

  // Calls make(item, part) batch after batch until the order ends or the iterator goes away.
  template <class Make>
  void loop(const Make& make) {
    while (true) {
      const ScatteredIterator::Part part = source_.next();
      Item item;
      if (part.global_count > 0) {
        item.batch.emplace();
        fill_counts(*item.batch, part);
        make(item, part);
      }
      item.state = source_.order().state();
      item.is_new_epoch = source_.order().is_new_epoch();
      const bool last = !item.batch;
      if (!put(std::move(item)) || last) return;
    }
  }

  // Waits for room; false when the iterator goes away.
  bool put(Item item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || ready_.size() < depth_; });
    if (stop_) return false;
    ready_.push_back(std::move(item));
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  DatasetPtr dataset_;
  ScatteredIterator source_;
  Device device_;
  size_t depth_;
  Collate collate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

PrefetchIterator::PrefetchIterator(DatasetPtr dataset, PositionIterator order, Device device,
                                   RankOf who, const PrefetchOptions& options)
    : BatchIterator(dataset, order, device),
      dataset_(std::move(dataset)),
      source_(std::move(order), who),
      options_(options),
      background_(options.background.value_or(!device.is_cpu()) || !device.is_cpu()) {
  CATENA_CHECK(ValueError, options.depth >= 2, "PrefetchIterator: depth is ", options.depth,
               ", expected at least 2");
}

PrefetchIterator::~PrefetchIterator() = default;

std::optional<Batch> PrefetchIterator::make_now() {
  const ScatteredIterator::Part part = source_.next();
  if (part.global_count == 0) return {};
  Batch batch;
  try {
    batch.arrays = dataset_->batch(part.positions, device(), options_.collate);
  } catch (...) {
    source_.set_state(state());  // a later call tries the same batch again
    throw;
  }
  fill_counts(batch, part);
  handed_out(source_.order().state(), source_.order().is_new_epoch());
  batch.place = place();
  return batch;
}

std::optional<Batch> PrefetchIterator::next() {
  const tracing::Range range("next batch", tracing::Category::kData);
  if (!background_) return make_now();
  if (!worker_) worker_ = std::make_unique<Worker>(dataset_, source_, device(), options_);
  Item item = worker_->take();
  if (item.error) {
    set_state(state());  // a later call tries the same batch again
    std::rethrow_exception(item.error);
  }
  if (!item.batch) return {};
  if (item.block) {
    const Stream stream = current_stream(device());
    stream.wait(item.copied);
    record_use(*item.block, stream);
  }
  handed_out(item.state, item.is_new_epoch);
  item.batch->place = place();
  return std::move(item.batch);
}

void PrefetchIterator::set_state(const IteratorState& state) {
  worker_.reset();
  source_.set_state(state);
  handed_out(source_.order().state(), source_.order().is_new_epoch());
}

}  // namespace catena::datasets
