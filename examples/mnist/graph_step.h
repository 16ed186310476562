// The training step as one CUDA graph: fetching the batch, forward, backward and update.
#pragma once

#include <functional>

#include "catena/core/graph.h"
#include "catena/datasets/prefetch.h"
#include "catena/training/evaluator.h"
#include "trainer.h"

namespace mnist {

// Everything a replay must advance lies on the device: the cursor into the epoch's order, the sums
// of loss and accuracy, and what the optimizer keeps. A batch that is shorter than the others (when
// the batch size does not divide the data) runs eagerly.
class GraphStep {
 public:
  // Throws DeviceError unless the program's device is a GPU.
  GraphStep(Program& program, catena::datasets::ResidentIterator& data, int64_t batch);

  void one_epoch(int64_t epoch, catena::training::Means& means,
                 const std::function<void(int64_t done)>& progress);

 private:
  void body();
  void prepare(int64_t epoch);

  Program& program_;
  catena::datasets::ResidentIterator& data_;
  int64_t batch_;
  catena::datasets::Share share_;  // this rank's part of a full batch
  catena::Array order_, cursor_, offsets_, loss_sum_, accuracy_sum_;
  catena::cuda::Graph graph_;
};

}  // namespace mnist
