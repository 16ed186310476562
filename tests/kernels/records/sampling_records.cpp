// Records of the slots of sampled losses and of connectionist temporal classification.
#define CATENA_FN inline
#include "device/philox.h"

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/functions/loss/connectionist_temporal_classification.h"
#include "catena/functions/loss/negative_sampling.h"
#include "catena/functions/noise/walker_alias.h"
#include "functions/loss/ctc_reference.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

// Draws -----------------------------------------------------------------------------------------

constexpr int64_t kIndices = 7, kDraws = 501;

WalkerAlias alias_on(Device device) {
  const DeviceScope scope(device);
  return WalkerAlias(std::vector<double>{3, 0, 1, 5, 0.5, 2, 8});
}
Results draws(Device device) {
  const WalkerAlias alias = alias_on(device);
  random::seed(7);
  return {alias.sample({kDraws})};
}
Plains draws_reference() {
  const WalkerAlias alias = alias_on(cpu());
  const Plain threshold = plain_of(alias.threshold.data()), values = plain_of(alias.values.data());
  random::seed(7);
  const RandomBits bits = random::default_state(cpu()).reserve((kDraws + 1) / 2, cpu());
  return {plain({kDraws}, [&](int64_t i) {
    const auto block = philox::block(bits.seed, bits.offset + uint64_t(i / 2));
    const auto number = static_cast<unsigned __int128>(philox::bits64(block, int(i % 2)));
    const unsigned __int128 product = number * uint64_t(kIndices);
    const auto slot = int64_t(product >> 64);
    const double u = double(uint64_t(product) >> 11) * std::ldexp(1.0, -53);
    return values(2 * slot + (u < threshold(slot) ? 0 : 1));
  })};
}

// Sampled losses --------------------------------------------------------------------------------

constexpr int64_t kBatch = 9, kTerms = 4, kRows = 6, kSize = 37;

Results sampled(Device d) {
  const Variable x(data(d, {kBatch, kSize})), W(data(d, {kRows, kSize}, 3));
  const Variable y = F::negative_sampling(x, integers(d, {kBatch, kTerms}, kRows), W);
  y.backward();
  return {y.data(), x.grad(), W.grad()};
}
Plains sampled_reference() {
  const Plain x = plain_data({kBatch, kSize}), W = plain_data({kRows, kSize}, 3);
  const Plain rows = plain_integers({kBatch, kTerms}, kRows);
  Plain gx = plain(x.shape, [](int64_t) { return 0.0; });
  Plain gW = plain(W.shape, [](int64_t) { return 0.0; });
  double loss = 0;
  for (int64_t i = 0; i < kBatch; ++i) {
    for (int64_t k = 0; k < kTerms; ++k) {
      const auto row = int64_t(rows(i, k));
      const double sign = k == 0 ? 1 : -1;
      double product = 0;
      for (int64_t d = 0; d < kSize; ++d) product += x(i, d) * W(row, d);
      loss += std::log1p(std::exp(-sign * product));
      const double g = -sign / (1 + std::exp(sign * product));
      for (int64_t d = 0; d < kSize; ++d) {
        gx.values[size_t(i * kSize + d)] += g * W(row, d);
        gW.values[size_t(row * kSize + d)] += g * x(i, d);
      }
    }
  }
  return {plain({}, [&](int64_t) { return loss; }), gx, gW};
}

// Connectionist temporal classification ---------------------------------------------------------

constexpr int64_t kSteps = 5, kSamples = 3, kClasses = 4, kLabels = 2;

// Classes 1 to 3; the blank is 0.
Results ctc(Device d) {
  const Variable x(data(d, {kSteps, kSamples, kClasses}));
  const Variable y = F::connectionist_temporal_classification(
      x, integers(d, {kSamples, kLabels}, kClasses - 1) + 1, 0);
  y.backward();
  return {y.data(), x.grad()};
}
double ctc_loss(const Plain& x) {
  const Plain t = plain_integers({kSamples, kLabels}, kClasses - 1);
  double loss = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    std::vector<std::vector<double>> scores(kSteps);
    for (int64_t k = 0; k < kSteps; ++k)
      for (int64_t c = 0; c < kClasses; ++c)
        scores[size_t(k)].push_back(x((k * kSamples + i) * kClasses + c));
    std::vector<int64_t> labels;
    for (int64_t k = 0; k < kLabels; ++k) labels.push_back(int64_t(t(i, k)) + 1);
    loss += ctc_by_enumeration(scores, labels, 0) / double(kSamples);
  }
  return loss;
}
Plains ctc_reference() {
  const Plain x = plain_data({kSteps, kSamples, kClasses});
  const Plain gx = plain(x.shape, [&](int64_t i) {
    Plain up = x, down = x;
    up.values[size_t(i)] += 1e-5;
    down.values[size_t(i)] -= 1e-5;
    return (ctc_loss(up) - ctc_loss(down)) / 2e-5;
  });
  return {plain({}, [&](int64_t) { return ctc_loss(x); }), gx};
}

}  // namespace

CATENA_SLOT_RECORDS(sampling) {
  return {
      {"alias_sample", draws, draws_reference},
      {"sampled_logistic", sampled, sampled_reference},
      {"sampled_logistic_grad", sampled, sampled_reference},
      {"ctc", ctc, ctc_reference},
      {"ctc_grad", ctc, ctc_reference},
  };
}

}  // namespace catena
