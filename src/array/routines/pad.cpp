// Padding of arrays.
#include "array/padding.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

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
  const PadWidths widths = checked_widths(a.shape(), given, mode);
  if (mode == PadMode::kConstant) return pad_constant(a, widths, value);
  Array result = a;
  for (int d = 0; d < a.ndim(); ++d) {
    const auto [before, after] = widths[size_t(d)];
    if (before == 0 && after == 0) continue;
    const Array positions = padded_positions(a.shape()[size_t(d)], before, after, mode, a.device());
    result = take(result, positions, d, OutOfRange::kWrap);
  }
  return result.same_body(a) ? a.copy() : result;
}

Array pad(const Array& a, int64_t width, PadMode mode, const Scalar& value) {
  const EntryScope call("pad");
  return pad(a, PadWidths{{width, width}}, mode, value);
}

}  // namespace catena
