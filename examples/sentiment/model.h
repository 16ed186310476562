// The network over parse trees (R. Socher, C. Lin, A. Ng and C. Manning, Parsing natural scenes and
// natural language with recursive neural networks, ICML 2011).
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "levels.h"

namespace sentiment {

namespace F = catena::functions;
using catena::Variable;

// Each node is a vector of `units` numbers: that of its word, or what is made of those of its
// parts. Each vector gives scores of the labels. The layers have the names of Chainer's example.
struct RecursiveNet : catena::FunctionSet {
  F::EmbedID embed;
  F::Linear l, w;
  CATENA_FUNCTIONS(embed, l, w)

  RecursiveNet(int64_t words, int64_t units, int64_t labels)
      : embed(words, units), l(2 * units, units), w(units, labels) {}

  // words: integers (n); pairs: (n, 2 * units), left and right; vectors: (n, units).
  Variable leaves(const Array& words) const { return embed(words); }
  Variable nodes(const Variable& pairs) const { return F::tanh(l(pairs)); }
  Variable scores(const Variable& vectors) const { return w(vectors); }

  // The scores of all nodes, (nodes, labels), in the order of levels.labels: one call of nodes()
  // for each level.
  Variable operator()(const Levels& levels) const;
};

// {loss, share of roots whose label is right}. The loss is the cross entropy summed over the nodes
// of a batch; of several ranks the weighted mean is that sum.
catena::Variables score_of(const RecursiveNet& model, const catena::datasets::Batch& batch);

// Shares of right labels, with the numbers behind them.
struct Accuracy {
  int64_t right = 0, count = 0;
  double share() const { return static_cast<double>(right) / static_cast<double>(count); }
};
struct Accuracies {
  Accuracy nodes, roots;
};
// Of all trees that the batches go through, without a graph; over ranks that share them all get the
// same. Collective.
Accuracies accuracies_of(RecursiveNet& model, catena::datasets::BatchIterator& batches,
                         catena::Communicator& comm);

}  // namespace sentiment
