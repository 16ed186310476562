#include "model.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/functions/loss/linear_cross_entropy.h"
#include "catena/functions/math.h"
#include "catena/functions/noise/dropout.h"
#include "common/saved_model.h"
#include "sentences.h"

namespace translation {
namespace {

constexpr int64_t kDepth = 32;

F::TransformerOptions options_of(const Sizes& sizes) {
  return {.inner = 4 * sizes.width,
          .dropout = sizes.dropout,
          .pre_norm = true,
          .initialW = catena::initializers::GlorotUniform(),
          .dtype = sizes.dtype};
}

int64_t heads_of(const Sizes& sizes) {
  CATENA_CHECK(ValueError, sizes.width % kDepth == 0, "--width ", sizes.width,
               " cannot be divided into heads of ", kDepth, " numbers; give a multiple of it");
  return sizes.width / kDepth;
}

// Sines, then cosines, of waves from 1 to 10000 radians a position: positions.shape() + (width,).
Array waves(const Array& positions, int64_t width, catena::Dtype dtype) {
  const int64_t half = width / 2;
  const double step = -std::log(10000.) / static_cast<double>(half);
  const Array rates =
      catena::exp(catena::arange(half, {catena::dtype::float32, positions.device()}) * step);
  const Array angles = catena::expand_dims(positions.astype(catena::dtype::float32), -1) * rates;
  return catena::concatenate({catena::sin(angles), catena::cos(angles)}, -1).astype(dtype);
}

}  // namespace

Sizes sizes_in(const std::string& file) {
  const catena::NpzFile arrays = examples::open_model(file);
  Sizes sizes;
  sizes.layers = examples::count_layers(arrays, "decoder/", "/multihead_attn/in_proj_W");
  CATENA_CHECK(IoError, sizes.layers > 0 && arrays.contains("tokens/W"), "'", file,
               "' is not a model of train_translation");
  const Array tokens = arrays["tokens/W"];
  sizes.vocabulary = tokens.shape()[0];
  sizes.width = tokens.shape()[1];
  sizes.dtype = tokens.dtype();
  return sizes;
}

// Vectors are multiplied by the root of their size where they go in, so that they begin as large as
// the waves there, and scores small.
Translator::Translator(const Sizes& sizes)
    : tokens(sizes.vocabulary, sizes.width,
             {.initialW =
                  catena::initializers::Normal(1 / std::sqrt(static_cast<double>(sizes.width))),
              .ignore_label = kNothing,
              .dtype = sizes.dtype}),
      encoder_norm(sizes.width, {.dtype = sizes.dtype}),
      decoder_norm(sizes.width, {.dtype = sizes.dtype}),
      dropout_(sizes.dropout) {
  const int64_t heads = heads_of(sizes);
  for (int64_t i = 0; i < sizes.layers; ++i) {
    encoder.emplace_back(sizes.width, heads, options_of(sizes));
    decoder.emplace_back(sizes.width, heads, options_of(sizes));
  }
}

Variable Translator::vectors(const Array& ids, const Array& positions) const {
  const Variable own = tokens(ids);
  const double scale = std::sqrt(static_cast<double>(tokens.out_size()));
  return F::dropout(own * scale + waves(positions, tokens.out_size(), own.dtype()), dropout_,
                    training());
}

Variable Translator::encode(const Array& ids, const Array& lengths) const {
  F::ResidualStream stream(vectors(ids, catena::arange(ids.shape()[1], ids.device())));
  for (const F::TransformerEncoderLayer& layer : encoder)
    layer.add_to(stream, {.key_lengths = lengths});
  return stream.normalized(encoder_norm);
}

Variable Translator::states(const Array& ids, const Variable& memory, const Array& lengths) const {
  F::ResidualStream stream(vectors(ids, catena::arange(ids.shape()[1], ids.device())));
  for (const F::TransformerDecoderLayer& layer : decoder)
    layer.add_to(stream, memory, {.causal = true}, {.key_lengths = lengths});
  return stream.normalized(decoder_norm);
}

std::vector<F::MemoryKeys> Translator::keys_of(const Variable& memory) const {
  std::vector<F::MemoryKeys> keys;
  for (const F::TransformerDecoderLayer& layer : decoder)
    keys.push_back(layer.multihead_attn.keys_of(memory));
  return keys;
}

F::KeyValueCache Translator::make_cache(int64_t batch, int64_t capacity) const {
  const F::MultiHeadAttention& attention = decoder.front().self_attn;
  return F::KeyValueCache({.layers = std::ssize(decoder),
                           .batch = batch,
                           .groups = attention.groups(),
                           .capacity = capacity,
                           .depth = attention.depth(),
                           .dtype = tokens.W.dtype(),
                           .device = tokens.W.device()});
}

Variable Translator::states(const Array& ids, const std::vector<F::MemoryKeys>& keys,
                            const Array& lengths, F::KeyValueCache& cache) const {
  cache.extend(ids.shape()[1]);
  F::ResidualStream stream(vectors(ids, cache.positions()));
  for (size_t i = 0; i < decoder.size(); ++i)
    decoder[i].add_to(stream, keys[i], cache.layer(static_cast<int64_t>(i)), {},
                      {.key_lengths = lengths});
  return stream.normalized(decoder_norm);
}

Variable loss_of(const Translator& model, const catena::datasets::Batch& batch, double smoothing) {
  using catena::Slice;
  const Array &source = batch.column(0), &target = batch.column(1), &lengths = batch.column(2);
  const Variable memory = model.encode(source, lengths);
  const Variable states = model.states(target(Slice(), Slice(0, -1)), memory, lengths);
  return F::linear_cross_entropy(
      states, model.tokens.W, target(Slice(), Slice(1, catena::none)),
      {.ignore_label = kNothing, .label_smoothing = model.training() ? smoothing : 0});
}

}  // namespace translation
