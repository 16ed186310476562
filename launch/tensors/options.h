// The command line of catena-tensors.
#pragma once

#include <string>
#include <variant>

namespace catena::launch::tensors {

// What a command line asks for.
struct Options {
  enum Command { kList, kCompare, kConvert } command = kList;
  std::string first, second;  // files
  std::string map;            // a file of rules for names, or empty
  bool values = false;        // compare: elements, too
  bool compressed = false;    // convert: deflate an .npz
};

// The options, or the status to end with: after --help, --version or a usage error, which are
// printed.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace catena::launch::tensors
