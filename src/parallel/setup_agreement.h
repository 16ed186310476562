// What ranks must have alike when they set up an optimizer or a pipeline: one list for every kind
// of setup, in lines of an Agreement.
#pragma once

#include <string>

#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"
#include "comm/agreement.h"

namespace catena::parallel {

// All of them; first those from which others follow.
void add_options(comm::Agreement& agreement, const BucketOptions& options);
// Shape, dtype and memory order.
void add_parameter(comm::Agreement& agreement, const std::string& path, const Parameter& p);
void add_persistent(comm::Agreement& agreement, const std::string& path, const Persistent& p);
// Hyper-parameters and the settings of update stages.
void add_numbers(comm::Agreement& agreement, const Optimizer& optimizer);
// The stages of an update, and its numbers. Hooks may differ: one may print on rank 0.
void add_rule(comm::Agreement& agreement, const Optimizer& optimizer);

// "reduce, loss scale, hooks, rule"
std::string stages_of(const Optimizer& optimizer);

}  // namespace catena::parallel
