// The library of static_runtime: it asks the standard library for what must be one in a process.
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace catena {

[[gnu::visibility("default")]] int pending_exceptions() { return std::uncaught_exceptions(); }

[[gnu::visibility("default")]] void throw_error() { throw std::runtime_error("of the library"); }

[[gnu::visibility("default")]] void exit_well_on_terminate() {
  std::set_terminate([] { std::_Exit(0); });
}

}  // namespace catena
