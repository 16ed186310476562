// TestScope: a model in test state for the length of a block.
#pragma once

#include "catena/autograd/function_set.h"

namespace catena {

// Switches a model to test state, as model.eval(), and when it ends, also by an exception, gives
// the model and each of its functions back the state that they had: what was frozen by
// model.bn1.eval() before stays so. Functions that were added in between get the model's state. The
// model must outlive the scope and stay where it is; as with eval(), no other thread may run it at
// either end.
//
//   {
//     const TestScope scope(model);
//     const NoBackprop no_graph;
//     y = model(x);
//   }
class [[nodiscard]] TestScope {
 public:
  explicit TestScope(Parameterized& model) : model_(model), before_(model.training_states()) {
    model.eval();
  }
  ~TestScope();
  TestScope(const TestScope&) = delete;
  TestScope& operator=(const TestScope&) = delete;

 private:
  Parameterized& model_;
  Parameterized::TrainingStates before_;
};

}  // namespace catena
