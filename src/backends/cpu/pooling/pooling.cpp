// Max pooling on the CPU. With channels last the loops run along the channels of one position or
// element; with channels first along a row of positions, and gradients are added into planes. See
// catena/kernels/pooling.h.
#include "catena/kernels/pooling.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/common/family.h"
#include "backends/common/pooling_places.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/pooling.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/core/dtype_info.h"

namespace catena::host {
namespace {

using Sizes = PoolingSizes;

// The elements [begin, end) of the image that a position sees along an axis, or the positions that
// see an element.
struct Range {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};
Range seen(const Sizes& s, int axis, int64_t position) {
  const int64_t first = position * s.stride[axis] - s.pad[axis];
  return {std::max<int64_t>(first, 0), std::min(first + s.kernel[axis], s.in[axis])};
}
Range seeing(const Sizes& s, int axis, int64_t element) {
  const int64_t last = element + s.pad[axis], first = last - s.kernel[axis] + 1;
  const int64_t stride = s.stride[axis];
  return {first <= 0 ? 0 : (first - 1) / stride + 1, std::min(last / stride + 1, s.out[axis])};
}
// The number that the first element of a range has in the window at the position.
int64_t number(const Sizes& s, int axis, int64_t position, const Range& range) {
  return range.begin - (position * s.stride[axis] - s.pad[axis]);
}

// A raw pointer that moves by elements.
struct Memory {
  char* data;
  int64_t item;
  explicit Memory(const Array& a) : data(static_cast<char*>(a.raw_data())), item(a.itemsize()) {}
  char* at(int64_t element) const { return data ? data + element * item : nullptr; }
};

PlaceKind kind_of(const Array& places) {
  if (!places.defined()) return kNoPlaces;
  return places.dtype() == Dtype::kUInt8 ? kPlaceBytes : kPlaceInts;
}
Memory memory_of_places(const Array& places, const Array& y) {
  Memory memory(places.defined() ? places : y);
  if (!places.defined()) memory.data = nullptr;
  return memory;
}

// Units of about a nanosecond.
int64_t forward_work(const Sizes& s) {
  return s.images * s.channels * s.out_area() * s.taps() / 8 + 1;
}
int64_t backward_work(const Sizes& s) { return s.images * s.channels * s.in_area() / 2 + 1; }

// Forward ---------------------------------------------------------------------------------------

// A row of positions with channels last.
void forward_last(const Sizes& s, const PoolingLoops& loops, PlaceKind kind, const Memory& x,
                  const Memory& y, const Memory& places, int64_t row) {
  const int64_t h = row % s.out[1], d = row / s.out[1] % s.out[0], n = row / s.out[1] / s.out[0];
  const Range depth = seen(s, 0, d), rows = seen(s, 1, h);
  PoolingLoops::Position p{};
  p.channels = s.channels;
  p.step[2] = s.channels, p.step[1] = s.in[2] * p.step[2], p.step[0] = s.in[1] * p.step[1];
  p.tap_step[2] = 1, p.tap_step[1] = s.kernel[2], p.tap_step[0] = s.kernel[1] * s.kernel[2];
  p.count[0] = depth.count(), p.count[1] = rows.count();
  const int64_t tap = number(s, 0, d, depth) * p.tap_step[0] + number(s, 1, h, rows) * s.kernel[2];
  const int64_t image = ((n * s.in[0] + depth.begin) * s.in[1] + rows.begin) * s.in[2];
  for (int64_t w = 0; w < s.out[2]; ++w) {
    const Range columns = seen(s, 2, w);
    const int64_t to = (row * s.out[2] + w) * s.channels;
    p.count[2] = columns.count();
    p.tap = tap + number(s, 2, w, columns);
    p.x = x.at((image + columns.begin) * s.channels);
    p.y = y.at(to), p.places = places.at(to);
    loops.max_of_position[kind](p);
  }
}

// A plane of positions with channels first.
void forward_first(const Sizes& s, const PoolingLoops& loops, PlaceKind kind, const Memory& x,
                   const Memory& y, const Memory& places, int64_t plane) {
  PoolingLoops::Row r{};
  r.positions = s.out[2], r.width = s.in[2];
  r.kernel = s.kernel[2], r.stride = s.stride[2], r.pad = s.pad[2];
  r.step[1] = s.in[2], r.step[0] = s.in[1] * s.in[2];
  r.tap_step[1] = s.kernel[2], r.tap_step[0] = s.kernel[1] * s.kernel[2];
  for (int64_t d = 0; d < s.out[0]; ++d) {
    const Range depth = seen(s, 0, d);
    r.count[0] = depth.count();
    for (int64_t h = 0; h < s.out[1]; ++h) {
      const Range rows = seen(s, 1, h);
      const int64_t to = ((plane * s.out[0] + d) * s.out[1] + h) * s.out[2];
      r.count[1] = rows.count();
      r.tap = number(s, 0, d, depth) * r.tap_step[0] + number(s, 1, h, rows) * r.tap_step[1];
      r.x = x.at(((plane * s.in[0] + depth.begin) * s.in[1] + rows.begin) * s.in[2]);
      r.y = y.at(to), r.places = places.at(to);
      loops.max_of_row[kind](r);
    }
  }
}

// y of x, and where the largest elements are if `places` is defined.
void forward(const Sizes& s, const Array& x, const Array& y, const Array& places) {
  const PoolingLoops& loops = loops_of<PoolingTables>(x.dtype());
  const PlaceKind kind = kind_of(places);
  const Memory from(x), to(y), at = memory_of_places(places, y);
  const int threads = threads_for(forward_work(s));
  if (s.last)
    parallel_for(s.images * s.out[0] * s.out[1], threads,
                 [&](int64_t row) { forward_last(s, loops, kind, from, to, at, row); });
  else
    parallel_for(s.images * s.channels, threads,
                 [&](int64_t plane) { forward_first(s, loops, kind, from, to, at, plane); });
}

void max_pooling_grad(const MaxPoolingGradCall& call);

void max_pooling(const MaxPoolingCall& call) {
  const Sizes s = pooling_sizes(*call.x, *call.y, call.window);
  if (call.kept == nullptr) return forward(s, *call.x, *call.y, Array());
  auto* state = new PoolingPlaces;
  IntrusivePtr<const KeptState> owner(state);
  state->of_position = places_for(s, *call.y);
  forward(s, *call.x, *call.y, state->of_position);
  call.kept->keep<&max_pooling_grad>(std::move(owner));
}

// Backward --------------------------------------------------------------------------------------

// Places that the forward call kept, or found in x anew. `y` gives the size.
template <class Call>
Array places_of(const Sizes& s, const Call& call, const Array& y) {
  if (call.kept)
    if (const auto* own = call.kept->template state<&max_pooling_grad, PoolingPlaces>())
      return own->of_position;
  const Array places = places_for(s, y);
  const Array values = Array::uninitialized({y.size()}, y.dtype(), y.device());
  forward(s, *call.x, values, places);
  return places;
}

// A row of elements with channels last.
void grad_last(const Sizes& s, const PoolingLoops& loops, const Memory& gy, const Memory& places,
               const Memory& gx, PlaceKind kind, bool accumulate, int64_t row) {
  const int64_t h = row % s.in[1], d = row / s.in[1] % s.in[0], n = row / s.in[1] / s.in[0];
  const Range depth = seeing(s, 0, d), rows = seeing(s, 1, h);
  PoolingLoops::Element e{};
  e.channels = s.channels, e.accumulate = accumulate;
  e.step[2] = s.channels, e.step[1] = s.out[2] * e.step[2], e.step[0] = s.out[1] * e.step[1];
  const int64_t area[3] = {s.kernel[1] * s.kernel[2], s.kernel[2], 1};
  for (int k = 0; k < 3; ++k) e.tap_step[k] = s.stride[k] * area[k];
  e.count[0] = depth.count(), e.count[1] = rows.count();
  const int64_t tap = (d + s.pad[0] - depth.begin * s.stride[0]) * area[0] +
                      (h + s.pad[1] - rows.begin * s.stride[1]) * area[1];
  const int64_t from = ((n * s.out[0] + depth.begin) * s.out[1] + rows.begin) * s.out[2];
  for (int64_t w = 0; w < s.in[2]; ++w) {
    const Range columns = seeing(s, 2, w);
    e.count[2] = columns.count();
    e.tap = tap + w + s.pad[2] - columns.begin * s.stride[2];
    e.gy = gy.at((from + columns.begin) * s.channels);
    e.places = places.at((from + columns.begin) * s.channels);
    e.gx = gx.at((row * s.in[2] + w) * s.channels);
    loops.grad_of_element[kind](e);
  }
}

// How far the elements of a window are behind its first one, in elements of a plane.
std::vector<int64_t> offsets_in_plane(const Sizes& s, int64_t step) {
  std::vector<int64_t> offsets;
  for (int64_t d = 0; d < s.kernel[0]; ++d)
    for (int64_t i = 0; i < s.kernel[1]; ++i)
      for (int64_t j = 0; j < s.kernel[2]; ++j)
        offsets.push_back(((d * s.in[1] + i) * s.in[2] + j) * step);
  return offsets;
}
int64_t first_window(const Sizes& s) {
  return -((s.pad[0] * s.in[1] + s.pad[1]) * s.in[2] + s.pad[2]);
}

void grad_first(const Sizes& s, const MaxPoolingGradCall& call, const Array& places, int threads) {
  const PoolingLoops& loops = loops_of<PoolingTables>(call.gx->dtype());
  const PlaceKind kind = kind_of(places);
  const std::vector<int64_t> offsets = offsets_in_plane(s, 1);
  const Memory gy(*call.gy), gx(*call.gx), at(places);
  PoolingLoops::Plane plane{};
  plane.size = s.in_area(), plane.first = first_window(s);
  plane.stride[2] = s.stride[2], plane.stride[1] = s.stride[1] * s.in[2];
  plane.stride[0] = s.stride[0] * s.in[1] * s.in[2];
  for (int k = 0; k < 3; ++k) plane.out[k] = s.out[k];
  plane.offsets = offsets.data(), plane.accumulate = call.accumulate;
  const size_t sum_bytes = call.gx->dtype() == Dtype::kFloat64 ? sizeof(double) : sizeof(float);
  parallel_ranges(s.images * s.channels, 1, threads, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<char[]> sums(new char[size_t(plane.size) * sum_bytes]);
    PoolingLoops::Plane own = plane;
    own.sums = sums.get();
    for (int64_t i = begin; i < end; ++i) {
      own.gy = gy.at(i * s.out_area()), own.places = at.at(i * s.out_area());
      own.gx = gx.at(i * s.in_area());
      loops.grad_of_plane[kind](own);
    }
  });
}

void max_pooling_grad(const MaxPoolingGradCall& call) {
  const Sizes s = pooling_sizes(*call.gx, *call.gy, call.window);
  const Array places = places_of(s, call, *call.gy);
  const int threads = threads_for(backward_work(s));
  if (!s.last) return grad_first(s, call, places, threads);
  const PoolingLoops& loops = loops_of<PoolingTables>(call.gx->dtype());
  const Memory gy(*call.gy), gx(*call.gx), at(places);
  const PlaceKind kind = kind_of(places);
  parallel_for(s.images * s.in[0] * s.in[1], threads,
               [&](int64_t row) { grad_last(s, loops, gy, at, gx, kind, call.accumulate, row); });
}

// The element at each position's place ------------------------------------------------------------

// Windows are visited in the memory order of the results.
template <class T, class Place>
void pick(const Sizes& s, const T* image, const Place* places, T* picked, int threads) {
  const int64_t step = s.last ? s.channels : 1, across = s.last ? s.channels : 1;
  const std::vector<int64_t> offsets = offsets_in_plane(s, step);
  const int64_t planes = s.last ? s.images : s.images * s.channels;
  parallel_for(planes, threads, [&](int64_t plane) {
    const T* const from = image + (plane * s.in_area() + first_window(s)) * step;
    int64_t at = plane * s.out_area() * across;
    for (int64_t d = 0; d < s.out[0]; ++d)
      for (int64_t h = 0; h < s.out[1]; ++h)
        for (int64_t w = 0; w < s.out[2]; ++w) {
          const int64_t window =
              (d * s.stride[0] * s.in[1] + h * s.stride[1]) * s.in[2] + w * s.stride[2];
          for (int64_t c = 0; c < across; ++c, ++at)
            picked[at] = from[window * step + c + offsets[size_t(places[at])]];
        }
  });
}

void max_pooling_pick(const MaxPoolingPickCall& call) {
  const Sizes s = pooling_sizes(*call.image, *call.picked, call.window);
  const Array places = places_of(s, call, *call.picked);
  const int threads = threads_for(call.picked->size());
  visit_float("max_pooling_pick", call.image->dtype(), [&]<class T>(TypeTag<T>) {
    const auto* image = static_cast<const T*>(call.image->raw_data());
    auto* picked = static_cast<T*>(call.picked->raw_data());
    if (kind_of(places) == kPlaceBytes)
      pick(s, image, places.data<uint8_t>(), picked, threads);
    else
      pick(s, image, places.data<int32_t>(), picked, threads);
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, pooling) {
  kernels::max_pooling.provide<&host::max_pooling>(DeviceType::kCpu, "cpu");
  kernels::max_pooling_grad.provide<&host::max_pooling_grad>(DeviceType::kCpu, "cpu");
  kernels::max_pooling_pick.provide<&host::max_pooling_pick>(DeviceType::kCpu, "cpu");
}
