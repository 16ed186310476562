// Channels-last images go through a training step of a residual network without being laid out
// anew: no copy changes the order of axes in memory, and no element-wise call strides through an
// operand. The network has ResNet-50's structure, bottleneck blocks and projection shortcuts, with
// few channels.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/serializers/npz.h"
#include "temp_folder.h"

namespace catena {
namespace {

namespace F = functions;

// Arrays of few elements, such as those of the loss, are not laid out.
constexpr int64_t kFew = 64;

std::vector<std::string>* g_seen = nullptr;  // null: calls are not looked at

// Strides of the axes along which the array has several elements.
Strides steps_of(const Array& a) {
  Strides steps;
  for (int k = 0; k < a.ndim(); ++k)
    if (a.shape()[size_t(k)] > 1) steps.push_back(a.strides()[size_t(k)] / a.itemsize());
  return steps;
}

bool repeats(const Array& a) {
  for (const int64_t step : steps_of(a))
    if (step == 0) return true;
  return false;
}

// Whether a call that reads one array and writes the other goes through memory in two orders.
bool reorders(const Array& from, const Array& to) {
  if (to.size() < kFew || from.shape() != to.shape() || repeats(from)) return false;
  return steps_of(from) != steps_of(to);
}

// Providers that look at every call and take none.
bool see_copy(const CopyCall& call) {
  if (g_seen && reorders(call.source, call.destination))
    g_seen->push_back(message("copy of ", call.source.shape(), " from strides ",
                              call.source.strides(), " to ", call.destination.strides()));
  return false;
}
bool see_elementwise(const ElementwiseCall& call) {
  for (int k = 0; g_seen && k < call.input_count; ++k)
    if (call.arrays[k] && reorders(*call.arrays[k], *call.output))
      g_seen->push_back(message("element-wise call on ", call.output->shape(), " with strides ",
                                call.arrays[k]->strides(), " to ", call.output->strides()));
  return false;
}

// Records the calls that reorder while it lives.
class Reorderings {
 public:
  Reorderings() {
    static const bool registered = [] {
      kernels::copy.providers(DeviceType::kCpu);  // the built-in ones come first into the list
      kernels::copy.provide(DeviceType::kCpu, "observer", &see_copy, 1000);
      kernels::elementwise.provide(DeviceType::kCpu, "observer", &see_elementwise, 1000);
      return true;
    }();
    EXPECT_TRUE(registered);
    g_seen = &seen_;
  }
  ~Reorderings() { g_seen = nullptr; }
  Reorderings(const Reorderings&) = delete;
  Reorderings& operator=(const Reorderings&) = delete;

  const std::vector<std::string>& seen() const { return seen_; }
  std::string text() const {
    std::string all;
    for (const std::string& one : seen_) all += one + "\n";
    return all;
  }

 private:
  std::vector<std::string> seen_;
};

F::Convolution2DOptions without_bias(int64_t stride, int64_t pad) {
  return {.stride = stride, .pad = pad, .nobias = true};
}

struct Bottleneck : FunctionSet {
  F::Convolution2D c1, c2, c3;
  F::BatchNormalization b1, b2, b3;
  std::vector<F::Convolution2D> projection;
  std::vector<F::BatchNormalization> normalized;
  CATENA_FUNCTIONS(c1, c2, c3, b1, b2, b3, projection, normalized)

  Bottleneck(int64_t in, int64_t mid, int64_t stride)
      : c1(in, mid, 1, without_bias(1, 0)),
        c2(mid, mid, 3, without_bias(stride, 1)),
        c3(mid, mid * 4, 1, without_bias(1, 0)),
        b1(mid),
        b2(mid),
        b3(mid * 4) {
    if (stride == 1 && in == mid * 4) return;
    projection.emplace_back(in, mid * 4, 1, without_bias(stride, 0));
    normalized.emplace_back(mid * 4);
  }
  Variable operator()(const Variable& x) {
    const Variable h = c3(b2.relu(c2(b1.relu(c1(x)))));
    return b3.add_relu(h, projection.empty() ? x : normalized[0](projection[0](x)));
  }
};

struct Net : FunctionSet {
  F::Convolution2D stem{3, 8, 7, without_bias(2, 3)};
  F::BatchNormalization bn{8};
  std::vector<Bottleneck> blocks;
  F::Linear fc{128, 10};
  CATENA_FUNCTIONS(stem, bn, blocks, fc)

  Net() {
    int64_t in = 8, mid = 8;
    for (const int count : {3, 2, 2}) {
      for (int i = 0; i < count; ++i) {
        blocks.emplace_back(in, mid, i == 0 && mid > 8 ? 2 : 1);
        in = mid * 4;
      }
      mid *= 2;
    }
  }
  Variable operator()(const Variable& x) {
    Variable h =
        F::max_pooling_2d(bn.relu(stem(x)), 3, {.stride = 2, .pad = 1, .cover_all = false});
    for (Bottleneck& block : blocks) h = block(h);
    return fc(F::mean(h, {2, 3}));
  }
};

struct Step {
  Array x = F::channels_last(random::normal({2, 3, 32, 32}, 0, 1, dtype::float32));
  Array t = array({1, 7}, dtype::int32);
  Net net;
  optimizers::MomentumSGD optimizer{0.01, 0.9};

  void operator()() {
    optimizer.zero_grads();
    const Variable loss = F::softmax_cross_entropy(net(x), t);
    loss.backward();
    optimizer.update();
  }
};

// By each provider of convolutions; "off" leaves them to the built-in one.
TEST(LayoutCopies, AreNotInATrainingStepOfAResidualNetwork) {
  for (const char* rules : {"", "onednn:off"}) {
    const ProviderScope scope(rules);
    Step step;
    F::channels_last(step.net);
    step.optimizer.setup(step.net);
    step();
    const Reorderings observed;
    step();
    EXPECT_EQ(observed.text(), "") << rules;
  }
}

// What the observers are for: they see the copies of a step whose filters stayed contiguous.
TEST(LayoutCopies, OfContiguousFiltersAreSeen) {
  const ProviderScope scope("onednn:off");
  Step step;
  step.optimizer.setup(step.net);
  step();
  const Reorderings observed;
  step();
  EXPECT_GE(observed.seen().size(), 16u);  // W twice and gW once for each 3x3 window
}

// The same numbers in both layouts, after steps that move and update the filters.
TEST(LayoutCopies, TheStepComputesTheSame) {
  Step first, last;
  last.net.copy_parameters_from(first.net);
  last.x = first.x;
  F::channels_last(last.net);
  for (Step* step : {&first, &last}) {
    step->optimizer.setup(step->net);
    (*step)();
    (*step)();
  }
  const auto named_first = first.net.parameters(), named_last = last.net.parameters();
  ASSERT_EQ(named_first.size(), named_last.size());
  for (size_t i = 0; i < named_first.size(); ++i) {
    const auto a = named_first[i].data().to_vector<double>(),
               b = named_last[i].data().to_vector<double>();
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4) << i;
  }
}

const MemoryOrder kLast({0, 2, 3, 1});

// Also in the middle of a training: values, gradients and states move with the parameter.
TEST(ChannelsLastFilters, MayBeLaidOutBetweenSteps) {
  Step moved, stayed;
  stayed.net.copy_parameters_from(moved.net);
  stayed.x = moved.x;
  for (Step* step : {&moved, &stayed}) {
    step->optimizer.setup(step->net);
    (*step)();
  }
  F::channels_last(moved.net);
  EXPECT_EQ(moved.net.blocks[0].c2.W.grad().order(), kLast);
  for (Step* step : {&moved, &stayed}) (*step)();
  const Parameter &a = moved.net.blocks[0].c2.W, &b = stayed.net.blocks[0].c2.W;
  EXPECT_EQ(a.data().order(), kLast);
  const auto state_a = moved.optimizer.state_of(a)[0].to_vector<double>(),
             state_b = stayed.optimizer.state_of(b)[0].to_vector<double>();
  for (size_t k = 0; k < state_a.size(); ++k) ASSERT_NEAR(state_a[k], state_b[k], 1e-4);
}

// Files and copies hold elements, not memory.
TEST(ChannelsLastFilters, AreSavedAndCopiedByElement) {
  const TempFolder folder;
  Net last, loaded, copied;
  F::channels_last(last);
  F::channels_last(copied);
  serializers::save(folder / "net.npz", last);
  serializers::load(folder / "net.npz", loaded);
  copied.copy_parameters_from(loaded);
  const Parameter &a = last.blocks[0].c2.W, &b = loaded.blocks[0].c2.W, &c = copied.blocks[0].c2.W;
  EXPECT_TRUE(b.data().is_contiguous());
  EXPECT_EQ(c.data().order(), kLast);
  EXPECT_EQ(a.data().to_vector<double>(), b.data().to_vector<double>());
  EXPECT_EQ(a.data().to_vector<double>(), c.data().to_vector<double>());
}

// Arenas of different layout must not be exchanged as blocks.
TEST(ChannelsLastFilters, BelongToTheStructureOfTheModel) {
  Net first, last;
  F::channels_last(last);
  const optimizers::ArenaSet a(first.named_parameters()), b(last.named_parameters());
  EXPECT_NE(a.structure_hash(), b.structure_hash());
  EXPECT_NE(b.structure().find("c2/W (8, 8, 3, 3) float32 in memory (0, 2, 3, 1)"),
            std::string::npos)
      << b.structure();
}

}  // namespace
}  // namespace catena
