// Records of the slots of sampled losses and of connectionist temporal classification.
#define CATENA_FN inline
#include "device/philox.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/functions/loss/connectionist_temporal_classification.h"
#include "catena/functions/loss/negative_sampling.h"
#include "catena/functions/noise/walker_alias.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

// Draws -----------------------------------------------------------------------------------------

WalkerAlias alias_on(Device device) {
  const DeviceScope scope(device);
  return WalkerAlias(std::vector<double>{3, 0, 1, 5, 0.5, 2, 8});
}
Results draws(Device device) {
  const WalkerAlias alias = alias_on(device);
  random::seed(7);
  return {alias.sample({2501})};
}
TEST(AliasDraws, AreByTheirDefinition) {
  const WalkerAlias alias = alias_on(cpu());
  const auto threshold = alias.threshold.data().to_vector<double>();
  const auto values = alias.values.data().to_vector<int32_t>();
  const auto drawn = draws(cpu())[0].to_vector<int32_t>();
  random::seed(7);
  const RandomBits bits =
      random::default_state(cpu()).reserve(int64_t(drawn.size() + 1) / 2, cpu());
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto block = philox::block(bits.seed, bits.offset + uint64_t(i / 2));
    const auto number = static_cast<unsigned __int128>(philox::bits64(block, int(i % 2)));
    const unsigned __int128 product = number * threshold.size();
    const auto slot = size_t(product >> 64);
    const double u = double(uint64_t(product) >> 11) * std::ldexp(1.0, -53);
    ASSERT_EQ(drawn[i], values[2 * slot + (u < threshold[slot] ? 0 : 1)]) << i;
  }
}

// Sampled losses --------------------------------------------------------------------------------

constexpr int64_t kBatch = 9, kTerms = 4, kRows = 6, kSize = 37;

Results sampled(Device d) {
  const Variable x(data(d, {kBatch, kSize})), W(data(d, {kRows, kSize}, 3));
  const Variable y = F::negative_sampling(x, integers(d, {kBatch, kTerms}, kRows), W);
  y.backward();
  return {y.data(), x.grad(), W.grad()};
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

}  // namespace

CATENA_SLOT_RECORDS(sampling) {
  return {
      {"alias_sample", draws},
      {"sampled_logistic", sampled},
      {"sampled_logistic_grad", sampled},
      {"ctc", ctc},
      {"ctc_grad", ctc},
  };
}

}  // namespace catena
