// Ranks that count together, and a number that outlives them: resumable_program FILE STEPS
// MILLISECONDS. Rank 0 writes where they are to FILE when they are asked to stop; the next run goes
// on from there.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "catena/comm/stop_signals.h"

using namespace catena;

namespace {

int count(int argc, char** argv) {
  CATENA_CHECK(ValueError, argc == 4, "expected FILE STEPS MILLISECONDS");
  const comm::StopSignals stop;
  const std::string file = argv[1];
  const int steps = std::atoi(argv[2]);
  const std::chrono::milliseconds pause(std::atoi(argv[3]));
  const CommunicatorPtr comm = create_communicator();
  int step = 0;
  if (comm->rank() == 0) std::ifstream(file) >> step;
  step = comm->broadcast_object(step);
  const auto say = [&](const char* what) {
    if (comm->rank() != 0) return;
    std::printf("%s step %d of %d ranks\n", what, step, comm->size());
    std::fflush(stdout);
  };
  say("from");
  while (step < steps) {
    std::this_thread::sleep_for(pause);
    ++step;
    if (stop.received(*comm) == 0) continue;
    if (comm->rank() == 0) std::ofstream(file) << step << '\n';
    say("saved");
    return 0;
  }
  say("done at");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_main(argc, argv, count); }
