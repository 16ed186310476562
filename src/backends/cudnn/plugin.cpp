// Entry points of libcatena_cudnn, which put cuDNN before the built-in kernels of GPUs.
#include "catena/core/plugin.h"

#include "backends/cudnn/convolution.h"

// Registers the providers alone, which needs no GPU: tests ask for them on any machine.
extern "C" __attribute__((visibility("default"))) void catena_plugin_kernels() {
  catena::cudnn::register_convolutions();
}

CATENA_PLUGIN(cudnn) { catena_plugin_kernels(); }
