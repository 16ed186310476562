// Padding of arrays.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

int64_t modulo(int64_t i, int64_t n) { return ((i % n) + n) % n; }

// The element of [0, n) at position i of an axis that is extended without end.
int64_t source_of(int64_t i, int64_t n, PadMode mode) {
  switch (mode) {
    case PadMode::kReflect: {
      if (n == 1) return 0;
      const int64_t p = modulo(i, 2 * (n - 1));
      return p < n ? p : 2 * (n - 1) - p;
    }
    case PadMode::kSymmetric: {
      const int64_t p = modulo(i, 2 * n);
      return p < n ? p : 2 * n - 1 - p;
    }
    case PadMode::kWrap:
      return modulo(i, n);
    default:
      return std::clamp<int64_t>(i, 0, n - 1);
  }
}

Array pad_constant(const Array& a, const PadWidths& widths, const Scalar& value) {
  Shape shape = a.shape();
  std::vector<Index> inside;
  for (size_t d = 0; d < widths.size(); ++d) {
    shape[d] += widths[d].first + widths[d].second;
    inside.emplace_back(Slice(widths[d].first, widths[d].first + a.shape()[d]));
  }
  check_fits(value, a.dtype());
  const Array result = full(shape, value, {a.dtype(), a.device()});
  result.at(std::span<const Index>(inside)).assign(a);
  return result;
}

}  // namespace

Array pad(const Array& a, const PadWidths& given, PadMode mode, const Scalar& value) {
  const EntryScope call("pad");
  PadWidths widths = given;
  if (widths.size() == 1) widths.resize(size_t(a.ndim()), widths[0]);
  CATENA_CHECK(ShapeError, static_cast<int>(widths.size()) == a.ndim(), given.size(),
               " pairs of widths for an array of shape ", a.shape());
  for (const auto& [before, after] : widths) {
    CATENA_CHECK(ValueError, before >= 0 && after >= 0, "expected widths of at least 0, got (",
                 before, ", ", after, ")");
  }
  if (mode == PadMode::kConstant) return pad_constant(a, widths, value);
  Array result = a;
  for (int d = 0; d < a.ndim(); ++d) {
    const auto [before, after] = widths[size_t(d)];
    const int64_t n = a.shape()[size_t(d)];
    if (before == 0 && after == 0) continue;
    CATENA_CHECK(ValueError, n > 0, "cannot extend the empty axis ", d, " of shape ", a.shape(),
                 " in this mode; kConstant can");
    std::vector<int64_t> positions;
    for (int64_t i = -before; i < n + after; ++i) positions.push_back(source_of(i, n, mode));
    result = take(result, array(positions, a.device()), d, OutOfRange::kWrap);
  }
  return result.same_body(a) ? a.copy() : result;
}

Array pad(const Array& a, int64_t width, PadMode mode, const Scalar& value) {
  const EntryScope call("pad");
  return pad(a, PadWidths{{width, width}}, mode, value);
}

}  // namespace catena
