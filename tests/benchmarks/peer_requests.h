// What the programs share that time one call at a time for a Python script beside PyTorch: words of
// its requests, and the best time of a call.
#pragma once

#include <algorithm>
#include <string>

#include "catena/array/random.h"
#include "timing.h"

namespace bench {

// "cpu:0", "cuda:1".
inline catena::Device device_named(const std::string& text) {
  const int index = std::stoi(text.substr(text.find(':') + 1));
  return text.starts_with("cpu") ? catena::cpu(index) : catena::cuda_device(index);
}

inline catena::Dtype dtype_named(const std::string& name) {
  return name == "float16"    ? catena::Dtype::kFloat16
         : name == "bfloat16" ? catena::Dtype::kBFloat16
         : name == "float64"  ? catena::Dtype::kFloat64
                              : catena::Dtype::kFloat32;
}

// Numbers of [-1, 1) of shape (n, c, h, w), with the channels last in memory on request.
inline catena::Array uniform(const catena::Shape& s, catena::Dtype dtype, catena::Device device,
                             bool last) {
  const catena::Shape inner = last ? catena::Shape{s[0], s[2], s[3], s[1]} : s;
  const catena::Array made = catena::random::default_state(device)
                                 .uniform(inner, -1, 1, {catena::dtype::float32, device})
                                 .astype(dtype);
  return last ? made.transpose({0, 3, 1, 2}) : made;
}

// The best of what fits into `seconds`, at least three runs.
template <class Call>
double best_of(double seconds, catena::Device device, Call&& call) {
  const double once = device_time({2, 1, 1}, device, call).minimum;
  const int calls = std::max(1, static_cast<int>(2e-3 / once));
  double best = 1e30;
  const double end = now() + seconds;
  for (int run = 0; run < 3 || now() < end; ++run)
    best = std::min(best, device_time({0, 1, calls}, device, call).minimum);
  return best;
}

}  // namespace bench
