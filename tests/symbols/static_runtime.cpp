// A program and a library with a copy of the standard library each: both count the same exceptions,
// and the library's handler of std::terminate is the program's.
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace catena {
int pending_exceptions();
void throw_error();
void exit_well_on_terminate();
}  // namespace catena

namespace {

int failures = 0;

void expect(int found, int wanted, const char* where) {
  if (found == wanted) return;
  std::printf("%s: the library counts %d exceptions, expected %d\n", where, found, wanted);
  ++failures;
}

struct Unwound {
  ~Unwound() { expect(catena::pending_exceptions(), 1, "while the program's exception unwinds"); }
};

}  // namespace

int main() {
  try {
    const Unwound unwound;
    throw std::runtime_error("of the program");
  } catch (const std::exception&) {
  }
  expect(catena::pending_exceptions(), 0, "after the program's exception");
  try {
    catena::throw_error();
  } catch (const std::exception&) {
  }
  expect(catena::pending_exceptions(), 0, "after the library's exception");
  std::fflush(stdout);
  if (failures > 0) return 1;
  catena::exit_well_on_terminate();
  std::terminate();
}
