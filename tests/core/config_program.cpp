// Started by config_test: the settings as the environment gives them; with an argument, the number
// of threads.
#include "catena/core/config.h"

#include <cstdio>

int main(int argc, char**) {
  using namespace catena;
  if (argc > 1) {
    std::printf("%d\n", cpu_threads());
    return 0;
  }
  const UseCudnn use = config().use_cudnn;
  std::printf("cudnn %s\n", use == UseCudnn::kNever    ? "never"
                            : use == UseCudnn::kAlways ? "always"
                                                       : "auto");
  std::printf("type check %s\n", config().type_check ? "on" : "off");
}
