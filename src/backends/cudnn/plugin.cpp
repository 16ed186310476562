// Entry points of libcatena_cudnn: they put cuDNN before the built-in kernels of GPUs.
#include "catena/core/plugin.h"

#include "backends/cudnn/convolution.h"

// The providers alone, which needs no GPU: tests ask for them on any machine.
extern "C" __attribute__((visibility("default"))) void catena_plugin_kernels() {
  catena::cudnn::register_convolutions();
}

CATENA_PLUGIN(cudnn) { catena_plugin_kernels(); }
