// One update by each rule, of parameters as many as a ResNet-50 has on a GPU (a million on a CPU),
// beside a copy of as many bytes as the rule must read and write: parameters and states read and
// written, gradients read; LARS and LAMB read them once more for the norms.
//
//   bench_optimizers [device] [text that the names of the rules contain]
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catena/catena.h"
#include "timing.h"

namespace {

namespace O = catena::optimizers;
using catena::Array;
using catena::Device;
using catena::Dtype;

constexpr int kParameters = 32;

struct Rule {
  const char* name;
  int states;
  int read_for_norms;  // arrays
  std::function<std::unique_ptr<catena::Optimizer>()> make;
  int state_bytes = 4;  // of an element
  bool masters = true;  // copies of 16-bit parameters
};
template <class Optimizer>
Rule rule(const char* name, int states, int read_for_norms = 0) {
  return {name, states, read_for_norms, [] { return std::make_unique<Optimizer>(); }};
}
Rule narrow_adamw(const char* name, bool masters) {
  const auto make = [masters] {
    return std::make_unique<O::AdamW>(
        0.001, O::AdamWOptions{.state_dtype = Dtype::kBFloat16, .master_copies = masters});
  };
  return {name, 2, 0, make, 2, masters};
}
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all{
      rule<O::SGD>("SGD", 0),
      rule<O::MomentumSGD>("MomentumSGD", 1),
      rule<O::NesterovAG>("NesterovAG", 1),
      rule<O::AdaGrad>("AdaGrad", 1),
      rule<O::RMSprop>("RMSprop", 1),
      rule<O::RMSpropGraves>("RMSpropGraves", 3),
      rule<O::AdaDelta>("AdaDelta", 2),
      rule<O::SMORMS3>("SMORMS3", 3),
      rule<O::Adam>("Adam", 2),
      rule<O::AdamW>("AdamW", 2),
      narrow_adamw("AdamW with 16-bit states", true),
      narrow_adamw("AdamW with 16-bit states, without copies", false),
      rule<O::Lion>("Lion", 1),
      rule<O::LARS>("LARS", 1, 2),
      rule<O::LAMB>("LAMB", 2, 4)};
  return all;
}

// The median on a GPU; the shortest on a CPU, which others use as well.
double time(Device device, const std::function<void()>& call) {
  const bench::Times times = bench::device_time({5, 9, device.is_cuda() ? 20 : 5}, device, call);
  return device.is_cuda() ? times.median : times.minimum;
}

double copy_time(Device device, double bytes) {
  const Array from = catena::zeros({int64_t(bytes / 2)}, {Dtype::kUInt8, device}),
              to = catena::zeros_like(from);
  return time(device, [&] { to.assign(from); });
}

// What an update moves for each parameter at least. Where 16-bit ones have float32 copies, it is
// as many bytes as of 32 bits: the parameter is written and not read, its gradient read, both in
// half the bytes, and its copy read and written.
double bytes_of(const Rule& rule, Dtype dtype) {
  const bool is_alone = catena::itemsize(dtype) == 2 && !rule.masters;
  return (is_alone ? 6 : 12) + 2 * rule.states * rule.state_bytes + 4 * rule.read_for_norms;
}

void row(Device device, const Rule& rule, int64_t count, Dtype dtype) {
  catena::Parameters parameters;
  for (int i = 0; i < kParameters; ++i) {
    const auto draw = [&] {
      return catena::random::normal({count / kParameters}, 0, 1, Dtype::kFloat32).astype(dtype);
    };
    parameters.emplace_back(draw(), "p" + std::to_string(i));
    parameters.back().set_grad(draw());
  }
  const auto optimizer = rule.make();
  optimizer->setup(parameters);
  const double update = time(device, [&] { optimizer->update(); });
  const double copy = copy_time(device, double(count) * bytes_of(rule, dtype));
  std::printf("| %s, %lld parameters, %s | %.4f ms | %.4f ms (copy) | %.2f |\n", rule.name,
              static_cast<long long>(count), catena::name(dtype), update * 1e3, copy * 1e3,
              update / copy);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Device device(argc > 1 ? argv[1] : "cuda:0");
  const std::string wanted = argc > 2 ? argv[2] : "";
  const catena::DeviceScope scope(device);
  const int64_t count = int64_t(1) << 20;
  std::printf("| case | update | limit | ratio |\n|---|---|---|---|\n");
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16})
    for (const Rule& rule : rules())
      if (std::string(rule.name).find(wanted) != std::string::npos)
        row(device, rule, device.is_cuda() ? 25 * count : count, dtype);
}
