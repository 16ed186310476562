// Convolutions as matrix products: y = W @ patches. Any layout, window and number of groups.
//
// A patch is what a position sees. With channels first, patches are columns: those of an image are
// (channels * taps, positions), and the products write y as it is. With channels last they are
// rows, and those of many images are one matrix (images * positions, taps * channels). On a GPU
// windows that do not overlap make rows with channels first too, (images * positions, channels *
// taps): these are copied a line of a window at a time, and are one product whose lines have many
// elements, while lines of an image's positions, as 14 x 14, are thin and badly aligned. Only y is
// copied once more. Patches are made for as many images at a time as fit into a buffer. A 1 x 1
// window needs none.
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
// Patches that are no larger than the images, and moved images, cost the same however many are made
// at a time, but the products of more images are fewer.
constexpr int64_t kMovedBytes = int64_t{256} << 20;

// A view with strides counted in elements.
Array view(const Array& a, const Shape& shape, std::initializer_list<int64_t> steps,
           int64_t offset = 0) {
  Strides strides;
  for (const int64_t step : steps) strides.push_back(step * a.itemsize());
  const int64_t first = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), first + offset * a.itemsize(), shape, strides, a.dtype());
}

// One group of a convolution: `channels` and `filters` are the numbers of one group.
struct Group : ConvolutionProblem {
  bool rows;  // whether patches are rows, not columns

  int64_t taps() const { return window.taps(); }
  int64_t depth() const { return channels * taps(); }
  // Whether images are copied to have a row of channels for each position.
  bool moves() const { return rows && !channels_last; }
};

// Weight gradients on a GPU sum over the positions of many images at once, which are rows.
bool makes_rows(const ConvolutionProblem& p, Device device) {
  if (p.channels_last || device.is_cpu()) return p.channels_last;
  return p.pass == ConvolutionPass::kGradW || (p.window.taps() > 1 && p.has_windows_apart());
}

template <class Call>
Group group_of(const Call& call, Device device) {
  Group z{problem_of(call), false};
  z.rows = makes_rows(z, device);
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

// (images, channels, positions), or as rows (images * positions, channels).
Array as_matrix(const Array& part, bool rows) {
  const Shape& s = part.shape();
  const int64_t item = part.itemsize(), image = part.strides()[0] / item,
                channel = part.strides()[1] / item, positions = s[2] * s[3];
  // The stride of an axis with one element has no meaning.
  const size_t axis = s[3] > 1 ? 3 : s[2] > 1 ? 2 : 0;
  const int64_t position = rows ? part.strides()[axis] / item : 1;
  if (rows) return view(part, {s[0] * positions, s[1]}, {position, channel});
  return view(part, {s[0], s[1], positions}, {image, channel, position});
}

// The same as the products need it.
Array matrix_of(const Group& z, const Array& part) {
  return as_matrix(z.moves() ? with_channels_last(part) : part, z.rows);
}

// One group of W as (outputs, depth) without a copy, with the depth in W's order in memory.
Array weight_rows(const Array& W, const Group& z, int g) {
  return view(W, {z.filters, z.depth()}, {z.depth(), 1}, g * z.filters * z.depth());
}

// Whether the rows of W have the order of the patches as they are: the layout of the images.
bool has_order_of_patches(const Group& z) {
  return z.channels_last == z.weights_last || z.taps() == 1 || z.channels == 1;
}

// The rows in the order of the patches.
Array weight_matrix(const Array& W, const Group& z, int g) {
  const Array rows = weight_rows(W, z, g);
  if (has_order_of_patches(z)) return rows;
  return rows.reshape({z.filters, z.channels, z.window.kernel[0], z.window.kernel[1]})
      .transpose({0, 2, 3, 1})
      .contiguous()
      .reshape({z.filters, z.depth()});
}

// The patches of some images in separate memory, in the order that the products need.
class Patches {
 public:
  Patches(const Group& z, const Array& like) : z_(z), pointwise_(z.is_pointwise()) {
    const int64_t usual = like.device().is_cpu()                ? kCpuBufferBytes
                          : pointwise_ || z.has_windows_apart() ? kMovedBytes
                                                                : kGpuBufferBytes;
    const int64_t limit =
        std::min<uint64_t>(static_cast<uint64_t>(usual), config().max_workspace_size);
    const int64_t copied = (pointwise_ && !z.moves() ? 0 : z.depth()) + (z.moves() ? z.filters : 0);
    const int64_t bytes = copied * z.positions() * like.itemsize();
    at_once_ = bytes == 0 ? z.batch : std::clamp<int64_t>(limit / bytes, 1, z.batch);
    if (!pointwise_)
      memory_ =
          Array::uninitialized({at_once_, z.depth() * z.positions()}, like.dtype(), like.device());
  }
  int64_t at_once() const { return at_once_; }

  // The patches of an image part: (images, depth, positions), or rows (images * positions, depth).
  Array of(const Array& part) const {
    if (pointwise_) return matrix_of(z_, part);
    const Array windows = as_windows(part.shape()[0]);
    kernels::patches(part.device(), {&part, &windows, z_.window});
    return matrix(part.shape()[0]);
  }
  // Memory for the patches of a gradient; `add_to` sums them into the image part.
  Array room_for(const Array& part) const {
    return pointwise_ ? as_matrix(part, z_.rows) : matrix(part.shape()[0]);
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
    const int64_t P = z_.positions(), K = z_.depth(), c = z_.channels;
    const int64_t kw = z_.window.kernel[1], ow = z_.out[1];
    const Shape shape{images, c, z_.window.kernel[0], kw, z_.out[0], ow};
    if (z_.channels_last) return view(memory_, shape, {P * K, 1, kw * c, c, ow * K, K});
    if (z_.rows) return view(memory_, shape, {P * K, z_.taps(), kw, 1, ow * K, K});
    return view(memory_, shape, {P * K, z_.taps() * P, kw * P, P, ow, 1});
  }
  Array matrix(int64_t images) const {
    const int64_t P = z_.positions(), K = z_.depth();
    if (z_.rows) return view(memory_, {images * P, K}, {K, 1});
    return view(memory_, {images, K, P}, {K * P, P, 1});
  }

  const Group& z_;
  bool pointwise_;
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

// y = patches @ W.T + b of one group, with the patches as rows.
void multiply_rows(const Group& z, const Array& patches, const Array& W, const Array* b, int g,
                   const Array& y) {
  const Array to =
      z.moves() ? Array::uninitialized(y.shape(), y.dtype(), y.device(), MemoryOrder({0, 2, 3, 1}))
                : y;
  const Array Wt = W.T(), output = as_matrix(to, true);
  const Array bias = b ? view(*b, {z.filters}, {1}, g * z.filters) : Array();
  kernels::matmul(y.device(),
                  {.a = &patches, .b = &Wt, .output = &output, .bias = b ? &bias : nullptr});
  if (z.moves()) kernels::copy(y.device(), {to, y});
}

void convolve(const ConvolutionCall& call) {
  const Group z = group_of(call, call.x->device());
  const Patches patches(z, *call.x);
  for (int g = 0; g < call.groups; ++g) {
    const Array W = weight_matrix(*call.W, z, g);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array x = patches.of(part_of(*call.x, first, count, z.channels, g));
      const Array y = part_of(*call.y, first, count, z.filters, g);
      if (z.rows)
        multiply_rows(z, x, W, call.b, g, y);
      else
        multiply(for_each_image(W, count), x, as_matrix(y, false));
    }
  }
  if (call.b == nullptr || z.rows) return;
  const Array b = call.b->reshape({1, call.y->shape()[1], 1, 1});
  add(*call.y, b, *call.y);
}

void convolve_grad_x(const ConvolutionGradXCall& call) {
  const Group z = group_of(call, call.gx->device());
  const Patches patches(z, *call.gx);
  for (int g = 0; g < call.groups; ++g) {
    const Array W = weight_matrix(*call.W, z, g);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array gx = part_of(*call.gx, first, count, z.channels, g);
      const Array gy = matrix_of(z, part_of(*call.gy, first, count, z.filters, g));
      const Array room = patches.room_for(gx);
      const bool add_now = patches.is_image() && call.accumulate;
      z.rows ? multiply(gy, W, room, add_now)
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
// on the number of threads. Rows are multiplied for many images at once.
void convolve_grad_w(const ConvolutionGradWCall& call) {
  const Group z = group_of(call, call.x->device());
  const Patches patches(z, *call.x);
  const bool direct = has_order_of_patches(z);
  const int64_t products = z.rows ? (z.batch + patches.at_once() - 1) / patches.at_once() : z.batch;
  for (int g = 0; g < call.groups; ++g) {
    const Array target = weight_rows(*call.gW, z, g);
    const Array gW =
        direct ? target
               : Array::uninitialized({z.filters, z.depth()}, target.dtype(), target.device());
    WeightSum sum(gW, direct && call.accumulate, products > 1);
    for (int64_t first = 0; first < z.batch; first += patches.at_once()) {
      const int64_t count = std::min(patches.at_once(), z.batch - first);
      const Array x = patches.of(part_of(*call.x, first, count, z.channels, g));
      const Array gy = matrix_of(z, part_of(*call.gy, first, count, z.filters, g));
      if (z.rows) {
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
