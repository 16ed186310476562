#include "own_numbers.h"

#include "catena/array/indexing.h"
#include "catena/array/math.h"

namespace catena::parallel {
namespace {

Array is_in(const Array& numbers, int64_t begin, int64_t end) {
  return logical_and(greater_equal(numbers, begin), less(numbers, end));
}

}  // namespace

OwnNumbers::OwnNumbers(const Array& numbers, int64_t each, const Communicator& comm,
                       std::optional<int64_t> ignored) {
  const Array wide = numbers.astype(Dtype::kInt64);
  const int64_t begin = each * comm.rank();
  own = is_in(wide, begin, begin + each);
  known = is_in(wide, 0, each * comm.size());
  if (ignored) {
    own = logical_and(own, not_equal(wide, *ignored));
    known = logical_or(known, equal(wide, *ignored));
  }
  local = where(own, wide - begin, int64_t{0});
}

}  // namespace catena::parallel
