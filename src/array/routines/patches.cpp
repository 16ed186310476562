#include "catena/array/patches.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/convolution.h"

namespace catena {
namespace {

constexpr int64_t kMost = int64_t{1} << 60;

void check_step(const char* what, int64_t value, int64_t least) {
  CATENA_CHECK(ValueError, value >= least && value < kMost, "expected a ", what, " of at least ",
               least, ", got ", value);
}

// From the first to the last element that a position sees, and one more.
int64_t range_of(int64_t k, int64_t d) {
  check_step("window", k, 1);
  check_step("dilation", d, 1);
  int64_t range = 0;
  const bool overflow = __builtin_mul_overflow(d, k - 1, &range);
  CATENA_CHECK(ValueError, !overflow && range < kMost, "a window of ", k, " elements that are ", d,
               " apart is too large");
  return range + 1;
}

int64_t positions(int64_t size, int64_t k, int64_t s, int64_t p, bool cover_all, int64_t d) {
  check_step("size", size, 0);
  check_step("stride", s, 1);
  check_step("pad", p, 0);
  const int64_t room = size + 2 * p - range_of(k, d) + (cover_all ? s - 1 : 0);
  return room < 0 ? 0 : room / s + 1;
}

// img with `value` wherever positions look beyond it.
Array padded(const Array& img, const Window& w, int64_t oh, int64_t ow, const Scalar& value) {
  const auto behind = [&](int axis, int64_t count) {
    const int64_t size = img.shape()[size_t(2 + axis)];
    return std::max<int64_t>(0, (count - 1) * w.stride[axis] + w.range(axis) - size - w.pad[axis]);
  };
  const PadWidths widths{{0, 0}, {0, 0}, {w.pad[0], behind(0, oh)}, {w.pad[1], behind(1, ow)}};
  return pad(img, widths, PadMode::kConstant, value);
}

// The windows of an image that has all of them, as a view.
Array windows_of(const Array& img, const Shape& shape, const Window& w) {
  const Strides& s = img.strides();
  const int64_t offset =
      static_cast<const char*>(img.raw_data()) - static_cast<const char*>(img.storage()->data);
  return Array::from_storage(img.storage(), offset, shape,
                             {s[0], s[1], s[2] * w.dilation[0], s[3] * w.dilation[1],
                              s[2] * w.stride[0], s[3] * w.stride[1]},
                             img.dtype());
}

}  // namespace

int64_t get_conv_outsize(int64_t size, int64_t k, int64_t s, int64_t p, bool cover_all, int64_t d) {
  const EntryScope call("get_conv_outsize");
  return positions(size, k, s, p, cover_all, d);
}

Array im2col(const Array& img, int64_t kh, int64_t kw, int64_t sy, int64_t sx, int64_t ph,
             int64_t pw, const Scalar& pval, bool cover_all, int64_t dy, int64_t dx) {
  const EntryScope call("im2col");
  CATENA_CHECK(ShapeError, img.ndim() == 4, "expected images (n, channels, height, width), got ",
               img.shape());
  const Shape& i = img.shape();
  const int64_t oh = positions(i[2], kh, sy, ph, cover_all, dy),
                ow = positions(i[3], kw, sx, pw, cover_all, dx);
  CATENA_CHECK(ShapeError, oh > 0 && ow > 0, "a window of (", kh, ", ", kw,
               ") does not fit into images of (", i[2], ", ", i[3], ") with pad (", ph, ", ", pw,
               ")");
  const Window window{{kh, kw}, {sy, sx}, {ph, pw}, {dy, dx}};
  const Shape shape{i[0], i[1], kh, kw, oh, ow};
  if (img.size() > 0 && is_float(img.dtype()) && pval.to_double() == 0) {
    const Array col = Array::uninitialized(shape, img.dtype(), img.device());
    kernels::patches(img.device(), {&img, &col, window});
    return col;
  }
  const Array image = padded(img, window, oh, ow, pval);
  if (image.size() == 0) return zeros(shape, {img.dtype(), img.device()});
  return windows_of(image, shape, window).contiguous();
}

Array col2im(const Array& col, int64_t sy, int64_t sx, int64_t ph, int64_t pw, int64_t h, int64_t w,
             int64_t dy, int64_t dx) {
  const EntryScope call("col2im");
  CATENA_CHECK(ShapeError, col.ndim() == 6,
               "expected patches (n, channels, kh, kw, oh, ow), as im2col makes them, got ",
               col.shape());
  CATENA_CHECK(DtypeError, is_float(col.dtype()), "expected a floating dtype, got ", col.dtype(),
               "; convert with .astype(dtype::float32)");
  for (const int64_t s : {sy, sx}) check_step("stride", s, 1);
  for (const int64_t p : {ph, pw}) check_step("pad", p, 0);
  for (const int64_t size : {h, w}) check_step("size", size, 0);
  for (const int64_t d : {dy, dx}) check_step("dilation", d, 1);
  const Shape& c = col.shape();
  const Shape shape{c[0], c[1], h, w};
  if (col.size() == 0 || element_count(shape) == 0)
    return zeros(shape, {col.dtype(), col.device()});
  const Array img = Array::uninitialized(shape, col.dtype(), col.device());
  kernels::patch_sums(col.device(), {&col, &img, {{c[2], c[3]}, {sy, sx}, {ph, pw}, {dy, dx}}});
  return img;
}

}  // namespace catena
