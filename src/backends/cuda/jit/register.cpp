// Registers generated kernels. See register.h.
#include "backends/cuda/jit/register.h"

namespace catena {

void register_jit_kernels() {
  jit::register_elementwise();
  jit::register_fused();
  jit::register_copies();
  jit::register_reductions();
  jit::register_user_kernels();
}

}  // namespace catena
