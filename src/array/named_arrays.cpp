#include "catena/array/named_arrays.h"

#include "catena/core/error.h"
#include "core/nearest_names.h"

namespace catena {

const Array& array_named(const NamedArrays& arrays, std::string_view name) {
  for (const auto& [own, array] : arrays)
    if (own == name) return array;
  std::vector<std::string> names;
  for (const auto& [own, array] : arrays) names.push_back(own);
  fail<IndexError>("array_named: there is no array '", name, "'; ", nearest_names(name, names));
}

Array array_named(NamedArrays&& arrays, std::string_view name) { return array_named(arrays, name); }

}  // namespace catena
