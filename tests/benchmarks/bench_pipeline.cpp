// Pipelines: what the executor costs beside the same micro-batches without stages; where there are
// four GPUs, a stage on each, in one process and over ranks; and what the simulator says of four
// GPUs from times measured on one.
//
//   bench_pipeline [--quick]
//   catena-run -n 4 bench_pipeline --ranks [--quick]
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/autograd/backward.h"
#include "catena/comm/factory.h"
#include "catena/core/config.h"
#include "catena/core/device.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/data_parallel.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/pipeline/simulate.h"
#include "timing.h"

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;
namespace pp = catena::parallel::pipeline;

constexpr int kRanks = 4, kMicroBatches = 16, kLayers = 16;

// kLayers x (Linear, relu), mean squared error against zeros.
struct Workload {
  Device device;
  int64_t width, micro_batch;
  Array x = random::normal({micro_batch * kMicroBatches, width}, 0, 1, Dtype::kFloat32);
  Array t = zeros({micro_batch * kMicroBatches, width}, {Dtype::kFloat32, device});

  void fill(pp::Sequence& model, int layers = kLayers) const {
    for (int i = 0; i < layers; ++i)
      model.add(F::Linear(width, width)).add([](const Variable& h) { return F::relu(h); });
  }
  static Variable loss(const Variable& y, const Array& target) {
    return F::mean_squared_error(y, target);
  }
  int64_t bytes() const { return micro_batch * width * 4; }
};

pp::Cut even_cut(int stages) {
  pp::Cut cut;
  for (int s = 0; s < stages; ++s) cut.first.push_back(s * 2 * kLayers / stages);
  return cut;
}

struct Named {
  const char* name;
  pp::Schedule schedule;
  double goal;  // ms on four GPUs; 0: none
};
std::vector<Named> schedules() {
  return {{"gpipe", pp::gpipe(kRanks, kMicroBatches), 0},
          {"1F1B", pp::one_forward_one_backward(kRanks, kMicroBatches), 23.5},
          {"interleaved", pp::interleaved(kRanks, 2, kMicroBatches), 21.5},
          {"zero bubble", pp::zero_bubble(kRanks, kMicroBatches), 20.0},
          {"ZB-V", pp::zb_v(kRanks, kMicroBatches), 20.0}};
}

// Milliseconds of a step, eager or as a graph.
double step_ms(const Sampling& sampling, Device device, bool graph,
               const std::function<void()>& step) {
  if (!graph) return device_time(sampling, device, step).median * 1e3;
  for (int i = 0; i < 3; ++i) step();
  cuda::Graph captured = cuda::Graph::capture(device, step);
  return device_time(sampling, device, [&] { captured.launch(); }).median * 1e3;
}

// The executor's own cost ------------------------------------------------------------------------

double plain_ms(const Sampling& sampling, const Workload& w, bool graph) {
  pp::Sequence model;
  w.fill(model);
  optimizers::SGD rule(1e-6);
  rule.setup(model);
  if (graph) rule.prepare_for_capture();
  return step_ms(sampling, w.device, graph, [&] {
    rule.zero_grads();
    for (int m = 0; m < kMicroBatches; ++m) {
      const Slice part(m * w.micro_batch, (m + 1) * w.micro_batch);
      parallel::backward(Workload::loss(model(Variable::constant(w.x(part))), w.t(part)),
                         1.0 / kMicroBatches);
    }
    rule.update();
  });
}

double pipeline_ms(const Sampling& sampling, const Workload& w, const pp::Schedule& schedule,
                   bool graph) {
  pp::Sequence model;
  w.fill(model);
  pp::Pipeline pipeline(model, even_cut(schedule.stages()), schedule,
                        std::vector<Device>(kRanks, w.device));
  pipeline.setup([] { return optimizers::SGD(1e-6); });
  if (graph) pipeline.prepare_for_capture();
  return step_ms(sampling, w.device, graph, [&] { pipeline.step(w.x, w.t, Workload::loss); });
}

void run_overhead(const Sampling& sampling, const Workload& w, const char* machine,
                  const char* precision) {
  Table table("Pipelines on one device: all stages there, against no stages", machine);
  for (const bool graph : {false, true}) {
    if (graph && w.device.is_cpu()) continue;
    const double plain = plain_ms(sampling, w, graph);
    for (const Named& one : schedules())
      table.row({.name = std::string(one.name) + (graph ? ", graph" : ", eager"),
                 .precision = precision,
                 .value = pipeline_ms(sampling, w, one.schedule, graph),
                 .unit = "ms",
                 .limit = plain,
                 .limit_name = "the micro-batches without stages",
                 .goal_ratio = 1.03});
  }
}

// A stage on each of four devices -----------------------------------------------------------------

// No schedule is faster than this.
double ideal_ms(const Sampling& sampling, const Workload& w) {
  return plain_ms(sampling, w, false) / kRanks;
}

// Milliseconds of a step whose work is on all devices.
double step_on_all_ms(const Sampling& sampling, const std::vector<Device>& devices,
                      const std::function<void()>& step) {
  const auto wait = [&] {
    for (const Device device : devices) synchronize(device);
  };
  std::vector<double> seconds;
  for (int i = 0; i < sampling.warm_up; ++i) step();
  for (int run = 0; run < sampling.runs; ++run) {
    wait();
    const double start = now();
    for (int i = 0; i < sampling.calls; ++i) step();
    wait();
    seconds.push_back((now() - start) / sampling.calls);
  }
  return summarize(std::move(seconds)).median * 1e3;
}

void measured_row(Table& table, const Named& one, const char* how, double ms, double ideal) {
  Row row{.name = std::string(one.name) + how,
          .precision = "tf32",
          .value = ms,
          .unit = "ms",
          .limit = ideal,
          .limit_name = "a fourth of the micro-batches on one device"};
  if (one.goal > 0) row.goal = one.goal;
  table.row(row);
}

void run_in_process(const Sampling& sampling, const Workload& w, const char* machine) {
  std::vector<Device> devices;
  for (int r = 0; r < kRanks; ++r) devices.push_back(cuda_device(r));
  const double ideal = ideal_ms(sampling, w);
  Table table("Pipelines on four GPUs, in one process", machine);
  for (const Named& one : schedules()) {
    pp::Sequence model;
    w.fill(model);
    pp::Pipeline pipeline(model, even_cut(one.schedule.stages()), one.schedule, devices);
    pipeline.setup([] { return optimizers::SGD(1e-6); });
    const Array t = w.t.to(pipeline.device_of(one.schedule.stages() - 1));
    measured_row(table, one, ", eager",
                 step_on_all_ms(sampling, devices, [&] { pipeline.step(w.x, t, Workload::loss); }),
                 ideal);
  }
}

void run_over_ranks(const Sampling& sampling, const Workload& w, Communicator& comm) {
  const double ideal = ideal_ms(sampling, w);
  std::optional<Table> table;
  if (comm.rank() == 0)
    table.emplace("Pipelines over four ranks", message(comm.name(), ", a GPU each"));
  for (const Named& one : schedules())
    for (const bool graph : {false, true}) {
      pp::Sequence model;
      w.fill(model);
      pp::Pipeline pipeline(model, even_cut(one.schedule.stages()), one.schedule, comm);
      pipeline.setup([] { return optimizers::SGD(1e-6); });
      std::function<void()> step = [&] { pipeline.step(w.x, w.t, Workload::loss); };
      cuda::Graph captured;
      if (graph) {
        for (int i = 0; i < 3; ++i) step();
        pipeline.prepare_for_capture();
        captured = cuda::Graph::capture(w.device, step);
        step = [&] { captured.launch(); };
      }
      comm.barrier();
      const double ms = step_on_all_ms(sampling, {w.device}, step);
      comm.barrier();
      if (table) measured_row(*table, one, graph ? ", graph" : ", eager", ms, ideal);
    }
}

// Predictions ------------------------------------------------------------------------------------

// Seconds of one stage of so many layers, from whole steps that do one thing more each.
pp::StageCosts measure_stage(const Sampling& sampling, const Workload& w, int layers) {
  pp::Sequence model;
  w.fill(model, layers);
  optimizers::SGD rule(1e-6);
  rule.setup(model);
  const Array x = w.x(Slice(0, w.micro_batch)), g = ones_like(x);
  const auto seconds = [&](const std::function<void()>& call) {
    return device_time(sampling, w.device, call).median;
  };
  const auto forward = [&] { return model(Variable(x)); };
  const double f = seconds([&] { static_cast<void>(forward()); });
  rule.zero_grads();
  backward({forward()}, {g});  // later ones add
  const double whole = seconds([&] { backward({forward()}, {g}); });
  const double inputs = seconds([&] {
    DeferredWeights later;
    backward({forward()}, {g}, {.weights_later = &later});
  });
  pp::StageCosts costs;
  costs.forward = f;
  costs.backward = whole - f;
  costs.inputs = inputs - f;
  costs.weights = whole - inputs;
  costs.update = seconds([&] { rule.update(); });
  costs.activations = costs.for_weights = double(w.bytes()) * layers;
  costs.output = double(w.bytes());
  return costs;
}

// Bytes a second between two GPUs, or a guess where there is one.
double bytes_per_second(const Sampling& sampling, const Workload& w, std::string& source) {
  if (w.device.is_cuda() && device_count(DeviceType::kCuda) > 1) {
    const Array x = w.x(Slice(0, w.micro_batch));
    const double seconds =
        device_time(sampling, w.device, [&] { static_cast<void>(x.to(cuda_device(1))); }).median;
    source = "measured";
    return double(w.bytes()) / seconds;
  }
  source = "assumed";
  return 300e9;
}

void run_prediction(const Sampling& sampling, const Workload& w, const char* machine,
                    const char* precision) {
  pp::Costs costs;
  std::string source;
  costs.bytes_per_second = bytes_per_second(sampling, w, source);
  costs.latency = 15e-6;
  const pp::StageCosts whole = measure_stage(sampling, w, kLayers / kRanks),
                       half = measure_stage(sampling, w, kLayers / kRanks / 2);
  std::printf(
      "A stage of %d layers: forward %.3f ms, backward %.3f ms (inputs %.3f, weights %.3f), update "
      "%.3f ms; messages of %.1f MB at %.0f GB/s (%s), 15 us each (assumed).\n",
      kLayers / kRanks, whole.forward * 1e3, whole.backward * 1e3, whole.inputs * 1e3,
      whole.weights * 1e3, whole.update * 1e3, whole.output * 1e-6, costs.bytes_per_second * 1e-9,
      source.c_str());
  Table table("Pipelines on four devices: the simulator's prediction, not measured", machine);
  for (const Named& one : schedules()) {
    const bool two = one.schedule.stages() > kRanks;
    costs.stages = {two ? half : whole};
    const pp::Schedule schedule = pp::with_updates(one.schedule);
    const pp::Simulation result = pp::simulate(schedule, costs, {.steps = 10});
    Row row{.name = std::string(one.name) + ", predicted",
            .precision = precision,
            .value = result.seconds / 10 * 1e3,
            .unit = "ms",
            .limit = result.ideal_seconds() / 10 * 1e3,
            .limit_name = "no rank waits"};
    if (w.device.is_cuda() && one.goal > 0) row.goal = one.goal;
    table.row(row);
  }
}

void run_device(const Sampling& sampling, Device device, int64_t width, int64_t micro_batch,
                const char* machine, const char* precision) {
  const DeviceScope scope(device);
  const Workload w{device, width, micro_batch};
  run_overhead(sampling, w, machine, precision);
  run_prediction(sampling, w, machine, precision);
  if (device.is_cuda() && device_count(DeviceType::kCuda) >= kRanks)
    run_in_process(sampling, w, "four GPUs of one process");
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv,
                            "16 x (Linear, relu) as a pipeline of four ranks, 16 micro-batches.",
                            {{"--cpu", "on the CPU, in float32, with smaller layers"},
                             {"--ranks", "over the four ranks of a job, a GPU each"}});
  config().matmul_precision = Precision::kTf32;
  if (arguments.has("--cpu")) {
    const Sampling sampling{.warm_up = 2, .runs = arguments.quick() ? 3 : 9, .calls = 1};
    run_device(sampling, cpu(), 256, 64, "CPU, width 256, micro-batches of 64", "fp32");
    return 0;
  }
  if (!have_gpu("bench_pipeline")) return 0;
  const Sampling sampling{.warm_up = 3, .runs = arguments.quick() ? 3 : 9, .calls = 5};
  if (arguments.has("--ranks")) {
    const CommunicatorPtr comm = create_communicator();
    const DeviceScope scope(comm->device());
    run_over_ranks(sampling, {comm->device(), 4096, 512}, *comm);
    return 0;
  }
  run_device(sampling, cuda_device(0), 4096, 512, "one GPU, width 4096, micro-batches of 512",
             "tf32");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
