// Vectors of words and what they are learnt by (T. Mikolov et al., Efficient estimation of word
// representations in vector space, 2013; Distributed representations of words and phrases and their
// compositionality, NIPS 2013).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/variable_operand.h"

namespace word2vec {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

// The sum over a batch of -log p(word | vector), or what stands for it.
class WordLoss : public catena::Parameterized {
 public:
  virtual Variable operator()(const Variable& vectors, const Array& words) = 0;
};
// What a model is made of. counts[i] is how often word i occurs.
struct Plan {
  std::string kind, out_type;  // --model and --out-type
  int64_t units, negative;
  std::vector<double> counts;
};
std::unique_ptr<WordLoss> make_loss(const Plan& plan);

// Words around a word: of a batch of `count` middles all have `width` neighbours.
struct Windows {
  Array middles;     // (count)
  Array neighbours;  // (count, width)
};

// Vectors of words, and the loss of windows: with "skipgram" each neighbour's vector is asked for
// the middle, with "cbow" the sum of all.
class Model : public catena::Parameterized {
 public:
  explicit Model(const Plan& plan);
  // The mean over the middles of the sum of the losses.
  Variable operator()(const Windows& windows);
  // How many losses there are for a middle.
  int64_t losses_of(const Windows& windows) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_persistents(const PersistentVisitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

  F::EmbedID embed;

 private:
  bool sums_;
  std::unique_ptr<WordLoss> loss_;
};

}  // namespace word2vec
