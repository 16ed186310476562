#include "catena/array/named_arrays.h"

#include "catena/core/error.h"

namespace catena {

const Array& array_named(const NamedArrays& arrays, std::string_view name) {
  constexpr size_t kMostNames = 8;
  std::string names;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].first == name) return arrays[i].second;
    if (i < kMostNames) names += (i == 0 ? "" : ", ") + arrays[i].first;
  }
  fail<IndexError>("array_named: there is no array '", name,
                   "'; there are: ", arrays.empty() ? "none" : names,
                   arrays.size() > kMostNames ? ", ..." : "");
}

Array array_named(NamedArrays&& arrays, std::string_view name) { return array_named(arrays, name); }

}  // namespace catena
