#include "catena/functions/connection/n_step_gru.h"

#include "catena/array/creation.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/functions/noise/dropout.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/connection/n_step_numbers.h"

namespace catena::functions {
namespace {

constexpr const char* kNStepGru = "NStepGRU";
constexpr int64_t kGates = 3;

struct Weights {
  Variable Wx, Wh, bx, bh;
  int64_t cells() const { return Wh.shape()[1]; }
};

// Checks ----------------------------------------------------------------------------------------

std::string rows_advice(const Array& x, const Array& Wx) {
  if (x.dtype() != Wx.dtype()) return layer_dtype_advice(x, Wx);
  if (Wx.ndim() != 2) return "The weights Wx are expected as (3 * out, in), a matrix.";
  return message("The layer takes packed sequences of ", Wx.shape()[1],
                 " numbers at each step; their rows have shape ", x.shape(), ".");
}

std::string gru_weight_advice(int64_t in, int64_t out) {
  return message("A layer of ", out, " cells has Wx (", kGates * out, ", ", in, "), Wh (",
                 kGates * out, ", ", out, "), bx (", kGates * out, ",) and bh (", kGates * out,
                 ",): three blocks of rows, r, z, n. The second layer's in is out.");
}

// Of layer l; `in` is the extent of its input, `out` that of the first layer's states.
void check_gru_layer(const FunctionCall& call, const Variable& rows, const Weights& w, int l,
                     int64_t in, int64_t out) {
  const TypeOf x(rows.data(), "xs"), Wx(w.Wx.data(), "Wx", l), Wh(w.Wh.data(), "Wh", l),
      bx(w.bx.data(), "bx", l), bh(w.bh.data(), "bh", l);
  const Checks checks(call.named(), x, Wx, Wh, bx, bh);
  if (l == 0) {
    checks.require_float(Wx);
    checks.advised([&] { return rows_advice(rows.data(), w.Wx.data()); })
        .require(x.dtype() == Wx.dtype(), x.ndim() == 2, Wx.ndim() == 2, x.shape(1) == Wx.shape(1));
  }
  checks.advised([&] { return gru_weight_advice(in, out); })
      .require(Wx.dtype() == x.dtype(), Wh.dtype() == x.dtype(), bx.dtype() == x.dtype(),
               bh.dtype() == x.dtype(), Wx.ndim() == 2, Wh.ndim() == 2, bx.ndim() == 1,
               bh.ndim() == 1, Wh.shape(1) == shown(out, "out"), Wh.shape(0) == Wh.shape(1) * 3,
               Wx.shape(0) == Wh.shape(0), Wx.shape(1) == shown(in, "in"),
               bx.shape(0) == Wh.shape(0), bh.shape(0) == Wh.shape(0));
}

void check_gru_state(const FunctionCall& call, const Variable& rows, const Variable& hx,
                     const Shape& expected) {
  const TypeOf x(rows.data(), "xs"), h(hx.data(), "hx");
  Checks(call.named(), x, h)
      .advised([&] {
        return message("The state hx is expected as (n_layers, n, out) = ", expected,
                       ", of the dtype of the weights; it is ", hx.dtype(), " ", hx.shape(), ".");
      })
      .require(h.dtype() == x.dtype(), h.ndim() == 3, h.shape(0) == shown(expected[0], "n_layers"),
               h.shape(2) == shown(expected[2], "out"));
}

// One step --------------------------------------------------------------------------------------

// Two blocks of columns, r and z together and n.
struct Gates {
  explicit Gates(const Variable& all, int64_t cells) {
    const Variables parts = split_axis(all, {2 * cells}, 1);
    rz = parts[0], n = parts[1];
  }
  Variable rz, n;
};

// The unit of one layer; of_x are the products with Wx and bx.
class Unit {
 public:
  Unit(const Weights& w, GruForm form) : w_(w), form_(form) {
    if (form == GruForm::kPytorch) return;
    const Variables W = split_axis(w.Wh, {2 * w.cells()}, 0),
                    b = split_axis(w.bh, {2 * w.cells()}, 0);
    W_rz_ = W[0], W_n_ = W[1], b_rz_ = b[0], b_n_ = b[1];
  }
  Variable step(const Variable& of_x, const Variable& h) const {
    const Gates x(of_x, w_.cells());
    return form_ == GruForm::kPytorch ? reset_behind(x, h) : reset_before(x, h);
  }

 private:
  Variable reset_behind(const Gates& x, const Variable& h) const {
    const Gates of_h(linear(h, w_.Wh, w_.bh), w_.cells());
    const Variables rz = split_axis(sigmoid(x.rz + of_h.rz), 2, 1);
    const Variable n = tanh(x.n + rz[0] * of_h.n);
    return n + rz[1] * (h - n);
  }
  Variable reset_before(const Gates& x, const Variable& h) const {
    const Variables rz = split_axis(sigmoid(x.rz + linear(h, W_rz_, b_rz_)), 2, 1);
    const Variable n = tanh(x.n + linear(rz[0] * h, W_n_, b_n_));
    return h + rz[1] * (n - h);
  }

  Weights w_;
  GruForm form_;
  Variable W_rz_, W_n_, b_rz_, b_n_;
};

// Layers ----------------------------------------------------------------------------------------

struct LayerResult {
  Variable h, rows;  // at the ends, and of all steps
};

Axes step_cuts(const std::vector<int64_t>& counts) {
  Axes cuts;
  for (size_t t = 0; t + 1 < counts.size(); ++t)
    cuts.push_back((t == 0 ? 0 : cuts.back()) + counts[t]);
  return cuts;
}

// From h, which has the longest sequence first. States leave it from the end.
LayerResult run_gru_layer(const Variable& x, Variable h, const Weights& w,
                          const std::vector<int64_t>& counts, GruForm form) {
  const Variables of_x = split_axis(linear(x, w.Wx, w.bx), step_cuts(counts), 0);
  const Unit unit(w, form);
  Variables rows, ended;
  for (size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] < h.shape()[0]) {
      const Variables parts = split_axis(h, {counts[t]}, 0);
      h = parts[0];
      ended.insert(ended.begin(), parts[1]);
    }
    h = unit.step(of_x[t], h);
    rows.push_back(h);
  }
  ended.insert(ended.begin(), h);
  return {concat(ended, 0), concat(rows, 0)};
}

// Of a call's operands: x, hx if there is one, the weights.
std::vector<Weights> weights_from(const FunctionCall& call, size_t first) {
  std::vector<Weights> layers;
  for (size_t i = first; i < call.size(); i += 4)
    layers.push_back({call[i], call[i + 1], call[i + 2], call[i + 3]});
  return layers;
}

void check_n_step_gru(const FunctionCall& call, const std::vector<Weights>& layers,
                      const Variable* hx, int64_t n) {
  const Variable& x = call[0];
  const Shape& Wh = layers[0].Wh.shape();
  const int64_t out = Wh.ndim() == 2 ? Wh[1] : 0, in = x.ndim() == 2 ? x.shape()[1] : 0;
  for (size_t l = 0; l < layers.size(); ++l)
    check_gru_layer(call, x, layers[l], static_cast<int>(l), l == 0 ? in : out, out);
  if (hx != nullptr) check_gru_state(call, x, *hx, {static_cast<int64_t>(layers.size()), n, out});
  call.require_one_device();
}

}  // namespace

PackedGruResult n_step_gru(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                           const Variables& weights, const PackedSequences& xs, GruForm form,
                           YesNo train) {
  check_n_step_numbers(kNStepGru, n_layers, dropout_ratio, weights, 4, "Wx, Wh, bx and bh");
  const Variable* given = hx.get(kNStepGru);
  const Variable start = given != nullptr ? xs.longest_first(*given) : Variable();
  std::vector<const Variable*> operands{&xs.rows()};
  if (given != nullptr) operands.push_back(&start);
  for (const Variable& w : weights) operands.push_back(&w);
  FunctionCall call(kNStepGru, Autocast::kLow, std::span<const Variable* const>(operands));
  const std::vector<Weights> layers = weights_from(call, given != nullptr ? 2 : 1);
  const Variable* h = given != nullptr ? &call[1] : nullptr;
  check_n_step_gru(call, layers, h, xs.size());

  const Shape state{xs.size(), layers[0].cells()};
  Variable rows = call[0];
  Variables ends;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (l > 0) rows = dropout(rows, dropout_ratio, train);
    const Variable h0 = h != nullptr
                            ? get_item(*h, {static_cast<int64_t>(l)})
                            : Variable::constant(zeros(state, {rows.dtype(), rows.device()}));
    const LayerResult r = run_gru_layer(rows, h0, layers[l], xs.counts(), form);
    ends.push_back(r.h);
    rows = r.rows;
  }
  return {xs.as_given(stack(ends, 0)), xs.with_rows(rows)};
}

}  // namespace catena::functions
