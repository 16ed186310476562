// Loss functions.
#include "catena/functions/loss.h"

#include "catena/array/creation.h"
#include "catena/functions/array/cast.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

F::Reduction reduction(const Inputs& in) {
  const std::string& name = in.text("reduction");
  if (name == "sum") return F::Reduction::kSum;
  return name == "none" ? F::Reduction::kNone : F::Reduction::kMean;
}

int32_t ignored(const Inputs& in) { return static_cast<int32_t>(in->integer("ignore_label", -1)); }

// The array that the parameter names by its place among the operands.
std::optional<Array> optional_array(const Inputs& in, const char* name) {
  if (!in->has(name)) return {};
  return in[static_cast<size_t>(in->integer(name))].data();
}

Variables softmax_cross_entropy(const Inputs& in) {
  F::SoftmaxCrossEntropyOptions options;
  options.normalize = in->flag("normalize");
  options.ignore_label = ignored(in);
  options.reduction = reduction(in);
  options.class_weight = optional_array(in, "class_weight");
  options.label_smoothing = in.real("label_smoothing", 0);
  return {F::softmax_cross_entropy(in[0], in[1], options)};
}

// In the dtype of the operands, whose rounding the bounds allow for.
Variables linear_cross_entropy(const Inputs& in) {
  F::LinearCrossEntropyOptions options;
  options.ignore_label = ignored(in);
  options.reduction = reduction(in);
  options.label_smoothing = in.real("label_smoothing", 0);
  options.z_loss = in.real("z_loss", 0);
  if (in->has("chunk")) options.chunk = in->integer("chunk");
  const Variable loss = in.count() == 4
                            ? F::linear_cross_entropy(in[0], in[1], in[2], in[3], options)
                            : F::linear_cross_entropy(in[0], in[1], in[2], options);
  return {F::cast(loss, in[0].dtype())};
}

Variables sigmoid_cross_entropy(const Inputs& in) {
  F::SigmoidCrossEntropyOptions options;
  options.normalize = in->flag("normalize");
  options.ignore_label = ignored(in);
  options.reduction = reduction(in);
  options.pos_weight = optional_array(in, "pos_weight");
  return {F::sigmoid_cross_entropy(in[0], in[1], options)};
}

Variables negative_log_likelihood(const Inputs& in) {
  F::NegativeLogLikelihoodOptions options;
  options.ignore_label = ignored(in);
  options.reduction = reduction(in);
  options.class_weight = optional_array(in, "class_weight");
  return {F::negative_log_likelihood(in[0], in[1], options)};
}

// Of one array for all steps, or of a list of steps.
Variables ctc(const Inputs& in) {
  F::ConnectionistTemporalClassificationOptions options;
  options.reduction = reduction(in);
  options.input_length = optional_array(in, "input_length");
  options.label_length = optional_array(in, "label_length");
  const auto blank = static_cast<int32_t>(in->integer("blank"));
  const auto steps = static_cast<size_t>(in->integer("steps", 0));
  if (steps == 0) return {F::connectionist_temporal_classification(in[0], in[1], blank, options)};
  return {
      F::connectionist_temporal_classification(in.between(0, steps), in[steps], blank, options)};
}

Variables hierarchical_softmax(const Inputs& in) {
  std::vector<int32_t> nodes;
  for (const int64_t node : in->dims("tree")) nodes.push_back(static_cast<int32_t>(node));
  F::BinaryHierarchicalSoftmaxOptions options;
  options.initialW = in[2].data();
  const F::BinaryHierarchicalSoftmax layer(in[0].shape(1), F::BinaryTree::from_pre_order(nodes),
                                           options);
  return {layer(in[0], in[1])};
}

}  // namespace

void add_loss(Functions& f) {
  f["softmax_cross_entropy"] = softmax_cross_entropy;
  f["linear_cross_entropy"] = linear_cross_entropy;
  f["sigmoid_cross_entropy"] = sigmoid_cross_entropy;
  f["negative_log_likelihood"] = negative_log_likelihood;
  f["ctc"] = ctc;
  f["hierarchical_softmax"] = hierarchical_softmax;
  f["mean_squared_error"] = [](const Inputs& in) {
    return Variables{F::mean_squared_error(in[0], in[1], reduction(in))};
  };
  f["mean_absolute_error"] = [](const Inputs& in) {
    return Variables{F::mean_absolute_error(in[0], in[1], reduction(in))};
  };
  f["huber_loss"] = [](const Inputs& in) {
    return Variables{F::huber_loss(in[0], in[1], in->real("delta"), reduction(in))};
  };
  f["smooth_l1"] = [](const Inputs& in) {
    return Variables{F::smooth_l1(in[0], in[1], in->real("beta"), reduction(in))};
  };
  f["kl_divergence"] = [](const Inputs& in) {
    return Variables{F::kl_divergence(in[0], in[1], reduction(in))};
  };
  f["hinge"] = [](const Inputs& in) {
    const F::HingeNorm norm = in.text("norm") == "L1" ? F::HingeNorm::kL1 : F::HingeNorm::kL2;
    return Variables{F::hinge(in[0], in[1], norm, reduction(in))};
  };
  f["contrastive"] = [](const Inputs& in) {
    return Variables{F::contrastive(in[0], in[1], in[2], in->real("margin"), reduction(in))};
  };
  f["cosine_similarity"] = [](const Inputs& in) {
    return Variables{F::cosine_similarity(in[0], in[1], in->integer("axis"), in.real("eps", 1e-8))};
  };
  f["cosine_embedding_loss"] = [](const Inputs& in) {
    return Variables{
        F::cosine_embedding_loss(in[0], in[1], in[2], in->real("margin"), reduction(in))};
  };
  f["cross_covariance"] = [](const Inputs& in) {
    return Variables{F::cross_covariance(in[0], in[1])};
  };
  f["focal_loss"] = [](const Inputs& in) {
    return Variables{
        F::focal_loss(in[0], in[1], in->real("alpha"), in->real("gamma"), reduction(in))};
  };
  f["triplet"] = [](const Inputs& in) {
    return Variables{F::triplet(in[0], in[1], in[2], in->real("margin"), reduction(in))};
  };
  f["mean_over"] = [](const Inputs& in) {
    const Array counted = full({}, in->real("counted"), {in[0].dtype(), in[0].device()});
    return Variables{F::mean_over(in[0], counted)};
  };
  f["negative_sampling"] = [](const Inputs& in) {
    return Variables{F::negative_sampling(in[0], in[1], in[2])};
  };
  f["gaussian_kl_divergence"] = [](const Inputs& in) {
    return Variables{F::gaussian_kl_divergence(in[0], in[1], reduction(in))};
  };
  f["bernoulli_nll"] = [](const Inputs& in) {
    return Variables{F::bernoulli_nll(in[0], in[1], reduction(in))};
  };
  f["gaussian_nll"] = [](const Inputs& in) {
    return Variables{F::gaussian_nll(in[0], in[1], in[2], reduction(in))};
  };
}

}  // namespace catena::oracle
