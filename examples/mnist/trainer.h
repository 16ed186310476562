// The loop that all MNIST programs share: epochs, evaluation, table, log, checkpoint, model file.
#pragma once

#include <functional>
#include <memory>

#include "catena/comm/communicator.h"
#include "catena/datasets/mnist.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/functions.h"
#include "catena/optimizers/optimizer.h"
#include "options.h"

namespace mnist {

// Loss and accuracy of a batch, on the device.
struct Scores {
  catena::Array loss, accuracy;
};

// What differs between the programs.
struct Program {
  catena::Parameterized* model;  // what is saved
  catena::Optimizer* optimizer;  // set up already
  catena::Device device;         // where batches are put
  std::function<catena::Variable(const catena::Variable& x)> predict;
  // Forward, backward and update on one batch. May be called with an empty batch on a rank that has
  // run out of samples; returns undefined scores then.
  std::function<Scores(const catena::datasets::Batch&)> step;
  catena::Communicator* comm = nullptr;  // more than one rank
  // Called on all ranks before each checkpoint; throws when the ranks have come apart.
  std::function<void()> check = {};
};

// Trains, prints a row an epoch and ends with the line "test accuracy 0.8812". Writes into
// options.out: log.json, checkpoint.npz (after every epoch, for --resume) and model.npz.
void train(const Options& options, Program& program);

// loss and accuracy of predictions; records the loss for backward.
struct Loss {
  catena::Variable loss;
  catena::Array accuracy;
};
Loss score(const catena::Variable& predictions, const catena::Array& labels);

}  // namespace mnist
