// The most memory that is ever resident in a rank that builds a model, trains it, saves and loads
// it, with the kind of sharding that the argument names. Fails where it is more than 1.15 of the
// arrays' bytes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/checkpoint_folder.h"
#include "sharding_by_name.h"
#include "temp_folder.h"

namespace catena {
namespace {

namespace F = catena::functions;
using parallel::Sharding;

constexpr double kMost = 1.15;
constexpr int64_t kLayers = 32, kWidth = 1024;  // layers of 4 MiB
constexpr double kUnit = kWidth * kWidth * 4 / double(1 << 20), kModel = kLayers * kUnit;

struct Net : FunctionSet {
  std::vector<F::Linear> layers;
  Net(int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i) layers.emplace_back(width, width);
  }
  CATENA_FUNCTIONS(layers)
  Variable operator()(Variable h) {
    for (F::Linear& layer : layers) h = F::tanh(layer(h));
    return h;
  }
};

// "VmRSS" is what is resident, "VmHWM" the most that was, in MiB.
double resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  std::fprintf(stderr, "/proc/self/status has no %s\n", field.c_str());
  std::exit(2);
}

struct Resident {
  double in_steps, in_save, after_gather;
};

// In a folder of rank 0.
void save_and_load(Communicator& comm, Net& net, Optimizer& optimizer) {
  const TempFolder own;
  serializers::Checkpoint state;
  state.add("model", net);
  state.add("optimizer", optimizer);
  training::CheckpointFolder folder(comm.broadcast_object(own.path()), &comm);
  folder.save(state, 3);
  folder.load(state);
  comm.barrier();
}

// Between two of the steps all values are gathered, as for a file that one rank writes.
Resident train(Communicator& comm, Net& net, int64_t width, Sharding sharding) {
  const parallel::BucketOptions options{int64_t(1) << 20, int64_t(4) << 20, 0, sharding};
  auto optimizer = create_multi_node_optimizer(optimizers::Adam(1e-3), comm, options);
  optimizer.setup(net);
  const auto run_steps = [&](int count) {
    for (int step = 0; step < count; ++step) {
      optimizer.zero_grads();
      const auto pass = [&] {
        F::mean(F::square(net(Variable(ones({4, width}, dtype::float32))))).backward();
      };
      {
        const parallel::NoSync more = optimizer.accumulate();
        pass();
      }
      pass();
      optimizer.update();
    }
  };
  run_steps(3);
  const double in_steps = resident("VmHWM");
  save_and_load(comm, net, optimizer.actual_optimizer());
  const double in_save = resident("VmHWM");
  optimizer.gather_parameters();
  run_steps(2);
  return {in_steps, in_save, resident("VmRSS")};
}

// In MiB.
struct Expected {
  double arrays;  // between two steps
  double units;   // that are whole in a pass, and cached after it
};

// Adam in float32 has a model's size in values, in gradients and twice in states.
Expected expected(Sharding sharding, double ranks) {
  const double gradients = 3 * kUnit, values = 4 * kUnit;
  switch (sharding) {
    case Sharding::kNone: return {4 * kModel, 0};
    case Sharding::kStates: return {(2 + 2 / ranks) * kModel, 0};
    case Sharding::kGradients: return {(1 + 3 / ranks) * kModel, gradients};
    default: return {4 / ranks * kModel, gradients + values};
  }
}

// What is resident between two steps is part of the most that ever was.
int run(int argc, char** argv) {
  const CommunicatorPtr comm = create_communicator();
  const DeviceScope scope(comm->device());
  const Sharding sharding = testing::sharding_by_name(argc > 1 ? argv[1] : "");
  {
    Net small(4, 256);  // code, and the buffers of the communicator
    train(*comm, small, 256, sharding);
  }
  const double before = resident("VmRSS");
  const auto [arrays, units] = expected(sharding, comm->size());
  const double in_steps = std::max(kModel, arrays) + units;  // the model is whole when it is built
  const double copy = 3 * kModel / comm->size();             // of what this rank writes
  Net net(kLayers, kWidth);
  const Resident found = train(*comm, net, kWidth, sharding);
  struct {
    const char* when;
    double found, expected;
  } const rows[] = {{"in steps", found.in_steps, in_steps},
                    {"in a save and a load", found.in_save, arrays + units + copy},
                    {"after a gather", found.after_gather, in_steps}};
  bool is_too_much = false;
  for (const auto& row : rows) {
    std::printf("rank %d, %s, %s: %.0f MiB; the arrays: %.0f\n", comm->rank(),
                parallel::name(sharding), row.when, row.found - before, row.expected);
    is_too_much |= row.found - before > kMost * row.expected;
  }
  return is_too_much;
}

}  // namespace
}  // namespace catena

int main(int argc, char** argv) { return catena::run_main(argc, argv, catena::run); }
