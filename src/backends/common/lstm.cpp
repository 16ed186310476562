// Sequences of an LSTM as products and steps: one product for the inputs of all steps of a layer,
// then a product and a step of the cell for each time. Backward likewise in the other direction,
// with one product over all steps for the gradient of each weight matrix.
#include <utility>
#include <vector>

#include "backends/common/family.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/matmul.h"
#include "catena/kernels/reduce.h"
#include "catena/kernels/rnn.h"

namespace catena {
namespace {

void lstm_grad(const LstmGradCall& call);

// What one layer leaves for backward.
struct LayerState {
  Array activated;  // (T, N, 4H)
  Array c;          // (T, N, H)
  Array h;          // (T, N, H)
};
struct SequenceState final : KeptState {
  std::vector<LayerState> layers;
};

// The extents of a call.
struct Sizes {
  Sizes(const Array& x, const Array& y)
      : steps(x.shape()[0]), sequences(x.shape()[1]), cells(y.shape()[2]) {}
  int64_t rows() const { return steps * sequences; }
  Array uninitialized(const Array& like, int64_t columns) const {
    return Array::uninitialized({steps, sequences, columns}, like.dtype(), like.device());
  }
  int64_t steps, sequences, cells;
};

void multiply(const Array& a, const Array& b, const Array& output, bool accumulate = false,
              const Array* bias = nullptr) {
  kernels::matmul(output.device(),
                  {.a = &a, .b = &b, .output = &output, .bias = bias, .accumulate = accumulate});
}

// (T, N, k) as (T * N, k), and rows [first, end) of that.
Array as_rows(const Array& a) { return a.reshape({a.shape()[0] * a.shape()[1], a.shape()[2]}); }
Array steps_of(const Array& a, int64_t first, int64_t end) {
  return as_rows(a.at({Slice(first, end)}));
}
// Layer l of (L, N, H), or an undefined array.
Array layer_of(const Array* states, size_t l) {
  return states ? (*states)(static_cast<int64_t>(l)) : Array();
}
const Array* pointer(const Array& a) { return a.defined() ? &a : nullptr; }

// Forward ---------------------------------------------------------------------------------------

struct Start {
  Array h, c;
};

// Cells of all steps are stored if `kept`, else those of two.
LayerState run_layer(const Array& x, const LstmWeights& w, const Start& start, const Array& y,
                     const Sizes& z, bool kept) {
  const LayerState s{
      z.uninitialized(x, 4 * z.cells),
      Array::uninitialized({kept ? z.steps : 1, z.sequences, z.cells}, x.dtype(), x.device()), y};
  multiply(as_rows(x), w.Wx->T(), as_rows(s.activated), false, w.b);
  Array h = start.h, c = start.c;
  for (int64_t t = 0; t < z.steps; ++t) {
    const Array gates = s.activated(t), h_now = y(t), c_now = s.c(kept ? t : 0);
    if (h.defined()) multiply(h, w.Wh->T(), gates, true);
    kernels::lstm_cell(x.device(), {&gates, pointer(c), kept ? &gates : nullptr, &c_now, &h_now});
    h = h_now, c = c_now;
  }
  return s;
}

SequenceState* run_layers(const LstmCall& call, bool kept) {
  const Sizes z(*call.x, *call.y);
  auto state = std::make_unique<SequenceState>();
  Array x = *call.x;
  for (size_t l = 0; l < call.weights.size(); ++l) {
    const bool last = l + 1 == call.weights.size();
    const Array y = last ? *call.y : z.uninitialized(x, z.cells);
    LayerState s =
        run_layer(x, call.weights[l], {layer_of(call.h0, l), layer_of(call.c0, l)}, y, z, kept);
    const Device device = x.device();
    const Array h_end = layer_of(call.hT, l), c_end = layer_of(call.cT, l);
    kernels::copy(device, {y(z.steps - 1), h_end});
    kernels::copy(device, {s.c(s.c.shape()[0] - 1), c_end});
    x = y;
    // The result itself is the caller's to keep.
    if (last) s.h = Array();
    if (kept) state->layers.push_back(std::move(s));
  }
  return state.release();
}

void lstm(const LstmCall& call) {
  const IntrusivePtr<const KeptState> state(run_layers(call, call.kept != nullptr));
  if (call.kept) call.kept->keep<&lstm_grad>(state);
}

// Backward --------------------------------------------------------------------------------------

struct LayerGradients {
  Array gates;     // (T, N, 4H)
  Array gh0, gc0;  // written; undefined: not wanted
};

// Goes back through the steps of a layer. gy, (T, N, H), may be null; gh and gc are those of the
// last step, or undefined.
void run_back(const LayerState& s, const LstmWeights& w, const Array& c0, const Array* gy, Array gh,
              Array gc, const LayerGradients& to, const Sizes& z) {
  const Array like = s.c(0);
  const Array gh_room = Array::uninitialized(like.shape(), like.dtype(), like.device());
  const Array gc_room = Array::uninitialized(like.shape(), like.dtype(), like.device());
  for (int64_t t = z.steps - 1; t >= 0; --t) {
    const Array activated = s.activated(t), c = s.c(t), c_prev = t > 0 ? s.c(t - 1) : c0;
    const Array g = gy ? (*gy)(t) : Array(), g_gates = to.gates(t);
    const Array gc_prev = t > 0 ? gc_room : to.gc0, gh_prev = t > 0 ? gh_room : to.gh0;
    kernels::lstm_cell_grad(like.device(), {&activated, pointer(c_prev), &c, pointer(g),
                                            pointer(gh), pointer(gc), &g_gates, pointer(gc_prev)});
    if (gh_prev.defined()) multiply(g_gates, *w.Wh, gh_prev);
    gh = gh_prev, gc = gc_prev;
  }
}

void give_weights(const LstmWeightTargets& to, const Array& x, const Array& h, const Array& h0,
                  const Array& g_gates, const Sizes& z) {
  const Array g = as_rows(g_gates);
  if (to.Wx.array) multiply(g.T(), as_rows(x), *to.Wx.array, to.Wx.accumulate);
  if (to.Wh.array) {
    if (z.steps > 1)
      multiply(steps_of(g_gates, 1, z.steps).T(), steps_of(h, 0, z.steps - 1), *to.Wh.array,
               to.Wh.accumulate);
    const bool add = to.Wh.accumulate || z.steps > 1;
    if (h0.defined())
      multiply(g_gates(0).T(), h0, *to.Wh.array, add);
    else if (!add)
      kernels::fill(g.device(), {*to.Wh.array, Scalar(0)});
  }
  if (to.b.array) {
    const Array target = to.b.array->reshape({1, 4 * z.cells});
    kernels::reduce(g.device(), {ReduceOp::kSum, &g, &target, 1, 1.0, to.b.accumulate});
  }
}

// Runs the forward call once more, for a backward call without its state.
SequenceState* run_again(const LstmGradCall& call) {
  const Sizes z(*call.x, *call.y);
  const Shape ends{static_cast<int64_t>(call.weights.size()), z.sequences, z.cells};
  const Array y = z.uninitialized(*call.x, z.cells);
  const Array h = Array::uninitialized(ends, y.dtype(), y.device());
  const Array c = Array::uninitialized(ends, y.dtype(), y.device());
  return run_layers({call.x, call.h0, call.c0, call.weights, &y, &h, &c}, true);
}

void lstm_grad(const LstmGradCall& call) {
  const Sizes z(*call.x, *call.y);
  const SequenceState* kept = call.kept ? call.kept->state<&lstm_grad, SequenceState>() : nullptr;
  const IntrusivePtr<const SequenceState> state(kept ? kept : run_again(call));
  const Array g_gates = z.uninitialized(*call.x, 4 * z.cells);
  Array gy = call.gy ? *call.gy : Array();
  for (size_t l = call.weights.size(); l-- > 0;) {
    const LstmWeights& w = call.weights[l];
    const Array h0 = layer_of(call.h0, l), c0 = layer_of(call.c0, l);
    const bool last = l + 1 == call.weights.size();
    const Array x = l > 0 ? state->layers[l - 1].h : *call.x;
    run_back(state->layers[l], w, c0, pointer(gy), layer_of(call.ghT, l), layer_of(call.gcT, l),
             {g_gates, layer_of(call.gh0, l), layer_of(call.gc0, l)}, z);
    give_weights(call.targets[l], x, last ? *call.y : state->layers[l].h, h0, g_gates, z);
    if (l == 0 && call.gx == nullptr) continue;
    gy = l > 0 ? z.uninitialized(*call.x, z.cells) : *call.gx;
    multiply(as_rows(g_gates), *w.Wx, as_rows(gy));
  }
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(lstm) {
  kernels::lstm.provide<&lstm>(type, "products");
  kernels::lstm_grad.provide<&lstm_grad>(type, "products");
}
