// The network: an encoder and a decoder (A. Vaswani et al., Attention is all you need, 2017), whose
// blocks normalize what goes in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/datasets/prefetch.h"
#include "catena/functions/attention/key_value_cache.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/normalization/layer_normalization.h"

namespace translation {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

// Sizes of the network. A head always has 32 numbers.
struct Sizes {
  int64_t vocabulary = 8000, layers = 3, width = 256;  // layers of the encoder, and of the decoder
  double dropout = 0.1;                                // in train state
  catena::Dtype dtype = catena::dtype::float32;
};
// Those of a model that was saved, by the shapes in its file. IoError where the file is not one.
Sizes sizes_in(const std::string& file);

// Vectors of tokens, the same for both languages and for the scores; sines of positions; layers.
class Translator : public catena::FunctionSet {
 public:
  F::EmbedID tokens;
  std::vector<F::TransformerEncoderLayer> encoder;
  std::vector<F::TransformerDecoderLayer> decoder;
  F::LayerNormalization encoder_norm, decoder_norm;
  CATENA_FUNCTIONS(tokens, encoder, decoder, encoder_norm, decoder_norm)

  // ValueError for a width that is not a multiple of 32.
  explicit Translator(const Sizes& sizes);

  // ids: integers (batch, n), of which the first `lengths` of each row count; the rest may be
  // kNothing. What is known of each, (batch, n, width).
  Variable encode(const Array& ids, const Array& lengths) const;
  // ids: (batch, m), the words before each one that is to be known. What is known of these, by the
  // memory that encode() made of sentences of these lengths: (batch, m, width).
  Variable states(const Array& ids, const Variable& memory, const Array& lengths) const;
  // Scores of the next token, (..., vocabulary). A loss needs none in memory.
  Variable scores(const Variable& states) const { return F::linear(states, tokens.W); }

  // For words one by one, under NoBackprop: what each layer of the decoder makes of the memory, an
  // empty cache of the words, and the states of words that follow those in it.
  std::vector<F::MemoryKeys> keys_of(const Variable& memory) const;
  F::KeyValueCache make_cache(int64_t batch, int64_t capacity) const;
  Variable states(const Array& ids, const std::vector<F::MemoryKeys>& keys, const Array& lengths,
                  F::KeyValueCache& cache) const;

 private:
  Variable vectors(const Array& ids, const Array& positions) const;
  double dropout_;
};

// The mean cross entropy of the tokens of the targets of a batch of pad_with_nothing, smoothed in
// train state. It divides by those that are not kNothing, and declares that: ranks whose sentences
// have other numbers of them train as one process.
Variable loss_of(const Translator& model, const catena::datasets::Batch& batch, double smoothing);

}  // namespace translation
