#include "catena/array/named_arrays.h"

#include "catena/core/error.h"
#include "core/first_names.h"

namespace catena {

const Array& array_named(const NamedArrays& arrays, std::string_view name) {
  for (const auto& [own, array] : arrays)
    if (own == name) return array;
  fail<IndexError>("array_named: there is no array '", name, "'; there are: ",
                   arrays.empty() ? "none" : first_names(arrays.size(), [&](size_t i) {
                     return arrays[i].first;
                   }));
}

Array array_named(NamedArrays&& arrays, std::string_view name) { return array_named(arrays, name); }

}  // namespace catena
