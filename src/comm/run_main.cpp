#include "catena/comm/run_main.h"

#include <cstdio>
#include <string>

#include "catena/core/printable.h"
#include "status/process_board.h"

namespace catena {

void report_failure(std::string_view text) noexcept {
  try {
    comm::note_process_failure(text);
  } catch (const std::exception&) {
    // The board is gone: the error is on standard error as well.
  }
}

void report_failure(const std::exception& error) noexcept { report_failure(error.what()); }

int run_main(int argc, char** argv, const std::function<int(int, char**)>& body) noexcept {
  std::string text;
  try {
    return body(argc, argv);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "an exception that is not a std::exception";
  }
  report_failure(text);
  std::fprintf(stderr, "%s: error: %s\n", argc > 0 ? argv[0] : "program", printable(text).c_str());
  return 1;
}

}  // namespace catena
