// Started with CATENA_PROVIDERS set: the first thing that the process does is a kernel of a layer,
// a call of a slot that has got a provider before the built-in ones, or a convolution.
// With "cuda" the plug-in of GPUs is loaded after the first.
#include <cstdio>
#include <cstring>

#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/core/error.h"
#include "catena/core/plugin.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/kernels/copy.h"

// Whether a convolution can be computed; else prints why not.
static bool convolve() {
  using namespace catena;
  try {
    functions::convolution_2d(Variable(ones({1, 2, 5, 5}, dtype::float32)),
                              Variable(ones({3, 2, 3, 3}, dtype::float32)));
    return true;
  } catch (const DeviceError& e) {
    std::printf("%s\n", e.what());
    return false;
  }
}

int main(int argc, char** argv) {
  using namespace catena;
  if (argc > 1 && std::strcmp(argv[1], "provider") == 0)
    kernels::fill.provide(
        DeviceType::kCpu, "mine", +[](const FillCall&) { return false; }, 20);
  if (argc > 1 && std::strcmp(argv[1], "convolution") == 0) return convolve() ? 0 : 1;
  const functions::Linear layer(3, 2);
  if (argc > 1 && std::strcmp(argv[1], "cuda") == 0) return load_plugin("cuda").empty() ? 0 : 1;
  std::printf("%s\n", config().providers.text().c_str());
  return layer.W.defined() ? 0 : 1;
}
