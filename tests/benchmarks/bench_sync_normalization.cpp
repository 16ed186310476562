// Batch normalization by the statistics of all ranks beside the plain layer on the same batch, both
// forward in training and backward: what the exchange costs.
//
//   bench_sync_normalization [--quick]                    one rank: the kernels of the exchange,
//                                                         and messages to nobody
//   catena-run -n 4 bench_sync_normalization              ranks of the job, a GPU each
//   bench_sync_normalization --threads                    two ranks of one process, on the CPU
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/normalization.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "timing.h"

namespace {

using namespace catena;
namespace F = catena::functions;

// One rank that takes the way of several.
class OneRank final : public F::StatisticsExchange {
 public:
  explicit OneRank(Communicator& comm) : comm_(comm) {}
  int ranks() const override { return 2; }
  void check(const Array&, const std::string&) const override {}
  Array gather(const Array& x) const override { return comm_.all_gather(x.reshape({1, x.size()})); }
  void sum(const Array& x) const override { comm_.all_reduce(x, comm::Reduction::kSum, x); }
  bool weighs_by_samples() const override { return true; }

 private:
  Communicator& comm_;
};

// Layers of a residual network for images of 224 x 224, and a layer of vectors.
std::vector<Shape> shapes(bool is_gpu, bool quick) {
  const int64_t n = quick ? 4 : is_gpu ? 64 : 8;
  std::vector<Shape> all{{n, 64, 56, 56}, {n, 512, 7, 7}};
  if (!quick) all.insert(all.end(), {{n, 64, 112, 112}, {n, 256, 28, 28}, {n * 16, 1024}});
  return all;
}

double step_time(const F::BatchNormalization& bn, const Array& batch, const bench::Sampling& s) {
  const Variable x(batch);
  const Array gy = random::normal(batch.shape(), 0, 1, batch.dtype());
  return bench::wall_time(s, batch.device(),
                          [&] {
                            const Variable y = bn.relu(x);
                            y.set_grad(gy);
                            y.backward();
                          })
      .median;
}

void time_layers(Communicator& comm, bool quick, bench::Table* table) {
  const DeviceScope scope(comm.device());
  const bool is_gpu = comm.device().is_cuda();
  const bench::Sampling sampling = quick ? bench::Sampling{1, 3, 2} : bench::Sampling{3, 9, 20};
  for (const Shape& shape : shapes(is_gpu, quick))
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
      if (!is_gpu && dtype == Dtype::kBFloat16) continue;
      Array batch = random::normal(shape, 0, 1, dtype);
      if (is_gpu && shape.ndim() == 4) batch = F::channels_last(batch);
      const F::BatchNormalization plain(shape[1]);
      F::BatchNormalization sync(shape[1]);
      if (comm.size() > 1)
        parallel::synchronize_normalization(sync, comm.shared_from_this());
      else
        sync.share_statistics(std::make_shared<const OneRank>(comm));
      double alone = 1e9, together = 1e9;
      for (int round = 0; round < 3; ++round) {  // in turn: others may use the machine
        comm.barrier();
        alone = std::min(alone, step_time(plain, batch, sampling));
        comm.barrier();
        together = std::min(together, step_time(sync, batch, sampling));
      }
      if (table)
        table->row({.name = message("relu(bn(x)), forward and backward, ", shape),
                    .precision = name(dtype),
                    .value = together * 1e6,
                    .unit = "us",
                    .limit = alone * 1e6,
                    .limit_name = "plain layer",
                    .goal_ratio = is_gpu ? std::optional(1 / 0.97) : std::nullopt});
    }
}

int body(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, "Synchronised batch normalization.",
                                   {{"--threads", "two ranks of this process, on the CPU"}});
  const auto run = [&](Communicator& comm) {
    std::unique_ptr<bench::Table> table;
    if (comm.rank() == 0)
      table = std::make_unique<bench::Table>(
          "Synchronised batch normalization",
          message(comm.size(), " rank(s) of ", comm.name(), ", ", comm.device()));
    time_layers(comm, arguments.quick(), table.get());
  };
  if (arguments.has("--threads"))
    comm::run_threads(2, run);
  else
    run(*create_communicator());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
