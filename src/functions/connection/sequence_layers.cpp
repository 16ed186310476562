#include "catena/functions/connection/sequence_layers.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/array.h"
#include "catena/functions/noise/dropout.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kLstm = "SequenceLSTM";
constexpr const char* kGru = "SequenceGRU";

// Start values -----------------------------------------------------------------------------------

// `gates` blocks, each by the initializer, or 0 for a bias and normal numbers for a weight.
Array start_of(const LayerOption& option, const InitialValue& given, int64_t gates,
               const Shape& block, Dtype dtype) {
  Shape all = block;
  all[0] *= gates;
  if (!given && block.ndim() == 1) return zeros(all, dtype);
  if (!given) return random::normal(all, 0, std::sqrt(1 / static_cast<double>(block[1])), dtype);
  const Array start = Array::uninitialized(all, dtype, current_device());
  for (int64_t k = 0; k < gates; ++k)
    start.at({Slice(k * block[0], (k + 1) * block[0])})
        .assign(given_start(option, given, block, dtype));
  return start;
}

// Layers in one or both directions ---------------------------------------------------------------

struct Outline {
  int64_t layers;
  bool both;
  double dropout;  // 0 where nothing is dropped
};

// run(part, sequences) gives the results of one layer in one direction.
template <class Run>
PackedSequences through_layers(const Outline& o, PackedSequences xs, Run run) {
  size_t part = 0;
  for (int64_t l = 0; l < o.layers; ++l) {
    if (l > 0 && o.dropout > 0) xs = xs.with_rows(functions::dropout(xs.rows(), o.dropout));
    PackedSequences ys = run(part++, xs);
    if (o.both) {
      const PackedSequences back = run(part++, xs.reversed()).reversed();
      ys = ys.with_rows(concat({ys.rows(), back.rows()}, 1));
    }
    xs = ys;
  }
  return xs;
}

// States of one part of a layer.
OptionalVariable part_of(const OptionalVariable& states, const char* kind, size_t part) {
  const Variable* all = states.get(kind);
  if (all == nullptr) return {};
  const auto first = static_cast<int64_t>(part);
  return get_item(*all, {Slice(first, first + 1)});
}

// Rows of PyTorch's blocks i, f, g, o as a = g, i, f, o.
Variable in_our_order(const Variable& w) {
  const Variables blocks = split_axis(w, 4, 0);
  return concat({blocks[2], blocks[0], blocks[1], blocks[3]}, 0);
}

Variable no_bias(const OwnedParameter& W) {
  return Variable::constant(zeros({W.shape()[0]}, {W.dtype(), W.device()}));
}

}  // namespace

SequenceWeights::SequenceWeights(const Description& d)
    : both_(d.both), dropout_(d.dropout), batch_first_(d.batch_first) {
  CATENA_CHECK(ValueError, d.layers > 0 && d.in_size > 0 && d.out_size > 0, d.kind,
               ": expected in_size, out_size and layers of at least 1, got ", d.in_size, ", ",
               d.out_size, " and ", d.layers);
  CATENA_CHECK(ValueError, d.dropout >= 0 && d.dropout < 1, d.kind,
               ": expected a dropout of [0, 1), got ", d.dropout);
  CATENA_CHECK(ValueError, !d.nobias || !d.initial_bias, d.kind,
               ": nobias and initial_bias contradict each other; leave out one of them");
  CATENA_CHECK(ValueError, !d.initialW.array() && !d.initial_bias.array(), d.kind,
               ": a start value is an array, but the weights have different shapes; give an "
               "initializer, or assign to the parameters in parts");
  const Dtype dtype = start_dtype(d.kind, d.dtype, {});
  const auto weight = [&](int64_t in) {
    return OwnedParameter(
        start_of({d.kind, "initialW", "(out, in)"}, d.initialW, d.gates, {d.out_size, in}, dtype));
  };
  const auto bias = [&] {
    if (d.nobias) return OwnedParameter();
    return OwnedParameter(
        start_of({d.kind, "initial_bias", "(out)"}, d.initial_bias, d.gates, {d.out_size}, dtype));
  };
  for (int64_t l = 0; l < d.layers; ++l) {
    const int64_t in = l == 0 ? d.in_size : directions() * d.out_size;
    for (int64_t k = 0; k < directions(); ++k) {
      Part part;
      part.weight_ih = weight(in);
      part.weight_hh = weight(d.out_size);
      part.bias_ih = bias();
      part.bias_hh = bias();
      parts.push_back(std::move(part));
    }
  }
}

void SequenceWeights::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto along = static_cast<size_t>(directions());
    const std::string end = message("_l", i / along, i % along == 1 ? "_reverse" : "");
    Part& part = parts[i];
    visitor(prefix + "weight_ih" + end, part.weight_ih);
    visitor(prefix + "weight_hh" + end, part.weight_hh);
    if (!part.bias_ih.defined()) continue;
    visitor(prefix + "bias_ih" + end, part.bias_ih);
    visitor(prefix + "bias_hh" + end, part.bias_hh);
  }
}

PackedSequences SequenceWeights::packed(const char* kind, const VariableOperand& operand,
                                        const std::optional<Array>& lengths) const {
  const Variable& x = operand.variable(kind);
  CATENA_CHECK(ValueError, !parts.empty(), kind, ": this layer has no weights; it was moved from");
  CATENA_CHECK(ShapeError, x.ndim() == 3 && x.shape()[2] == in_size(), kind, ": expected x as ",
               batch_first_ ? "(n, steps, " : "(steps, n, ", in_size(), "), got shape ", x.shape());
  return PackedSequences(x, lengths, batch_first_);
}

void SequenceWeights::check_states(const char* kind, const char* name,
                                   const OptionalVariable& states,
                                   const PackedSequences& xs) const {
  CATENA_CHECK(ValueError, !parts.empty(), kind, ": this layer has no weights; it was moved from");
  const Variable* given = states.get(kind);
  if (given == nullptr) return;
  const Shape expected{static_cast<int64_t>(parts.size()), xs.size(), out_size()};
  CATENA_CHECK(ShapeError, given->shape() == expected, kind, ": the state ", name, " has shape ",
               given->shape(), ", expected (layers * directions, n, out) = ", expected);
}

// LSTM -------------------------------------------------------------------------------------------

SequenceLSTM::SequenceLSTM(int64_t in_size, int64_t out_size, const SequenceLSTMOptions& o)
    : SequenceWeights({kLstm, 4, in_size, out_size, o.layers, o.bidirectional, o.dropout,
                       o.batch_first, o.nobias, o.initialW, o.initial_bias, o.dtype}) {}

// As n_step_lstm() takes them: the two biases are added.
Variables SequenceLSTM::weights(size_t part) const {
  const Part& p = parts[part];
  const Variable b = p.bias_ih.defined() ? in_our_order(p.bias_ih.variable() + p.bias_hh.variable())
                                         : no_bias(p.weight_ih);
  return {in_our_order(p.weight_ih.variable()), in_our_order(p.weight_hh.variable()), b};
}

PackedLstmResult SequenceLSTM::operator()(const PackedSequences& xs, const OptionalVariable& hx,
                                          const OptionalVariable& cx,
                                          std::optional<YesNo> train) const {
  check_states(kLstm, "hx", hx, xs);
  check_states(kLstm, "cx", cx, xs);
  const bool drops = train.value_or(training());
  if (directions() == 1) {  // all layers in one call
    Variables all;
    for (size_t part = 0; part < parts.size(); ++part) {
      const Variables own = weights(part);
      all.insert(all.end(), own.begin(), own.end());
    }
    return n_step_lstm(layers(), dropout(), hx, cx, all, xs, drops);
  }
  Variables hy, cy;
  const PackedSequences ys = through_layers({layers(), directions() == 2, drops ? dropout() : 0},
                                            xs, [&](size_t part, const PackedSequences& in) {
                                              const PackedLstmResult r = n_step_lstm(
                                                  1, 0, part_of(hx, kLstm, part),
                                                  part_of(cx, kLstm, part), weights(part), in);
                                              hy.push_back(r.hy);
                                              cy.push_back(r.cy);
                                              return r.ys;
                                            });
  return {concat(hy, 0), concat(cy, 0), ys};
}

LstmResult SequenceLSTM::operator()(const VariableOperand& x, const std::optional<Array>& lengths,
                                    const OptionalVariable& hx, const OptionalVariable& cx,
                                    std::optional<YesNo> train) const {
  const PackedLstmResult r = (*this)(packed(kLstm, x, lengths), hx, cx, train);
  return {r.hy, r.cy, r.ys.padded()};
}

// GRU --------------------------------------------------------------------------------------------

SequenceGRU::SequenceGRU(int64_t in_size, int64_t out_size, const SequenceGRUOptions& o)
    : SequenceWeights({kGru, 3, in_size, out_size, o.layers, o.bidirectional, o.dropout,
                       o.batch_first, o.nobias, o.initialW, o.initial_bias, o.dtype}),
      form_(o.form) {}

Variables SequenceGRU::weights(size_t part) const {
  const Part& p = parts[part];
  if (!p.bias_ih.defined())
    return {p.weight_ih.variable(), p.weight_hh.variable(), no_bias(p.weight_ih),
            no_bias(p.weight_ih)};
  return {p.weight_ih.variable(), p.weight_hh.variable(), p.bias_ih.variable(),
          p.bias_hh.variable()};
}

PackedGruResult SequenceGRU::operator()(const PackedSequences& xs, const OptionalVariable& hx,
                                        std::optional<YesNo> train) const {
  check_states(kGru, "hx", hx, xs);
  const bool drops = train.value_or(training());
  Variables hy;
  const PackedSequences ys =
      through_layers({layers(), directions() == 2, drops ? dropout() : 0}, xs,
                     [&](size_t part, const PackedSequences& in) {
                       const PackedGruResult r =
                           n_step_gru(1, 0, part_of(hx, kGru, part), weights(part), in, form_);
                       hy.push_back(r.hy);
                       return r.ys;
                     });
  return {concat(hy, 0), ys};
}

GruResult SequenceGRU::operator()(const VariableOperand& x, const std::optional<Array>& lengths,
                                  const OptionalVariable& hx, std::optional<YesNo> train) const {
  const PackedGruResult r = (*this)(packed(kGru, x, lengths), hx, train);
  return {r.hy, r.ys.padded()};
}

}  // namespace catena::functions
