// Convolutions of many kinds and a plain loop in double to compare their providers with.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/kernels/convolution.h"

namespace catena::testing {

enum class Pass { kForward, kGradX, kGradW };

struct ConvolutionCase {
  Dtype dtype = Dtype::kFloat32;
  int64_t batch = 2, channels = 4, height = 8, width = 7, filters = 6;
  Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  int64_t fewer[2] = {0, 0};  // positions that the result leaves out
  int64_t more[2] = {0, 0};   // positions behind the last that fits (cover_all)
  int groups = 1;
  bool channels_last = false, bias = false, accumulate = false;
  bool filters_last = false;  // W likewise, where x has its channels last

  int64_t in(int axis) const { return axis == 0 ? height : width; }
  int64_t out(int axis) const {
    const Window& w = window;
    const int64_t room = in(axis) + 2 * w.pad[axis] - (w.kernel[axis] - 1) * w.dilation[axis] - 1;
    return room / w.stride[axis] + 1 + more[axis] - fewer[axis];
  }
  bool possible() const {
    for (int axis = 0; axis < 2; ++axis) {
      const Window& w = window;
      if (in(axis) + 2 * w.pad[axis] < (w.kernel[axis] - 1) * w.dilation[axis] + 1) return false;
      // Every position sees the image or its padding.
      if (out(axis) < 1 || (out(axis) - 1) * w.stride[axis] >= in(axis) + 2 * w.pad[axis])
        return false;
    }
    return true;
  }
  // Whether the result has as many positions as fit, in both directions.
  bool is_ordinary() const { return fewer[0] + fewer[1] + more[0] + more[1] == 0; }
  std::string text() const {
    std::ostringstream s;
    auto pair = [&](const char* what, const int64_t* v) {
      s << ' ' << what << ' ' << v[0] << 'x' << v[1];
    };
    s << name(dtype) << " x (" << batch << ' ' << channels << ' ' << height << ' ' << width << ") "
      << filters << " filters";
    pair("of", window.kernel), pair("stride", window.stride), pair("pad", window.pad);
    pair("dilation", window.dilation), pair("fewer", fewer), pair("more", more);
    s << " groups " << groups << (channels_last ? " channels last" : "")
      << (filters_last ? " filters last" : "") << (bias ? " bias" : "")
      << (accumulate ? " accumulate" : "");
    return s.str();
  }
};

// A case of small odd extents; most are ordinary, some leave out or add positions.
inline ConvolutionCase random_convolution(std::mt19937& random) {
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    ConvolutionCase c;
    c.batch = pick(1, 3);
    const int kind = int(pick(0, 5));  // 0: depthwise, 1 and 2: groups
    c.groups = kind > 2 ? 1 : kind == 0 ? int(pick(2, 9)) : int(pick(2, 3));
    c.channels = c.groups * (kind == 0 ? 1 : pick(1, pick(0, 1) ? 5 : 20));
    c.filters = c.groups * (kind == 0 ? 1 : pick(1, pick(0, 1) ? 5 : 20));
    c.height = pick(1, 13), c.width = pick(1, 13);
    for (int axis = 0; axis < 2; ++axis) {
      c.window.kernel[axis] = pick(1, 4);
      c.window.stride[axis] = pick(0, 1) ? 1 : pick(1, 3);
      c.window.pad[axis] = pick(0, 2);
      c.window.dilation[axis] = pick(0, 2) ? 1 : pick(1, 3);
      c.more[axis] = pick(0, 5) ? 0 : 1;
      c.fewer[axis] = pick(0, 11) ? 0 : 1;
    }
    c.channels_last = pick(0, 1), c.bias = pick(0, 1), c.accumulate = pick(0, 2) == 0;
    c.filters_last = c.channels_last && pick(0, 1);
    if (c.possible()) return c;
  }
}

// Windows that do not overlap, in all layouts: odd numbers of positions, images that are no
// multiple of the window, distances between windows, padding, positions left out and added, groups.
inline std::vector<ConvolutionCase> patch_cases() {
  ConvolutionCase plain;
  plain.batch = 3, plain.channels = 3, plain.filters = 8, plain.height = 20, plain.width = 28;
  plain.window = {{4, 4}, {4, 4}, {0, 0}, {1, 1}};
  plain.bias = true;
  std::vector<ConvolutionCase> kinds(10, plain);
  kinds[1].height = 23, kinds[1].width = 30;
  kinds[2].window = {{3, 4}, {7, 5}, {0, 0}, {1, 1}};
  kinds[3].groups = 2, kinds[3].channels = 6, kinds[3].filters = 10;
  kinds[4].window = {{16, 16}, {16, 16}, {0, 0}, {1, 1}};
  kinds[4].height = 32, kinds[4].width = 48, kinds[4].filters = 24;
  kinds[5].window = {{3, 2}, {5, 4}, {0, 0}, {2, 3}};
  kinds[6].more[0] = kinds[6].more[1] = 1, kinds[6].height = 22, kinds[6].width = 29;
  kinds[7].fewer[0] = 1, kinds[7].fewer[1] = 2;
  kinds[8].window.pad[0] = 4, kinds[8].window.pad[1] = 2;
  kinds[9].window = {{20, 28}, {1, 1}, {0, 0}, {1, 1}};
  std::vector<ConvolutionCase> cases;
  for (ConvolutionCase c : kinds)
    for (const auto& [last, filters_last] :
         {std::pair(false, false), std::pair(true, false), std::pair(true, true)})
      for (const bool accumulate : {false, true}) {
        c.channels_last = last, c.filters_last = filters_last, c.accumulate = accumulate;
        cases.push_back(c);
      }
  return cases;
}

// An array of the dtype and layout, and its values as they are after rounding to it.
struct CaseArray {
  Array array;
  std::vector<double> values;  // in the order of (N, C, H, W)
};

inline std::vector<double> values_of(const Array& a) {
  const Array host = a.get().astype(Dtype::kFloat64);
  const auto all = host.data<double>();
  return std::vector<double>(all, all + host.size());
}

inline Array in_layout(const Array& a, bool channels_last) {
  if (!channels_last) return a.contiguous();
  return a.transpose({0, 2, 3, 1}).copy().transpose({0, 3, 1, 2});
}

inline CaseArray random_case_array(std::mt19937& random, const Shape& shape, Dtype dtype,
                                   Device device, bool channels_last = false) {
  std::vector<double> values(size_t(element_count(shape)));
  std::uniform_real_distribution<double> draw(-1, 1);
  for (double& v : values) v = draw(random);
  const Array plain = array(values, shape).astype(dtype);
  const Array there = plain.to(device);
  return {channels_last ? in_layout(there, true) : there, values_of(plain)};
}

// The arrays of one case, each with random values: results too, whose old values count.
struct ConvolutionData {
  ConvolutionData() = default;
  ConvolutionData(const ConvolutionCase& c, Device device, uint32_t seed) {
    std::mt19937 random(seed);
    const int64_t per_group = c.channels / c.groups;
    x = random_case_array(random, {c.batch, c.channels, c.height, c.width}, c.dtype, device,
                          c.channels_last);
    w = random_case_array(random, {c.filters, per_group, c.window.kernel[0], c.window.kernel[1]},
                          c.dtype, device, c.filters_last);
    b = random_case_array(random, {c.filters}, c.dtype, device);
    y = random_case_array(random, {c.batch, c.filters, c.out(0), c.out(1)}, c.dtype, device,
                          c.channels_last);
  }
  CaseArray x, w, b, y;
};

// The result of a pass by its definition, and the largest sum of magnitudes, which bounds
// roundings.
struct Expected {
  std::vector<double> values;
  double magnitude = 0;
};

inline Expected expected_convolution(Pass pass, const ConvolutionCase& c,
                                     const ConvolutionData& d) {
  const CaseArray& target = pass == Pass::kForward ? d.y : pass == Pass::kGradX ? d.x : d.w;
  Expected e{std::vector<double>(target.values.size(), 0.0)};
  std::vector<double> sizes(target.values.size(), 0.0);
  const int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  const int64_t oh = c.out(0), ow = c.out(1), kh = c.window.kernel[0], kw = c.window.kernel[1];
  const Window& v = c.window;
  // Plain pointers, as test programs are compiled without optimization.
  const double* const x = d.x.values.data();
  const double* const w = d.w.values.data();
  const double* const y = d.y.values.data();
  double* const sums = e.values.data();
  double* const magnitudes = sizes.data();
  // The terms of a line of y, from column `first` of it to `last`, of one element of a filter.
  const auto add_line = [&](int64_t ix, int64_t iw, int64_t iy, int64_t first, int64_t last) {
    for (int64_t px = first; px < last; ++px) {
      const int64_t at_x = ix + px * v.stride[1], at_y = iy + px;
      double term;
      int64_t at;
      if (pass == Pass::kForward)
        term = x[at_x] * w[iw], at = at_y;
      else if (pass == Pass::kGradX)
        term = y[at_y] * w[iw], at = at_x;
      else
        term = x[at_x] * y[at_y], at = iw;
      sums[at] += term;
      magnitudes[at] += term < 0 ? -term : term;
    }
  };
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.filters; ++o)
      for (int64_t ci = 0; ci < in; ++ci)
        for (int64_t i = 0; i < kh; ++i)
          for (int64_t j = 0; j < kw; ++j) {
            const int64_t shift = j * v.dilation[1] - v.pad[1];  // of column 0 of y in x
            int64_t first = 0, last = ow;
            while (first < ow && first * v.stride[1] + shift < 0) ++first;
            while (last > first && (last - 1) * v.stride[1] + shift >= c.width) --last;
            const int64_t channel = o / out * in + ci, iw = ((o * in + ci) * kh + i) * kw + j;
            for (int64_t py = 0; py < oh; ++py) {
              const int64_t row = py * v.stride[0] - v.pad[0] + i * v.dilation[0];
              if (row < 0 || row >= c.height) continue;
              add_line(((n * c.channels + channel) * c.height + row) * c.width + shift, iw,
                       ((n * c.filters + o) * oh + py) * ow, first, last);
            }
          }
  if (pass == Pass::kForward && c.bias)
    for (size_t i = 0; i < e.values.size(); ++i)
      e.values[i] += d.b.values[i / size_t(oh * ow) % size_t(c.filters)];
  if (pass != Pass::kForward && c.accumulate)
    for (size_t i = 0; i < e.values.size(); ++i) e.values[i] += target.values[i];
  for (double s : sizes) e.magnitude = std::max(e.magnitude, s + 2);
  return e;
}

// How far a result may be from the definition: roundings of float sums, and of the result itself.
inline double convolution_tolerance(Dtype dtype, const Expected& e) {
  double largest = 1;
  for (double v : e.values) largest = std::max(largest, std::abs(v));
  switch (dtype) {
    case Dtype::kFloat64: return 1e-14 * e.magnitude;
    case Dtype::kFloat32: return 2e-6 * e.magnitude;
    case Dtype::kFloat16: return 0x1p-10 * largest + 2e-6 * e.magnitude;
    default: return 0x1p-7 * largest + 2e-6 * e.magnitude;
  }
}

// Runs a pass with one provider, by its function.
inline bool call_provider(Pass pass, const std::string& provider, Device device,
                          const ConvolutionCase& c, const ConvolutionData& d) {
  const DeviceType type = device.type();
  switch (pass) {
    case Pass::kForward:
      return kernels::convolution.provider(type, provider)(
          {&d.x.array, &d.w.array, c.bias ? &d.b.array : nullptr, &d.y.array, c.window, c.groups});
    case Pass::kGradX:
      return kernels::convolution_grad_x.provider(
          type, provider)({&d.y.array, &d.w.array, &d.x.array, c.window, c.groups, c.accumulate});
    default:
      return kernels::convolution_grad_w.provider(
          type, provider)({&d.x.array, &d.y.array, &d.w.array, c.window, c.groups, c.accumulate});
  }
}

// The array that a pass writes.
inline const CaseArray& result_of(Pass pass, const ConvolutionData& d) {
  return pass == Pass::kForward ? d.y : pass == Pass::kGradX ? d.x : d.w;
}

// Where a result is not what it should be; empty where it is.
inline std::string difference(const Array& result, const ConvolutionCase& c, const Expected& e) {
  const std::vector<double> got = values_of(result);
  const double limit = convolution_tolerance(c.dtype, e);
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - e.values[i]) <= limit) continue;
    std::ostringstream s;
    s << "element " << i << " is " << got[i] << ", expected " << e.values[i] << " within " << limit
      << ": " << c.text();
    return s.str();
  }
  return "";
}

enum class Outcome { kTaken, kDeclined, kWrong };

// As expected_convolution of the case with the values of `seed`. Results are kept, as each provider
// computes the same cases; and forgotten at 64 MiB.
inline const Expected& kept_expected(Pass pass, const ConvolutionCase& c, const ConvolutionData& d,
                                     uint32_t seed) {
  static thread_local std::map<std::string, Expected> kept;
  static thread_local size_t elements = 0;
  const std::string key = std::to_string(int(pass)) + ' ' + std::to_string(seed) + ' ' + c.text();
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (elements > (64 << 20) / sizeof(double)) kept.clear(), elements = 0;
  const Expected& e = kept[key] = expected_convolution(pass, c, d);
  elements += e.values.size();
  return e;
}

// Runs the case and checks the result; a declined call must have left it alone. `why` gets the text
// of a failure.
inline Outcome check_convolution(Pass pass, const std::string& provider, Device device,
                                 const ConvolutionCase& c, uint32_t seed, std::string* why) {
  const ConvolutionData d(c, device, seed);
  const CaseArray& result = result_of(pass, d);
  const bool taken = call_provider(pass, provider, device, c, d);
  if (!taken) {
    if (values_of(result.array) == result.values) return Outcome::kDeclined;
    *why = "declined, but wrote: " + c.text();
    return Outcome::kWrong;
  }
  *why = difference(result.array, c, kept_expected(pass, c, d, seed));
  return why->empty() ? Outcome::kTaken : Outcome::kWrong;
}

}  // namespace catena::testing
