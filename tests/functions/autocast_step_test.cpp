// A step of a small GPT under autocast: what is cast, and what it learns. What the graph keeps is
// in kept_arrays_test.cpp.
#include <algorithm>
#include <map>
#include <set>

#include "catena/autograd/autocast.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/parameter.h"
#include "catena/kernels/copy.h"
#include "catena/optimizers/adamw.h"
#include "functions/functions_test_util.h"
#include "small_gpt2.h"

namespace catena {
namespace {

using testing::SmallGpt2;

constexpr testing::SmallGpt2Options kSizes = {
    .vocabulary = 40, .length = 8, .width = 64, .heads = 2, .inner = 128, .dropout = 0.1};

// Copies of a floating dtype into another one, with what runs at the time.
struct Casts {
  static inline std::vector<std::string>* found = nullptr;
  static inline std::vector<std::string> running;

  static bool note(const CopyCall& call) {
    const Dtype from = call.source.dtype(), to = call.destination.dtype();
    if (found && from != to && is_float(from) && is_float(to) && call.source.size() > 1)
      found->push_back(message(running.empty() ? "parameter" : running.back(), ": ", from, " to ",
                               to, " ", call.source.shape()));
    return false;  // declined
  }
  static void provide(DeviceType type) {
    static std::set<DeviceType> done;
    if (!done.insert(type).second) return;
    kernels::copy.providers(type);  // loads them, so that this one comes before all
    kernels::copy.provide(type, "casts of a step", &note, 1002);
  }
};

// Follows the calls; notes casts of what is not a parameter, and results that are not of 16 bits.
struct Watcher : FunctionHook {
  std::vector<std::string> casts, wide;
  void forward_begins(const FunctionCall& call) override {
    Casts::running.push_back(call.name());
    if (std::string(call.name()) == "Cast" && !call[0].node()->parameter)
      casts.push_back(message(Casts::running.size() > 1 ? Casts::running.rbegin()[1] : "", " of ",
                              call[0].dtype(), " ", call[0].shape()));
  }
  void forward_ends(const FunctionCall& call) override {
    Casts::running.pop_back();
    for (const Array& y : call.outputs())
      if (is_float(y.dtype()) && itemsize(y.dtype()) > 2 && y.size() > 1)
        wide.push_back(message(call.name(), " ", y.dtype(), " ", y.shape()));
  }
  void backward_begins(const FunctionNode& node) override {
    Casts::running.push_back("backward of " + node.label());
    if (node.label() == "Cast") casts.push_back(Casts::running.back());
  }
  void backward_ends(const FunctionNode&) override { Casts::running.pop_back(); }
};

class AutocastStep : public OnDevice {
 protected:
  void SetUp() override {
    Casts::provide(device().type());
    random::seed(5);
  }
  Array ids(int64_t seed) const {
    return random_array({2, kSizes.length}, 0, double(kSizes.vocabulary), Dtype::kInt32, device(),
                        uint64_t(seed));
  }
  Variable loss_of(const SmallGpt2& net, bool autocast) const {
    const AutocastScope scope(autocast ? Dtype::kBFloat16 : Dtype::kFloat32);
    return net.loss(ids(1), ids(2));
  }
};

// The casts that remain: each weight of a product, each bias and each table, when it is new. Scales
// and shifts of normalizations are read in float32.
std::vector<std::string> casts_of_parameters(const SmallGpt2& net) {
  std::vector<std::string> casts;
  for (const auto& [path, p] : net.named_parameters())
    if (path.find("norm") == std::string::npos)
      casts.push_back(message("parameter: float32 to bfloat16 ", p.shape()));
  std::sort(casts.begin(), casts.end());
  return casts;
}

TEST_P(AutocastStep, CastsNothingButNewParameters) {
  const DeviceScope scope(device());
  SmallGpt2 net(kSizes);
  optimizers::AdamW rule(0.01);
  rule.setup(net);
  std::vector<std::string> copies;
  for (int step = 0; step < 3; ++step) {
    Watcher watcher;
    copies.clear();
    Casts::found = &copies;
    {
      const FunctionHookScope hook(watcher);
      rule.zero_grads();
      loss_of(net, true).backward();
      rule.update();
    }
    Casts::found = nullptr;
    EXPECT_EQ(watcher.casts, std::vector<std::string>()) << step;
    EXPECT_EQ(watcher.wide, std::vector<std::string>()) << step;
    std::sort(copies.begin(), copies.end());
    EXPECT_EQ(copies, step == 0 ? casts_of_parameters(net) : std::vector<std::string>()) << step;
  }
  for (const Parameter& p : net.parameters()) EXPECT_EQ(p.grad().dtype(), Dtype::kFloat32);
}

// A step learns what one in float32 learns.
TEST_P(AutocastStep, HasTheLossesOfFloat32) {
  const DeviceScope scope(device());
  std::map<bool, std::vector<double>> losses;
  for (const bool autocast : {false, true}) {
    random::seed(7);
    SmallGpt2 net(kSizes);
    optimizers::AdamW rule(0.003);
    rule.setup(net);
    for (int step = 0; step < 8; ++step) {
      random::seed(uint64_t(step));
      rule.zero_grads();
      const Variable loss = loss_of(net, autocast);
      EXPECT_EQ(loss.dtype(), Dtype::kFloat32);
      losses[autocast].push_back(loss.item<double>());
      loss.backward();
      rule.update();
    }
  }
  EXPECT_LT(losses[true].back(), losses[true].front() - 0.5);
  for (size_t i = 0; i < losses[true].size(); ++i)
    EXPECT_NEAR(losses[true][i], losses[false][i], 0.02 * losses[false][i]) << i;
}

CATENA_ON_DEVICES(AutocastStep);

}  // namespace
}  // namespace catena
