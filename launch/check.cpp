#include "check.h"

namespace catena::launch {

LibraryCheck library_check = nullptr;

int run_check(const Options&) { return 0; }

}  // namespace catena::launch
