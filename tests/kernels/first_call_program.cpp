// Started with CATENA_PROVIDERS set: the first thing that the process does is a kernel of a layer,
// or a call of a slot that has got a provider before the built-in ones.
#include <cstdio>
#include <cstring>

#include "catena/array/array.h"
#include "catena/functions/functions.h"
#include "catena/kernels/copy.h"

int main(int argc, char** argv) {
  using namespace catena;
  if (argc > 1 && std::strcmp(argv[1], "provider") == 0)
    kernels::fill.provide(
        DeviceType::kCpu, "mine", +[](const FillCall&) { return false; }, 20);
  const functions::Linear layer(3, 2);
  std::printf("%s\n", config().providers.text().c_str());
  return layer.W.defined() ? 0 : 1;
}
