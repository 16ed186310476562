// Started, killed and started again by checkpoint_kills_test: trains on ranks that are threads,
// saves every other step behind training, goes on from the newest checkpoint, and writes what it
// ends with.
//
// checkpoint_program FOLDER RESULT RANKS STEPS
#include <cstdio>
#include <cstdlib>

#include "catena/array/io.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/checkpoint_folder.h"

namespace {

using namespace catena;  // NOLINT: a program
namespace F = functions;

// Large enough that a save takes as long as several steps.
struct Mlp : FunctionSet {
  F::Linear l1{64, 400}, l2{400, 400}, l3{400, 8};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) { return l3(F::tanh(l2(F::tanh(l1(x))))); }
};

std::string bits_of(const Mlp& model) {
  std::string bits;
  for (const Parameter& p : model.parameters()) bits += dumps(p.data().to(cpu(0)));
  return bits;
}

void train(Communicator& comm, const std::string& path, const std::string& result, int64_t steps) {
  RandomState& random = random::default_state(comm.device());
  random.seed(3);
  const DeviceScope scope(comm.device());
  Mlp model;
  model.to(comm.device());
  auto optimizer = create_multi_node_optimizer(optimizers::Adam(1e-3), comm,
                                               {.sharding = parallel::Sharding::kStates});
  optimizer.setup(model);
  int64_t step = 0;
  serializers::Checkpoint state;
  state.add("model", model);
  state.add("optimizer", optimizer.actual_optimizer());
  state.add("random", random);
  state.add("step", step);
  training::CheckpointFolder folder(path, &comm, {.keep = 2});
  if (folder.has_checkpoint()) folder.load(state);
  if (comm.rank() == 0) std::printf("from %lld\n", static_cast<long long>(step));
  std::fflush(stdout);
  while (step < steps) {
    const Array x = random.normal({16, 64}, 0, 1, {dtype::float32, comm.device()});
    const Array y = random.normal({16, 8}, 0, 1, {dtype::float32, comm.device()});
    optimizer.zero_grads();
    F::mean_squared_error(model(Variable::constant(x)), Variable::constant(y)).backward();
    optimizer.update();
    ++step;
    if (step % 2 == 0) folder.save_async(state, step);
    if (step % 2 == 0 && comm.rank() == 0)
      std::printf("begun %lld\n", static_cast<long long>(step));
    std::fflush(stdout);
  }
  folder.wait();
  if (comm.rank() == 0) write_file_atomically(result, bits_of(model));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  comm::run_threads(std::atoi(argv[3]), [&](Communicator& comm) {
    train(comm, argv[1], argv[2], std::atoll(argv[4]));
  });
}
