// Ranks that add numbers up in steps: steps_program STEPS MILLISECONDS. Rank 0 prints each step.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"

using namespace catena;

namespace {

int take_steps(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::chrono::milliseconds pause(argc > 2 ? std::atoi(argv[2]) : 10);
  const CommunicatorPtr comm = create_communicator();
  const Array x = ones({1000}, {Dtype::kFloat32, comm->device()});
  for (int step = 1; step <= steps; ++step) {
    std::this_thread::sleep_for(pause);
    comm->all_reduce(x);
    if (comm->rank() != 0) continue;
    std::printf("step %d\n", step);
    std::fflush(stdout);
  }
  if (comm->rank() == 0) std::printf("done: %d ranks\n", comm->size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_main(argc, argv, take_steps); }
