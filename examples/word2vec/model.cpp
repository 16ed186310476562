#include "model.h"

#include "catena/array/manipulation.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/initializers.h"
#include "catena/functions/loss/hierarchical_softmax.h"
#include "catena/functions/loss/negative_sampling.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"

namespace word2vec {
namespace {

// A loss made of one layer, whose names it has.
template <class Layer>
class LayerLoss : public WordLoss {
 public:
  explicit LayerLoss(Layer layer) : layer_(std::move(layer)) {}
  Variable operator()(const Variable& vectors, const Array& words) override {
    if constexpr (std::is_same_v<Layer, F::Linear>)
      return F::softmax_cross_entropy(layer_(vectors), words) * static_cast<double>(words.size());
    else
      return layer_(vectors, words);
  }
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override {
    layer_.visit_parameters(visitor, prefix);
  }
  void visit_persistents(const PersistentVisitor& visitor,
                         const std::string& prefix = "") override {
    layer_.visit_persistents(visitor, prefix);
  }

 private:
  Layer layer_;
};

std::unique_ptr<WordLoss> huffman_loss(const Plan& plan) {
  std::map<int32_t, double> by_word;
  for (size_t i = 0; i < plan.counts.size(); ++i) by_word[static_cast<int32_t>(i)] = plan.counts[i];
  return std::make_unique<LayerLoss<F::BinaryHierarchicalSoftmax>>(F::BinaryHierarchicalSoftmax(
      plan.units, F::BinaryHierarchicalSoftmax::create_huffman_tree(by_word)));
}

// Words that a text does not have, "<unk>" where the vocabulary is not full, are never drawn.
std::unique_ptr<WordLoss> sampling_loss(const Plan& plan) {
  return std::make_unique<LayerLoss<F::NegativeSampling>>(
      F::NegativeSampling(plan.units, plan.counts, plan.negative));
}

int64_t words_of(const Plan& plan) { return static_cast<int64_t>(plan.counts.size()); }

// All scores begin with 0.
std::unique_ptr<WordLoss> score_loss(const Plan& plan) {
  return std::make_unique<LayerLoss<F::Linear>>(
      F::Linear(plan.units, words_of(plan), {.initialW = catena::initializers::Zero()}));
}

}  // namespace

std::unique_ptr<WordLoss> make_loss(const Plan& plan) {
  if (plan.out_type == "hsm") return huffman_loss(plan);
  if (plan.out_type == "ns") return sampling_loss(plan);
  return score_loss(plan);
}

Model::Model(const Plan& plan)
    : embed(words_of(plan), plan.units,
            {.initialW = catena::initializers::Uniform(1.0 / static_cast<double>(plan.units))}),
      sums_(plan.kind == "cbow"),
      loss_(make_loss(plan)) {}

int64_t Model::losses_of(const Windows& windows) const {
  return sums_ ? 1 : windows.neighbours.shape()[1];
}

Variable Model::operator()(const Windows& windows) {
  const int64_t count = windows.middles.size(), width = windows.neighbours.shape()[1];
  const Variable vectors = embed(windows.neighbours);
  if (sums_) return (*loss_)(F::sum(vectors, 1), windows.middles) / static_cast<double>(count);
  // Each middle once for each of its neighbours.
  const Array words = catena::broadcast_to(windows.middles.reshape({count, 1}), {count, width});
  return (*loss_)(F::reshape(vectors, {count * width, embed.out_size()}),
                  words.reshape({count * width})) /
         static_cast<double>(count);
}

void Model::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  embed.visit_parameters(visitor, prefix + "embed/");
  loss_->visit_parameters(visitor, prefix + "loss/");
}
void Model::visit_persistents(const PersistentVisitor& visitor, const std::string& prefix) {
  loss_->visit_persistents(visitor, prefix + "loss/");
}
void Model::visit_functions(const FunctionVisitor& visitor) {
  visitor("embed", embed);
  visitor("loss", *loss_);
}

}  // namespace word2vec
