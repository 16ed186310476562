// Every provider of the batch normalization slots against plain loops in double.
#include "catena/kernels/normalization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "catena/core/config.h"
#include "catena/testing.h"
#include "kernels/normalization_case.h"

namespace catena {
namespace {

using testing::NormalizationCase;
using testing::NormalizationData;
using testing::Statistics;

// Whether a provider took a call, and what was wrong with its results.
struct Outcome {
  bool taken;
  std::string wrong;
};

class Differences {
 public:
  void add(const std::string& text) {
    if (text_.empty()) text_ = text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

const Array* if_wanted(bool wanted, const testing::Numbers& n) {
  return wanted ? &n.array : nullptr;
}

// In double, which holds both parts of a float32 mean.
Array whole_mean(const NormalizationData& d) {
  std::vector<double> whole = testing::numbers_of(d.mean.array);
  const std::vector<double> rest = testing::numbers_of(d.mean_rest.array);
  for (size_t k = 0; k < whole.size(); ++k) whole[k] += rest[k];
  return array(whole);
}

// Of the channel with the largest one: an outlier is part of it.
double largest_deviation(const Statistics& s) {
  return std::sqrt(*std::max_element(s.variance.begin(), s.variance.end()));
}

Outcome run_training(const NormalizationCase& c, const NormalizationData& d, DeviceType type,
                     const std::string& provider) {
  const Array& y = c.in_place ? d.x.array : d.y.array;
  const bool taken = kernels::batch_normalization.provider(
      type, provider)({c.layout, &d.x.array, if_wanted(c.gamma, d.gamma), if_wanted(c.beta, d.beta),
                       if_wanted(c.residual, d.residual), testing::kCaseEps, c.relu, &y,
                       &d.mean.array, &d.inverse.array, if_wanted(c.running, d.running_mean),
                       if_wanted(c.running, d.running_variance), testing::kCaseDecay,
                       c.count_updates ? &d.updates : nullptr, nullptr, &d.mean_rest.array});
  if (!taken) return {false, ""};
  const Statistics s = testing::expected_statistics(c, d);
  const double batch = testing::batch_tolerance(c), channel = testing::channel_tolerance(c);
  Differences wrong;
  wrong.add(testing::mismatch("y", y, testing::expected_y(c, d, s), batch));
  wrong.add(testing::mismatch("mean", d.mean.array, s.mean, channel));
  if (c.dtype != Dtype::kFloat64)  // the mean by its definition has no more digits than a double
    wrong.add(testing::mismatch(
        "both parts of the mean", whole_mean(d), s.mean,
        2e-6 * std::max(c.spread, largest_deviation(s)) / (1 + std::abs(c.offset))));
  std::vector<double> inverse, mean, variance;
  const double m = double(c.layout.count());
  const double decay = c.count_updates ? 0.75 : testing::kCaseDecay;  // 1 - 1 / 4
  for (size_t k = 0; k < s.mean.size(); ++k) {
    inverse.push_back(1 / std::sqrt(s.variance[k] + testing::kCaseEps));
    mean.push_back(decay * d.running_mean.values[k] + (1 - decay) * s.mean[k]);
    variance.push_back(decay * d.running_variance.values[k] +
                       (1 - decay) * s.variance[k] * m / (m - 1));
  }
  wrong.add(testing::mismatch("inverse_deviation", d.inverse.array, inverse, channel));
  if (!c.running) return {true, wrong.text()};
  wrong.add(testing::mismatch("running_mean", d.running_mean.array, mean, channel));
  wrong.add(testing::mismatch("running_variance", d.running_variance.array, variance, channel));
  return {true, wrong.text()};
}

Outcome run_fixed(const NormalizationCase& c, const NormalizationData& d, DeviceType type,
                  const std::string& provider) {
  const Array& y = c.in_place ? d.x.array : d.y.array;
  const bool taken = kernels::fixed_batch_normalization.provider(
      type, provider)({c.layout, &d.x.array, if_wanted(c.gamma, d.gamma), if_wanted(c.beta, d.beta),
                       if_wanted(c.residual, d.residual), &d.mean.array, &d.variance.array,
                       testing::kCaseEps, c.relu, &y});
  if (!taken) return {false, ""};
  const Statistics given{d.mean.values, d.variance.values};
  return {true,
          testing::mismatch("y", y, testing::expected_y(c, d, given), testing::batch_tolerance(c))};
}

Outcome run_gradient(const NormalizationCase& c, const NormalizationData& d, DeviceType type,
                     const std::string& provider, bool fixed) {
  const bool taken = kernels::batch_normalization_grad.provider(type, provider)(
      {c.layout, &d.x.array, &d.gy.array, if_wanted(c.relu, d.y), if_wanted(c.gamma, d.gamma),
       &d.mean.array, &d.inverse.array, fixed, if_wanted(c.gx, d.gx),
       if_wanted(c.g_residual, d.g_residual), if_wanted(c.g_gamma, d.g_gamma),
       if_wanted(c.g_beta, d.g_beta), c.accumulate, c.accumulate, nullptr, false, nullptr,
       fixed ? nullptr : &d.mean_rest.array});
  if (!taken) return {false, ""};
  const testing::Gradients e = testing::expected_gradients(c, d, fixed);
  const double batch = 4 * testing::batch_tolerance(c);
  // The sums cancel.
  const double channel = testing::channel_tolerance(c) * std::sqrt(double(c.layout.count()));
  Differences wrong;
  if (c.gx) wrong.add(testing::mismatch("gx", d.gx.array, e.gx, batch));
  if (c.g_residual)
    wrong.add(testing::mismatch("g_residual", d.g_residual.array, e.g_residual, batch));
  if (c.g_gamma) wrong.add(testing::mismatch("g_gamma", d.g_gamma.array, e.g_gamma, channel));
  if (c.g_beta) wrong.add(testing::mismatch("g_beta", d.g_beta.array, e.g_beta, channel));
  return {true, wrong.text()};
}

using Run = std::function<Outcome(const NormalizationCase&, const NormalizationData&, DeviceType,
                                  const std::string&)>;
struct Pass {
  const SlotBase& slot;
  Run run;
};
std::vector<Pass> passes() {
  return {{kernels::batch_normalization, run_training},
          {kernels::fixed_batch_normalization, run_fixed},
          {kernels::batch_normalization_grad,
           [](const auto& c, const auto& d, DeviceType type, const auto& provider) {
             return run_gradient(c, d, type, provider, false);
           }},
          {kernels::batch_normalization_grad,
           [](const auto& c, const auto& d, DeviceType type, const auto& provider) {
             return run_gradient(c, d, type, provider, true);
           }}};
}

// One device of each type.
std::vector<Device> devices() {
  std::vector<Device> result;
  for (const Device device : testing::devices())
    if (device.index() == 0) result.push_back(device);
  return result;
}

void for_each_provider(const std::function<void(const Pass&, const std::string&, Device)>& body) {
  for (const Device device : devices())
    for (const Pass& pass : passes())
      for (const ProviderInfo& provider : pass.slot.providers(device.type()))
        body(pass, provider.name, device);
}

void check(const Pass& pass, const std::string& provider, Device device, const NormalizationCase& c,
           uint32_t seed, bool must_take = false) {
  const NormalizationData d(c, device, seed);
  const Outcome outcome = pass.run(c, d, device.type(), provider);
  EXPECT_EQ(outcome.wrong, "") << pass.slot.name() << '/' << provider << " on " << device << ": "
                               << c.text();
  EXPECT_TRUE(outcome.taken || !must_take) << provider << ": " << c.text();
}

constexpr Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};

TEST(Normalization, AgreesWithItsDefinition) {
  for_each_provider([](const Pass& pass, const std::string& provider, Device device) {
    std::mt19937 random(1);
    for (uint32_t i = 0; i < 40; ++i) {
      NormalizationCase c = testing::random_normalization(random);
      for (const Dtype dtype : kFloats) {
        c.dtype = dtype;
        check(pass, provider, device, c, i);
        if (::testing::Test::HasFailure()) return;
      }
    }
  });
}

// Shapes at the borders of the providers' ways through a batch.
TEST(Normalization, TakesEveryShape) {
  const ChannelLayout layouts[] = {{2, 1, 1},     {1, 1, 2},     {1, 5, 2},     {2, 5, 1},
                                   {1, 1, 50000}, {50000, 1, 1}, {10000, 3, 1}, {3, 2, 9000},
                                   {2, 3000, 1},  {1, 1500, 3},  {30, 512, 1},  {2500, 64, 1},
                                   {32, 16, 49},  {3, 33, 1024}, {9, 4, 1032},  {300, 64, 49},
                                   {64, 20, 2},   {5, 6, 63},    {40, 4, 1}};
  for_each_provider([&](const Pass& pass, const std::string& provider, Device device) {
    for (const ChannelLayout& layout : layouts) {
      NormalizationCase c;
      c.layout = layout;
      c.residual = c.relu = c.running = c.g_residual = true;
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
        c.dtype = dtype;
        check(pass, provider, device, c, 3, provider == "cpu" || provider == "cuda");
      }
    }
  });
}

// The gradients, all in one row.
std::vector<double> all_numbers(const NormalizationData& d) {
  std::vector<double> all;
  for (const Array& a : {d.gx.array, d.g_residual.array, d.g_gamma.array, d.g_beta.array})
    for (const double v : testing::numbers_of(a)) all.push_back(v);
  return all;
}

// Of a call with relu and residual.
std::vector<double> gradients(const NormalizationCase& c, const NormalizationData& d,
                              const Array& gy, const Kept<BatchNormalizationGradCall>& kept) {
  kernels::batch_normalization_grad(
      gy.device(),
      {c.layout, &d.x.array, &gy, &d.y.array, nullptr, &d.mean.array, &d.inverse.array, false,
       &d.gx.array, &d.g_residual.array, &d.g_gamma.array, &d.g_beta.array, false, false, &kept});
  return all_numbers(d);
}

// Shapes and packs in which the backward pass may go other ways than the forward pass.
std::vector<ChannelLayout> layouts_of_masks() {
  return {{6, 5, 48},   {6, 3, 50},   {70, 8, 1},   {70, 24, 1}, {70, 12, 1},
          {70, 4, 1},   {70, 7, 1},   {20, 16, 49}, {20, 4, 7},  {4, 16, 49},
          {300, 40, 1}, {64, 128, 9}, {30, 512, 1}};
}

// A mask that a forward call left says where its y was positive, whatever y holds afterwards:
// backward calls with the mask equal, bit by bit, those with y, wherever the arrays of both begin.
TEST(Normalization, MasksSayWhereYWasPositive) {
  for (const Device device : devices())
    for (const ChannelLayout& layout : layouts_of_masks())
      for (const Dtype dtype : kFloats)
        for (int places = 0; places < 4; ++places) {
          NormalizationCase c;
          c.dtype = dtype;
          c.layout = layout;
          c.relu = c.residual = c.g_residual = true;
          const NormalizationData d(c, device, 8);
          const Array residual = testing::placed(d.residual.array, places % 2 == 0),
                      gy = testing::placed(d.gy.array, places < 2);
          Kept<BatchNormalizationGradCall> kept;
          const auto expect_the_mask = [&] {
            const std::vector<double> by_y = gradients(c, d, gy, {});
            // The mask alone is read, unless only one of the passes has aligned arrays.
            if (device.is_cuda() && (places == 0 || places == 3)) d.y.array.fill(-1);
            EXPECT_EQ(kept.maker() != nullptr, device.is_cuda()) << "on " << device;
            EXPECT_EQ(gradients(c, d, gy, kept), by_y) << c.text() << ", places " << places;
          };
          kernels::batch_normalization(
              device,
              {layout, &d.x.array, nullptr, nullptr, &residual, testing::kCaseEps, true, &d.y.array,
               &d.mean.array, &d.inverse.array, nullptr, nullptr, 0, nullptr, &kept});
          expect_the_mask();
          kept = {};
          kernels::fixed_batch_normalization(
              device, {layout, &d.x.array, nullptr, nullptr, &residual, &d.mean.array,
                       &d.variance.array, testing::kCaseEps, true, &d.y.array, &kept});
          expect_the_mask();
        }
}

// Without a residual the GPU computes the sign of y once more from x, and not y itself is read.
TEST(Normalization, TheSignOfYFollowsFromX) {
  for (const Device device : devices())
    for (const ChannelLayout& layout : layouts_of_masks())
      for (const Dtype dtype : kFloats)
        for (const bool with_gamma : {false, true}) {
          NormalizationCase c;
          c.dtype = dtype;
          c.layout = layout;
          c.relu = c.g_residual = true;
          const NormalizationData d(c, device, 10);
          const Array* gamma = if_wanted(with_gamma, d.gamma);
          const Array* beta = if_wanted(with_gamma, d.beta);
          Kept<BatchNormalizationGradCall> kept;
          kernels::batch_normalization(
              device,
              {layout, &d.x.array, gamma, beta, nullptr, testing::kCaseEps, true, &d.y.array,
               &d.mean.array, &d.inverse.array, nullptr, nullptr, 0, nullptr, &kept});
          EXPECT_EQ(kept.maker(), nullptr);
          const auto run = [&](bool follows) {
            kernels::batch_normalization_grad(
                device, {layout, &d.x.array, &d.gy.array, &d.y.array, gamma, &d.mean.array,
                         &d.inverse.array, false, &d.gx.array, &d.g_residual.array,
                         &d.g_gamma.array, &d.g_beta.array, false, false, &kept, follows, beta});
            return all_numbers(d);
          };
          const std::vector<double> by_y = run(false);
          if (device.is_cuda()) d.y.array.fill(-1);
          EXPECT_EQ(run(true), by_y) << c.text() << (with_gamma ? "" : ", without gamma and beta");
        }
}

bool g_foreign_asked = false;
void foreign_backward(const BatchNormalizationGradCall&) { g_foreign_asked = true; }

// The provider that kept a mask gets the backward call, though rules have turned to another one.
TEST(Normalization, TheMakerOfAMaskGetsTheBackwardCall) {
  struct Foreign final : KeptState {};
  for (const Device device : devices()) {
    NormalizationCase c;
    c.relu = c.residual = c.g_residual = true;
    const NormalizationData d(c, device, 9);
    Kept<BatchNormalizationGradCall> foreign;
    foreign.keep<&foreign_backward>(IntrusivePtr<const KeptState>(new Foreign));
    g_foreign_asked = false;
    gradients(c, d, d.gy.array, foreign);
    EXPECT_TRUE(g_foreign_asked) << "on " << device;
    // A built-in provider that is called by its name does not take the state for its own.
    const std::vector<double> by_y = gradients(c, d, d.gy.array, {});
    const char* built_in = device.is_cuda() ? "cuda" : "cpu";
    kernels::batch_normalization_grad.provider(device.type(), built_in)(
        {c.layout, &d.x.array, &d.gy.array, &d.y.array, nullptr, &d.mean.array, &d.inverse.array,
         false, &d.gx.array, &d.g_residual.array, &d.g_gamma.array, &d.g_beta.array, false, false,
         &foreign});
    EXPECT_EQ(all_numbers(d), by_y) << "on " << device;
  }
}

// The deviation is found where it is a ten-thousandth of the mean.
TEST(Normalization, SurvivesALargeMean) {
  for (const Device device : devices())
    for (const ProviderInfo& provider : kernels::batch_normalization.providers(device.type()))
      for (const ChannelLayout& layout : {ChannelLayout{50, 8, 64}, ChannelLayout{4000, 16, 1},
                                          ChannelLayout{4000, 3, 1}, ChannelLayout{2, 3, 3333}}) {
        NormalizationCase c;
        c.layout = layout;
        c.offset = 1e4;
        check(passes()[0], provider.name, device, c, 5);
        c.dtype = Dtype::kFloat64;
        c.offset = 1e8;
        const NormalizationData d(c, device, 5);
        passes()[0].run(c, d, device.type(), provider.name);
        Statistics s = testing::expected_statistics(c, d);
        for (double& v : s.variance) v = 1 / std::sqrt(v + testing::kCaseEps);
        EXPECT_EQ(testing::mismatch("inverse_deviation", d.inverse.array, s.variance, 1e-8), "");
      }
}

// Where the mean is a million times the deviation, x itself has few digits; y and the gradients
// have those that x has.
TEST(Normalization, KeepsTheDigitsOfADeviationFarBelowTheMean) {
  for (const Device device : devices())
    for (const ChannelLayout& layout : {ChannelLayout{50, 8, 64}, ChannelLayout{4000, 16, 1},
                                        ChannelLayout{4000, 3, 1}, ChannelLayout{2, 3, 3333}}) {
      NormalizationCase c;
      c.layout = layout;
      c.offset = 1e4;
      c.spread = 0.02;
      NormalizationData d(c, device, 12);
      for (const ProviderInfo& provider : kernels::batch_normalization.providers(device.type()))
        EXPECT_EQ(run_training(c, d, device.type(), provider.name).wrong, "") << c.text();
      const Statistics s = testing::expected_statistics(c, d);
      d.mean.values = s.mean;
      d.mean_rest.values.assign(s.mean.size(), 0);
      for (size_t k = 0; k < s.mean.size(); ++k)
        d.inverse.values[k] = 1 / std::sqrt(s.variance[k] + testing::kCaseEps);
      for (const ProviderInfo& provider :
           kernels::batch_normalization_grad.providers(device.type()))
        EXPECT_EQ(run_gradient(c, d, device.type(), provider.name, false).wrong, "") << c.text();
    }
}

// One number apart from all others, first or in the middle, does not spoil the variance of these.
TEST(Normalization, SurvivesAnOutlier) {
  for (const Device device : devices())
    for (const ProviderInfo& provider : kernels::batch_normalization.providers(device.type()))
      for (const int64_t place : {0, 40}) {
        NormalizationCase c;
        c.layout = {4000, 1, 1};
        c.offset = 1e4;
        NormalizationData d(c, device, 6);
        d.x.values[size_t(place)] = 0;
        d.x.array = array(d.x.values, {4000, 1, 1}).astype(c.dtype).to(device);
        const Outcome outcome = run_training(c, d, device.type(), provider.name);
        EXPECT_EQ(outcome.wrong, "") << provider.name << " on " << device << " at " << place;
      }
}

TEST(Normalization, DoesNotDependOnTheNumberOfThreads) {
  const int before = cpu_threads();
  for (const ChannelLayout& layout : {ChannelLayout{32, 16, 300}, ChannelLayout{8000, 24, 1}}) {
    NormalizationCase c;
    c.layout = layout;
    c.relu = c.residual = c.g_residual = true;
    std::vector<std::vector<double>> results;
    for (const int threads : {1, 3, 4}) {
      set_cpu_threads(threads);
      const NormalizationData d(c, cpu(), 7);
      EXPECT_EQ(run_gradient(c, d, DeviceType::kCpu, "cpu", false).wrong, "");
      EXPECT_EQ(run_training(c, d, DeviceType::kCpu, "cpu").wrong, "");
      std::vector<double> all;
      for (const Array& a : {d.y.array, d.inverse.array, d.gx.array, d.g_gamma.array})
        for (const double v : testing::numbers_of(a)) all.push_back(v);
      results.push_back(std::move(all));
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace catena
