// Started by pipeline_kills_test.cpp: a pipeline that trains until one of its ranks kills itself.
//   pipeline_kill_program RANK MICROSECONDS [grid]
// With rank -1 it ends after 20 steps.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "catena/comm/run_main.h"
#include "parallel/pipeline/model.h"

namespace {

using namespace catena;
using namespace catena::parallel::pipeline;

int body(int argc, char** argv) {
  CATENA_CHECK(ValueError, argc >= 3, "usage: ", argv[0], " RANK MICROSECONDS [grid]");
  const CommunicatorPtr comm = create_communicator("mpi", {.device = cpu(0)});
  const int rank = std::atoi(argv[1]);
  std::optional<parallel::Grid> grid;
  if (argc > 3) grid.emplace(*comm, parallel::GridShape{2, comm->size() / 2});
  const int ranks = grid ? comm->size() / 2 : comm->size();
  const Schedule schedule = zero_bubble(ranks, 4);
  Sequence model = test::filled();
  const Cut cut = test::even_cut(schedule.stages());
  Pipeline pipeline =
      grid ? Pipeline(model, cut, schedule, *grid) : Pipeline(model, cut, schedule, comm);
  pipeline.setup([] { return optimizers::Adam(0.01); });
  comm->barrier();
  std::thread killer;
  if (comm->rank() == rank)
    killer = std::thread([wait = std::atoi(argv[2])] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      kill(getpid(), SIGKILL);
    });
  if (killer.joinable()) killer.detach();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; rank >= 0 || i < 20; ++i) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(30)) break;
    const catena::testing::Batch batch = catena::testing::batch_of(i, 22, dtype::float32);
    pipeline.step(batch.x, batch.t, test::cross_entropy);
  }
  std::printf("nobody was killed\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
