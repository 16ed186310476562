// Products with weights: fully connected, convolutional and recurrent functions.
#include "catena/functions/activation/lstm.h"
#include "catena/functions/connection.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

F::Extent2D extent(const Inputs& in, const char* name) {
  const Dims two = in->dims(name);
  return {two.at(0), two.at(1)};
}

F::ExtentND extents(const Inputs& in, const char* name) {
  const Dims list = in->dims(name);
  return F::ExtentND(std::vector<int64_t>(list.begin(), list.end()));
}

Variables convolution_2d(const Inputs& in) {
  F::ConvolutionOptions options;
  options.stride = extent(in, "stride");
  options.pad = extent(in, "pad");
  options.dilation = extent(in, "dilation");
  options.groups = in->integer("groups");
  options.cover_all = in->flag("cover_all");
  if (in.count() == 2) return {F::convolution_2d(in[0], in[1], options)};
  return {F::convolution_2d(in[0], in[1], in[2], options)};
}

Variables convolution_nd(const Inputs& in) {
  F::ConvolutionOptionsND options;
  options.stride = extents(in, "stride");
  options.pad = extents(in, "pad");
  options.dilation = extents(in, "dilation");
  options.groups = in->integer("groups");
  options.cover_all = in->flag("cover_all");
  if (in.count() == 2) return {F::convolution_nd(in[0], in[1], options)};
  return {F::convolution_nd(in[0], in[1], in[2], options)};
}

Variables deconvolution_2d(const Inputs& in) {
  F::DeconvolutionOptions options;
  options.stride = extent(in, "stride");
  options.pad = extent(in, "pad");
  options.dilation = extent(in, "dilation");
  options.groups = in->integer("groups");
  if (in->has("outsize")) options.outsize = extent(in, "outsize");
  if (in.count() == 2) return {F::deconvolution_2d(in[0], in[1], options)};
  return {F::deconvolution_2d(in[0], in[1], in[2], options)};
}

// xs, then hx and cx where the case has states, then the weights.
Variables n_step_lstm(const Inputs& in) {
  const bool states = in->flag("states");
  OptionalVariable hx, cx;
  if (states) {
    hx = in[1];
    cx = in[2];
  }
  const F::LstmResult r =
      F::n_step_lstm(in->integer("layers"), 0, hx, cx, in.from(states ? 3 : 1), in[0]);
  return {r.hy, r.cy, r.ys};
}

// xs and lengths, hx and cx, then the weights.
Variables packed_lstm(const Inputs& in) {
  const F::PackedSequences xs(in[0], in[1].data());
  const F::PackedLstmResult r =
      F::n_step_lstm(in->integer("layers"), 0, in[2], in[3], in.from(4), xs);
  return {r.hy, r.cy, r.ys.padded()};
}

// xs, lengths and hx, then the weights.
Variables n_step_gru(const Inputs& in) {
  const F::PackedSequences xs(in[0], in[1].data());
  const F::PackedGruResult r =
      F::n_step_gru(1, 0, in[2], in.from(3), xs,
                    in->flag("chainer") ? F::GruForm::kChainer : F::GruForm::kPytorch);
  return {r.hy, r.ys.padded()};
}

// x and lengths, states where the case has them, then the parameters in their order.
template <class Layer, class Options>
Layer sequence_layer(const Inputs& in, size_t first) {
  Options options;
  options.layers = in->integer("layers");
  options.bidirectional = in->flag("both");
  options.nobias = !in->flag("bias");
  options.batch_first = in->flag("batch_first");
  options.dtype = in[0].dtype();
  Layer layer(in[0].shape(2), in->integer("cells"), options);
  layer.visit_parameters(
      [&](const std::string&, Parameter& p) { p.data().assign(in.copy(first++)); });
  return layer;
}

Variables sequence_lstm(const Inputs& in) {
  const bool states = in->flag("states");
  const auto layer = sequence_layer<F::SequenceLSTM, F::SequenceLSTMOptions>(in, states ? 4 : 2);
  const F::LstmResult r =
      states ? layer(in[0], in[1].data(), in[2], in[3]) : layer(in[0], in[1].data());
  return {r.hy, r.cy, r.ys};
}

Variables sequence_gru(const Inputs& in) {
  const bool states = in->flag("states");
  const auto layer = sequence_layer<F::SequenceGRU, F::SequenceGRUOptions>(in, states ? 3 : 2);
  const F::GruResult r = states ? layer(in[0], in[1].data(), in[2]) : layer(in[0], in[1].data());
  return {r.hy, r.ys};
}

// x and h, then W, b and U of the reset gate, the update gate and the new content.
Variables gru(const Inputs& in) {
  F::StatefulGRU layer(in[0].shape(1), in[1].shape(1), {.dtype = in[0].dtype()});
  F::Linear* const upward[] = {&layer.W_r, &layer.W_z, &layer.W};
  F::Linear* const lateral[] = {&layer.U_r, &layer.U_z, &layer.U};
  for (size_t k = 0; k < 3; ++k) {
    upward[k]->W = OwnedParameter(in.copy(2 + 3 * k));
    upward[k]->b = OwnedParameter(in.copy(3 + 3 * k));
    lateral[k]->W = OwnedParameter(in.copy(4 + 3 * k));
  }
  layer.set_state(in[1]);
  return {layer(in[0])};
}

// Two steps from given states: x of each, c, h, then W and b of the layer upward and W of lateral.
Variables lstm_layer(const Inputs& in) {
  F::LSTM layer(in[0].shape(1), in[2].shape(1), {.dtype = in[0].dtype()});
  layer.upward.W = OwnedParameter(in.copy(4));
  layer.upward.b = OwnedParameter(in.copy(5));
  layer.lateral.W = OwnedParameter(in.copy(6));
  layer.set_state(in[2], in[3]);
  const Variable first = layer(in[0]);
  return {first, layer(in[1])};
}

}  // namespace

void add_connection(Functions& f) {
  f["linear"] = [](const Inputs& in) {
    if (in.count() == 2) return Variables{F::linear(in[0], in[1])};
    return Variables{F::linear(in[0], in[1], in[2])};
  };
  f["linear_relu"] = [](const Inputs& in) {
    return Variables{F::linear_relu(in[0], in[1], in[2])};
  };
  f["feed_forward"] = [](const Inputs& in) {
    using Activation = F::TransformerActivation;
    const std::string name = in.text("activation");
    const F::FeedForwardOptions options{.activation = name == "relu"   ? Activation::kRelu
                                                      : name == "gelu" ? Activation::kGelu
                                                                       : Activation::kGeluTanh};
    if (in.count() == 3) return Variables{F::feed_forward(in[0], in[1], in[2], options)};
    return Variables{F::feed_forward(in[0], in[1], in[2], in[3], in[4], options)};
  };
  f["bilinear"] = [](const Inputs& in) {
    if (in.count() == 3) return Variables{F::bilinear(in[0], in[1], in[2])};
    return Variables{F::bilinear(in[0], in[1], in[2], in[3], in[4], in[5])};
  };
  f["convolution_2d"] = convolution_2d;
  f["convolution_nd"] = convolution_nd;
  f["deconvolution_2d"] = deconvolution_2d;
  f["embed_id"] = [](const Inputs& in) {
    return Variables{F::embed_id(in[0], in[1], in->optional_integer("ignore_label"))};
  };
  f["n_step_lstm"] = n_step_lstm;
  f["packed_lstm"] = packed_lstm;
  f["n_step_gru"] = n_step_gru;
  f["sequence_lstm"] = sequence_lstm;
  f["sequence_gru"] = sequence_gru;
  f["gru"] = gru;
  f["lstm_layer"] = lstm_layer;
}

}  // namespace catena::oracle
