// The parts of images that a moving window sees, as arrays: Chainer's utils.conv.
#pragma once

#include <cstdint>

#include "catena/array/array.h"

namespace catena {

// Positions along an axis of `size` elements with p more on each side, for a window of k elements
// that are d apart and steps of s: (size + 2 * p - d * (k - 1) - 1) / s + 1, rounded down, with
// cover_all up; at least 0. ValueError for negative sizes and pads, k, s, d below 1, and numbers
// beyond 2^60.
int64_t get_conv_outsize(int64_t size, int64_t k, int64_t s, int64_t p, bool cover_all = false,
                         int64_t d = 1);

// col[n, c, i, j, y, x] = img[n, c, y * sy - ph + i * dy, x * sx - pw + j * dx], pval outside of
// the image: (n, c, h, w) becomes (n, c, kh, kw, oh, ow), contiguous, on any device. One kernel for
// floating dtypes and a pval of 0, else padding and a copy. ShapeError unless img is 4-d and a
// window fits, ValueError as above.
Array im2col(const Array& img, int64_t kh, int64_t kw, int64_t sy, int64_t sx, int64_t ph,
             int64_t pw, const Scalar& pval = 0, bool cover_all = false, int64_t dy = 1,
             int64_t dx = 1);

// The transpose of im2col: the elements of col (n, c, kh, kw, oh, ow) are added where they would be
// from, into (n, c, h, w); those outside are dropped. One kernel; 16-bit floats are summed in
// float32, and equal calls give equal bits. ShapeError unless col is 6-d, DtypeError unless it is
// floating, ValueError as above.
Array col2im(const Array& col, int64_t sy, int64_t sx, int64_t ph, int64_t pw, int64_t h, int64_t w,
             int64_t dy = 1, int64_t dx = 1);

// Chainer's names for both kinds of device.
inline Array im2col_cpu(const Array& img, int64_t kh, int64_t kw, int64_t sy, int64_t sx,
                        int64_t ph, int64_t pw, const Scalar& pval = 0, bool cover_all = false) {
  return im2col(img, kh, kw, sy, sx, ph, pw, pval, cover_all);
}
inline Array im2col_gpu(const Array& img, int64_t kh, int64_t kw, int64_t sy, int64_t sx,
                        int64_t ph, int64_t pw, bool cover_all = false) {
  return im2col(img, kh, kw, sy, sx, ph, pw, 0, cover_all);
}
inline Array col2im_cpu(const Array& col, int64_t sy, int64_t sx, int64_t ph, int64_t pw, int64_t h,
                        int64_t w) {
  return col2im(col, sy, sx, ph, pw, h, w);
}
inline Array col2im_gpu(const Array& col, int64_t sy, int64_t sx, int64_t ph, int64_t pw, int64_t h,
                        int64_t w) {
  return col2im(col, sy, sx, ph, pw, h, w);
}

}  // namespace catena
