// What all MNIST programs share: the data, their score, and the trainer with its files.
#pragma once

#include "catena/core/device.h"
#include "catena/training/updater.h"
#include "options.h"

namespace mnist {

// softmax_cross_entropy and accuracy of predictions: {loss, accuracy}.
catena::Variables score(const catena::Variable& predictions, const catena::Array& labels);

// That of --device or --gpu, else GPU 0 where there is one, else cpu:0. ValueError where a launcher
// started several ranks, which would all take the same.
catena::Device one_device(const Options& options);

// What differs between the programs.
struct Program {
  catena::Parameterized& model;  // what is saved
  catena::Optimizer& optimizer;  // set up already
  catena::Device device;         // where batches are put
  catena::training::Score score;
  catena::training::Step step;
  catena::MultiNodeOptimizer* ranks = nullptr;  // more than one process
};

// Trains, prints a row an epoch and ends with the line "test accuracy 0.8812". Writes into
// options.run.out: log.json, checkpoint.npz (after every epoch, for --resume) and model.npz.
void train(const Options& options, const Program& program);

}  // namespace mnist
