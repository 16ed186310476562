// Batches on the device where training happens: made ahead in pinned memory and copied on a side
// stream, or cut out of a data set that is on the device as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catena/datasets/dataset.h"
#include "catena/datasets/iterator.h"
#include "catena/datasets/scatter.h"

namespace catena::datasets {

// One rank's part of a global batch.
struct Batch {
  // One a column, (size(), ...), or what the iterator's Collate has made, on the iterator's device.
  // Without samples of this rank they have no rows, and a Collate other than pad_samples makes
  // none.
  Arrays arrays;
  int64_t global_count = 0;  // samples over all ranks
  double weight = 1;         // size() / global_count
  int64_t count = -1;        // samples of this rank; -1: as many as the first column has rows
  BatchPlace place = {};     // BatchIterator::place() behind this batch

  // Samples of this rank.
  int64_t size() const { return count >= 0 ? count : column(0).length(); }
  // The first and the second column; IndexError when the data set has no such one.
  const Array& x() const { return column(0); }
  const Array& t() const { return column(1); }
  const Array& column(size_t k) const {
    CATENA_CHECK(IndexError, count != 0 || !arrays.empty(), "Batch: column ", k,
                 " was asked for, but this rank has no samples in the batch, of which its collate "
                 "function makes no arrays; leave the batch out, or let no rank run out of samples "
                 "(.drop_last = true)");
    CATENA_CHECK(IndexError, k < arrays.size(), "Batch: column ", k, " was asked for",
                 k == 1 ? " (t(), the labels)" : "", ", but the data set has ", arrays.size(),
                 " column(s)");
    return arrays[k];
  }
};

// What a training loop pulls batches from. The position it reports is that of the batch handed out
// last, however far ahead batches are being made.
class BatchIterator {
 public:
  virtual ~BatchIterator() = default;
  BatchIterator(const BatchIterator&) = delete;
  BatchIterator& operator=(const BatchIterator&) = delete;

  // The next batch, or nothing when the order is finished. The arrays belong to the caller for
  // good; they are ready for work on the calling thread's current stream of device().
  virtual std::optional<Batch> next() = 0;

  // Where batches are, the samples of an epoch, and the place of the batch returned last:
  // completed epochs, whether it ended one, samples of the current epoch.
  Device device() const { return device_; }
  int64_t size() const { return size_; }
  int64_t epoch() const { return state_.epoch; }
  bool is_new_epoch() const { return is_new_epoch_; }
  int64_t position() const { return state_.position; }
  double epoch_detail() const { return double(epoch()) + double(position()) / double(size_); }
  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  int64_t batch_size() const { return batch_size_; }  // samples of a full batch, over all ranks
  // Whether epochs follow one another without end.
  bool repeats() const { return repeats_; }
  // The order of the samples and how far it has come. Ranks in which it differs do not train on the
  // same global batches.
  BatchPlace place() const { return {state_, batch_size_}; }
  // After set_state the next batch is the one that followed when state() was taken.
  const IteratorState& state() const { return state_; }
  virtual void set_state(const IteratorState& state) = 0;

 protected:
  BatchIterator(const DatasetPtr& dataset, const PositionIterator& order, Device device);
  // For orders whose batches are not all of one size but the last.
  void set_batches_per_epoch(int64_t batches) { batches_per_epoch_ = batches; }
  // For next() of derived classes: the position after the batch that it returns.
  void handed_out(const IteratorState& state, bool is_new_epoch) {
    state_ = state;
    is_new_epoch_ = is_new_epoch;
  }

 private:
  Device device_;
  int64_t size_, batches_per_epoch_, batch_size_;
  bool repeats_;
  IteratorState state_;
  bool is_new_epoch_ = false;
};

// How PrefetchIterator reads ahead.
struct PrefetchOptions {
  int depth = 2;  // batches made ahead, at least 2: one is copied while another is used
  // Whether a separate thread makes them; unless given, for GPUs only: on a CPU all cores compute
  // already. Worth it there for a data set whose gather() waits or works long.
  std::optional<bool> background = {};
  // How samples become the arrays of a batch. By default columns are taken as they are, and samples
  // of any shape are stacked by stack_samples. See collate.h.
  Collate collate = {};
};

// Reads ahead. For a GPU a separate thread gathers batches into pinned memory and copies them on
// its own stream; next() makes the current stream wait for the copy, never the host. An
// exception of the data set comes out of next(); the call after it tries the same batch again. Not
// for use by several threads at once.
class PrefetchIterator final : public BatchIterator {
 public:
  // Throws ValueError when the order is of another size than the data set, or depth is below 2.
  PrefetchIterator(DatasetPtr dataset, PositionIterator order, Device device, RankOf who = {},
                   const PrefetchOptions& options = {});
  ~PrefetchIterator() override;
  std::optional<Batch> next() override;
  void set_state(const IteratorState& state) override;

 private:
  class Worker;
  struct Item;
  std::optional<Batch> make_now();

  DatasetPtr dataset_;
  ScatteredIterator
      source_;  // of batches made by the caller's thread; else where the worker starts
  PrefetchOptions options_;
  bool background_;
  std::unique_ptr<Worker> worker_;  // null before the first next()
};

// Keeps the whole data set on the device (in the form of its batches: images as float32) and cuts
// batches out with take(): no host memory is touched. The order is that of PrefetchIterator.
// Batches of a sequential order are views of the data set: do not write to them. ValueError for
// data sets without columns.
class ResidentIterator final : public BatchIterator {
 public:
  ResidentIterator(const DatasetPtr& dataset, PositionIterator order, Device device,
                   RankOf who = {});
  std::optional<Batch> next() override;
  void set_state(const IteratorState& state) override;

  // The columns on the device, and the order of the current epoch there (int64, all ranks'
  // samples), for loops that replay a captured step and advance a cursor by themselves.
  const std::vector<Array>& columns() const { return columns_; }
  RankOf who() const { return who_; }
  Array order_of(int64_t epoch) const;
  // Goes past the next batch, for such loops.
  void skip();

 private:
  std::vector<Array> columns_;
  PositionIterator order_;
  RankOf who_;
  Array positions_;  // of positions_epoch_
  int64_t positions_epoch_ = -1;
};

}  // namespace catena::datasets
