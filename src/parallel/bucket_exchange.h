// Buckets of an optimizer's gradients: how they are cut, where they are whole, and what of them is
// on its way over the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "catena/array/array.h"
#include "catena/comm/communicator.h"
#include "catena/core/stream.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"
#include "catena/parallel/data_axes.h"
#include "catena/parallel/gradient_reducer.h"

namespace catena::parallel {

// The samples of this rank, of those of all ranks.
struct BatchShare {
  int64_t local = 0, global = 0;  // 0: not given
  bool is_given() const { return global > 0; }
  double weight() const { return is_given() ? double(local) / double(global) : 1; }
};

// Two slots that buckets take in turn, each of the size of the largest, so that a step asks for no
// memory, however far the host is ahead. Whoever writes into a slot does so behind the reduction
// that has read it, for which the stream waits and not the host.
class GradientSlots {
 public:
  // Makes slots of so many bytes, unless they are there.
  void prepare(Device device, int64_t bytes);
  // Memory for the gradients of a bucket that the current stream writes. Undefined where none fits,
  // and where somebody still holds what was in the slot.
  Array take(size_t bucket, int64_t elements, Dtype dtype);
  // The bucket is read until then; null: it was.
  void is_read_until(size_t bucket, const Event& end);

 private:
  struct Slot {
    Array memory;      // bytes
    StoragePtr taken;  // a part of it, which nobody but the slot holds when it is free
    Event end;
    uint64_t capture = 0;  // in which the event was recorded; 0: in none
  };
  static constexpr size_t kSlots = 2;
  uint64_t current_capture(const Slot& slot) const;

  Slot slots_[kSlots];
};

// When a bucket is reduced its owner decides, and in which order; see Round.
class BucketExchange {
 public:
  BucketExchange(const BatchRanks& ranks, const BucketOptions& options)
      : ranks_(ranks), options_(options) {}

  // After setup: cuts the buckets, and makes what scattered sums need.
  void attach(Optimizer& optimizer, int number);
  // Cuts them anew where the memory of gradients is another one. DeviceError as in setup.
  void update();
  // The arenas are about to be laid out anew.
  void layout_moves() { cut_for_.clear(); }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Of a parameter; nothing for those of others.
  std::optional<size_t> bucket_of(const ParameterState& parameter) const;

  // How this rank's gradients count from now on. Captured steps read it in their replays.
  void set_share(const BatchShare& share);
  const BatchShare& share() const { return share_; }

  // Whether a part is all that this rank keeps of some gradients between passes, which are added up
  // part by part then.
  bool adds_parts() const;
  // Whether the gradients of which parts were reduced are such parts still.
  bool keeps_parts() const;
  // They are open again: passes add to whole gradients, or, after set_parts_aside, to new ones.
  void reopen();
  void set_parts_aside();

  // Gives the gradients of a bucket one block, before a pass makes them elsewhere.
  void collect(size_t index);
  // Settles the gradients of a bucket that is complete. False if nothing is to be reduced: it is
  // empty, was reduced before, or, with `adding`, stays whole until the last pass.
  bool settle(size_t index, bool adding);

  // What goes into a reduction besides the bucket.
  struct With {
    bool is_mean = false;                // whatever the shares are
    bool has_sum = false;                // of passes before, to which the bucket is added
    Array factor;                        // of this rank's gradients, float64; undefined: 1
    StepAgreement* agreement = nullptr;  // travels along
    LossWeight* losses = nullptr;        // likewise
  };
  void reduce(size_t index, const With& with);
  // Another reduction of the bucket ends with the event.
  void is_started(size_t index, const Event& end);

  // Makes the current stream wait for all reductions, or for those of one arena.
  void wait();
  void wait_for(size_t arena) const;

 private:
  bool scatters(const optimizers::ParameterArena& arena) const;
  bool adds(const optimizers::ParameterArena& arena) const;
  bool goes_by_copies(const optimizers::ParameterArena& arena) const;
  comm::Reduce weighted(size_t arena, const Array& gradient) const;
  int64_t most_scattered() const;
  optimizers::ParameterArena& arena_of(size_t bucket) {
    return optimizer_->arena(buckets_[bucket].arena);
  }

  const BatchRanks ranks_;
  const BucketOptions options_;
  Optimizer* optimizer_ = nullptr;
  int number_ = 0;
  std::vector<Bucket> buckets_;
  std::unordered_map<const ParameterState*, size_t> bucket_of_;
  std::vector<const void*> cut_for_;  // gradient blocks the buckets were cut for
  GradientSlots whole_;               // where buckets are whole whose memory is then given up
  BatchShare share_;
  std::vector<Array> device_weights_;  // one for each arena on a GPU, in its dtype
  Event last_;                         // of the last bucket started
  std::vector<Event> last_of_arena_;   // likewise; null: none is on its way
};

}  // namespace catena::parallel
