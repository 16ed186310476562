// Entry point of libcatena_onednn, which puts oneDNN before the built-in kernels of the CPU.
#include "catena/core/plugin.h"

#include "backends/onednn/convolution.h"
#include "catena/core/error.h"

CATENA_PLUGIN(onednn) {
  using namespace catena;
  onednn::check_version();
  onednn::register_convolutions();
}
