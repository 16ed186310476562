// The providers "direct" of the convolution slots: the choice of calls, the geometry of the sums,
// and the order of weights. Grouped convolutions with few channels a group make poor products of
// patches. See direct.h.
#include "backends/cpu/convolution/direct.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "backends/common/convolution_problem.h"
#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/loops/direct_convolution.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/core/config.h"
#include "catena/core/dtype_info.h"

namespace catena::host {
namespace {

// Channels a group from which products of patches are faster.
constexpr int64_t kMostChannels = 8;

bool is_worthwhile(const ConvolutionProblem& p) {
  return p.groups > 1 && p.channels / p.groups <= kMostChannels &&
         p.filters / p.groups <= kMostChannels;
}
bool takes(const ConvolutionProblem& p, const SlotBase& slot) {
  if (is_worthwhile(p)) return true;
  const ProviderUse use = config().providers.use(slot.name(), "direct");
  return use == ProviderUse::kAlways || use == ProviderUse::kOnly;
}

// Geometry --------------------------------------------------------------------------------------

// Positions of y, which see x.
std::vector<AxisSums> forward_sums(const ConvolutionProblem& p, int axis) {
  const Window& w = p.window;
  return {{.count = p.out[axis],
           .stride = w.stride[axis],
           .offset = -w.pad[axis],
           .jump = w.dilation[axis],
           .taps = w.kernel[axis],
           .tap_step = 1}};
}
// Elements of x, which are seen by positions of y: element e by e + pad = position * stride + tap *
// dilation. With the next tap of the same remainder the position falls, so taps are listed from the
// last one down.
std::vector<AxisSums> grad_x_sums(const ConvolutionProblem& p, int axis) {
  const int64_t stride = p.window.stride[axis], dilation = p.window.dilation[axis],
                pad = p.window.pad[axis], size = p.image[axis];
  const int64_t apart = stride / std::gcd(stride, dilation);
  std::vector<AxisSums> sums;
  for (int64_t first = 0; first < std::min(stride, size); ++first) {
    AxisSums s{.first = first, .step = stride, .count = (size - 1 - first) / stride + 1};
    s.jump = apart * dilation / stride, s.tap_step = -apart;
    for (int64_t tap = 0; tap < p.window.kernel[axis]; ++tap) {
      const int64_t distance = first + pad - tap * dilation;
      if (distance % stride != 0) continue;
      ++s.taps, s.tap = tap, s.offset = distance / stride;
    }
    sums.push_back(s);
  }
  return sums;
}

// Units of about a nanosecond.
int threads_of(const ConvolutionProblem& p) {
  return threads_for(static_cast<int64_t>(p.multiply_adds() / 8));
}

void describe_forward(const ConvolutionProblem& p, DirectPass& pass) {
  pass.dtype = p.dtype, pass.batch = p.batch, pass.groups = p.groups;
  pass.sources = p.channels / p.groups, pass.results = p.filters / p.groups;
  pass.accumulate = p.accumulate, pass.threads = threads_of(p);
  for (int k = 0; k < 2; ++k) {
    pass.in[k] = p.image[k], pass.out[k] = p.out[k], pass.kernel[k] = p.window.kernel[k];
    pass.axis[k] = forward_sums(p, k);
  }
}
void describe_grad_x(const ConvolutionProblem& p, DirectPass& pass) {
  describe_forward(p, pass);
  std::swap(pass.sources, pass.results);
  for (int k = 0; k < 2; ++k) {
    std::swap(pass.in[k], pass.out[k]);
    pass.axis[k] = grad_x_sums(p, k);
  }
}

// Weights ---------------------------------------------------------------------------------------

const char* bytes(const Array& a) { return static_cast<const char*>(a.raw_data()); }
char* bytes_to(const Array& a) { return static_cast<char*>(a.raw_data()); }

// All elements in the order of memory.
template <class C>
std::vector<C> widened(const Array& a) {
  std::vector<C> wide(size_t(a.size()));
  cast_of(a.dtype(), dtype_of<C>)(bytes(a), a.itemsize(), reinterpret_cast<char*>(wide.data()),
                                  sizeof(C), a.size());
  return wide;
}
template <class C>
void store_narrowed(const std::vector<C>& wide, const Array& a) {
  cast_of(dtype_of<C>, a.dtype())(reinterpret_cast<const char*>(wide.data()), sizeof(C),
                                  bytes_to(a), a.itemsize(), a.size());
}

// Calls f(place in W's memory, place in the order of DirectPass::weights()) for all weights. The
// sources of a pass are the channels of W, or its filters if `transposed`.
template <class F>
void each_weight(const ConvolutionProblem& p, bool transposed, F f) {
  const int64_t channels = p.channels / p.groups, filters = p.filters / p.groups;
  const int64_t kh = p.window.kernel[0], kw = p.window.kernel[1], taps = kh * kw;
  const int64_t sources = transposed ? filters : channels,
                results = transposed ? channels : filters;
  const int64_t all = p.groups * results;
  const int64_t channel_step = p.weights_last ? 1 : taps, tap_step = p.weights_last ? channels : 1;
  int64_t to = 0;
  for (int64_t a = 0; a < sources; ++a)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t r = 0; r < all; ++r, ++to) {
        const int64_t o = transposed ? r / results * filters + a : r;
        const int64_t c = transposed ? r % results : a;
        f(o * channels * taps + c * channel_step + tap * tap_step, to);
      }
}
template <class C>
std::vector<C> packed(const ConvolutionProblem& p, const Array& W, bool transposed) {
  const std::vector<C> wide = widened<C>(W);
  std::vector<C> result(wide.size());
  each_weight(p, transposed,
              [&](int64_t from, int64_t to) { result[size_t(to)] = wide[size_t(from)]; });
  return result;
}

// Passes ----------------------------------------------------------------------------------------

template <class C>
void run(const ConvolutionProblem& p, const DirectSums<C>& s) {
  p.channels_last ? direct_sums_last(s) : direct_sums_first(s);
}

bool forward(const ConvolutionCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution)) return false;
  visit_compute(p.dtype, [&]<class C>(TypeTag<C>) {
    const std::vector<C> W = packed<C>(p, *c.W, false);
    const std::vector<C> b = c.b ? widened<C>(*c.b) : std::vector<C>();
    DirectSums<C> s{};
    describe_forward(p, s);
    s.source = bytes(*c.x), s.result = bytes_to(*c.y);
    s.weights_of = W.data(), s.bias = c.b ? b.data() : nullptr;
    run(p, s);
  });
  return true;
}

bool grad_x(const ConvolutionGradXCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution_grad_x)) return false;
  visit_compute(p.dtype, [&]<class C>(TypeTag<C>) {
    const std::vector<C> W = packed<C>(p, *c.W, true);
    DirectSums<C> s{};
    describe_grad_x(p, s);
    s.source = bytes(*c.gy), s.result = bytes_to(*c.gx), s.weights_of = W.data();
    run(p, s);
  });
  return true;
}

// Shares of the batch, or of its rows: as many as can be, unless their partial sums would be much
// to write beside what is read.
int64_t pieces_of(const ConvolutionProblem& p, const DirectPass& pass) {
  constexpr int64_t kMost = 64, kRows = 8;
  const int64_t read = p.batch * (p.channels * p.image_size() + p.filters * p.positions());
  const int64_t units = p.channels_last ? (p.batch * p.out[0] + kRows - 1) / kRows : p.batch;
  return std::clamp<int64_t>(read / (16 * pass.weights()), 1, std::min(units, kMost));
}

template <class C>
void add_partials(const ConvolutionProblem& p, const DirectProducts<C>& d, const Array& gW) {
  const int64_t count = d.weights();
  for (int64_t piece = 1; piece < d.pieces; ++piece) {
    const C* const from = d.partials + piece * count;
    for (int64_t i = 0; i < count; ++i) d.partials[i] += from[i];
  }
  std::vector<C> sums = p.accumulate ? widened<C>(gW) : std::vector<C>(size_t(count));
  each_weight(p, false, [&](int64_t to, int64_t from) { sums[size_t(to)] += d.partials[from]; });
  store_narrowed(sums, gW);
}

bool grad_w(const ConvolutionGradWCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution_grad_w)) return false;
  visit_compute(p.dtype, [&]<class C>(TypeTag<C>) {
    DirectProducts<C> d{};
    describe_forward(p, d);
    d.source = bytes(*c.x), d.gy = bytes(*c.gy), d.pieces = pieces_of(p, d);
    std::vector<C> partials(size_t(d.pieces * d.weights()));
    d.partials = partials.data();
    p.channels_last ? direct_products_last(d) : direct_products_first(d);
    add_partials(p, d, *c.gW);
  });
  return true;
}

}  // namespace
}  // namespace catena::host

// Asked after oneDNN and before the products of patches.
CATENA_FAMILY(cpu, direct_convolution) {
  kernels::convolution.provide(DeviceType::kCpu, "direct", &host::forward, 5);
  kernels::convolution_grad_x.provide(DeviceType::kCpu, "direct", &host::grad_x, 5);
  kernels::convolution_grad_w.provide(DeviceType::kCpu, "direct", &host::grad_w, 5);
}
