// What the pipeline programs share: points on three spirals, a network that tells them apart, and
// schedules by name.
#pragma once

#include <string>

#include "catena/parallel/pipeline/pipeline.h"

namespace task {

namespace pp = catena::parallel::pipeline;

struct Batch {
  catena::Array x, t;
};
// n points (x, y) with the numbers of their spirals, on cpu:0; another batch for each step.
Batch batch_of(int step, int64_t n);

// Eight layers of 64 with batch normalization and dropout, as a list of units.
void fill(pp::Sequence& model);
catena::Variable loss(const catena::Variable& y, const catena::Array& t);
// Share of right answers.
double accuracy(const catena::Array& y, const catena::Array& t);

// "gpipe", "1f1b", "interleaved", "zero-bubble" or "zb-v"; ValueError for another name.
pp::Schedule schedule_of(const std::string& name, int ranks, int micro_batches);

// The command line: [schedule [steps]].
struct Options {
  std::string schedule = "1f1b";
  int steps = 300;
};
Options parse(int argc, char** argv);

}  // namespace task
