// Adds slices to target elements along one axis, repeated positions in the order of the positions.
// Threads share the places, or the columns of the slices, so that no two of them write one element.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/index/positions.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/elementwise_ops.h"
#include "catena/kernels/index.h"

namespace catena::host {

namespace {

constexpr int64_t kShortStrip = 8;  // elements for which calling a loop does not pay

// to[k] += from[k].
template <class T>
void add_row(T* to, const T* from, int64_t n) {
  using C = compute_t<T>;
  const Loop loop = tables().loops[static_cast<int>(ops::add)][static_cast<int>(dtype_of<T>)].loop;
  if (n < kShortStrip || loop == nullptr) {
    for (int64_t k = 0; k < n; ++k) to[k] = T(C(to[k]) + C(from[k]));
    return;
  }
  constexpr int64_t kStrides[] = {sizeof(T), sizeof(T), sizeof(T)};
  char* const row = reinterpret_cast<char*>(to);
  char* const pointers[] = {row, row, reinterpret_cast<char*>(const_cast<T*>(from))};
  loop(pointers, kStrides, n);
}

// The slices of one outer element, and the columns begin to end of them. V: the type of the values.
template <class T, class V = T>
struct Strip {
  T* to;
  const V* from;
  int64_t inner, begin, end;

  int64_t width() const { return end - begin; }
  T* row(int64_t place) const { return to + place * inner + begin; }
  const V* value(int64_t j) const { return from + j * inner + begin; }
  void clear(int64_t first, int64_t last) const {
    if (width() == inner && last > first) {
      std::memset(static_cast<void*>(row(first)), 0, size_t((last - first) * inner) * sizeof(T));
      return;
    }
    for (int64_t place = first; place < last; ++place)
      std::memset(static_cast<void*>(row(place)), 0, size_t(width()) * sizeof(T));
  }
};

// One position after the other: to[p, k] += from[j, k].
template <class T, class I>
void add_in_place(const Strip<T>& strip, const I* positions, int64_t count, int64_t extent) {
  int64_t block[kPositionPiece];
  for (int64_t first = 0; first < count; first += kPositionPiece) {
    const int64_t n = std::min(count - first, kPositionPiece);
    const int64_t* places = resolve_all(positions + first, n, extent, OutOfRange::kWrap, block);
    if (strip.inner == 1) {
      using C = compute_t<T>;
      const T* values = strip.from + first;
      for (int64_t j = 0; j < n; ++j)
        strip.to[places[j]] = T(C(strip.to[places[j]]) + C(values[j]));
      continue;
    }
    for (int64_t j = 0; j < n; ++j)
      add_row(strip.row(places[j]), strip.value(first + j), strip.width());
  }
}

// The values of each place in the order of the list: those of a run are order[begin] to
// order[end - 1]. Places ascend.
struct Run {
  int64_t place, begin, end;
};
struct Runs {
  std::vector<Run> runs;
  std::vector<int64_t> order;
};

// By counting. places[j] < 0: left out.
Runs count_runs(const std::vector<int64_t>& places, int64_t extent) {
  std::vector<int64_t> next(size_t(extent) + 1, 0);
  for (const int64_t place : places)
    if (place >= 0) ++next[size_t(place) + 1];
  Runs result;
  for (int64_t place = 0; place < extent; ++place) {
    const int64_t begin = next[size_t(place)], end = begin + next[size_t(place) + 1];
    if (end > begin) result.runs.push_back({place, begin, end});
    next[size_t(place) + 1] = end;
  }
  result.order.resize(size_t(next[size_t(extent)]));
  for (size_t j = 0; j < places.size(); ++j)
    if (places[j] >= 0) result.order[size_t(next[size_t(places[j])]++)] = int64_t(j);
  return result;
}

// By sorting, for far more places than values.
Runs sort_runs(const std::vector<int64_t>& places) {
  Runs result;
  for (size_t j = 0; j < places.size(); ++j)
    if (places[j] >= 0) result.order.push_back(int64_t(j));
  const auto place_of = [&](int64_t j) { return places[size_t(j)]; };
  std::ranges::stable_sort(result.order, {}, place_of);
  for (size_t at = 0; at < result.order.size(); ++at) {
    const int64_t place = place_of(result.order[at]);
    if (result.runs.empty() || result.runs.back().place != place)
      result.runs.push_back({place, int64_t(at), int64_t(at)});
    result.runs.back().end = int64_t(at) + 1;
  }
  return result;
}

template <class I>
Runs runs_of(const I* positions, int64_t count, int64_t extent, const IdRule& ids) {
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t j = 0; j < count; ++j) {
    const int64_t position = positions[j];
    places[size_t(j)] = !ids.strict ? resolve(position, extent, OutOfRange::kWrap)
                        : is_row(position, extent, ids) ? position
                                                        : -1;
  }
  return extent <= 8 * count ? count_runs(places, extent) : sort_runs(places);
}

// The values of a run, summed in the target.
template <class T>
void sum_run(const Strip<T>& strip, const Runs& runs, const Run& run, bool accumulate) {
  if (!accumulate) strip.clear(run.place, run.place + 1);
  for (int64_t i = run.begin; i < run.end; ++i)
    add_row(strip.row(run.place), strip.value(runs.order[size_t(i)]), strip.width());
}

// The same of 16-bit floats, summed in float32.
template <class T, class V>
void sum_run_in_float(const Strip<T, V>& strip, const Runs& runs, const Run& run, bool accumulate) {
  constexpr int64_t kBlock = 512;
  const CastLoop read = cast_of(dtype_of<T>, Dtype::kFloat32),
                 widen = cast_of(dtype_of<V>, Dtype::kFloat32),
                 write = cast_of(Dtype::kFloat32, dtype_of<T>);
  float sums[kBlock], value[kBlock];
  char *const sum_bytes = reinterpret_cast<char*>(sums), *const value_bytes =
                                                             reinterpret_cast<char*>(value);
  for (int64_t first = 0; first < strip.width(); first += kBlock) {
    const int64_t n = std::min(strip.width() - first, kBlock);
    char* const to = reinterpret_cast<char*>(strip.row(run.place) + first);
    std::fill_n(sums, n, 0.0f);
    if (accumulate) read(to, sizeof(T), sum_bytes, sizeof(float), n);
    for (int64_t i = run.begin; i < run.end; ++i) {
      const V* from = strip.value(runs.order[size_t(i)]) + first;
      widen(reinterpret_cast<const char*>(from), sizeof(V), value_bytes, sizeof(float), n);
      add_row(sums, value, n);
    }
    write(sum_bytes, sizeof(float), to, sizeof(T), n);
  }
}

// Places begin to end.
struct Places {
  int64_t begin, end;
};
// The first run at this place or behind it.
size_t run_at(const Runs& runs, int64_t place) {
  const auto at = std::ranges::lower_bound(runs.runs, place, {}, &Run::place);
  return size_t(at - runs.runs.begin());
}

// Place after place, so that each row is read and written once.
template <class T, class V>
void add_runs(const Strip<T, V>& strip, const Runs& runs, const Places& places, bool accumulate) {
  int64_t done = places.begin;  // places below it have their value
  for (size_t i = run_at(runs, places.begin);
       i < runs.runs.size() && runs.runs[i].place < places.end; ++i) {
    const Run& run = runs.runs[i];
    if (!accumulate) strip.clear(done, run.place);
    if constexpr (!std::is_same_v<compute_t<V>, V>)
      sum_run_in_float(strip, runs, run, accumulate);
    else
      sum_run(strip, runs, run, accumulate);
    done = run.place + 1;
  }
  if (!accumulate) strip.clear(done, places.end);
}

// Where the places end that `parts` threads take one after the other, so that all have as much to
// do. Empty where one place would keep a thread busy while others wait: then they share columns.
std::vector<int64_t> shared_places(const Runs& runs, int64_t extent, int parts, bool accumulate) {
  constexpr int64_t kValue = 2;  // times what it takes to clear a slice
  const auto work_below = [&](int64_t place) {
    const size_t i = run_at(runs, place);
    const int64_t values = i < runs.runs.size() ? runs.runs[i].begin : int64_t(runs.order.size());
    return kValue * values + (accumulate ? 0 : place);
  };
  const int64_t total = work_below(extent);
  for (const Run& run : runs.runs)
    if (kValue * (run.end - run.begin) * parts > total) return {};
  std::vector<int64_t> ends;
  for (int part = 1; part <= parts; ++part) {
    int64_t low = 0, high = extent;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (work_below(middle) * parts < total * part)
        low = middle + 1;
      else
        high = middle;
    }
    ends.push_back(part == parts ? extent : low);
  }
  return ends;
}

// What to do, in units for threads: ranges of places, each in strips of columns.
struct Units {
  std::vector<int64_t> ends;  // of ranges of places
  int64_t width;              // of a strip
};
Units units_of(const Runs* runs, int64_t extent, int64_t inner, int threads, bool accumulate) {
  if (runs && threads > 1) {
    std::vector<int64_t> ends = shared_places(*runs, extent, threads, accumulate);
    if (!ends.empty()) return {std::move(ends), inner};
  }
  return {{extent}, std::max<int64_t>(16, (inner + threads - 1) / threads)};
}

// f(a T, a V) for the types of the target and the values.
template <class F>
void with_types(const Array& target, const Array& values, const F& f) {
  if (target.dtype() == values.dtype())
    return visit_dtype(target.dtype(), [&]<class T>(TypeTag<T> tag) { f(tag, tag); });
  CATENA_CHECK(DtypeError, target.dtype() == Dtype::kFloat32 && is_narrow_float(values.dtype()),
               "scatter_add: values of ", values.dtype(), " cannot be added to ", target.dtype());
  visit_dtype(values.dtype(), [&]<class V>(TypeTag<V> tag) {
    if constexpr (!std::is_same_v<compute_t<V>, V>) f(TypeTag<float>(), tag);
  });
}

void scatter_add(const ScatterAddCall& call) {
  const auto& [target, indices, values, accumulate, ids] = call;
  if (target.size() == 0 || (accumulate && values.size() == 0)) return;
  const int64_t outer = target.shape()[0], extent = target.shape()[1], inner = target.shape()[2];
  const int64_t count = indices.size();
  const bool narrow = is_narrow_float(values.dtype());
  const bool by_runs = !accumulate || ids.strict || narrow;
  const int threads = threads_for(values.size() * 2 + (accumulate ? 0 : target.size()));
  with_indices(indices, [&](const auto* positions) {
    const Runs runs = by_runs ? runs_of(positions, count, extent, ids) : Runs();
    const auto [ends, width] =
        units_of(by_runs ? &runs : nullptr, extent, inner, threads, accumulate);
    const int64_t strips = (inner + width - 1) / width, ranges = int64_t(ends.size());
    with_types(target, values, [&]<class T, class V>(TypeTag<T>, TypeTag<V>) {
      parallel_for(outer * ranges * strips, threads, [&](int64_t unit) {
        const int64_t i = unit / (ranges * strips), begin = unit % strips * width;
        const size_t range = size_t(unit / strips % ranges);
        const Places places{range == 0 ? 0 : ends[range - 1], ends[range]};
        const Strip<T, V> strip{target.data<T>() + i * extent * inner,
                                values.data<V>() + i * count * inner, inner, begin,
                                std::min(inner, begin + width)};
        if constexpr (std::is_same_v<T, V>)
          if (!by_runs) return add_in_place(strip, positions, count, extent);
        add_runs(strip, runs, places, accumulate);
      });
    });
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, scatter_add) {
  kernels::scatter_add.provide<&host::scatter_add>(DeviceType::kCpu, "cpu");
}
