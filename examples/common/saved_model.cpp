#include "common/saved_model.h"

#include <filesystem>

#include "catena/core/error.h"

namespace examples {

catena::NpzFile open_model(const std::string& file) {
  CATENA_CHECK(IoError, std::filesystem::exists(file), "there is no model '", file,
               "'; train one first, or name the folder of one with --out");
  return catena::NpzFile(file);
}

int64_t count_layers(const catena::NpzFile& arrays, const std::string& before,
                     const std::string& behind) {
  int64_t layers = 0;
  while (arrays.contains(before + std::to_string(layers) + behind)) ++layers;
  return layers;
}

}  // namespace examples
