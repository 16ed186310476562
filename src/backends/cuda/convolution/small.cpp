// The providers "small" of the convolution slots: the choice of calls, and the glue.
#include "backends/cuda/convolution/small.h"

#include <cstdint>

#include "backends/common/convolution_problem.h"
#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/core/config.h"
#include "catena/kernels/convolution.h"

namespace catena::gpu {
namespace {

// What the kernels can compute: within these bounds their shared memory and threads suffice.
constexpr int64_t kLargestImage = kLargestSmallImage, kLargestWindow = kWidestSmallWindow,
                  kMostPlanes = 128, kMostImages = 4096;

bool can_compute(const ConvolutionProblem& p) {
  bool small = p.dtype == Dtype::kFloat32 && p.groups == 1 && !p.channels_last && !p.weights_last &&
               p.batch <= kMostImages && p.channels <= kMostPlanes && p.filters <= kMostPlanes;
  for (int k = 0; k < 2; ++k)
    small = small && p.image[k] <= kLargestImage && p.out[k] <= kLargestImage &&
            p.window.kernel[k] <= kLargestWindow && p.window.pad[k] <= kLargestImage &&
            p.window.stride[k] == 1 && p.window.dilation[k] == 1;
  return small;
}

// Where they are faster than libraries: there are images enough for all multiprocessors, windows
// are no single elements, which make plain products, and the work is so little that a launch more
// or a copy of patches counts more than the rate of multiplications.
constexpr int64_t kFewestImages = 32, kMostWeights = 32000;
constexpr double kMostMultiplyAdds = 1.3e8;

bool is_worthwhile(const ConvolutionProblem& p) {
  return p.batch >= kFewestImages && p.window.taps() > 1 &&
         p.channels * p.filters * p.window.taps() <= kMostWeights &&
         p.multiply_adds() <= kMostMultiplyAdds;
}

bool takes(const ConvolutionProblem& p, const SlotBase& slot) {
  if (!can_compute(p)) return false;
  const ProviderRules& rules = config().providers;
  const ProviderUse use = rules.use(slot.name(), "small");
  if (use == ProviderUse::kAlways || use == ProviderUse::kOnly) return true;
  // cuDNN "always" means that it computes all that it can, and it is asked after these kernels.
  return is_worthwhile(p) && rules.use(slot.name(), "cudnn") != ProviderUse::kAlways;
}

SmallConvolution small_problem(const ConvolutionProblem& p) {
  SmallConvolution z{};
  z.images = int(p.batch), z.channels = int(p.channels), z.filters = int(p.filters);
  z.height = int(p.image[0]), z.width = int(p.image[1]);
  for (int k = 0; k < 2; ++k) {
    z.out[k] = int(p.out[k]), z.kernel[k] = int(p.window.kernel[k]);
    z.pad[k] = int(p.window.pad[k]);
  }
  return z;
}

const float* floats(const Array& a) { return static_cast<const float*>(a.raw_data()); }

// Sums of products with W into `to`, those of a forward pass or of the gradient of x.
void run_sums(const char* who, const SmallSums& sums, const Array& from, const Array& W,
              const Array* bias, const Array& to, bool accumulate) {
  const Launch launch = launch_for(to);
  SmallSumsArgs args{};
  args.problem = sums;
  args.plan = plan_small_sums(sums, launch.multiprocessors);
  args.from = floats(from), args.weights = floats(W);
  args.bias = bias != nullptr ? floats(*bias) : nullptr;
  args.to = static_cast<float*>(to.raw_data());
  args.accumulate = accumulate;
  launch_small_sums(args, launch);
  check_launch(who);
}

bool forward(const ConvolutionCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution)) return false;
  run_sums("convolution", forward_sums(small_problem(p)), *c.x, *c.W, c.b, *c.y, false);
  return true;
}

bool grad_x(const ConvolutionGradXCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution_grad_x)) return false;
  run_sums("convolution_grad_x", grad_x_sums(small_problem(p)), *c.gy, *c.W, nullptr, *c.gx,
           c.accumulate);
  return true;
}

bool grad_w(const ConvolutionGradWCall& c) {
  const ConvolutionProblem p = problem_of(c);
  if (!takes(p, kernels::convolution_grad_w)) return false;
  const Launch launch = launch_for(*c.gW);
  SmallGradWArgs args{};
  args.problem = small_problem(p);
  args.plan = plan_small_grad_w(args.problem, launch.multiprocessors);
  const StoragePtr partials = allocate(
      c.gW->device(), size_t(args.plan.partial_sums()) * size_t(c.gW->size()) * sizeof(float));
  args.x = floats(*c.x), args.gy = floats(*c.gy);
  args.gW = static_cast<float*>(c.gW->raw_data());
  args.partials = static_cast<float*>(partials->data);
  args.accumulate = c.accumulate;
  launch_small_grad_w(args, launch);
  check_launch("convolution_grad_w");
  return true;
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, small_convolution) {
  kernels::convolution.provide(DeviceType::kCuda, "small", &gpu::forward, 20);
  kernels::convolution_grad_x.provide(DeviceType::kCuda, "small", &gpu::grad_x, 20);
  kernels::convolution_grad_w.provide(DeviceType::kCuda, "small", &gpu::grad_w, 20);
}
