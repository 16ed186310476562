// What the command lines of the example programs share. CLI11 is included by .cpp files only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace examples {

// Checks of option values. CLI11's own range checks print ranges of 300 digits and let nan pass.
CLI::Validator whole_number_above_0();
CLI::Validator whole_number();  // of at least 0
CLI::Validator number_above_0();
CLI::Validator share();  // at least 0, below 1

// An option that takes a number above 0. Help shows the number that `value` has now; 0 stands for a
// choice of the program, which `meaning` describes.
CLI::Option* add_count(CLI::App& app, const std::string& names, int64_t& value,
                       const std::string& meaning);
CLI::Option* add_number(CLI::App& app, const std::string& names, double& value,
                        const std::string& meaning);
// One that takes a share.
CLI::Option* add_share(CLI::App& app, const std::string& names, double& value,
                       const std::string& meaning);

// --data of programs that read images of handwritten digits, or others in their format: a folder
// for datasets::load_mnist.
void add_images_option(CLI::App& app, std::string& data);
// --data and --vocabulary of programs that read text, see load_corpus.
void add_text_options(CLI::App& app, std::string& data, int64_t& vocabulary);

// Parses; --help ends the program with status 0, wrong usage with status 2 after telling the
// launcher. Options have the names of Chainer's examples. Those of earlier versions are accepted
// where the program has the new one: --epochs, --batch, --units and --devices.
void parse(CLI::App& app, int argc, char** argv);

}  // namespace examples
