// A model and the optimizer that trains it over ranks.
#pragma once

#include <utility>

#include "catena/parallel/multi_node_optimizer.h"

namespace catena::testing {

// The optimizer of the model, which moves to this rank's device.
template <class Rule>
MultiNodeOptimizer set_up(Parameterized& model, Rule&& rule, Communicator& comm,
                          const parallel::BucketOptions& options = {}) {
  model.to(comm.device());
  auto optimizer = create_multi_node_optimizer(std::forward<Rule>(rule), comm, options);
  optimizer.setup(model);
  return optimizer;
}

}  // namespace catena::testing
