#include "catena/functions/connection/stateful_gru.h"

#include "catena/functions/array/copy.h"
#include "catena/functions/math/elementwise.h"
#include "functions/common/captured_state.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kLayer = "StatefulGRU";

// Layers are made one after the other, and each gets arrays of its own.
Linear from_input(int64_t in, int64_t out, const StatefulGRUOptions& o) {
  CATENA_CHECK(ValueError, in > 0 && out > 0, kLayer, ": expected sizes of at least 1, got ", in,
               " and ", out);
  LinearOptions part{.dtype = start_dtype(kLayer, o.dtype, o.init), .flatten = true};
  if (o.init)
    part.initialW = given_start({kLayer, "init", "(out, in)"}, o.init, {out, in}, *part.dtype);
  if (o.bias_init)
    part.initial_bias =
        given_start({kLayer, "bias_init", "(out)"}, o.bias_init, {out}, *part.dtype);
  return Linear(in, out, part);
}

Linear from_state(int64_t out, const StatefulGRUOptions& o) {
  LinearOptions part{.nobias = true, .dtype = start_dtype(kLayer, o.dtype, o.init)};
  if (o.inner_init)
    part.initialW =
        given_start({kLayer, "inner_init", "(out, out)"}, o.inner_init, {out, out}, *part.dtype);
  return Linear(out, out, part);
}

}  // namespace

StatefulGRU::StatefulGRU(int64_t in_size, int64_t out_size, const StatefulGRUOptions& options)
    : W_r(from_input(in_size, out_size, options)),
      U_r(from_state(out_size, options)),
      W_z(from_input(in_size, out_size, options)),
      U_z(from_state(out_size, options)),
      W(from_input(in_size, out_size, options)),
      U(from_state(out_size, options)) {}

Variable StatefulGRU::operator()(const VariableOperand& x) {
  if (h.defined()) check_captured_state("StatefulGRU", made_in_);
  made_in_ = cuda::capture_id();
  const Variable z_of_x = W_z(x), new_of_x = W(x);
  if (!h.defined()) return h = sigmoid(z_of_x) * tanh(new_of_x);
  check_recorded_alike("StatefulGRU", h, new_of_x);
  check_samples("StatefulGRU", "h", h, new_of_x.shape()[0]);
  const Device device = new_of_x.device();
  const Variable before = h.device() == device ? h : copy(h, device);
  const Variable r = sigmoid(W_r(x) + U_r(before)), z = sigmoid(z_of_x + U_z(before));
  h = (1.0 - z) * before + z * tanh(new_of_x + U(r * before));
  return h;
}

void StatefulGRU::reset_state() { h = Variable(); }

void StatefulGRU::set_state(const Variable& state) {
  CATENA_CHECK(
      ShapeError, !state.defined() || (state.ndim() == 2 && state.shape()[1] == out_size()),
      "StatefulGRU: the state has shape ", state.shape(), ", expected (n, ", out_size(), ")");
  h = state;
  made_in_ = cuda::capture_id();
}

}  // namespace catena::functions
