#include "functions/common/resample.h"

#include "catena/kernels/reduce.h"
#include "catena/kernels/resample.h"

namespace catena::functions {
namespace {

// Whether the only element along the axis is made of all elements.
bool is_total(const AxisMap& m) {
  if (m.out != 1) return false;
  return m.rule == AxisRule::kBins ||
         (m.rule == AxisRule::kWindow && m.pad == 0 && m.kernel == m.in);
}
// Reductions have the faster kernels for sums of whole images.
bool is_total(const ResamplePlan& p) { return is_total(p.rows) && is_total(p.columns); }

}  // namespace

ResamplePlan::ResamplePlan(const AxisMap& rows_, const AxisMap& columns_, const Array& x,
                           bool transposed_)
    : rows(rows_),
      columns(columns_),
      transposed(transposed_),
      x_shape(x.shape()),
      y_shape{x_shape[0], x_shape[1], transposed ? rows.in : rows.out,
              transposed ? columns.in : columns.out},
      layout(BatchLayout::of(x, 1)) {}

Array ResamplePlan::apply(const Array& from, bool adjoint) const {
  const Array to = layout.uninitialized(adjoint ? x_shape : y_shape, from);
  apply(from, to, adjoint, false);
  return to;
}

void ResamplePlan::apply(const Array& from, const Array& to, bool adjoint, bool accumulate) const {
  if (to.size() == 0) return;
  if (!layout.fits(to)) return detail::assign_or_add(to, apply(from, adjoint), accumulate);
  resample(layout.laid_out(from), to, adjoint != transposed, accumulate);
}

void ResamplePlan::resample(const Array& from, const Array& to, bool against,
                            bool accumulate) const {
  constexpr uint32_t kImage = 1u << 2 | 1u << 3;
  if (!against && is_total(*this)) {
    const double elements = rows.rule == AxisRule::kBins ? double(rows.in) * double(columns.in) : 1;
    return kernels::reduce(to.device(),
                           {ReduceOp::kSum, &from, &to, kImage, divisor * elements, accumulate});
  }
  kernels::resample(to.device(), {&from, &to, rows, columns, divisor, against, accumulate});
}

void require_sizes(const FunctionCall& call, const Extent2D& image, const Extent2D& result) {
  CATENA_CHECK(ShapeError, image.height >= 1 && image.width >= 1, call.label(),
               ": expected images with at least one element, got images of ", text_of(image));
  const auto fits = [](const Extent2D& e) {
    return e.height <= kMostOfAxis && e.width <= kMostOfAxis;
  };
  CATENA_CHECK(ShapeError, fits(image) && fits(result), call.label(), ": images of ",
               text_of(image), " and ", text_of(result), ", expected at most ", kMostOfAxis,
               " rows and columns");
}

}  // namespace catena::functions
