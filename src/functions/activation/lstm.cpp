// One step of an LSTM: one node with two results, and the layer that keeps its state.
#include "catena/functions/activation/lstm.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/copy.h"
#include "catena/functions/array/split_axis.h"
#include "catena/kernels/rnn.h"
#include "functions/common/advice.h"
#include "functions/common/captured_state.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kLstm = "LSTM";
constexpr int kC = 0, kH = 1, kCPrev = 0, kX = 1;  // results and operands

// As the kernels take them: axes behind the blocks belong to the cells.
Array rows(const Array& a) {
  const int64_t n = a.shape()[0];
  return a.contiguous().reshape({n, a.size() / n});
}
const Array* pointer(const Array& a) { return a.defined() ? &a : nullptr; }

// The gates and the tanh of c again, on variables, for gradients of higher order.
struct Gates {
  Gates(const Variable& x, const Variable& c_prev) {
    const Variables parts = split_axis(x, 4, 1);
    a = tanh(parts[0]), i = sigmoid(parts[1]), f = sigmoid(parts[2]), o = sigmoid(parts[3]);
    tanh_c = tanh(a * i + c_prev * f);
  }
  Variable a, i, f, o, tanh_c;
};

// Saves both operands and c.
class LstmNode final : public FunctionNode {
 public:
  std::string label() const override { return kLstm; }
  // One kernel makes both gradients.
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    const Variable gc = context.grad_output(kC), gh = context.grad_output(kH);
    if (!gc.defined() && !gh.defined()) return;
    const Variable c_prev = context.input(kCPrev), x = context.input(kX);
    if (context.create_graph()) return backward_recorded(context, c_prev, x, gc, gh);
    backward_by_kernel(context, c_prev.data(), x.data(), gc, gh);
  }

 private:
  static void backward_by_kernel(BackwardContext& context, const Array& c_prev, const Array& x,
                                 const Variable& gc, const Variable& gh) {
    const Array gx = Array::uninitialized(x.shape(), x.dtype(), x.device());
    const Array g_prev = context.needs(kCPrev)
                             ? Array::uninitialized(c_prev.shape(), x.dtype(), x.device())
                             : Array();
    if (x.size() > 0) {
      const Array gates = rows(x), before = rows(c_prev), c = rows(context.output(kC).data());
      const Array of_h = gh.defined() ? rows(gh.data()) : Array(),
                  of_c = gc.defined() ? rows(gc.data()) : Array();
      const Array to_gates = rows(gx), to_prev = g_prev.defined() ? rows(g_prev) : Array();
      kernels::lstm_cell_grad(x.device(), {&gates, &before, &c, pointer(of_h), nullptr,
                                           pointer(of_c), &to_gates, pointer(to_prev), true});
    }
    if (context.needs(kX)) context.set_grad(kX, Variable::constant(gx));
    if (g_prev.defined()) context.set_grad(kCPrev, Variable::constant(g_prev));
  }

  static void backward_recorded(BackwardContext& context, const Variable& c_prev, const Variable& x,
                                const Variable& gc, const Variable& gh) {
    const Gates g(x, c_prev);
    Variable of_c = gc, of_o;
    if (gh.defined()) {
      const Variable through = gh * g.o * (1.0 - g.tanh_c * g.tanh_c);
      of_c = gc.defined() ? gc + through : through;
      of_o = gh * g.tanh_c * g.o * (1.0 - g.o);
    } else {
      of_o = Variable::constant(zeros_like(gc.data()));
    }
    if (context.needs(kX)) {
      context.set_grad(kX, concat({of_c * g.i * (1.0 - g.a * g.a), of_c * g.a * g.i * (1.0 - g.i),
                                   of_c * c_prev * g.f * (1.0 - g.f), of_o},
                                  1));
    }
    if (context.needs(kCPrev)) context.set_grad(kCPrev, of_c * g.f);
  }
};

std::string advice(const Array& c, const Array& x) {
  const std::string conversion = dtype_advice(c, x);
  if (!conversion.empty()) return conversion;
  return message(
      "Expected are c_prev (n, cells, ...) and x (n, 4 * cells, ...), with four blocks, ",
      "a, i, f and o, along axis 1.");
}

void check_lstm(const FunctionCall& call) {
  const Array &c = call[kCPrev].data(), &x = call[kX].data();
  const TypeOf cells(c, "c_prev"), gates(x, "x");
  const Checks checks(call.named(), cells, gates);
  checks.require_float(gates);
  const auto advised = checks.advised([&] { return advice(c, x); });
  advised.require(cells.dtype() == gates.dtype(), cells.ndim() >= 2, gates.ndim() == cells.ndim(),
                  gates.shape(0) == cells.shape(0), gates.shape(1) == cells.shape(1) * 4);
  for (int i = 2; i < c.ndim(); ++i) advised.require(gates.shape(i) == cells.shape(i));
}

// States follow the model to another device.
Variable moved(const Variable& state, Device device) {
  return state.device() == device ? state : copy(state, device);
}

double deviation_of(double wscale, int64_t inputs) {
  return wscale * std::sqrt(1.0 / static_cast<double>(inputs));
}

LinearOptions upward_options(int64_t in_size, int64_t out_size, const LSTMOptions& o) {
  CATENA_CHECK(ValueError, in_size > 0 && out_size > 0,
               "LSTM: expected an in_size and an out_size of at least 1, got ", in_size, " and ",
               out_size);
  const Dtype dtype = start_dtype(kLstm, o.dtype, o.upward_init);
  const Array W = initial_gate_weight({kLstm, "upward_init", "(out, in)"}, out_size, in_size,
                                      o.upward_init, dtype, deviation_of(o.wscale, in_size));
  return {
      .initialW = W,
      .initial_bias = initial_gate_bias(kLstm, out_size, o.bias_init, o.forget_bias_init, dtype),
      .flatten = true};
}

LinearOptions lateral_options(int64_t out_size, const LSTMOptions& o, Dtype dtype) {
  return {.nobias = true,
          .initialW = initial_gate_weight({kLstm, "lateral_init", "(out, out)"}, out_size, out_size,
                                          o.lateral_init, dtype, deviation_of(o.wscale, out_size))};
}

}  // namespace

LstmCellResult lstm(const VariableOperand& c_operand, const VariableOperand& x_operand) {
  FunctionCall call(kLstm, Autocast::kWidest, c_operand, x_operand);
  check_lstm(call);
  call.require_one_device();
  const Variable &c_prev = call[kCPrev], &x = call[kX];
  const Array c = Array::uninitialized(c_prev.shape(), x.dtype(), x.device());
  const Array h = Array::uninitialized(c_prev.shape(), x.dtype(), x.device());
  if (c.size() > 0) {
    const Array gates = rows(x.data()), before = rows(c_prev.data()), to_c = rows(c),
                to_h = rows(h);
    kernels::lstm_cell(x.device(), {&gates, &before, nullptr, &to_c, &to_h});
  }
  const Variables results = call.record(Arrays{c, h}, [&] {
    auto node = make_node<LstmNode>();
    node->save_input(kCPrev, c_prev);
    node->save_input(kX, x);
    node->save_output(kC, c);
    return node;
  });
  return {results[kC], results[kH]};
}

LSTM::LSTM(int64_t in_size, int64_t out_size, const LSTMOptions& options)
    : upward(in_size, 4 * out_size, upward_options(in_size, out_size, options)),
      lateral(out_size, 4 * out_size, lateral_options(out_size, options, upward.W.dtype())) {}

Variable LSTM::operator()(const VariableOperand& x) {
  Variable gates = upward(x);
  const int64_t n = gates.shape()[0];
  if (h.defined() || c.defined()) check_captured_state("LSTM", made_in_);
  for (const Variable* state : {&c, &h}) check_recorded_alike("LSTM", *state, gates);
  if (h.defined()) {
    check_samples("LSTM", "c and h", h, n);
    gates = gates + lateral(moved(h, gates.device()));
  }
  const ArrayOptions like{gates.dtype(), gates.device()};
  const Variable before =
      c.defined() ? moved(c, gates.device()) : Variable::constant(zeros({n, out_size()}, like));
  const LstmCellResult next = lstm(before, gates);
  c = next.c, h = next.h;
  made_in_ = cuda::capture_id();
  return h;
}

void LSTM::reset_state() { c = h = Variable(); }

void LSTM::set_state(const Variable& cells, const Variable& output) {
  for (const Variable* state : {&cells, &output}) {
    CATENA_CHECK(ShapeError,
                 !state->defined() || (state->ndim() == 2 && state->shape()[1] == out_size()),
                 "LSTM: a state has shape ", state->shape(), ", expected (n, ", out_size(), ")");
  }
  c = cells, h = output;
  made_in_ = cuda::capture_id();
}

}  // namespace catena::functions
