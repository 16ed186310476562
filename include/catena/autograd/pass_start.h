// Start of a backward pass, as observers may change it before the first function runs.
#pragma once

#include <vector>

#include "catena/autograd/mean.h"

namespace catena {

class BackwardPass;

// For observers that weigh the loss of a part of a batch. The gradients that the caller gave, or
// got, stay as they were; those that flow are multiplied.
class PassStart {
 public:
  explicit PassStart(BackwardPass& pass) : pass_(pass) {}
  // The mean at which the pass begins; null if it begins at something else or at several variables.
  const Mean* mean() const;
  // The means of the graph, in the order of their computation, each once whatever it went into.
  const std::vector<VariableNode*>& means();

  // The pass begins with its gradients times `factor`, of one element, a float on any device.
  // `unit` says what the factor means: an observer that gives the same one has given the same
  // factor, and changes nothing. GradientError for another: one pass has one start.
  void scale(const Array& factor, double unit);
  // What flows into means()[i] is multiplied by factors[i], likewise. GradientError in a pass with
  // create_graph, too.
  void scale_means(const Arrays& factors, double unit);

  // The pass is over a part of a batch: means that F::recompute hides until then must count
  // everything (GradientError).
  void is_of_a_part();

 private:
  // Whether the pass has no factor yet.
  bool begins(double unit);

  BackwardPass& pass_;
  bool is_scaled_ = false;
  double unit_ = 1;
  std::vector<VariableNode*> means_;
  bool knows_means_ = false;
};

}  // namespace catena
