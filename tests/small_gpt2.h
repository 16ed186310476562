// A small GPT-2, as examples/gpt2 has it: the table of tokens is that of the scores, too.
#pragma once

#include <vector>

#include "catena/array/creation.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/loss/linear_cross_entropy.h"
#include "catena/functions/noise/dropout.h"

namespace catena::testing {

struct SmallGpt2Options {
  int64_t vocabulary, length, width, heads, inner;
  double dropout = 0;
};

struct SmallGpt2 : FunctionSet {
  functions::EmbedID tokens, places;
  std::vector<functions::TransformerEncoderLayer> layers;
  functions::LayerNormalization norm;
  CATENA_FUNCTIONS(tokens, places, layers, norm)

  explicit SmallGpt2(const SmallGpt2Options& o)
      : tokens(o.vocabulary, o.width),
        places(o.length, o.width),
        norm(o.width),
        dropout_(o.dropout) {
    using functions::TransformerActivation;
    for (int i = 0; i < 2; ++i)
      layers.emplace_back(
          o.width, o.heads,
          functions::TransformerOptions{.inner = o.inner,
                                        .dropout = o.dropout,
                                        .activation = TransformerActivation::kGeluTanh,
                                        .pre_norm = true});
  }

  // The parts of a forward pass: what goes into the layers, and the loss of what comes out.
  Variable embedded(const Array& ids) const {
    const Array positions = arange(ids.shape(1), {Dtype::kInt32, ids.device()});
    return functions::dropout(tokens(ids) + places(positions), dropout_, training());
  }
  Variable loss_of(functions::ResidualStream& stream, const Array& next) const {
    return functions::linear_cross_entropy(stream.normalized(norm), tokens.W, next);
  }
  Variable loss(const Array& ids, const Array& next) const {
    functions::ResidualStream stream(embedded(ids));
    for (const functions::TransformerEncoderLayer& layer : layers)
      layer.add_to(stream, {.causal = true});
    return loss_of(stream, next);
  }

 private:
  double dropout_;
};

}  // namespace catena::testing
