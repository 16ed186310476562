// Cases of bench_functions: what they compute, on which operands, and what bounds them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/catena.h"

namespace bench {

namespace F = catena::functions;
using catena::Array;
using catena::Dtype;
using catena::message;
using catena::Shape;
using catena::Variable;

// A device, and the sizes that suit it: those of docs/benchmarks.md on a GPU.
struct Bench {
  catena::Device device;
  std::vector<std::string> wanted;

  bool wants(const std::string& name) const;
  int64_t size(int64_t gpu, int64_t cpu) const { return device.is_cuda() ? gpu : cpu; }
  // Seconds of a call: the median on a GPU, the shortest on a CPU.
  double time(const std::function<void()>& call) const;
  // Seconds that a copy of so many bytes, counted read and written, takes.
  double copy_time(double bytes) const;
};

// What a function gives; each has a gradient in the backward pass.
struct Results {
  Results(const Variable& y) : all{y} {}
  Results(const F::AddNormalizationResult& r) : all{r.y, r.sum} {}
  catena::Variables all;
};

struct Case {
  std::string name;
  std::function<Results()> forward;
  std::function<void()> clear;          // the gradients of the call before
  double bytes = 0, bytes_of_both = 0;  // that must move; 0 where memory is not the bound
  double operations = 0, operations_of_both = 0;
};

// Makes its operands when its turn comes.
struct Plan {
  std::string name;
  std::function<Case()> make;
};
using Plans = std::vector<Plan>;

inline Array normal(const Shape& shape, Dtype dtype) {
  return catena::random::normal(shape, 0, 1, Dtype::kFloat32).astype(dtype);
}
inline double bytes_of(const Variable& x) { return double(x.size() * x.data().itemsize()); }
inline std::function<void()> clearing(const Variable& x) {
  return [x] { x.set_grad(Array()); };
}
template <class Layer>
std::function<void()> clearing(const Variable& x, const std::shared_ptr<Layer>& layer) {
  return [x, layer] {
    x.set_grad(Array());
    layer->zero_grads();
  };
}
// Copies of a layer have parameters of their own: a case shares one.
template <class Layer>
std::shared_ptr<Layer> shared(Layer&& layer) {
  return std::make_shared<Layer>(std::move(layer));
}

// Normalization of rows, attention and feed-forward parts.
void add_transformer_functions(const Bench& bench, Dtype dtype, Plans& plans);

}  // namespace bench
