#include "array/memory_order.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "catena/core/error.h"

namespace catena {
namespace {

Axes c_axes(int ndim) {
  Axes axes;
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  return axes;
}

// The byte distance of neighbours along an axis of the broadcast shape; 0 where the operand repeats
// or has one element.
int64_t distance(const Array& a, int64_t axis, int ndim) {
  const int64_t own = axis - (ndim - a.ndim());
  if (own < 0 || a.shape()[size_t(own)] == 1) return 0;
  return std::abs(a.strides()[size_t(own)]);
}

// What the operands decide about two axes that are in C order now.
enum class Verdict : uint8_t { kNothing, kKeep, kSwap };

Verdict compare(std::span<const Array* const> operands, int64_t outer, int64_t inner, int ndim) {
  Verdict verdict = Verdict::kNothing;
  for (const Array* a : operands) {
    if (a == nullptr) continue;
    const int64_t far = distance(*a, outer, ndim), near = distance(*a, inner, ndim);
    if (far == 0 || near == 0) continue;
    if (near <= far) return Verdict::kKeep;  // C order wins where operands disagree
    verdict = Verdict::kSwap;
  }
  return verdict;
}

}  // namespace

MemoryOrder::MemoryOrder(const Axes& axes) {
  uint32_t seen = 0;
  for (const int64_t axis : axes) {
    CATENA_CHECK(ValueError, axis >= 0 && axis < axes.ndim() && (seen >> axis & 1) == 0,
                 "MemoryOrder: expected each of 0 to ", axes.ndim() - 1, " once, got ", axes);
    seen |= 1u << axis;
  }
  if (!std::is_sorted(axes.begin(), axes.end())) axes_ = axes;
}

MemoryOrder MemoryOrder::fortran(int ndim) {
  const Axes axes = c_axes(ndim);
  return MemoryOrder(Axes(axes.rbegin(), axes.rend()));
}

MemoryOrder MemoryOrder::of(const Strides& strides) {
  Axes axes = c_axes(strides.ndim());
  std::stable_sort(axes.begin(), axes.end(), [&](int64_t a, int64_t b) {
    return std::abs(strides[size_t(a)]) > std::abs(strides[size_t(b)]);
  });
  return MemoryOrder(axes);
}

Axes MemoryOrder::axes(int ndim) const {
  if (is_c()) return c_axes(ndim);
  CATENA_CHECK(ShapeError, axes_.ndim() == ndim, "MemoryOrder: an order of ", axes_.ndim(),
               " axes was used for an array of ", ndim);
  return axes_;
}

Axes MemoryOrder::inverse(int ndim) const {
  const Axes order = axes(ndim);
  Axes result(size_t(ndim), 0);
  for (int i = 0; i < ndim; ++i) result[size_t(order[size_t(i)])] = i;
  return result;
}

Strides MemoryOrder::strides(const Shape& shape, int64_t itemsize) const {
  if (is_c()) return contiguous_strides(shape, itemsize);
  const Axes order = axes(shape.ndim());
  Strides result(shape.size(), 0);
  int64_t stride = itemsize;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    result[axis] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return result;
}

MemoryOrder Array::order() const {
  if (is_contiguous() || ndim() < 2) return {};
  if (is_fortran_contiguous()) return MemoryOrder::fortran(ndim());
  return MemoryOrder::of(strides());
}

bool Array::is_dense() const {
  if (is_contiguous()) return true;
  const Axes axes = MemoryOrder::of(strides()).axes(ndim());
  int64_t expected = itemsize();
  for (size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (shape()[axis] == 1) continue;
    if (strides()[axis] != expected) return false;
    expected *= shape()[axis];
  }
  return true;
}

MemoryOrder order_of_letter(const Array& a, char letter) {
  switch (letter) {
    case 'C': return {};
    case 'F': return MemoryOrder::fortran(a.ndim());
    case 'A': return a.is_contiguous() || !a.is_fortran_contiguous() ? MemoryOrder() : a.order();
    case 'K': return a.order();
    default:
      fail<ValueError>("order '", std::string(1, letter), "' is none of 'C', 'F', 'A' and 'K'");
  }
}

// An insertion sort from the innermost axis outwards, because comparisons may be undecided.
MemoryOrder common_order(std::span<const Array* const> operands, int ndim) {
  const auto is_c = [](const Array* a) { return a == nullptr || a->is_contiguous(); };
  if (std::all_of(operands.begin(), operands.end(), is_c)) return {};
  Axes inner_first;
  for (int64_t axis = ndim - 1; axis >= 0; --axis) {
    size_t place = inner_first.size();
    for (size_t i = inner_first.size(); i-- > 0;) {
      const Verdict verdict = compare(operands, axis, inner_first[i], ndim);
      if (verdict == Verdict::kKeep) break;
      if (verdict == Verdict::kSwap) place = i;
    }
    inner_first.insert(inner_first.begin() + static_cast<std::ptrdiff_t>(place), axis);
  }
  return MemoryOrder(Axes(inner_first.rbegin(), inner_first.rend()));
}

Array in_order(const Array& a, const MemoryOrder& order) {
  return order.is_c() ? a : a.transpose(order.axes(a.ndim()));
}

}  // namespace catena
