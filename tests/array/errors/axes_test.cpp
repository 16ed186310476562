// An axis out of range is an IndexError in every routine that takes one, as NumPy's AxisError, and
// names the routine.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "array/devices.h"
#include "catena/array/along_axis.h"
#include "catena/array/array.h"
#include "catena/array/bits.h"
#include "catena/array/calculus.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

struct Routine {
  const char* text;
  std::function<void(const Array& a, int64_t axis)> call;
};
#define CATENA_ROUTINE(...)                                                 \
  {                                                                         \
#__VA_ARGS__, [](const Array& a, int64_t axis) { (void)(__VA_ARGS__); } \
  }

// Those that take an array of any number of axes.
const Routine kRoutines[] = {
    // Shapes
    CATENA_ROUTINE(a.shape(axis)),
    CATENA_ROUTINE(swapaxes(a, axis, axis)),
    CATENA_ROUTINE(rollaxis(a, axis)),
    CATENA_ROUTINE(moveaxis(a, axis, axis)),
    CATENA_ROUTINE(squeeze(a, axis)),
    CATENA_ROUTINE(expand_dims(a, axis)),
    CATENA_ROUTINE(expand_dims(a, {axis, 0})),
    CATENA_ROUTINE(stack({a, a}, axis)),
    CATENA_ROUTINE(split(a, int64_t{1}, axis)),
    CATENA_ROUTINE(split(a, {1}, axis)),
    CATENA_ROUTINE(array_split(a, int64_t{1}, axis)),
    CATENA_ROUTINE(array_split(a, {1}, axis)),
    CATENA_ROUTINE(repeat(a, 2, axis)),
    CATENA_ROUTINE(repeat(a, std::vector<int64_t>{2}, axis)),
    CATENA_ROUTINE(repeat(a, array({2}), axis)),
    CATENA_ROUTINE(delete_at(a, 0, axis)),
    CATENA_ROUTINE(insert(a, 0, 1, axis)),
    CATENA_ROUTINE(roll(a, 1, axis)),
    CATENA_ROUTINE(roll(a, {1}, {axis})),
    CATENA_ROUTINE(flip(a, axis)),
    // Elements
    CATENA_ROUTINE(take(a, array({0}), axis)),
    CATENA_ROUTINE(take(a, {0}, axis)),
    CATENA_ROUTINE(take(a, 0, axis)),
    CATENA_ROUTINE(scatter_add(a, array({0}), 1, axis)),
    CATENA_ROUTINE(compress(array({true}), a, axis)),
    CATENA_ROUTINE(take_along_axis(a, zeros(a.shape(), dtype::int64), axis)),
    CATENA_ROUTINE(put_along_axis(a, zeros(a.shape(), dtype::int64), 1, axis)),
    CATENA_ROUTINE(apply_along_axis([](const Array& line) { return line; }, axis, a)),
    CATENA_ROUTINE(sort(a, axis)),
    CATENA_ROUTINE(argsort(a, axis)),
    CATENA_ROUTINE(topk(a, 1, axis)),
    CATENA_ROUTINE(unique(a, {.axis = axis})),
    CATENA_ROUTINE(packbits(a.astype(dtype::uint8), axis)),
    CATENA_ROUTINE(unpackbits(a.astype(dtype::uint8), axis)),
    // Reductions and scans
    CATENA_ROUTINE(sum(a, axis)),
    CATENA_ROUTINE(prod(a, axis)),
    CATENA_ROUTINE(mean(a, axis)),
    CATENA_ROUTINE(var(a, axis)),
    CATENA_ROUTINE(catena::std(a, axis)),
    CATENA_ROUTINE(amax(a, axis)),
    CATENA_ROUTINE(amin(a, axis)),
    CATENA_ROUTINE(ptp(a, axis)),
    CATENA_ROUTINE(all(a, axis)),
    CATENA_ROUTINE(any(a, axis)),
    CATENA_ROUTINE(argmax(a, axis)),
    CATENA_ROUTINE(argmin(a, axis)),
    CATENA_ROUTINE(count_nonzero(a, axis)),
    CATENA_ROUTINE(average(a, axis)),
    CATENA_ROUTINE(average(a, ones(a.shape()), axis)),
    CATENA_ROUTINE(nansum(a, axis)),
    CATENA_ROUTINE(nanprod(a, axis)),
    CATENA_ROUTINE(nanmean(a, axis)),
    CATENA_ROUTINE(nanmax(a, axis)),
    CATENA_ROUTINE(nanmin(a, axis)),
    CATENA_ROUTINE(nanvar(a, axis)),
    CATENA_ROUTINE(nanstd(a, axis)),
    CATENA_ROUTINE(nanargmax(a, axis)),
    CATENA_ROUTINE(nanargmin(a, axis)),
    CATENA_ROUTINE(median(a, axis)),
    CATENA_ROUTINE(quantile(a, 0.5, axis)),
    CATENA_ROUTINE(percentile(a, 50, axis)),
    CATENA_ROUTINE(nanmedian(a, axis)),
    CATENA_ROUTINE(nanquantile(a, 0.5, axis)),
    CATENA_ROUTINE(nanpercentile(a, 50, axis)),
    CATENA_ROUTINE(cumsum(a, axis)),
    CATENA_ROUTINE(cumprod(a, axis)),
    CATENA_ROUTINE(nancumsum(a, axis)),
    CATENA_ROUTINE(nancumprod(a, axis)),
    CATENA_ROUTINE(gradient(a, 1, axis)),
    CATENA_ROUTINE(unwrap(a, {}, axis)),
    CATENA_ROUTINE(trapezoid(a, 1, axis)),
    CATENA_ROUTINE(linalg::norm(a, {}, axis)),
    CATENA_ROUTINE(tensordot(a, a, Axes{axis}, Axes{axis})),
};

// Those that refuse an array without enough axes before they look at the one given, as NumPy does.
const Routine kOfMatrices[] = {
    CATENA_ROUTINE(concatenate({a, a}, axis)), CATENA_ROUTINE(append(a, a, axis)),
    CATENA_ROUTINE(diff(a, 1, axis)),          CATENA_ROUTINE(a.diagonal(0, axis, 0)),
    CATENA_ROUTINE(trace(a, 0, 0, axis)),      CATENA_ROUTINE(rot90(a, 1, {0, axis})),
    CATENA_ROUTINE(transpose(a, {0, axis})),   CATENA_ROUTINE(lexsort({a(0), a(1)}, axis)),
    CATENA_ROUTINE(cross(a, a, axis)),
};
#undef CATENA_ROUTINE

// "name: ..." of a call "name(...)", a method "a.name(...)" or one with its namespace.
std::string beginning(const std::string& text) {
  const std::string name = text.substr(0, text.find('('));
  for (const char* before : {"a.", "catena::"})
    if (name.starts_with(before)) return name.substr(std::strlen(before)) + ": ";
  return name + ": ";
}

void expect_refused(const Routine& routine, const Array& a, int64_t axis) {
  SCOPED_TRACE(message(routine.text, " of shape ", a.shape(), " with axis ", axis));
  const std::string text = error_of<IndexError>([&] { routine.call(a, axis); });
  EXPECT_TRUE(text.starts_with(beginning(routine.text))) << text;
}

TEST(AxesOutOfRange, AreIndexErrors) {
  for (const int64_t axis : {5, -6}) {
    for (const Routine& routine : kRoutines) {
      expect_refused(routine, ones({2, 3}), axis);
      expect_refused(routine, ones({}), axis);
    }
    for (const Routine& routine : kOfMatrices) expect_refused(routine, ones({2, 3}), axis);
  }
}

}  // namespace
}  // namespace catena
