#include "model.h"

#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/functions/math.h"
#include "common/saved_model.h"

namespace gpt2 {
namespace {

struct Named {
  const char* name;
  int64_t layers, width;
};
// The last four are those of the paper.
constexpr Named kSizes[] = {{"nano", 2, 128},     {"tiny", 4, 256},    {"small", 12, 768},
                            {"medium", 24, 1024}, {"large", 36, 1280}, {"xl", 48, 1600}};

const catena::initializers::Normal kStart(0.02);

F::TransformerEncoderLayer layer_of(const Sizes& sizes) {
  F::TransformerEncoderLayer layer(sizes.width, sizes.heads(),
                                   {.inner = 4 * sizes.width,
                                    .dropout = sizes.dropout,
                                    .activation = F::TransformerActivation::kGeluTanh,
                                    .pre_norm = true,
                                    .initialW = kStart,
                                    .dtype = sizes.dtype});
  const double factor = 1 / std::sqrt(2 * static_cast<double>(sizes.layers));
  for (F::Linear* last : {&layer.self_attn.out_proj, &layer.linear2})
    last->W.copy_from(last->W.data() * factor);
  return layer;
}

}  // namespace

Sizes sizes_by_name(const std::string& name) {
  for (const Named& one : kSizes)
    if (name == one.name) return {.layers = one.layers, .width = one.width};
  catena::fail<catena::ValueError>("there is no GPT-2 of size '", name, "'");
}

std::vector<std::string> names_of_sizes() {
  std::vector<std::string> names;
  for (const Named& one : kSizes) names.push_back(one.name);
  return names;
}

Sizes sizes_in(const std::string& file) {
  const catena::NpzFile arrays = examples::open_model(file);
  Sizes sizes;
  sizes.layers = examples::count_layers(arrays, "layers/", "/linear1/W");
  CATENA_CHECK(IoError,
               sizes.layers > 0 && arrays.contains("tokens/W") && arrays.contains("places/W"), "'",
               file, "' is not a model of train_gpt2");
  const Array tokens = arrays["tokens/W"];
  sizes.vocabulary = tokens.shape()[0];
  sizes.width = tokens.shape()[1];
  sizes.positions = arrays["places/W"].shape()[0];
  sizes.dtype = tokens.dtype();
  return sizes;
}

Gpt2::Gpt2(const Sizes& sizes)
    : tokens(sizes.vocabulary, sizes.width, {.initialW = kStart, .dtype = sizes.dtype}),
      places(sizes.positions, sizes.width, {.initialW = kStart, .dtype = sizes.dtype}),
      norm(sizes.width, {.dtype = sizes.dtype}),
      dropout_(sizes.dropout) {
  for (int64_t i = 0; i < sizes.layers; ++i) layers.push_back(layer_of(sizes));
}

Variable Gpt2::states(const Array& ids) const {
  const int64_t length = ids.shape()[1];
  CATENA_CHECK(ValueError, length <= positions(), "the model has ", positions(),
               " positions, got texts of ", length, " tokens");
  const Variable h = tokens(ids) + places(catena::arange(length));
  const Variable dropped = F::dropout(h, dropout_, training());
  if (plan_) {
    std::vector<F::RecomputedBlock> blocks;
    for (const F::TransformerEncoderLayer& layer : layers)
      blocks.emplace_back([&layer](const Variable& x) { return layer(x, {.causal = true}); });
    return norm((*plan_)(blocks, dropped));
  }
  F::ResidualStream stream(dropped);
  for (const F::TransformerEncoderLayer& layer : layers) layer.add_to(stream, {.causal = true});
  return stream.normalized(norm);
}

Variable Gpt2::states(const Array& ids, F::KeyValueCache& cache) const {
  cache.extend(ids.shape()[1]);
  F::ResidualStream stream(tokens(ids) + places(cache.positions()));
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].add_to(stream, cache.layer(static_cast<int64_t>(i)));
  return stream.normalized(norm);
}

F::KeyValueCache Gpt2::make_cache(int64_t batch) const {
  const F::MultiHeadAttention& attention = layers.front().self_attn;
  return F::KeyValueCache({.layers = static_cast<int64_t>(layers.size()),
                           .batch = batch,
                           .groups = attention.groups(),
                           .capacity = positions(),
                           .depth = attention.depth(),
                           .dtype = tokens.W.dtype(),
                           .device = tokens.W.device()});
}

}  // namespace gpt2
