#include "catena/array/sets.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// The distinct elements of both arrays, sorted together: elements of both sets occur twice.
Array merged(const Array& a, const Array& b) {
  check_same_device(a, b);
  return sort(concatenate({unique(a).values, unique(b).values}));
}

bool is_int64(Dtype d) { return d == Dtype::kInt64 || d == Dtype::kUInt64; }

}  // namespace

Array isin(const Array& elements, const Array& candidates, bool invert) {
  const EntryScope call("isin");
  check_same_device(elements, candidates);
  if (candidates.size() == 0) return full(elements.shape(), invert, {elements.device()});
  // int64 and uint64 promote to float64, which would round. They are compared as int64 instead, in
  // which the numbers that the other dtype lacks are negative.
  const bool wraps = promote(elements.dtype(), candidates.dtype()) == Dtype::kFloat64 &&
                     is_int64(elements.dtype()) && is_int64(candidates.dtype());
  const Dtype dtype = wraps ? Dtype::kInt64 : promote(elements.dtype(), candidates.dtype());
  const Array x = elements.astype(dtype, false),
              sorted = sort(candidates.ravel().astype(dtype, false));
  // The only position where an equal element can be.
  const Array found = take(sorted, searchsorted(sorted, x), 0, OutOfRange::kClip);
  const Array same = wraps ? logical_and(equal(found, x), greater_equal(x, 0)) : equal(found, x);
  return invert ? logical_not(same) : same;
}

Array intersect1d(const Array& a, const Array& b) {
  const EntryScope call("intersect1d");
  const Array both = merged(a, b);
  const int64_t n = both.size();
  if (n < 2) return both(Slice(0, 0)).copy();
  const Array first = both(Slice(0, n - 1));
  return extract(equal(first, both(Slice(1, none))), first);
}

Array union1d(const Array& a, const Array& b) {
  const EntryScope call("union1d");
  check_same_device(a, b);
  return unique(concatenate({a, b}, none)).values;
}

Array setdiff1d(const Array& a, const Array& b) {
  const EntryScope call("setdiff1d");
  check_same_device(a, b);
  const Array own = unique(a).values;
  return extract(isin(own, b, true), own);
}

Array setxor1d(const Array& a, const Array& b) {
  const EntryScope call("setxor1d");
  const Array both = merged(a, b);
  const int64_t n = both.size();
  if (n == 0) return both;
  // Keeps numbers that differ from both neighbours.
  const Array changes = ones({n + 1}, {Dtype::kBool, both.device()});
  changes(Slice(1, n)).assign(not_equal(both(Slice(1, none)), both(Slice(0, n - 1))));
  return extract(logical_and(changes(Slice(0, n)), changes(Slice(1, none))), both);
}

}  // namespace catena
