// Memory that a rank takes from its GPU when arrays of training are spread over ranks, at the
// highest moment so far, as the driver counts it, without the context and NCCL's own buffers; and
// the time of a step. Adam, float32, layers in a std::vector, batch 1024, no unit named.
//
//   catena-run -n 2 bench_sharding_memory SHARDING [WIDTH [LAYERS]]   none, states, gradients or
//                                                                   parameters; 8192 and 16
//
// CATENA_GPU_MEMORY_LIMIT shows how little is enough. sharding_memory_peer.py is the same with
// PyTorch's FSDP2.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "catena/catena.h"
#include "sharding_by_name.h"
#include "timing.h"

namespace {

using namespace catena;
namespace F = functions;
using parallel::Sharding;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBatch = 1024;
constexpr int kSteps = 10;

struct Net : FunctionSet {
  std::vector<F::Linear> layers;
  CATENA_FUNCTIONS(layers)
  Net(int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i) layers.emplace_back(width, width);
  }
  Variable operator()(Variable h) {
    for (F::Linear& layer : layers) h = F::relu(layer(h));
    return h;
  }
};

double used_mib(Device device) {
  const MemoryInfo info = memory_info(device);
  return double(info.total - info.free) / (1 << 20);
}

// The most that was used, looked at all the time by a thread.
class Peak {
 public:
  explicit Peak(Device device)
      : most_(used_mib(device)), watch_([this, device] {
          const DeviceScope scope(device);
          while (!ends_) {
            most_ = std::max(most_.load(), used_mib(device));
            std::this_thread::sleep_for(std::chrono::microseconds(500));
          }
        }) {}
  ~Peak() {
    ends_ = true;
    watch_.join();
  }
  double mib() const { return most_; }

 private:
  std::atomic<double> most_;
  std::atomic<bool> ends_ = false;
  std::thread watch_;
};

// What NCCL allocates at the first collectives, small and large.
void use_communicator(Communicator& comm) {
  for (const int64_t elements : {int64_t(1) << 20, int64_t(1) << 26})
    comm.all_reduce(zeros({elements}, {Dtype::kFloat32, comm.device()}));
  synchronize(comm.device());
  free_all_blocks(comm.device());
  comm.barrier();
}

class Training {
 public:
  Training(Communicator& comm, Sharding sharding, int64_t layers, int64_t width)
      : comm_(comm),
        title_(message(layers, " x Linear(", width, "), ", parallel::name(sharding))),
        base_(used_mib(comm.device())),
        peak_(comm.device()),
        net_(layers, width),
        optimizer_(
            create_multi_node_optimizer(optimizers::Adam(1e-5), comm, {.sharding = sharding})) {
    optimizer_.setup(net_);
    x_ = random::normal({kBatch, width}, 0, 1, dtype::float32);
    say("setup", "");
  }

  void run() {
    time("eager", [&] { step(); });
    time("two passes that accumulate", [&] { accumulated_step(); });
    optimizer_.zero_grads();
    optimizer_.prepare_for_capture();
    cuda::Graph graph = cuda::Graph::capture(comm_.device(), [&] { step(); });
    time("as a graph", [&] { graph.launch(); });
  }

 private:
  void pass() { F::mean(F::square(net_(Variable(x_)))).backward(); }
  void step() {
    optimizer_.zero_grads();
    pass();
    optimizer_.update();
  }
  void accumulated_step() {
    optimizer_.zero_grads();
    {
      const parallel::NoSync more = optimizer_.accumulate();
      pass();
    }
    pass();
    optimizer_.update();
  }

  void time(const char* what, const std::function<void()>& f) {
    for (int i = 0; i < 2; ++i) f();
    synchronize(comm_.device());
    comm_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < kSteps; ++i) f();
    synchronize(comm_.device());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    say(what, message(bench::format(seconds * 1e3 / kSteps), " ms"));
  }
  void say(const char* what, const std::string& time) const {
    synchronize(comm_.device());
    if (comm_.rank() != 0) return;
    std::printf("| %s | %s | %.0f MiB | %s |\n", title_.c_str(), what, peak_.mib() - base_,
                time.c_str());
    std::fflush(stdout);
  }

  Communicator& comm_;
  const std::string title_;
  const double base_;
  const Peak peak_;
  Net net_;
  MultiNodeOptimizer optimizer_;
  Array x_;
};

int run(int argc, char** argv) {
  const Sharding sharding = testing::sharding_by_name(argc > 1 ? argv[1] : "");
  const int64_t width = argc > 2 ? std::stoll(argv[2]) : 8192;
  const int64_t layers = argc > 3 ? std::stoll(argv[3]) : 16;
  const CommunicatorPtr comm = create_communicator();
  CATENA_CHECK(DeviceError, comm->device().is_cuda(),
               "bench_sharding_memory: expected ranks on GPUs, got ", comm->device());
  const DeviceScope scope(comm->device());
  const double context = used_mib(comm->device());
  use_communicator(*comm);
  if (comm->rank() == 0)
    std::printf(
        "| case | when | most memory: context %.0f and communicator %.0f MiB and | step |\n"
        "|---|---|---|---|\n",
        context, used_mib(comm->device()) - context);
  Training(*comm, sharding, layers, width).run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, run); }
