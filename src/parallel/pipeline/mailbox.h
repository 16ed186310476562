// Mailbox of a step: parcels between the action that makes them and the one that takes them.
#pragma once

#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/core/memory.h"
#include "catena/core/stream.h"
#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Arrays on their way from one action to another. Those of gradients may be undefined.
struct Parcel {
  std::vector<Array> arrays;
  // Of what makes them, where another stream than its own uses them; null: nothing to wait for.
  Event ready;
  // With gradients: what the loss of the micro-batch counted, float64 of one element
  // (loss_counts.h); undefined: nothing is to be known.
  Array counted = {};
};

class Mailbox {
 public:
  // Forgets all parcels, and makes room for a step.
  void begin_step(int stages, int micro_batches) {
    stages_ = size_t(stages), micro_batches_ = size_t(micro_batches);
    parcels_.clear();
    parcels_.resize(4 * stages_ * micro_batches_);
  }
  // What is to be sent, or what a receive is to fill.
  Parcel& at(const Action& message) { return parcels_[index(message)]; }
  // What a receive has got, once, ready for the current stream of the device.
  Parcel take(const Action& receive, Device device) {
    Parcel parcel = std::exchange(at(receive), {});
    if (!parcel.ready) return parcel;
    const Stream stream = current_stream(device);
    stream.wait(parcel.ready);
    for (const Array& a : parcel.arrays)
      if (a.defined()) record_use(*a.storage(), stream);
    if (parcel.counted.defined()) record_use(*parcel.counted.storage(), stream);
    return parcel;
  }

 private:
  size_t index(const Action& message) const {
    const size_t kind = size_t(message.kind) - size_t(Kind::kSendOutput);
    return (kind * stages_ + size_t(message.stage)) * micro_batches_ + size_t(message.micro_batch);
  }

  size_t stages_ = 0, micro_batches_ = 0;
  std::vector<Parcel> parcels_;  // of each kind of message, stage and micro-batch
};

}  // namespace catena::parallel::pipeline
