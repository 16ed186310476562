#include "catena/optimizers/arena_segments.h"

#include <numeric>

#include "catena/array/creation.h"

namespace catena::optimizers {

RuleSegments ArenaSegments::view() const {
  RuleSegments result;
  result.count = starts.size() - 1;
  result.alignment = alignment;
  result.starts = &starts;
  result.factors = &factors;
  result.piece_count = pieces.size() - 1;
  result.pieces = &pieces;
  result.first_piece = &first_piece;
  return result;
}

ArenaSegments segments_of(const ParameterArena& arena, const std::vector<double>& factors) {
  std::vector<int64_t> starts, pieces, first_piece;
  const auto count = static_cast<int64_t>(arena.slots().size());
  ArenaSegments segments;
  segments.alignment = ParameterArena::kAlignment / int64_t(itemsize(arena.dtype()));
  for (int64_t s = 0; s < count; ++s) {
    const int64_t begin = arena.slots()[size_t(s)].offset, end = arena.end_of(size_t(s));
    segments.alignment = std::gcd(segments.alignment, begin);
    starts.push_back(begin);
    first_piece.push_back(int64_t(pieces.size()));
    for (int64_t at = begin; at < end; at += RuleSegments::kPiece) pieces.push_back(at);
  }
  first_piece.push_back(int64_t(pieces.size()));
  for (std::vector<int64_t>* list : {&starts, &pieces}) list->push_back(arena.size());
  const auto on_device = [&](const auto& values, const Shape& shape) {
    return array(values, shape, cpu(0)).to(arena.device());
  };
  segments.starts = on_device(starts, {count + 1});
  segments.pieces = on_device(pieces, {int64_t(pieces.size())});
  segments.first_piece = on_device(first_piece, {count + 1});
  segments.factors = on_device(factors, {count, 3});
  return segments;
}

Array segment_squares(const ArenaSegments& segments, const std::vector<const Array*>& values,
                      int64_t first) {
  const auto arrays = static_cast<int64_t>(values.size());
  const Device device = values[0]->device();
  const DeviceScope scope(device);
  const RuleSegments view = segments.view();
  const Array partial = Array::uninitialized({arrays, view.piece_count}, Dtype::kFloat64, device);
  Array sums = Array::uninitialized({arrays, view.count}, Dtype::kFloat64, device);
  SegmentSquaresCall call{&view, int(arrays), {}, &partial, &sums, first};
  for (size_t k = 0; k < values.size(); ++k) call.values[k] = values[k];
  kernels::segment_squares(device, call);
  return sums;
}

}  // namespace catena::optimizers
