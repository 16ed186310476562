// Every provider of the convolution slots against a plain loop in double.
#include "catena/kernels/convolution.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"
#include "kernels/convolution_case.h"

namespace catena {
namespace {

using testing::check_convolution;
using testing::ConvolutionCase;
using testing::Outcome;
using testing::Pass;

struct PassName {
  Pass pass;
  const SlotBase& slot;
};
const PassName kPasses[] = {{Pass::kForward, kernels::convolution},
                            {Pass::kGradX, kernels::convolution_grad_x},
                            {Pass::kGradW, kernels::convolution_grad_w}};

// One device of each type.
std::vector<Device> devices() {
  std::vector<Device> result;
  for (const Device device : testing::devices())
    if (device.index() == 0) result.push_back(device);
  return result;
}

void for_each_provider(
    const std::function<void(const PassName&, const std::string&, Device)>& body) {
  for (const Device device : devices())
    for (const PassName& pass : kPasses)
      for (const ProviderInfo& provider : pass.slot.providers(device.type()))
        body(pass, provider.name, device);
}

// While it lives, cuDNN, oneDNN and the kernels of small and of grouped convolutions take what they
// would leave to others that are faster.
class EveryCallScope {
 public:
  EveryCallScope() : before_(config().use_cudnn) { config().use_cudnn = UseCudnn::kAlways; }
  ~EveryCallScope() { config().use_cudnn = before_; }

 private:
  ProviderScope own_{
      "convolution/small:always,convolution_grad_x/small:always,convolution_grad_w/small:always,"
      "convolution/direct:always,convolution_grad_x/direct:always,"
      "convolution_grad_w/direct:always,onednn:always"};
  UseCudnn before_;
};

// Cases for each provider and pass; CATENA_CONVOLUTION_CASES=2000 looks further.
int case_count() {
  const char* text = std::getenv("CATENA_CONVOLUTION_CASES");
  return text ? std::atoi(text) : 120;
}

// The share of ordinary cases that a provider must take. Without a floor a provider that declined
// everything would pass all tests.
double least_taken(const std::string& provider, Pass pass, Dtype dtype) {
  if (provider == "products" || provider == "direct") return 1;
  if (provider == "small") return 0;  // few of the cases; TakesSmallOnes has its own
  // A third of the cases have windows behind the image, which are left out forward (KnownBugs).
  if (provider == "onednn" && dtype == Dtype::kBFloat16)
    return !__builtin_cpu_supports("avx512bw") ? 0 : pass == Pass::kForward ? 0.6 : 0.9;
  if (provider == "onednn") return dtype == Dtype::kFloat32 ? 0.9 : 0;
  return dtype == Dtype::kFloat64 ? 0 : 0.9;
}

void check_random_cases(const PassName& pass, const std::string& provider, Device device,
                        Dtype dtype, int count, uint32_t seed) {
  std::mt19937 random(seed);
  int taken = 0, ordinary = 0, ordinary_taken = 0, wrong = 0;
  for (int i = 0; i < count && wrong < 5; ++i) {
    ConvolutionCase c = testing::random_convolution(random);
    c.dtype = dtype;
    std::string why;
    const Outcome outcome =
        check_convolution(pass.pass, provider, device, c, seed + uint32_t(i), &why);
    taken += outcome == Outcome::kTaken;
    ordinary += c.is_ordinary();
    ordinary_taken += c.is_ordinary() && outcome == Outcome::kTaken;
    wrong += outcome == Outcome::kWrong;
    EXPECT_NE(outcome, Outcome::kWrong) << pass.slot.name() << '/' << provider << ": " << why;
  }
  std::cout << pass.slot.name() << '/' << provider << " on " << device << ", " << name(dtype)
            << ": took " << taken << " of " << count << "\n";
  EXPECT_GE(ordinary_taken, least_taken(provider, pass.pass, dtype) * ordinary)
      << pass.slot.name() << '/' << provider << " declines too many calls in " << name(dtype);
}

TEST(Convolution, AgreesWithItsDefinition) {
  const EveryCallScope always;
  for_each_provider([](const PassName& pass, const std::string& provider, Device device) {
    check_random_cases(pass, provider, device, Dtype::kFloat32, case_count(), 1);
    for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16})
      check_random_cases(pass, provider, device, dtype, case_count() / 3, 2);
  });
}

// Channels in numbers that libraries have their fast kernels for.
std::vector<ConvolutionCase> wide_cases() {
  std::vector<ConvolutionCase> cases;
  for (const auto& [last, filters_last] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    for (const int64_t kernel : {int64_t{1}, int64_t{3}, int64_t{5}}) {
      ConvolutionCase c;
      c.channels = 32, c.filters = 64, c.height = 9, c.width = 11;
      c.channels_last = last, c.filters_last = filters_last;
      c.window = {{kernel, kernel}, {1, 1}, {kernel / 2, kernel / 2}, {1, 1}};
      c.bias = true;
      cases.push_back(c);
      c.window.stride[0] = c.window.stride[1] = 2;
      c.accumulate = true;
      cases.push_back(c);
      c.groups = 2;
      cases.push_back(c);
      c.groups = 32, c.filters = 32;
      cases.push_back(c);
    }
  }
  return cases;
}

// Which of the wide cases a provider leaves because it would compute them wrongly; see
// known_bugs_test.cpp.
bool is_left_for_a_bug(const PassName& pass, const std::string& provider,
                       const ConvolutionCase& c) {
  return provider == "cudnn" && pass.pass == Pass::kGradW && c.dtype == Dtype::kFloat32 &&
         !c.channels_last && c.window.kernel[0] == 5 && c.window.stride[0] == 1;
}

TEST(Convolution, TakesWideOnesInAllLayouts) {
  const EveryCallScope always;
  for_each_provider([](const PassName& pass, const std::string& provider, Device device) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16}) {
      for (ConvolutionCase c : wide_cases()) {
        c.dtype = dtype;
        std::string why;
        const Outcome outcome = check_convolution(pass.pass, provider, device, c, 3, &why);
        EXPECT_NE(outcome, Outcome::kWrong) << pass.slot.name() << '/' << provider << ": " << why;
        // All of them in every dtype for which the provider has a floor.
        if (least_taken(provider, pass.pass, dtype) > 0) {
          const bool is_left = is_left_for_a_bug(pass, provider, c);
          EXPECT_EQ(outcome, is_left ? Outcome::kDeclined : Outcome::kTaken)
              << pass.slot.name() << '/' << provider << (is_left ? " took " : " declined ")
              << c.text();
        }
      }
    }
  });
}

void check_patch_cases(const PassName& pass, const std::string& provider, Device device) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16})
    for (ConvolutionCase c : testing::patch_cases()) {
      c.dtype = dtype;
      std::string why;
      const Outcome outcome = check_convolution(pass.pass, provider, device, c, 4, &why);
      EXPECT_NE(outcome, Outcome::kWrong) << pass.slot.name() << '/' << provider << ": " << why;
      EXPECT_TRUE(provider != "products" || outcome == Outcome::kTaken) << c.text();
    }
}

TEST(Convolution, CutsImagesIntoPatches) {
  const EveryCallScope always;
  for_each_provider(check_patch_cases);
}

// float32 is exact unless config().matmul_precision allows less: errors stay at a few roundings of
// the largest element. Engines that transform the image are off by a thousand times as much, in
// windows and images of these sizes.
std::vector<ConvolutionCase> exact_cases() {
  const int64_t sizes[][7] = {
      // batch, channels, extent, filters, window, stride, groups
      {2, 64, 28, 64, 5, 1, 1},   {2, 64, 28, 64, 3, 1, 1}, {2, 32, 28, 64, 7, 1, 1},
      {2, 128, 14, 128, 5, 1, 1}, {2, 64, 28, 64, 1, 1, 1}, {2, 64, 28, 64, 5, 2, 1},
      {2, 256, 14, 256, 3, 1, 1}, {2, 3, 56, 64, 7, 2, 1},  {2, 64, 28, 64, 5, 1, 2}};
  std::vector<ConvolutionCase> cases;
  for (const auto& z : sizes)
    for (const bool last : {false, true}) {
      ConvolutionCase c;
      c.batch = z[0], c.channels = z[1], c.height = c.width = z[2], c.filters = z[3];
      c.window = {{z[4], z[4]}, {z[5], z[5]}, {z[4] / 2, z[4] / 2}, {1, 1}};
      c.groups = static_cast<int>(z[6]), c.channels_last = c.filters_last = last;
      cases.push_back(c);
    }
  return cases;
}

// The case in float64 by the built-in provider of the CPU, on the same numbers.
Array in_float64(Pass pass, ConvolutionCase c, testing::ConvolutionData d) {
  for (testing::CaseArray* a : {&d.x, &d.w, &d.b, &d.y})
    a->array = a->array.to_cpu().astype(Dtype::kFloat64);
  c.dtype = Dtype::kFloat64;
  EXPECT_TRUE(call_provider(pass, "products", cpu(0), c, d));
  return testing::result_of(pass, d).array;
}

double relative_error(const Array& a, const Array& exact) {
  const Array difference = absolute(a.to_cpu().astype(Dtype::kFloat64) - exact);
  return amax(difference).item<double>() / amax(absolute(exact)).item<double>();
}

TEST(Convolution, Float32IsExactByEachProvider) {
  const EveryCallScope always;
  for (const ConvolutionCase& c : exact_cases())
    for (const Device device : devices()) {
      const testing::ConvolutionData d(c, device, 9);
      for (const PassName& pass : kPasses) {
        const Array exact = in_float64(pass.pass, c, d);
        for (const ProviderInfo& p : pass.slot.providers(device.type())) {
          if (!call_provider(pass.pass, p.name, device, c, d)) continue;  // floors are above
          EXPECT_LE(relative_error(testing::result_of(pass.pass, d).array, exact), 1e-5)
              << pass.slot.name() << '/' << p.name << " on " << device << ": " << c.text();
        }
      }
    }
}

// The second call finds what the first one prepared, other threads theirs.
TEST(Convolution, RepeatsAndRunsInThreads) {
  for_each_provider([](const PassName& pass, const std::string& provider, Device device) {
    auto work = [&] {
      for (uint32_t seed = 1; seed < 4; ++seed) {
        ConvolutionCase c;
        c.channels_last = seed % 2;
        c.accumulate = true;
        std::string why;
        EXPECT_NE(check_convolution(pass.pass, provider, device, c, seed, &why), Outcome::kWrong)
            << pass.slot.name() << '/' << provider << ": " << why;
      }
    };
    std::thread others[] = {std::thread(work), std::thread(work)};
    work();
    for (std::thread& other : others) other.join();
  });
}

TEST(Convolution, NumberOfThreadsMayChange) {
  const int before = cpu_threads();
  for (const int count : {1, 3, before}) {
    set_cpu_threads(count);
    for (const PassName& pass : kPasses) {
      for (const ProviderInfo& provider : pass.slot.providers(DeviceType::kCpu)) {
        ConvolutionCase c;
        c.channels = c.filters = 64, c.height = c.width = 16;  // enough to be shared out
        std::string why;
        EXPECT_NE(check_convolution(pass.pass, provider.name, cpu(0), c, 5, &why), Outcome::kWrong)
            << provider.name << ": " << why;
      }
    }
  }
  set_cpu_threads(before);
}

// Plans may be made inside of a captured step, and replays compute anew.
TEST(Convolution, IsCaptured) {
  CATENA_NEEDS_GPU();
  const EveryCallScope always;
  for_each_provider([](const PassName& pass, const std::string& provider, Device device) {
    if (device.is_cpu()) return;
    for (const bool last : {false, true}) {
      if (last && provider == "small") continue;  // it has channels first alone
      ConvolutionCase c;
      c.channels = 24, c.filters = 40, c.height = 11, c.bias = true, c.channels_last = last;
      const testing::ConvolutionData d(c, device, 7);
      const testing::Expected expected = testing::expected_convolution(pass.pass, c, d);
      const Array& result = testing::result_of(pass.pass, d).array;
      bool taken = call_provider(pass.pass, provider, device, c, d);  // loads its kernels
      cuda::Graph graph = cuda::Graph::capture(
          device, [&] { taken = call_provider(pass.pass, provider, device, c, d); });
      EXPECT_TRUE(taken) << pass.slot.name() << '/' << provider << ": " << c.text();
      for (int replay = 0; replay < 2; ++replay) {
        result.assign(0);
        graph.launch();
        EXPECT_EQ(testing::difference(result, c, expected), "")
            << pass.slot.name() << '/' << provider << ", replay " << replay;
      }
    }
  });
}

// A convolution that the provider "small" takes if it is asked to: any extents up to its limits.
ConvolutionCase random_small_convolution(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    ConvolutionCase c;
    c.batch = pick(1, 5), c.channels = pick(1, 24), c.filters = pick(1, 24);
    c.height = pick(1, 32), c.width = pick(1, 32);
    for (int axis = 0; axis < 2; ++axis) {
      c.window.kernel[axis] = pick(1, 7), c.window.pad[axis] = pick(0, 4);
      c.more[axis] = pick(0, 5) ? 0 : 1, c.fewer[axis] = pick(0, 5) ? 0 : 2;
    }
    c.bias = pick(0, 1), c.accumulate = pick(0, 1);
    if (c.possible() && c.out(0) <= 32 && c.out(1) <= 32) return c;
  }
}

void for_each_small_provider(const std::function<void(const PassName&, Device)>& body) {
  for_each_provider([&](const PassName& pass, const std::string& provider, Device device) {
    if (provider == "small" && !device.is_cpu()) body(pass, device);
  });
}

TEST(SmallConvolution, ComputesWhatItCan) {
  CATENA_NEEDS_GPU();
  const EveryCallScope always;
  for_each_small_provider([](const PassName& pass, Device device) {
    std::mt19937 random(21);
    for (int i = 0; i < case_count() / 2; ++i) {
      const ConvolutionCase c = random_small_convolution(random);
      std::string why;
      EXPECT_EQ(check_convolution(pass.pass, "small", device, c, 30 + uint32_t(i), &why),
                Outcome::kTaken)
          << pass.slot.name() << ": " << why << c.text();
    }
  });
}

// Both layers of LeNet, smaller windows, and a batch that no number of blocks divides.
std::vector<ConvolutionCase> lenet_cases() {
  const int64_t sizes[][6] = {// batch, channels, extent, filters, window, pad
                              {64, 1, 28, 20, 5, 0},
                              {64, 20, 12, 50, 5, 0},
                              {67, 6, 14, 16, 3, 1},
                              {32, 3, 32, 8, 7, 3}};
  std::vector<ConvolutionCase> cases;
  for (const auto& z : sizes) {
    ConvolutionCase c;
    c.batch = z[0], c.channels = z[1], c.height = c.width = z[2], c.filters = z[3];
    c.window = {{z[4], z[4]}, {1, 1}, {z[5], z[5]}, {1, 1}};
    c.bias = true;
    cases.push_back(c);
  }
  return cases;
}

// Also in tf32, whose errors are larger than those of these kernels.
TEST(SmallConvolution, TakesTheLayersOfLeNet) {
  CATENA_NEEDS_GPU();
  const Config before = config();
  for_each_small_provider([](const PassName& pass, Device device) {
    for (const ConvolutionCase& c : lenet_cases())
      for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
        config().matmul_precision = precision;
        std::string why;
        EXPECT_EQ(check_convolution(pass.pass, "small", device, c, 8, &why), Outcome::kTaken)
            << pass.slot.name() << ": " << why << c.text();
      }
  });
  config() = before;
}

TEST(SmallConvolution, LeavesOthersAlone) {
  CATENA_NEEDS_GPU();
  const ConvolutionCase lenet = lenet_cases()[1];
  std::vector<ConvolutionCase> others(7, lenet);
  others[0].batch = 2;
  others[1].channels_last = true;
  others[2].window.stride[1] = 2;
  others[3].window.dilation[0] = 2;
  others[4].dtype = Dtype::kBFloat16;
  others[5].groups = 2;
  others[6].height = 37;
  for_each_small_provider([&](const PassName& pass, Device device) {
    for (const ConvolutionCase& c : others) {
      std::string why;
      EXPECT_EQ(check_convolution(pass.pass, "small", device, c, 8, &why), Outcome::kDeclined)
          << pass.slot.name() << ": " << why << c.text();
    }
  });
}

// CATENA_CUDNN=always leaves no convolution that cuDNN has to others.
TEST(SmallConvolution, GivesWayToCudnnWhereItIsAlwaysWanted) {
  CATENA_NEEDS_GPU();
  const Config before = config();
  config().use_cudnn = UseCudnn::kAlways;
  for_each_small_provider([](const PassName& pass, Device device) {
    std::string why;
    EXPECT_EQ(check_convolution(pass.pass, "small", device, lenet_cases()[1], 8, &why),
              Outcome::kDeclined)
        << pass.slot.name() << ": " << why;
  });
  config() = before;
}

// Sums of blocks are added in a fixed order.
TEST(SmallConvolution, RepeatsBitForBit) {
  CATENA_NEEDS_GPU();
  for_each_small_provider([](const PassName& pass, Device device) {
    for (const ConvolutionCase& c : lenet_cases()) {
      const testing::ConvolutionData d(c, device, 12);
      const Array& result = testing::result_of(pass.pass, d).array;
      ASSERT_TRUE(call_provider(pass.pass, "small", device, c, d)) << c.text();
      const std::vector<double> first = testing::values_of(result);
      for (int repeat = 0; repeat < 3; ++repeat) {
        ASSERT_TRUE(call_provider(pass.pass, "small", device, c, d)) << c.text();
        EXPECT_EQ(testing::values_of(result), first) << pass.slot.name() << ": " << c.text();
      }
    }
  });
}

TEST(Convolution, CudnnObeysTheSettings) {
  CATENA_NEEDS_CUDNN();
  const Config before = config();
  const ConvolutionCase c;
  for_each_provider([&](const PassName& pass, const std::string& provider, Device device) {
    if (provider != "cudnn") return;
    std::string why;
    config().max_workspace_size = 0;
    EXPECT_NE(check_convolution(pass.pass, provider, device, c, 8, &why), Outcome::kWrong) << why;
    config().deterministic = true;
    EXPECT_NE(check_convolution(pass.pass, provider, device, c, 8, &why), Outcome::kWrong) << why;
    config() = before;
    config().use_cudnn = false;
    for (const ProviderInfo& p : pass.slot.providers(device.type()))
      EXPECT_EQ(p.use, p.name == "cudnn" ? ProviderUse::kOff : ProviderUse::kOn) << p.name;
    config() = before;
  });
}

TEST(Convolution, CudnnLeavesLargeExactProductsToTheBuiltInProvider) {
  CATENA_NEEDS_CUDNN();
  const Config before = config();
  ConvolutionCase product;
  product.window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
  product.batch = 5, product.height = product.width = 32;
  ConvolutionCase thin = product;
  thin.batch = 64, thin.height = thin.width = 9;
  ConvolutionCase few = product;
  few.batch = 1;
  ConvolutionCase strided = product;
  strided.window = {{1, 1}, {2, 2}, {0, 0}, {1, 1}};
  for_each_provider([&](const PassName& pass, const std::string& provider, Device device) {
    if (provider != "cudnn") return;
    std::string why;
    const auto outcome = [&](const ConvolutionCase& c) {
      return check_convolution(pass.pass, provider, device, c, 8, &why);
    };
    EXPECT_EQ(outcome(product), Outcome::kDeclined) << why;
    const bool forward = pass.pass == Pass::kForward;
    EXPECT_EQ(outcome(thin), forward ? Outcome::kTaken : Outcome::kDeclined) << why;
    EXPECT_EQ(outcome(few), Outcome::kTaken) << why;
    EXPECT_EQ(outcome(strided), Outcome::kTaken) << why;
    config().matmul_precision = Precision::kTf32;
    EXPECT_NE(outcome(product), Outcome::kDeclined);  // less exact than the check asks for
    config() = before;
    config().use_cudnn = UseCudnn::kAlways;
    EXPECT_EQ(outcome(product), Outcome::kTaken) << why;
    config() = before;
    const ProviderScope forced("cudnn:only");
    EXPECT_EQ(outcome(product), Outcome::kTaken) << why;
  });
}

// As the first layer of a vision transformer.
TEST(Convolution, CudnnLeavesPatchesOfFewChannelsToTheBuiltInProvider) {
  CATENA_NEEDS_CUDNN();
  ConvolutionCase patches;
  patches.batch = 64, patches.channels = 3, patches.filters = 32;
  patches.height = patches.width = 64;
  patches.window = {{8, 8}, {8, 8}, {0, 0}, {1, 1}};
  std::vector<ConvolutionCase> others(5, patches);
  others[0].batch = 63;
  others[1].channels = 16;
  others[2].filters = 30;
  others[3].window = {{8, 8}, {7, 7}, {0, 0}, {1, 1}};
  others[4].window = {{3, 8}, {8, 8}, {0, 0}, {1, 1}}, others[4].channels = 1;
  for_each_provider([&](const PassName& pass, const std::string& provider, Device device) {
    if (provider != "cudnn") return;
    std::string why;
    const auto outcome = [&](ConvolutionCase c, Dtype dtype) {
      c.dtype = dtype;
      return check_convolution(pass.pass, provider, device, c, 8, &why);
    };
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16})
      for (const bool last : {false, true}) {
        patches.channels_last = last;
        EXPECT_EQ(outcome(patches, dtype), Outcome::kDeclined) << why;
        EXPECT_EQ(check_convolution(pass.pass, "products", device, patches, 8, &why),
                  Outcome::kTaken)
            << why;
      }
    patches.channels_last = false;
    for (const ConvolutionCase& c : others)
      EXPECT_EQ(outcome(c, Dtype::kFloat16), Outcome::kTaken) << why << c.text();
    const EveryCallScope always;
    EXPECT_EQ(outcome(patches, Dtype::kFloat16), Outcome::kTaken) << why;
  });
}

// The buffers of patches hold hundreds of the small images of other tests.
TEST(Convolution, BuiltInProvidersTakeOneImageAtATime) {
  const Config before = config();
  config().max_workspace_size = 1;
  for_each_provider([](const PassName& pass, const std::string& provider, Device device) {
    if (provider != "products") return;
    check_random_cases(pass, provider, device, Dtype::kFloat32, case_count(), 11);
    check_random_cases(pass, provider, device, Dtype::kBFloat16, case_count() / 3, 12);
    check_patch_cases(pass, provider, device);
    ConvolutionCase product;
    product.window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    product.groups = 2;
    for (const bool last : {false, true})
      for (const bool accumulate : {false, true}) {
        product.channels_last = last, product.accumulate = accumulate;
        std::string why;
        EXPECT_EQ(check_convolution(pass.pass, provider, device, product, 13, &why),
                  Outcome::kTaken)
            << why;
      }
  });
  config() = before;
}

// 512 images that each add 1 to all weights: a sum in bfloat16 stands still at 256.
TEST(Convolution, GradientsOfManyImagesAreSummedInFloat32) {
  const Config before = config();
  config().max_workspace_size = 1;
  constexpr int64_t kImages = 512;
  for (const Device device : devices())
    for (const bool last : {false, true}) {
      const Shape shape = last ? Shape{kImages, 1, 2, 4} : Shape{kImages, 4, 1, 2};
      Array x = ones(shape, {Dtype::kBFloat16, device});
      if (last) x = x.transpose({0, 3, 1, 2});
      const Array gW = ones({4, 4, 1, 1}, {Dtype::kBFloat16, device});
      const auto products = kernels::convolution_grad_w.provider(device.type(), "products");
      for (const bool accumulate : {false, true}) {
        ASSERT_TRUE(products({.x = &x,
                              .gy = &x,
                              .gW = &gW,
                              .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                              .accumulate = accumulate}));
        const double expected = accumulate ? 4 * kImages : 2 * kImages;
        for (const float g : gW.to_vector<float>()) EXPECT_EQ(g, expected) << device << last;
      }
    }
  config() = before;
}

}  // namespace
}  // namespace catena
