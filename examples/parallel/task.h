// What the pipeline programs share: points on three spirals, a network that tells them apart, and
// schedules by name.
#pragma once

#include <string>

#include "catena/parallel/pipeline/pipeline.h"
#include "common/training_run.h"

namespace task {

namespace pp = catena::parallel::pipeline;

struct Batch {
  catena::Array x, t;
};
// n points (x, y) with the numbers of their spirals, on cpu:0; another batch for each step.
Batch batch_of(int64_t step, int64_t n);

// Eight layers of 64 with batch normalization and dropout, as a list of units.
void fill(pp::Sequence& model);
catena::Variable loss(const catena::Variable& y, const catena::Array& t);
// Share of right answers.
double accuracy(const catena::Array& y, const catena::Array& t);

// "gpipe", "1f1b", "interleaved", "zero-bubble" or "zb-v"; ValueError for another name.
pp::Schedule schedule_of(const std::string& name, int ranks, int micro_batches);

// The command line: [schedule [steps]] and options.
struct Options {
  std::string schedule = "1f1b";
  int64_t steps = 300;
  examples::RunOptions run;  // batch, devices and seed of it
};
// `batch` is the size of batches by default. Prints --help or a usage error itself and then exits.
Options parse(int argc, char** argv, const std::string& description, int64_t batch,
              examples::DeviceCount devices = examples::DeviceCount::kOne);

}  // namespace task
