// The file of a model that an earlier run has saved.
#pragma once

#include <cstdint>
#include <string>

#include "catena/array/io.h"

namespace examples {

// IoError, which says what to do, where there is none.
catena::NpzFile open_model(const std::string& file);

// How many of the arrays "<before>0<behind>", "<before>1<behind>" and so on there are.
int64_t count_layers(const catena::NpzFile& arrays, const std::string& before,
                     const std::string& behind);

}  // namespace examples
