// Records of the slots of functions: dropout, softmax, losses, batch normalization.
#define CATENA_FN inline
#include "device/philox.h"

#include <algorithm>

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
#include "catena/kernels/random.h"
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

// Softmax ---------------------------------------------------------------------------------------

// exp(x) over its sum along axis 1 of (outer, classes, inner).
Plain softmax_of(const Plain& x, int64_t classes, int64_t inner) {
  return plain(x.shape, [&](int64_t i) {
    const int64_t first = i / (classes * inner) * classes * inner + i % inner;
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(x(first + c * inner));
    return std::exp(x(i)) / total;
  });
}
// The sum along axis 1 at element i.
double class_sum(const Plain& x, int64_t i, int64_t classes, int64_t inner) {
  const int64_t first = i / (classes * inner) * classes * inner + i % inner;
  double total = 0;
  for (int64_t c = 0; c < classes; ++c) total += x(first + c * inner);
  return total;
}

Plains softmax_reference() {
  const Plain y = softmax_of(plain_data({6, 50}), 50, 1), gy = plain_data({6, 50}, kGradientSeed);
  const Plain product = plain(y.shape, [&](int64_t i) { return y(i) * gy(i); });
  return {y,
          plain(y.shape, [&](int64_t i) { return y(i) * (gy(i) - class_sum(product, i, 50, 1)); })};
}
Plains log_softmax_reference() {
  const Plain y = softmax_of(plain_data({6, 5, 4}), 5, 4);
  const Plain gy = plain_data({6, 5, 4}, kGradientSeed);
  return {plain(y.shape, [&](int64_t i) { return std::log(y(i)); }),
          plain(y.shape, [&](int64_t i) { return gy(i) - y(i) * class_sum(gy, i, 5, 4); })};
}

// Losses ----------------------------------------------------------------------------------------

template <int64_t n, int64_t classes>
Results cross_entropy(Device d) {
  return with_gradient(data(d, {n, classes}), [d](const Variable& x) {
    return F::softmax_cross_entropy(x, integers(d, {n}, classes));
  });
}
template <int64_t n, int64_t classes>
Plains cross_entropy_reference() {
  const Plain p = softmax_of(plain_data({n, classes}), classes, 1);
  const Plain t = plain_integers({n}, classes), gloss = plain_data({}, kGradientSeed);
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) loss -= std::log(p(i, int64_t(t(i)))) / n;
  return {plain({}, [&](int64_t) { return loss; }), plain(p.shape, [&](int64_t i) {
            const double hit = i % classes == int64_t(t(i / classes)) ? 1 : 0;
            return (p(i) - hit) / n * gloss(0);
          })};
}

// The same with the gradient in place of scores that a function has made.
template <int64_t n, int64_t classes>
Results cross_entropy_in_place(Device d) {
  return with_gradient(data(d, {n, classes}), [d](const Variable& x) {
    return F::softmax_cross_entropy(x * 1.0, integers(d, {n}, classes),
                                    {.gradient_in_place = true});
  });
}

Plains accuracy_reference() {
  const Plain x = plain_data({60, 3}), t = plain_integers({60}, 3);
  double right = 0;
  for (int64_t i = 0; i < 60; ++i) {
    int64_t best = 0;
    for (int64_t c = 1; c < 3; ++c)
      if (x(i, c) > x(i, best)) best = c;
    right += best == int64_t(t(i)) ? 1 : 0;
  }
  return {plain({}, [&](int64_t) { return right / 60; })};
}

// Of planes of 6 x 50 elements; the results are both gradients.
Results prelu_gradients(Device d) {
  const Variable x(data(d, {2, 3, 6, 50})), W(data(d, {3}));
  const Variable y = F::prelu(x, W);
  y.set_grad(data(d, y.shape(), kGradientSeed));
  y.backward();
  return {x.grad(), W.grad()};
}
Plains prelu_gradients_reference() {
  const Shape shape{2, 3, 6, 50};
  const Plain x = plain_data(shape), W = plain_data({3}), gy = plain_data(shape, kGradientSeed);
  const auto channel = [](int64_t i) { return i / 300 % 3; };
  return {plain(shape, [&](int64_t i) { return x(i) >= 0 ? gy(i) : gy(i) * W(channel(i)); }),
          plain({3}, [&](int64_t c) {
            double sum = 0;
            for (int64_t i = 0; i < 1800; ++i)
              if (channel(i) == c && x(i) < 0) sum += gy(i) * x(i);
            return sum;
          })};
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
Plains extreme_gradients_reference() {
  const Shape shape{6, 10, 5};
  const Plain x = plain_integers(shape, 6);
  const auto gradient = [&](int64_t n, int64_t step) {
    const Plain gy = plain_data(step == 1 ? Shape{6, 10} : Shape{6, 5}, kGradientSeed);
    return plain(shape, [&](int64_t i) {
      const int64_t outer = i / (n * step), inner = i % step, first = outer * n * step + inner;
      double most = x(first);
      for (int64_t k = 1; k < n; ++k) most = std::max(most, x(first + k * step));
      return x(i) == most ? gy(outer * step + inner) : 0.0;
    });
  };
  return {gradient(10, 5), gradient(5, 1)};
}

Plains dropout_reference() {
  random::seed(7);
  const RandomBits bits = random::default_state(cpu()).reserve(300, cpu());
  const auto masked = [&](const Plain& x) {
    return plain(x.shape, [&](int64_t i) {
      const auto block = philox::block(bits.seed, bits.offset + uint64_t(i / 4));
      return std::ldexp(double(block.word[i % 4] >> 8), -24) >= 0.5 ? 2 * x(i) : 0;
    });
  };
  return {masked(plain_data({6, 50})), masked(plain_data({6, 50}, kGradientSeed))};
}

// Batch normalization ---------------------------------------------------------------------------

const Shape kBatch{3, 8, 5, 4};
constexpr int64_t kChannels = 8, kArea = 20, kCount = 60;  // kCount: numbers of a channel

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

int64_t channel_of(int64_t i) { return i / kArea % kChannels; }
Plain channel_means(const std::function<double(int64_t)>& element) {
  Plain means = plain({kChannels}, [](int64_t) { return 0.0; });
  for (int64_t i = 0; i < kCount * kChannels; ++i)
    means.values[size_t(channel_of(i))] += element(i) / kCount;
  return means;
}

Plains normalization_reference(bool train) {
  constexpr double kEps = 2e-5, kDecay = 0.9;
  const Plain x = plain_data(kBatch), gamma = plain_data({kChannels}, 2);
  const Plain r = plain_data(kBatch, 3), gy = plain_data(kBatch, 4);
  const auto constant = [](double v) { return plain({kChannels}, [v](int64_t) { return v; }); };
  const Plain mean = train ? channel_means([&](int64_t i) { return x(i); }) : constant(0);
  const auto centred = [&](int64_t i) { return x(i) - mean(channel_of(i)); };
  const Plain var =
      train ? channel_means([&](int64_t i) { return centred(i) * centred(i); }) : constant(2);
  const auto inverse = [&](int64_t c) { return 1 / std::sqrt(var(c) + kEps); };
  const auto xhat = [&](int64_t i) { return centred(i) * inverse(channel_of(i)); };
  const Plain y = plain(
      kBatch, [&](int64_t i) { return std::max(0.0, xhat(i) * gamma(channel_of(i)) + r(i)); });
  const Plain g = plain(kBatch, [&](int64_t i) { return y(i) > 0 ? gy(i) : 0; });
  const Plain of_beta = channel_means([&](int64_t i) { return g(i); });
  const Plain of_gamma = channel_means([&](int64_t i) { return g(i) * xhat(i); });
  const Plain gx = plain(kBatch, [&](int64_t i) {
    const int64_t c = channel_of(i);
    const double shared = train ? of_beta(c) + xhat(i) * of_gamma(c) : 0;
    return gamma(c) * inverse(c) * (g(i) - shared);
  });
  const auto average = [&](double before, double now) {
    return train ? kDecay * before + (1 - kDecay) * now : before;
  };
  const auto channels = [](const std::function<double(int64_t)>& f) {
    return plain({kChannels}, f);
  };
  const Plains once{y,
                    channels([&](int64_t c) { return average(0, mean(c)); }),
                    channels([&](int64_t c) { return average(2, var(c) * kCount / (kCount - 1)); }),
                    gx,
                    g,
                    channels([&](int64_t c) { return of_gamma(c) * kCount; }),
                    channels([&](int64_t c) { return of_beta(c) * kCount; })};
  Plains twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  return twice;
}

Results in_training(Device d) { return normalization(d, true); }
Plains in_training_reference() { return normalization_reference(true); }

}  // namespace

CATENA_SLOT_RECORDS(function) {
  return {
      {"dropout",
       [](Device d) -> Results {
         random::seed(7);
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::dropout(x); });
       },
       dropout_reference},
      {"extreme_grad", extreme_gradients, extreme_gradients_reference},
      {"prelu_grad", prelu_gradients, prelu_gradients_reference},
      {"softmax",
       [](Device d) -> Results {
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::softmax(x); });
       },
       softmax_reference},
      {"softmax_grad",
       [](Device d) -> Results {
         return with_gradient(data(d, {6, 5, 4}),
                              [](const Variable& x) { return F::log_softmax(x); });
       },
       log_softmax_reference},
      {"softmax_cross_entropy", cross_entropy<6, 10>, cross_entropy_reference<6, 10>},
      {"softmax_cross_entropy_grad", cross_entropy<600, 3>, cross_entropy_reference<600, 3>},
      {"softmax_cross_entropy_in_place", cross_entropy_in_place<6, 10>,
       cross_entropy_reference<6, 10>},
      {"scale_samples", cross_entropy_in_place<60, 8>, cross_entropy_reference<60, 8>},
      {"accuracy",
       [](Device d) -> Results {
         return {F::accuracy(data(d, {60, 3}), integers(d, {60}, 3)).data()};
       },
       accuracy_reference},
      {"batch_normalization", in_training, in_training_reference},
      {"fixed_batch_normalization", [](Device d) -> Results { return normalization(d, false); },
       [] { return normalization_reference(false); }},
      {"batch_normalization_grad", in_training, in_training_reference},
  };
}

}  // namespace catena
