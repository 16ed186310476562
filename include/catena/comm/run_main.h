// The outer frame of a program: prints the reason of a failure once on standard error and passes it
// to catena-run.
//
//   int body(int argc, char** argv) { ...; return 0; }
//   int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
#pragma once

#include <exception>
#include <functional>
#include <string_view>

namespace catena {

// Writes the reason for which this process is about to fail to the status board of catena-run,
// whose report then begins with `catena-run: rank R on HOST failed first: <text>`; the other ranks
// of the host see it as well. For programs that catch an exception and choose their exit code
// (an uncaught exception is recorded automatically). The first text of a process stays; an error
// that its communicator had noted as another rank's fault stays that rank's. Does nothing in a
// program that neither catena-run nor a communicator gave a board. Never throws.
void report_failure(std::string_view text) noexcept;
void report_failure(const std::exception& error) noexcept;

// body(argc, argv), or, when that throws: report_failure(), the line `PROGRAM: error: TEXT` on
// standard error, and 1. PROGRAM is argv[0]. What the body made is destroyed before the line.
int run_main(int argc, char** argv, const std::function<int(int, char**)>& body) noexcept;

}  // namespace catena
