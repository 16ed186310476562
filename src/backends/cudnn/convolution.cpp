// The providers "cudnn" of the convolution slots.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "backends/common/family.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/convolution_plan.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/copy.h"
#include "core/environment.h"

namespace catena::cudnn {
namespace {

int64_t alignment_of(const void* pointer) {  // bytes; engines ask for 16 at most
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<int64_t>(std::min<uintptr_t>(address & -address, 32));
}

bool takes(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16 ||
         dtype == Dtype::kFloat64;
}

// Measurements choose differently from run to run, and so would be the bits of the results.
bool tuning_wanted() {
  static const bool wanted = switch_from_environment("CATENA_CONVOLUTION_TUNE", false);
  return wanted && !config().deterministic;
}

// Everything except the alignments of arrays other than x and y. The bias comes with the graph that
// adds it.
template <class Call>
Problem problem_for(const Call& call, const Array& x, const Array& y) {
  Problem p{problem_of(call)};
  p.bias = false;
  p.precision = p.dtype == Dtype::kFloat32 ? config().matmul_precision : Precision::kFloat32;
  p.deterministic = config().deterministic;
  p.tuned = tuning_wanted();
  p.device = x.device().index();
  p.alignment_x = alignment_of(x.raw_data());
  p.alignment_y = alignment_of(y.raw_data());
  p.workspace_limit = workspace_limit();
  return p;
}

// Images of fewer positions make products with channels first too thin.
constexpr int64_t kWideImage = 1024;
// Of fewer positions in all cuDNN's one launch costs the host less than the launches of a product.
constexpr int64_t kManyPositions = 4096;

// Whether the convolution is one matrix product of the images as they are. In exact float32 such
// products reach 1.1 to 3 times the rate of cuDNN's engines, except in the forward pass of small
// images with channels first (docs/benchmarks.md, "Convolutions on a GPU").
bool is_fast_product(const Problem& p) {
  const bool exact = p.dtype == Dtype::kFloat32 && p.precision == Precision::kFloat32;
  const bool thin =
      p.pass == ConvolutionPass::kForward && !p.channels_last && p.image_size() < kWideImage;
  return exact && p.is_pointwise() && !thin;
}

// Products of fewer numbers for each element are bound by memory, and patches are more of it.
constexpr int64_t kDeepPatch = 32;

// Whether windows cut images of few channels into patches, as the first layer of a vision
// transformer does. Pixels of fewer than 16 bytes are read by cuDNN's slow kernels alone, after
// images with channels first were copied; patches that do not overlap are no larger than that copy,
// and make one product. The lines of its factors must be whole vectors of 16 bytes.
bool cuts_patches(const Problem& p) {
  const int64_t item = int64_t(itemsize(p.dtype)), depth = p.channels * p.window.taps();
  return p.channels * item < 16 && p.window.taps() > 1 && p.has_windows_apart() &&
         depth >= kDeepPatch && p.filters >= kDeepPatch && depth * item % 16 == 0 &&
         p.filters * item % 16 == 0;
}

// Whether the built-in provider, which multiplies patches, is faster.
bool better_as_product(const Problem& p, const SlotBase& slot) {
  return p.groups == 1 && p.batch * p.positions() >= kManyPositions &&
         (is_fast_product(p) || cuts_patches(p)) &&
         config().providers.use(slot.name(), "cudnn") == ProviderUse::kOn;
}

// Whether the weights must be copied into the layout of the images.
bool weights_move(const Problem& p) {
  return p.channels_last && !p.weights_last && p.channels != p.groups && p.window.taps() > 1;
}

// (O, C / groups, kh, kw) with channels last in memory.
Array uninitialized_weights(const Array& like) {
  return Array::uninitialized(like.shape(), like.dtype(), like.device(), MemoryOrder({0, 2, 3, 1}));
}

// The weights in the layout of the images. Weights that live in it (functions::channels_last of the
// model) are not copied.
Array weights_for(const Problem& p, const Array& w) {
  if (!weights_move(p)) return w;
  Array moved = uninitialized_weights(w);
  kernels::copy(w.device(), {w, moved});
  return moved;
}

// A plan, made at its first use. Null if cuDNN has none.
std::shared_ptr<const Plan> usable_plan(const Problem& p, Handle& handle) {
  std::shared_ptr<const Plan> plan = plan_of(p, handle);
  return plan->usable() ? plan : nullptr;
}

// Whether a bias in the graph may succeed: fused engines use tensor cores and channels last.
bool may_fuse_bias(const Problem& p) { return p.channels_last && !p.is_exact(); }

bool forward(const ConvolutionCall& c) {
  if (!takes(c.x->dtype())) return false;
  Problem p = problem_for(c, *c.x, *c.y);
  if (better_as_product(p, kernels::convolution)) return false;
  const Device device = c.x->device();
  gpu::companion_stream(device);
  Handle& handle = handle_of(device);
  p.alignment_w = weights_move(p) ? 32 : alignment_of(c.W->raw_data());
  std::shared_ptr<const Plan> plan;
  void* fused_bias = nullptr;
  if (c.b != nullptr && may_fuse_bias(p)) {
    p.bias = true;
    p.alignment_b = alignment_of(c.b->raw_data());
    plan = usable_plan(p, handle);
    if (plan) fused_bias = c.b->raw_data();
    p.bias = false, p.alignment_b = 0;
  }
  if (!plan) plan = usable_plan(p, handle);
  if (!plan) return false;
  const Array w = weights_for(p, *c.W);
  const Pointers pointers{c.x->raw_data(), w.raw_data(), fused_bias, c.y->raw_data()};
  if (!run_plan(*plan, ConvolutionBindings(pointers), device, handle)) return false;
  if (c.b != nullptr && fused_bias == nullptr)
    add(*c.y, c.b->reshape({1, p.filters, 1, 1}), Out(*c.y));
  return true;
}

// Computes a gradient into `result`, adding to it if the problem says so: with an engine that adds
// if there is one, else through another array of the same layout.
bool run_gradient(Problem& p, const Array& result, Pointers pointers, void* Pointers::*target,
                  int64_t Problem::*alignment, Handle& handle) {
  const Device device = result.device();
  if (const auto plan = usable_plan(p, handle))
    return run_plan(*plan, ConvolutionBindings(pointers), device, handle);
  if (!p.accumulate) return false;
  p.accumulate = false;
  p.*alignment = 32;
  const auto plan = usable_plan(p, handle);
  if (!plan) return false;
  const Array scratch = empty_like(result);
  pointers.*target = scratch.raw_data();
  if (!run_plan(*plan, ConvolutionBindings(pointers), device, handle)) return false;
  add(result, scratch, Out(result));
  return true;
}

bool grad_x(const ConvolutionGradXCall& c) {
  if (!takes(c.gx->dtype())) return false;
  Problem p = problem_for(c, *c.gx, *c.gy);
  if (better_as_product(p, kernels::convolution_grad_x)) return false;
  const Device device = c.gx->device();
  gpu::companion_stream(device);
  Handle& handle = handle_of(device);
  p.alignment_w = weights_move(p) ? 32 : alignment_of(c.W->raw_data());
  // Checked first, so that the weights are not copied in vain.
  if (!c.accumulate && !usable_plan(p, handle)) return false;
  const Array w = weights_for(p, *c.W);
  return run_gradient(p, *c.gx, {c.gx->raw_data(), w.raw_data(), nullptr, c.gy->raw_data()},
                      &Pointers::x, &Problem::alignment_x, handle);
}

bool grad_w(const ConvolutionGradWCall& c) {
  if (!takes(c.x->dtype())) return false;
  Problem p = problem_for(c, *c.x, *c.gy);
  if (better_as_product(p, kernels::convolution_grad_w)) return false;
  const Device device = c.x->device();
  gpu::companion_stream(device);
  Handle& handle = handle_of(device);
  const Pointers pointers{c.x->raw_data(), c.gW->raw_data(), nullptr, c.gy->raw_data()};
  if (!weights_move(p)) {
    p.alignment_w = alignment_of(c.gW->raw_data());
    return run_gradient(p, *c.gW, pointers, &Pointers::w, &Problem::alignment_w, handle);
  }
  p.alignment_w = 32;
  p.accumulate = false;  // `moved` is new memory
  const auto plan = usable_plan(p, handle);
  if (!plan) return false;
  const Array moved = uninitialized_weights(*c.gW);
  const Pointers to_moved{pointers.x, moved.raw_data(), nullptr, pointers.y};
  if (!run_plan(*plan, ConvolutionBindings(to_moved), device, handle)) return false;
  if (c.accumulate)
    add(*c.gW, moved, Out(*c.gW));
  else
    kernels::copy(device, {moved, *c.gW});
  return true;
}

}  // namespace

}  // namespace catena::cudnn

CATENA_FAMILY(cudnn, convolution) {
  kernels::convolution.provide(DeviceType::kCuda, "cudnn", &cudnn::forward, 10);
  kernels::convolution_grad_x.provide(DeviceType::kCuda, "cudnn", &cudnn::grad_x, 10);
  kernels::convolution_grad_w.provide(DeviceType::kCuda, "cudnn", &cudnn::grad_w, 10);
}
