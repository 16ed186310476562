// Started by config_test: the settings as the environment gives them.
#include "catena/core/config.h"

#include <cstdio>

int main() {
  using namespace catena;
  const UseCudnn use = config().use_cudnn;
  std::printf("cudnn %s\n", use == UseCudnn::kNever    ? "never"
                            : use == UseCudnn::kAlways ? "always"
                                                       : "auto");
  std::printf("type check %s\n", config().type_check ? "on" : "off");
}
