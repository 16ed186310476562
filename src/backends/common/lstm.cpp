// Sequences of an LSTM as products and steps: one product for the inputs of all steps of a layer,
// then a product and a step of the cell for each time. Backward likewise in the other direction,
// with one product over all steps for the gradient of each weight matrix. Where sequences end, the
// batch of the next step has fewer rows.
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
  Array activated;  // (R, 4H)
  Array c;          // (R, H)
  Array h;          // (R, H)
};
struct SequenceState final : KeptState {
  std::vector<LayerState> layers;
};

// (T, N, k) as (T * N, k); (R, k) as it is.
Array as_rows(const Array& a) {
  return a.ndim() == 2 ? a : a.reshape({a.shape()[0] * a.shape()[1], a.shape()[2]});
}
// Rows [begin, end), and the first ones.
Array rows_of(const Array& a, int64_t begin, int64_t end) {
  return begin == 0 && end == a.shape()[0] ? a : a.at({Slice(begin, end)});
}
Array first(const Array& a, int64_t count) { return rows_of(a, 0, count); }

// Where the steps of a call are among its rows.
class Steps {
 public:
  Steps(const Array& x, const Array& y, const std::vector<int64_t>& counts)
      : cells(y.shape().back()), counts_(counts), shrinks_(!counts.empty()) {
    if (!shrinks_) counts_.assign(static_cast<size_t>(x.shape()[0]), x.shape()[1]);
    for (const int64_t n : counts_) begins_.push_back(begins_.back() + n);
  }
  int64_t size() const { return static_cast<int64_t>(counts_.size()); }
  int64_t sequences() const { return counts_.front(); }
  int64_t rows() const { return begins_.back(); }
  // Sequences that have a step t; 0 behind the last one.
  int64_t count(int64_t t) const { return t < size() ? counts_[static_cast<size_t>(t)] : 0; }
  // The rows of step t.
  Array of(const Array& a, int64_t t) const {
    return rows_of(a, begins_[static_cast<size_t>(t)], begins_[static_cast<size_t>(t) + 1]);
  }
  // Of the rows of all steps those that precede a row of the next step, in the order of these.
  Array before_next(const Array& a) const {
    if (!shrinks_) return first(a, rows() - sequences());
    std::vector<Array> parts;
    for (int64_t t = 0; t + 1 < size(); ++t) parts.push_back(first(of(a, t), count(t + 1)));
    const Array joined = like(a, rows() - sequences());
    kernels::concatenate(a.device(), {parts, 0, joined});
    return joined;
  }
  Array uninitialized(const Array& x, int64_t columns) const {
    return Array::uninitialized({rows(), columns}, x.dtype(), x.device());
  }
  static Array like(const Array& a, int64_t count) {
    return Array::uninitialized({count, a.shape()[1]}, a.dtype(), a.device());
  }
  int64_t cells;

 private:
  std::vector<int64_t> counts_, begins_{0};
  bool shrinks_;
};

void multiply(const Array& a, const Array& b, const Array& output, bool accumulate = false,
              const Array* bias = nullptr) {
  kernels::matmul(output.device(),
                  {.a = &a, .b = &b, .output = &output, .bias = bias, .accumulate = accumulate});
}

// Layer l of (L, N, H), or an undefined array.
Array layer_of(const Array* states, size_t l) {
  return states ? (*states)(static_cast<int64_t>(l)) : Array();
}
const Array* pointer(const Array& a) { return a.defined() ? &a : nullptr; }

// Forward ---------------------------------------------------------------------------------------

struct States {
  Array h, c;
};

// The states of sequences that end at a step: rows [going_on, count).
void give_ends(const Array& now, const Array& ends, int64_t going_on) {
  const int64_t count = now.shape()[0];
  if (going_on < count)
    kernels::copy(now.device(), {rows_of(now, going_on, count), rows_of(ends, going_on, count)});
}

// Cells of all steps are stored if `kept`, else those of one.
LayerState run_layer(const Array& x, const LstmWeights& w, const States& start, const Array& y,
                     const States& ends, const Steps& z, bool kept) {
  const LayerState s{
      z.uninitialized(x, 4 * z.cells),
      Array::uninitialized({kept ? z.rows() : z.sequences(), z.cells}, x.dtype(), x.device()), y};
  multiply(x, w.Wx->T(), s.activated, false, w.b);
  Array h = start.h, c = start.c;
  for (int64_t t = 0; t < z.size(); ++t) {
    const int64_t n = z.count(t);
    const Array gates = z.of(s.activated, t), h_now = z.of(y, t),
                c_now = kept ? z.of(s.c, t) : first(s.c, n);
    if (h.defined()) multiply(first(h, n), w.Wh->T(), gates, true);
    if (c.defined()) c = first(c, n);
    kernels::lstm_cell(x.device(), {&gates, pointer(c), kept ? &gates : nullptr, &c_now, &h_now});
    give_ends(h_now, ends.h, z.count(t + 1));
    give_ends(c_now, ends.c, z.count(t + 1));
    h = h_now, c = c_now;
  }
  return s;
}

SequenceState* run_layers(const LstmCall& call, bool kept) {
  const Steps z(*call.x, *call.y, call.counts);
  auto state = std::make_unique<SequenceState>();
  Array x = as_rows(*call.x);
  for (size_t l = 0; l < call.weights.size(); ++l) {
    const bool last = l + 1 == call.weights.size();
    const Array y = last ? as_rows(*call.y) : z.uninitialized(x, z.cells);
    const States start{layer_of(call.h0, l), layer_of(call.c0, l)},
        ends{layer_of(call.hT, l), layer_of(call.cT, l)};
    LayerState s = run_layer(x, call.weights[l], start, y, ends, z, kept);
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
  Array gates;     // (R, 4H)
  Array gh0, gc0;  // written; undefined: not wanted
};

// The gradient of the state behind a step of n sequences: `later`, which is in the first rows of
// `room`, of those that go on, and that of the result, which may be undefined, of those that end.
Array behind_step(const Array& later, int64_t going_on, const Array& of_ends, const Array& room,
                  int64_t n) {
  if (going_on == n) return later;
  if (going_on == 0) return of_ends.defined() ? first(of_ends, n) : Array();
  const Array ending = rows_of(room, going_on, n);
  if (of_ends.defined())
    kernels::copy(room.device(), {rows_of(of_ends, going_on, n), ending});
  else
    kernels::fill(room.device(), {ending, Scalar(0)});
  return first(room, n);
}

// Goes back through the steps of a layer. gy, (R, H), may be undefined; so may those of the states
// at the ends.
void run_back(const LayerState& s, const LstmWeights& w, const Array& c0, const Array& gy,
              const States& of_ends, const LayerGradients& to, const Steps& z) {
  const Array gh_room = Steps::like(s.c, z.sequences()), gc_room = Steps::like(s.c, z.sequences());
  Array gh, gc;
  for (int64_t t = z.size() - 1; t >= 0; --t) {
    const int64_t n = z.count(t), going_on = z.count(t + 1);
    gh = behind_step(gh, going_on, of_ends.h, gh_room, n);
    gc = behind_step(gc, going_on, of_ends.c, gc_room, n);
    const Array activated = z.of(s.activated, t), c = z.of(s.c, t),
                c_prev = t > 0 ? first(z.of(s.c, t - 1), n) : c0;
    const Array g = gy.defined() ? z.of(gy, t) : Array(), g_gates = z.of(to.gates, t);
    const Array gc_prev = t > 0 ? first(gc_room, n) : to.gc0,
                gh_prev = t > 0 ? first(gh_room, n) : to.gh0;
    kernels::lstm_cell_grad(c.device(), {&activated, pointer(c_prev), &c, pointer(g), pointer(gh),
                                         pointer(gc), &g_gates, pointer(gc_prev)});
    if (gh_prev.defined()) multiply(g_gates, *w.Wh, gh_prev);
    gh = gh_prev, gc = gc_prev;
  }
}

void give_weights(const LstmWeightTargets& to, const Array& x, const Array& h, const Array& h0,
                  const Array& g, const Steps& z) {
  if (to.Wx.array) multiply(g.T(), x, *to.Wx.array, to.Wx.accumulate);
  if (to.Wh.array) {
    if (z.size() > 1)
      multiply(rows_of(g, z.sequences(), z.rows()).T(), z.before_next(h), *to.Wh.array,
               to.Wh.accumulate);
    const bool add = to.Wh.accumulate || z.size() > 1;
    if (h0.defined())
      multiply(z.of(g, 0).T(), h0, *to.Wh.array, add);
    else if (!add)
      kernels::fill(g.device(), {*to.Wh.array, Scalar(0)});
  }
  if (to.b.array) {
    const Array target = to.b.array->reshape({1, 4 * z.cells});
    kernels::reduce(g.device(), {ReduceOp::kSum, &g, &target, 1, 1.0, to.b.accumulate});
  }
}

// Runs the forward call once more, for a backward call without its state.
SequenceState* run_again(const LstmGradCall& call, const Steps& z) {
  const Shape ends{static_cast<int64_t>(call.weights.size()), z.sequences(), z.cells};
  const Array y = z.uninitialized(*call.x, z.cells);
  const Array h = Array::uninitialized(ends, y.dtype(), y.device());
  const Array c = Array::uninitialized(ends, y.dtype(), y.device());
  return run_layers({call.x, call.h0, call.c0, call.weights, &y, &h, &c, nullptr, call.counts},
                    true);
}

void lstm_grad(const LstmGradCall& call) {
  const Steps z(*call.x, *call.y, call.counts);
  const SequenceState* kept = call.kept ? call.kept->state<&lstm_grad, SequenceState>() : nullptr;
  const IntrusivePtr<const SequenceState> state(kept ? kept : run_again(call, z));
  const Array g_gates = z.uninitialized(*call.x, 4 * z.cells);
  Array gy = call.gy ? as_rows(*call.gy) : Array();
  for (size_t l = call.weights.size(); l-- > 0;) {
    const LstmWeights& w = call.weights[l];
    const Array h0 = layer_of(call.h0, l), c0 = layer_of(call.c0, l);
    const bool last = l + 1 == call.weights.size();
    const Array x = l > 0 ? state->layers[l - 1].h : as_rows(*call.x);
    run_back(state->layers[l], w, c0, gy, {layer_of(call.ghT, l), layer_of(call.gcT, l)},
             {g_gates, layer_of(call.gh0, l), layer_of(call.gc0, l)}, z);
    give_weights(call.targets[l], x, last ? as_rows(*call.y) : state->layers[l].h, h0, g_gates, z);
    if (l == 0 && call.gx == nullptr) continue;
    gy = l > 0 ? z.uninitialized(*call.x, z.cells) : as_rows(*call.gx);
    multiply(g_gates, *w.Wx, gy);
  }
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(lstm) {
  kernels::lstm.provide<&lstm>(type, "products");
  kernels::lstm_grad.provide<&lstm_grad>(type, "products");
}
