// Started by memory_picture_test: allocates 3 MiB and ends, with an argument by an exception.
#include <stdexcept>

#include "catena/core/call_scope.h"

int main(int argc, char**) {
  using namespace catena;
  const CallScope scope("program");
  const StoragePtr kept = allocate(cpu(0), 3 << 20);
  if (argc > 1) throw std::runtime_error("ends here");
}
