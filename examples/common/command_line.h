// What the command lines of the example programs share. CLI11 is included by .cpp files only.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace examples {

// Checks of option values. CLI11's own range checks print ranges of 300 digits and let nan pass.
CLI::Validator whole_number_above_0();
CLI::Validator whole_number();  // of at least 0
CLI::Validator number_above_0();
CLI::Validator share();  // at least 0, below 1

// Parses; --help ends the program with status 0, wrong usage with status 2 after telling the
// launcher.
void parse(CLI::App& app, int argc, char** argv);

}  // namespace examples
