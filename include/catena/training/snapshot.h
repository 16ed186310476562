// What a run keeps on disk: its output folder, and everything needed to resume in one file.
#pragma once

#include <map>
#include <string>

#include "catena/array/array.h"
#include "catena/array/io.h"
#include "catena/array/random.h"

namespace catena::training {

// Creates the folder with its parents and makes sure that files can be written there, so that a run
// fails before it trains and not after. Throws IoError with the path and the system's reason.
void prepare_output_folder(const std::string& path);

// A snapshot is one .npz, written by rename: parts ("model", "optimizer", "iterator", ...) of named
// arrays, so that model and position in the data never come from different moments.
class Snapshot {
 public:
  // Adds arrays as part/name. The part must be new (ValueError).
  void set(const std::string& part, const NamedArrays& arrays);
  // One array as a part of its own.
  void set(const std::string& part, const Array& array);
  void save(const std::string& path) const;

  // Throws IoError when the file is missing or damaged.
  static Snapshot load(const std::string& path);
  bool has(const std::string& part) const;
  // Throws ValueError naming the part when there is none.
  std::map<std::string, Array> part(const std::string& part) const;
  Array array(const std::string& part) const;

 private:
  std::map<std::string, Array> arrays_;  // by part/name
};

// The state of a generator as an array (uint64, 2), and back.
Array pack(const RandomState::State& state);
RandomState::State unpack_random_state(const Array& a);

}  // namespace catena::training
