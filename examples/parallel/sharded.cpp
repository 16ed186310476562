// Data-parallel training whose states, gradients and parameters are spread over the ranks of a job.
#include <array>
#include <cstdio>
#include <string>

#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/comm/run_main.h"
#include "catena/functions/activation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/parallel/data_parallel.h"
#include "task.h"

namespace F = catena::functions;
using catena::parallel::Sharding;

namespace {

struct Net : catena::FunctionSet {
  F::Linear l1{2, 256}, l2{256, 256}, l3{256, 256}, l4{256, 256}, l5{256, 256}, l6{256, 3};
  CATENA_FUNCTIONS(l1, l2, l3, l4, l5, l6)
  catena::Variable operator()(const catena::Variable& x) {
    const catena::Variable h = F::relu(l3(F::relu(l2(F::relu(l1(x))))));
    return l6(F::relu(l5(F::relu(l4(h)))));
  }
};

struct Options {
  std::string sharding = "parameters";
  int64_t steps = 300;
  bool low = false;
  examples::RunOptions run{.batch = 256};
};

Sharding sharding_of(const std::string& wanted) {
  for (const Sharding one :
       {Sharding::kNone, Sharding::kStates, Sharding::kGradients, Sharding::kParameters})
    if (wanted == name(one)) return one;
  catena::fail<catena::ValueError>("sharding '", wanted,
                                   "': expected none, states, gradients or parameters");
}

Options parse(int argc, char** argv) {
  Options o;
  examples::CommandLine line("Trains one network on all ranks, which keep parts of its arrays.");
  line.add_text("sharding", o.sharding, "none, states, gradients or parameters");
  line.add_count("steps", o.steps, "updates");
  line.add_count("-b,--batchsize", o.run.batch, "points of one update, over all ranks");
  line.add_flag("--bf16-gradients", o.low, "gradients travel in bfloat16");
  examples::add_device_options(line, o.run);
  line.add_whole("--seed", o.run.seed, "of weights");
  line.parse(argc, argv);
  return o;
}

// This rank's share of a batch, on its device.
task::Batch share_of(const task::Batch& batch, catena::Communicator& comm) {
  const auto ranks = static_cast<size_t>(comm.size()), rank = static_cast<size_t>(comm.rank());
  int64_t begin = 0;
  for (size_t r = 0; r < rank; ++r)
    begin += catena::parallel::shard_size(batch.t.length(), ranks, r);
  const catena::Slice own(begin,
                          begin + catena::parallel::shard_size(batch.t.length(), ranks, rank));
  return {batch.x(own).to(comm.device()), batch.t(own).to(comm.device())};
}

int64_t bytes_of(const catena::Optimizer& optimizer) {
  int64_t bytes = 0;
  for (const auto& arena : optimizer.layout().arenas()) bytes += arena.bytes();
  return bytes;
}

int body(int argc, char** argv) {
  const Options options = parse(argc, argv);
  catena::parallel::BucketOptions buckets{.sharding = sharding_of(options.sharding)};
  if (options.low) buckets.reduce_dtype = catena::dtype::bfloat16;
  const catena::CommunicatorPtr comm = examples::make_communicator(options.run);
  const bool speaks = comm->rank() == 0;
  const catena::DeviceScope scope(comm->device());

  catena::random::seed(options.run.seed);
  Net net;
  net.to(comm->device());
  auto optimizer =
      catena::create_multi_node_optimizer(catena::optimizers::Adam(0.001), comm, buckets);
  optimizer->add_hook("clip", catena::optimizers::gradient_clipping(5));
  optimizer.setup(net);

  for (int64_t i = 0; i < options.steps; ++i) {
    const task::Batch batch = share_of(task::batch_of(i, options.run.batch), *comm);
    optimizer.set_batch_weight(batch.t.length(), options.run.batch);
    optimizer.zero_grads();
    const catena::Variable loss = F::softmax_cross_entropy(net(batch.x), batch.t);
    loss.backward();
    optimizer.update();
    if (i % 100 > 0) continue;
    const double weight = double(batch.t.length()) / double(options.run.batch);
    const double mean = comm->all_reduce_value(weight * loss.item<double>());
    if (speaks) std::printf("step %3lld  loss %.4f\n", static_cast<long long>(i), mean);
  }
  if (speaks)
    std::printf("%s: %lld KiB a rank between steps\n", options.sharding.c_str(),
                static_cast<long long>(bytes_of(optimizer.actual_optimizer()) / 1024));

  // Functions gather what they use: all ranks test alike, or gather_parameters() comes first.
  const task::Batch test = task::batch_of(1000000, 999);
  const catena::NoBackprop unrecorded;
  const catena::Variable y = net(test.x.to(comm->device()));
  if (speaks) std::printf("test accuracy %.4f\n", task::accuracy(y.data(), test.t));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
