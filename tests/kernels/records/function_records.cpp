// Records of the slots of functions: dropout, softmax, losses, batch normalization.
#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/activation/prelu.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

// The result and the gradient of the input, where that of the result is data() of seed 9.
constexpr uint64_t kGradientSeed = 9;
Results with_gradient(const Array& x, const std::function<Variable(const Variable&)>& function) {
  const Variable v(x);
  const Variable y = function(v);
  y.set_grad(data(y.device(), y.shape(), kGradientSeed));
  y.backward();
  return {y.data(), v.grad()};
}

template <int64_t n, int64_t classes>
Results cross_entropy(Device d) {
  return with_gradient(data(d, {n, classes}), [d](const Variable& x) {
    return F::softmax_cross_entropy(x, integers(d, {n}, classes));
  });
}

// The same with the gradient in place of scores that a function has made.
template <int64_t n, int64_t classes>
Results cross_entropy_in_place(Device d) {
  return with_gradient(data(d, {n, classes}), [d](const Variable& x) {
    return F::softmax_cross_entropy(x * 1.0, integers(d, {n}, classes),
                                    {.gradient_in_place = true});
  });
}

// Also with factors of the samples and a z-loss, in chunks.
Results cross_entropy_of_chunks(Device d) {
  Results results = cross_entropy_in_place<6, 10>(d);
  const Results chunks = with_gradient(data(d, {50, 6}), [d](const Variable& h) {
    return F::linear_cross_entropy(
        h, data(d, {9, 6}, 2), integers(d, {50}, 9),
        {.reduction = F::Reduction::kNone, .label_smoothing = 0.1, .z_loss = 0.1, .chunk = 20});
  });
  results.insert(results.end(), chunks.begin(), chunks.end());
  return results;
}

// Of planes of 6 x 50 elements; the results are both gradients.
Results prelu_gradients(Device d) {
  const Variable x(data(d, {2, 3, 6, 50})), W(data(d, {3}));
  const Variable y = F::prelu(x, W);
  y.set_grad(data(d, y.shape(), kGradientSeed));
  y.backward();
  return {x.grad(), W.grad()};
}

// Of the largest along the middle axis and along the last one, in which two elements are equal.
Results extreme_gradients(Device d) {
  const Array x = integers(d, {6, 10, 5}, 6).astype(Dtype::kFloat32);
  Results results;
  for (const int64_t axis : {1, 2}) {
    const Variable v(x);
    const Variable y = F::max(v, axis);
    y.set_grad(data(d, y.shape(), kGradientSeed));
    y.backward();
    results.push_back(v.grad());
  }
  return results;
}

const Shape kBatch{3, 8, 5, 4};
constexpr int64_t kChannels = 8;

// In both layouts, with relu and residual: the averages and all gradients.
Results normalization(Device device, bool train) {
  Results results;
  for (const bool last : {false, true}) {
    const DeviceScope scope(device);
    const F::BatchNormalization bn(kChannels, {.initial_gamma = data(device, {kChannels}, 2)});
    bn.avg_var.data().fill(2);
    const Array images = data(device, kBatch);
    const Variable x(last ? F::channels_last(images) : images), r(data(device, kBatch, 3));
    const Variable y = bn.add_relu(x, r, train);
    y.set_grad(data(device, kBatch, 4));
    y.backward();
    results.insert(results.end(), {y.data(), bn.avg_mean.data(), bn.avg_var.data(), x.grad(),
                                   r.grad(), bn.gamma.grad(), bn.beta.grad()});
  }
  return results;
}

Results in_training(Device d) { return normalization(d, true); }

}  // namespace

CATENA_SLOT_RECORDS(function) {
  return {
      {"dropout",
       [](Device d) {
         random::seed(7);
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::dropout(x); });
       }},
      {"extreme_grad", extreme_gradients},
      {"prelu_grad", prelu_gradients},
      {"softmax",
       [](Device d) {
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::softmax(x); });
       }},
      {"softmax_grad",
       [](Device d) {
         return with_gradient(data(d, {6, 5, 4}),
                              [](const Variable& x) { return F::log_softmax(x); });
       }},
      {"softmax_cross_entropy", cross_entropy<6, 10>},
      {"softmax_cross_entropy_grad", cross_entropy<600, 3>},
      {"softmax_cross_entropy_in_place", cross_entropy_of_chunks},
      {"scale_samples", cross_entropy_in_place<60, 8>},
      {"accuracy",
       [](Device d) -> Results {
         return {F::accuracy(data(d, {60, 3}), integers(d, {60}, 3)).data()};
       }},
      {"batch_normalization", in_training},
      {"fixed_batch_normalization", [](Device d) { return normalization(d, false); }},
      {"batch_normalization_grad", in_training},
  };
}

}  // namespace catena
