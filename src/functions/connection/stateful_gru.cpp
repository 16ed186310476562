#include "catena/functions/connection/stateful_gru.h"

#include "catena/functions/array/copy.h"
#include "catena/functions/math/elementwise.h"
#include "functions/common/captured_state.h"

namespace catena::functions {

StatefulGRU::StatefulGRU(int64_t in_size, int64_t out_size, Dtype dtype)
    : W_r(in_size, out_size, {.dtype = dtype}),
      U_r(out_size, out_size, {.nobias = true, .dtype = dtype}),
      W_z(in_size, out_size, {.dtype = dtype}),
      U_z(out_size, out_size, {.nobias = true, .dtype = dtype}),
      W(in_size, out_size, {.dtype = dtype}),
      U(out_size, out_size, {.nobias = true, .dtype = dtype}) {}

Variable StatefulGRU::operator()(const VariableOperand& x) {
  if (h.defined()) check_captured_state("StatefulGRU", made_in_);
  made_in_ = cuda::capture_id();
  const Variable z_of_x = W_z(x), new_of_x = W(x);
  if (!h.defined()) return h = sigmoid(z_of_x) * tanh(new_of_x);
  const int64_t n = new_of_x.shape()[0];
  CATENA_CHECK(ShapeError, h.shape()[0] == n, "StatefulGRU: the state is that of ", h.shape()[0],
               " samples, x has ", n, "; call reset_state() before another batch");
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
