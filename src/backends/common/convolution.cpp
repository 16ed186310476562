// Convolutions as matrix products: y = W @ patches. Any layout, window and number of groups.
//
// With channels first, a position of the result is a column of the product, and the patches of an
// image are (channels * taps, positions). With channels last it is a row, and the patches of many
// images are one matrix (images * positions, taps * channels). Patches are made for as many images
// at a time as fit into a buffer of kCpuBufferBytes or kGpuBufferBytes. A 1 x 1 window needs none.
#include <algorithm>

#include "backends/common/convolution_problem.h"
#include "backends/common/family.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/matmul.h"
#include "catena/kernels/reduce.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

// Larger buffers do not fit the caches of a CPU, and gain nothing on a GPU.
constexpr int64_t kCpuBufferBytes = int64_t{1} << 20, kGpuBufferBytes = int64_t{64} << 20;
// Images that are copied into another layout alone are read and written once whatever their number.
constexpr int64_t kMovedBytes = int64_t{256} << 20;

// A view with strides counted in elements.
Array view(const Array& a, const Shape& shape, std::initializer_list<int64_t> steps,
           int64_t offset = 0) {
  Strides strides;
  for (const int64_t step : steps) strides.push_back(step * a.itemsize());
  const int64_t first = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), first + offset * a.itemsize(), shape, strides, a.dtype());
}

bool has_channels_last(const Array& a) {
  return !a.is_contiguous() && a.strides()[1] == a.itemsize();
}

// One group of a convolution: `channels` and `filters` are the numbers of one group.
struct Group : ConvolutionProblem {
  int64_t taps() const { return window.taps(); }
  int64_t depth() const { return channels * taps(); }
};

template <class Call>
Group group_of(const Call& call) {
  Group z{problem_of(call)};
  z.channels /= z.groups;
  z.filters /= z.groups;
  return z;
}

// The same images with their channels last in memory.
Array with_channels_last(const Array& a) {
  return a.transpose({0, 2, 3, 1}).contiguous().transpose({0, 3, 1, 2});
}

// Images [first, first + count) and the channels of group g of an image array.
Array part_of(const Array& a, int64_t first, int64_t count, int64_t channels, int g) {
  const Strides& s = a.strides();
  const int64_t item = a.itemsize();
  return view(a, {count, channels, a.shape()[2], a.shape()[3]},
              {s[0] / item, s[1] / item, s[2] / item, s[3] / item},
              first * (s[0] / item) + g * channels * (s[1] / item));
}

// (images, channels, positions), or with `last` (images * positions, channels).
Array as_matrix(const Array& part, bool last) {
  const Shape& s = part.shape();
  const int64_t item = part.itemsize(), image = part.strides()[0] / item,
                channel = part.strides()[1] / item, positions = s[2] * s[3];
  // The stride of an axis with one element has no meaning.
  const size_t axis = s[3] > 1 ? 3 : s[2] > 1 ? 2 : 0;
  const int64_t position = last ? part.strides()[axis] / item : 1;
  if (last) return view(part, {s[0] * positions, s[1]}, {position, channel});
  return view(part, {s[0], s[1], positions}, {image, channel, position});
}

// One group of W as (outputs, depth) without a copy, with the depth in W's order in memory.
Array weight_rows(const Array& W, const Group& z, int g) {
  return view(W, {z.filters, z.depth()}, {z.depth(), 1}, g * z.filters * z.depth());
}

// Whether the rows of W have the order of the patches as they are.
bool has_order_of_patches(const Group& z, bool last) {
  return last == z.weights_last || z.taps() == 1 || z.channels == 1;
}

// The rows in the order of the patches.
Array weight_matrix(const Array& W, const Group& z, int g, bool last) {
  const Array rows = weight_rows(W, z, g);
  if (has_order_of_patches(z, last)) return rows;
  return rows.reshape({z.filters, z.channels, z.window.kernel[0], z.window.kernel[1]})
      .transpose({0, 2, 3, 1})
      .contiguous()
      .reshape({z.filters, z.depth()});
}

// The patches of some images in separate memory, in the order that the products need.
class Patches {
 public:
  // `moves`: the caller copies the images as well, and the same limit applies to the copies.
  Patches(const Group& z, const Array& like, bool last, bool moves = false)
      : z_(z), last_(last), pointwise_(z.is_pointwise()) {
    const int64_t usual = like.device().is_cpu() ? kCpuBufferBytes
                          : pointwise_           ? kMovedBytes
                                                 : kGpuBufferBytes;
    const int64_t limit =
        std::min<uint64_t>(static_cast<uint64_t>(usual), config().max_workspace_size);
    const int64_t widest = std::max(z.depth(), moves ? z.filters : 0);
    const int64_t bytes = std::max<int64_t>(widest * z.positions() * like.itemsize(), 1);
    at_once_ = pointwise_ && !moves ? z.batch : std::clamp<int64_t>(limit / bytes, 1, z.batch);
    if (!pointwise_)
      memory_ =
          Array::uninitialized({at_once_, z.depth() * z.positions()}, like.dtype(), like.device());
  }
  int64_t at_once() const { return at_once_; }

  // The patches of an image part: (images, depth, positions), or (images * positions, depth).
  Array of(const Array& part) const {
    if (pointwise_) return as_matrix(part, last_);
    const Array windows = as_windows(part.shape()[0]);
    kernels::patches(part.device(), {&part, &windows, z_.window});
    return matrix(part.shape()[0]);
  }
  // Memory for the patches of a gradient; `add_to` sums them into the image part.
  Array room_for(const Array& part) const {
    return pointwise_ ? as_matrix(part, last_) : matrix(part.shape()[0]);
  }
  void add_to(const Array& part, bool accumulate) const {
    if (pointwise_) return;
    const Array windows = as_windows(part.shape()[0]);
    kernels::patch_sums(part.device(), {&windows, &part, z_.window, accumulate});
  }
  // Whether room_for() is the image itself, so that the product must accumulate into it.
  bool is_image() const { return pointwise_; }

 private:
  Array as_windows(int64_t images) const {
    const int64_t P = z_.positions(), K = z_.depth(), c = z_.channels, kw = z_.window.kernel[1];
    const Shape shape{images, c, z_.window.kernel[0], kw, z_.out[0], z_.out[1]};
    if (last_) return view(memory_, shape, {P * K, 1, kw * c, c, z_.out[1] * K, K});
    return view(memory_, shape, {P * K, z_.taps() * P, kw * P, P, z_.out[1], 1});
  }
  Array matrix(int64_t images) const {
    const int64_t P = z_.positions(), K = z_.depth();
    if (last_) return view(memory_, {images * P, K}, {K, 1});
    return view(memory_, {images, K, P}, {K * P, P, 1});
  }

  const Group& z_;
  bool last_, pointwise_;
  int64_t at_once_ = 0;
  Array memory_;
};

void multiply(const Array& a, const Array& b, const Array& output, bool accumulate = false) {
  kernels::matmul(output.device(), {.a = &a, .b = &b, .output = &output, .accumulate = accumulate});
}

// The matrix m, repeated for each of `images`.
Array for_each_image(const Array& m, int64_t images) {
  const int64_t item = m.itemsize();
  return view(m, {images, m.shape()[0], m.shape()[1]},
              {0, m.strides()[0] / item, m.strides()[1] / item});
}

void convolve(const ConvolutionCall& call) {
  const Group z = group_of(call);
  const bool last = z.channels_last;
  const Patches patches(z, *call.x, last);
  for (int g = 0; g < call.groups; ++g) {
    const Array W = weight_matrix(*call.W, z, g, last);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array x = patches.of(part_of(*call.x, first, count, z.channels, g));
      const Array y = as_matrix(part_of(*call.y, first, count, z.filters, g), last);
      last ? multiply(x, W.T(), y) : multiply(for_each_image(W, count), x, y);
    }
  }
  if (call.b == nullptr) return;
  const Array b = call.b->reshape({1, call.y->shape()[1], 1, 1});
  add(*call.y, b, *call.y);
}

void convolve_grad_x(const ConvolutionGradXCall& call) {
  const Group z = group_of(call);
  const bool last = z.channels_last;
  const Patches patches(z, *call.gx, last);
  for (int g = 0; g < call.groups; ++g) {
    const Array W = weight_matrix(*call.W, z, g, last);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array gx = part_of(*call.gx, first, count, z.channels, g);
      const Array gy = as_matrix(part_of(*call.gy, first, count, z.filters, g), last);
      const Array room = patches.room_for(gx);
      const bool add_now = patches.is_image() && call.accumulate;
      last ? multiply(gy, W, room, add_now)
           : multiply(for_each_image(W.T(), count), gy, room, add_now);
      patches.add_to(gx, call.accumulate);
    }
  }
}

// The sum of the products of all images. In 16 bits it is kept in float32: added to a large sum,
// the share of one image of hundreds would be rounded away.
class WeightSum {
 public:
  WeightSum(const Array& target, bool accumulate, bool several)
      : target_(target), add_up_(accumulate) {
    const Dtype wide = compute_dtype(target.dtype());
    if (!several || wide == target.dtype()) return;
    total_ = accumulate ? target.astype(wide) : zeros(target.shape(), {wide, target.device()});
  }
  void add_product(const Array& a, const Array& b) {
    const bool wide = total_.defined();
    multiply(a, b, target_, add_up_ && !wide);
    if (wide) add(total_, target_, total_);
    add_up_ = true;
  }
  void finish() const {
    if (total_.defined()) target_.assign(total_);
  }

 private:
  Array target_, total_;
  bool add_up_;
};

// Writes or adds rows in the order of patches with channels last to those of contiguous weights.
void store_reordered(const Group& z, const Array& rows, const Array& target, bool accumulate) {
  const int64_t kh = z.window.kernel[0], kw = z.window.kernel[1];
  const Array ordered = rows.reshape({z.filters, kh, kw, z.channels}).transpose({0, 3, 1, 2});
  const Array shaped = target.reshape({z.filters, z.channels, kh, kw});
  if (accumulate)
    add(shaped, ordered, shaped);
  else
    kernels::copy(shaped.device(), {ordered, shaped});
}

// The products of the images are added one image at a time, so the order of the sum does not depend
// on the number of threads. A GPU multiplies the positions of many images at once, which needs the
// channels of gy last.
void convolve_grad_w(const ConvolutionGradWCall& call) {
  const Group z = group_of(call);
  const bool last =
      has_channels_last(*call.x) || has_channels_last(*call.gy) || !call.x->device().is_cpu();
  const bool move_x = last && z.is_pointwise() && !has_channels_last(*call.x);
  const bool move_gy = last && !has_channels_last(*call.gy);
  const Patches patches(z, *call.x, last, move_x || move_gy);
  for (int g = 0; g < call.groups; ++g) {
    const Array target = weight_rows(*call.gW, z, g);
    const bool direct = has_order_of_patches(z, last);
    const Array gW =
        direct ? target
               : Array::uninitialized({z.filters, z.depth()}, target.dtype(), target.device());
    const int64_t products = last ? (z.batch + patches.at_once() - 1) / patches.at_once() : z.batch;
    WeightSum sum(gW, direct && call.accumulate, products > 1);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array x_part = part_of(*call.x, first, count, z.channels, g);
      const Array gy_part = part_of(*call.gy, first, count, z.filters, g);
      const Array x = patches.of(move_x ? with_channels_last(x_part) : x_part);
      const Array gy = as_matrix(move_gy ? with_channels_last(gy_part) : gy_part, last);
      if (last) {
        sum.add_product(gy.T(), x);
        continue;
      }
      for (int64_t n = 0; n < count; ++n) sum.add_product(gy(n), x(n).T());
    }
    sum.finish();
    if (!direct) store_reordered(z, gW, target, call.accumulate);
  }
}

}  // namespace

}  // namespace catena

CATENA_COMPOSED_FAMILY(convolution) {
  kernels::convolution.provide<&convolve>(type, "products");
  kernels::convolution_grad_x.provide<&convolve_grad_x>(type, "products");
  kernels::convolution_grad_w.provide<&convolve_grad_w>(type, "products");
}
