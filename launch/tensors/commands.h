// Commands of catena-tensors.
#pragma once

#include <string>

namespace catena::launch::tensors {

// What a command line asks for.
struct Options {
  enum Command { kList, kCompare, kConvert } command = kList;
  std::string first, second;  // files
  std::string map;            // a file of rules for names, or empty
  bool values = false;        // compare: elements, too
  bool compressed = false;    // convert: deflate an .npz
};

// Runs a command; 0, or 1 for files that differ. Throws catena::Error.
int run(const Options& options);

}  // namespace catena::launch::tensors
