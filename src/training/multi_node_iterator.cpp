#include "catena/training/multi_node_iterator.h"

#include <bit>
#include <exception>
#include <string>

#include "catena/comm/internals.h"
#include "catena/training/scatter_dataset.h"
#include "comm/agreement.h"

namespace catena::training {
namespace {

using datasets::Batch;
using datasets::IteratorState;

constexpr const char* kIterator = "multi-node iterator";

void check_root(const char* who, const Communicator& comm, int root) {
  CATENA_CHECK(ValueError, root >= 0 && root < comm.size(), who, ": rank ", root,
               " is not a rank of this communicator, expected 0 to ", comm.size() - 1);
}

datasets::PositionIterator order_like(int64_t samples, int64_t batch, bool repeats) {
  return {std::make_shared<datasets::SequentialOrder>(samples), batch, {.repeat = repeats}};
}

// A batch as numbers: where it is in the data, then dtype and shape of each array.
class Header {
 public:
  explicit Header(std::vector<int64_t> numbers = {}) : numbers_(std::move(numbers)) {}
  void put(int64_t number) { numbers_.push_back(number); }
  int64_t take() { return numbers_.at(next_++); }
  const std::vector<int64_t>& numbers() const { return numbers_; }

  void put(const IteratorState& s) {
    for (const int64_t n : {s.size, std::bit_cast<int64_t>(s.seed), s.epoch, s.position}) put(n);
  }
  IteratorState take_state() {
    IteratorState s;
    s.size = take();
    s.seed = std::bit_cast<uint64_t>(take());
    s.epoch = take();
    s.position = take();
    return s;
  }
  void put_form(const Array& a) {
    put(int64_t(a.dtype()));
    put(a.ndim());
    for (const int64_t extent : a.shape()) put(extent);
  }
  Array take_form(Device device) {
    const auto dtype = Dtype(take());
    Shape shape(size_t(take()), 0);
    for (int64_t& extent : shape) extent = take();
    return Array::uninitialized(shape, dtype, device);
  }

 private:
  std::vector<int64_t> numbers_;
  size_t next_ = 0;
};

enum Kind : int64_t { kBatch, kEnd, kFailed };

}  // namespace

// What ranks without an iterator must know of it.
struct MultiNodeIterator::Form {
  int64_t has, samples, batch, repeats, batches_per_epoch;

  static Form of(datasets::BatchIterator* b) {
    if (b == nullptr) return {0, 1, 1, 0, 1};
    return {1, b->size(), b->batch_size(), b->repeats(), b->batches_per_epoch()};
  }
  static Form of_master(datasets::BatchIterator* batches, const CommunicatorPtr& comm, int master) {
    if (comm == nullptr) {
      CATENA_CHECK(ValueError, batches != nullptr, kIterator, ": no iterator was given");
      return of(batches);
    }
    check_root(kIterator, *comm, master);
    const comm::PurposeScope purpose(comm.get(), kIterator);
    const auto all = comm->all_gather_object(of(batches));
    for (size_t r = 0; r < all.size(); ++r)
      CATENA_CHECK(ValueError, (all[r].has != 0) == (int(r) == master), kIterator, ": rank ", r,
                   all[r].has ? " has an iterator and is not" : " has no iterator and is",
                   " the master; give one on rank ", master, ", and null on the others");
    return all[size_t(master)];
  }
};

MultiNodeIterator::MultiNodeIterator(datasets::BatchIterator* batches, const CommunicatorPtr& comm,
                                     int master)
    : MultiNodeIterator(batches, comm, master, Form::of_master(batches, comm, master)) {}

MultiNodeIterator::MultiNodeIterator(datasets::BatchIterator* batches, const CommunicatorPtr& comm,
                                     int master, const Form& form)
    : BatchIterator(create_empty_dataset(form.samples),
                    order_like(form.samples, form.batch, form.repeats != 0),
                    comm ? comm->device() : batches->device()),
      batches_(batches),
      comm_(comm),
      master_(master) {
  set_batches_per_epoch(form.batches_per_epoch);
  if (batches_ == nullptr) return;
  CATENA_CHECK(DeviceError, batches_->device() == device(), kIterator, ": the batches are made on ",
               batches_->device(), ", the communicator of this rank is on ", device(),
               "; make them there");
}

// The master's next batch, and what the others must know of it.
std::vector<int64_t> MultiNodeIterator::next_header(std::optional<Batch>& batch) {
  Header header;
  batch = batches_->next();
  header.put(batch ? kBatch : kEnd);
  header.put(batches_->state());
  header.put(batches_->is_new_epoch());
  if (!batch) return header.numbers();
  for (const int64_t n : {batch->size(), batch->global_count, batch->place.batch,
                          std::bit_cast<int64_t>(batch->weight), int64_t(batch->arrays.size())})
    header.put(n);
  header.put(batch->place.after);
  for (const Array& a : batch->arrays) header.put_form(a);
  return header.numbers();
}

// The same on all ranks; throws on all what the master's iterator throws.
std::vector<int64_t> MultiNodeIterator::shared_header(std::optional<Batch>& batch) {
  if (comm_ == nullptr || comm_->size() == 1) return next_header(batch);
  std::vector<int64_t> numbers;
  std::exception_ptr error;
  std::string text;
  try {
    if (is_master()) numbers = next_header(batch);
  } catch (const std::exception& e) {
    error = std::current_exception();
    text = e.what();
    numbers = {kFailed};
  }
  const comm::PurposeScope purpose(comm_.get(), kIterator);
  numbers = comm_->broadcast_object(numbers, master_);
  if (numbers.at(0) != kFailed) return numbers;
  text = comm_->broadcast_object(text, master_);
  if (error) std::rethrow_exception(error);
  fail<ValueError>(kIterator, ": the iterator of rank ", master_, " failed: ", text);
}

std::optional<Batch> MultiNodeIterator::next() {
  std::optional<Batch> batch;
  Header header(shared_header(batch));
  const bool has = header.take() == kBatch;
  const IteratorState state = header.take_state();
  handed_out(state, header.take() != 0);
  if (!has) return {};
  if (!is_master()) {
    batch.emplace();
    batch->count = header.take();
    batch->global_count = header.take();
    batch->place.batch = header.take();
    batch->weight = std::bit_cast<double>(header.take());
    const int64_t arrays = header.take();
    batch->place.after = header.take_state();
    for (int64_t k = 0; k < arrays; ++k) batch->arrays.push_back(header.take_form(device()));
  }
  if (comm_ && comm_->size() > 1) {
    const comm::PurposeScope purpose(comm_.get(), kIterator);
    for (const Array& a : batch->arrays) comm_->broadcast(a, master_);
  }
  return batch;
}

void MultiNodeIterator::set_state(const IteratorState& state) {
  if (is_master()) batches_->set_state(state);
  handed_out(state, state.position == 0 && state.epoch > 0);
}

// The same order on all ranks --------------------------------------------------------------------

namespace {

void require_alike(const char* who, const comm::Agreement& agreement, Communicator& comm,
                   const char* advice) {
  if (const auto difference = agreement.compare(comm))
    fail<ValueError>(who, ": ", difference->text(), advice);
}

// The state of the root, in whose size and batches all ranks agree.
IteratorState root_state(const char* who, const IteratorState& state, int64_t batch,
                         Communicator& comm, int root) {
  check_root(who, comm, root);
  const comm::PurposeScope purpose(&comm, who);
  const auto agreement = comm::Agreement()
                             .add("the number of samples in an epoch", state.size)
                             .add("the batch size", batch);
  require_alike(who, agreement, comm,
                "; one order needs data sets of one size, and batches of one size");
  return comm.broadcast_object(state, root);
}

// FNV-1a over positions.
uint64_t digest_of(const Array& positions) {
  uint64_t hash = 1469598103934665603u;
  for (const int64_t position : positions.to_vector<int64_t>())
    hash = (hash ^ uint64_t(position)) * 1099511628211u;
  return hash;
}

}  // namespace

datasets::PositionIterator create_synchronized_iterator(datasets::PositionIterator iterator,
                                                        const CommunicatorPtr& comm, int root) {
  constexpr const char* kName = "create_synchronized_iterator";
  if (comm == nullptr) return iterator;
  iterator.set_state(root_state(kName, iterator.state(), iterator.batch(), *comm, root));
  const comm::PurposeScope purpose(comm.get(), kName);
  const IteratorState& state = iterator.state();
  const uint64_t digest = digest_of(iterator.order().of_epoch(state.seed, state.epoch));
  require_alike(kName, comm::Agreement().add_digest("the order of one seed", digest), *comm,
                "; give all ranks the same kind of iterator (all shuffled, or none)");
  return iterator;
}

void synchronize_iterator(datasets::BatchIterator& batches, const CommunicatorPtr& comm, int root) {
  if (comm == nullptr) return;
  batches.set_state(
      root_state("synchronize_iterator", batches.state(), batches.batch_size(), *comm, root));
}

}  // namespace catena::training
