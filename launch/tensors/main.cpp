// catena-tensors: what files of tensors hold, whether two fit, and one as another.
#include <cstdio>
#include <exception>

#include "catena/core/printable.h"
#include "tensors/commands.h"
#include "tensors/options.h"

int main(int argc, char** argv) {
  using namespace catena::launch::tensors;
  try {
    const auto parsed = parse_options(argc, argv);
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    return run(std::get<Options>(parsed));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "catena-tensors: %s\n", catena::printable(error.what()).c_str());
    return 2;
  }
}
