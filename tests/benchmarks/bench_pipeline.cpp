// Pipelines: what the executor costs beside the same micro-batches without stages; where there are
// four GPUs, a stage on each, in one process and over ranks; and what the simulator says of four
// GPUs from times measured on one.
//
//   bench_pipeline [--quick] [--four] [--schedules=NAME,NAME] [--placed] [--timeline=PREFIX]
//   catena-run -n 4 bench_pipeline --ranks [--quick] [...]
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catena/catena.h"
#include "timing.h"

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;
namespace pp = catena::parallel::pipeline;

constexpr int kRanks = 4, kMicroBatches = 16, kLayers = 16, kTimelineSteps = 2;

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
  std::string name;
  pp::Schedule schedule;
  double goal;  // ms on four GPUs; 0: none
};

// What is to be run, and how.
struct Choice {
  std::string only;  // names with commas between them; empty: all
  std::optional<pp::Costs> whole,
      half;                    // messages are placed for these, of a stage, of half of one
  std::string timeline;        // prefix of files
  bool receives_wait = false;  // PipelineOptions::receives_wait

  bool takes(const std::string& name) const {
    return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
  }
};

// Schedules for measured times have what they were measured on as their costs.
std::vector<Named> schedules(const Choice& choice) {
  const int group = 2 * kRanks;
  std::vector<Named> all{
      {"gpipe", pp::gpipe(kRanks, kMicroBatches), 0},
      {"1F1B", pp::one_forward_one_backward(kRanks, kMicroBatches), 23.5},
      {"1F1B-ahead", pp::one_forward_one_backward(kRanks, kMicroBatches, 2), 23.5},
      {"interleaved", pp::interleaved(kRanks, 2, kMicroBatches), 21.5},
      {"interleaved-8", pp::interleaved(kRanks, 2, kMicroBatches, group), 21.5},
      {"zero-bubble", pp::zero_bubble(kRanks, kMicroBatches), 20.0},
      {"ZB-V", pp::zb_v(kRanks, kMicroBatches), 20.0}};
  if (choice.whole) {
    for (Named& one : all)
      one.schedule = pp::with_messages(
          one.schedule, one.schedule.stages() > kRanks ? *choice.half : *choice.whole);
    all.push_back({"zero-bubble-costs",
                   pp::zero_bubble(pp::stages_in_order(kRanks), kMicroBatches, *choice.whole),
                   20.0});
    all.push_back({"ZB-V-costs",
                   pp::zero_bubble(pp::stages_in_v(kRanks), kMicroBatches, *choice.half), 20.0});
  }
  std::erase_if(all, [&](const Named& one) { return !choice.takes(one.name); });
  return all;
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

void run_overhead(const Sampling& sampling, const Workload& w, const Choice& choice,
                  const char* machine, const char* precision) {
  Table table("Pipelines on one device: all stages there, against no stages", machine);
  for (const bool graph : {false, true}) {
    if (graph && w.device.is_cpu()) continue;
    const double plain = plain_ms(sampling, w, graph);
    for (const Named& one : schedules(choice))
      table.row({.name = one.name + (graph ? ", graph" : ", eager"),
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

// Milliseconds of a step whose work is on all devices; those until the host has issued it.
struct StepTime {
  double step = 0, host = 0;
};
StepTime step_on_all_ms(const Sampling& sampling, const std::vector<Device>& devices,
                        const std::function<void()>& step) {
  const auto wait = [&] {
    for (const Device device : devices) synchronize(device);
  };
  std::vector<double> seconds, issued;
  for (int i = 0; i < sampling.warm_up; ++i) step();
  for (int run = 0; run < sampling.runs; ++run) {
    wait();
    double start = now();
    step();
    issued.push_back(now() - start);
    wait();
    start = now();
    for (int i = 0; i < sampling.calls; ++i) step();
    wait();
    seconds.push_back((now() - start) / sampling.calls);
  }
  return {summarize(std::move(seconds)).median * 1e3, summarize(std::move(issued)).median * 1e3};
}

// The measured timeline: where the time of each rank goes, on the screen, and a drawing in a file.
void write_timeline(const Choice& choice, const std::string& name, const pp::Simulation& timeline) {
  const std::string path = choice.timeline + "-" + name + ".svg";
  pp::save_svg(timeline, path);
  std::printf("%s: %d steps in %.3f ms; drawing in %s\n%s", timeline.name.c_str(), kTimelineSteps,
              timeline.seconds * 1e3, path.c_str(), pp::describe_times(timeline).c_str());
}

void measured_row(Table& table, const Named& one, const char* how, StepTime time, double ideal,
                  Device device) {
  char host[64];
  std::snprintf(host, sizeof host, " (issued in %.1f ms)", time.host);
  Row row{.name = one.name + how + host,
          .precision = device.is_cuda() ? "tf32" : "fp32",
          .value = time.step,
          .unit = "ms",
          .limit = ideal,
          .limit_name = "a fourth of the micro-batches on one device"};
  if (device.is_cuda() && one.goal > 0) row.goal = one.goal;
  table.row(row);
}

void run_in_process(const Sampling& sampling, const Workload& w, const Choice& choice,
                    const char* machine) {
  std::vector<Device> devices;
  for (int r = 0; r < kRanks; ++r) devices.push_back(w.device.is_cuda() ? cuda_device(r) : cpu(r));
  const double ideal = ideal_ms(sampling, w);
  Table table("Pipelines on four devices, in one process", machine);
  for (const Named& one : schedules(choice)) {
    pp::Sequence model;
    w.fill(model);
    pp::Pipeline pipeline(model, even_cut(one.schedule.stages()), one.schedule, devices);
    pipeline.setup([] { return optimizers::SGD(1e-6); });
    const Array t = w.t.to(pipeline.device_of(one.schedule.stages() - 1));
    measured_row(table, one, ", eager",
                 step_on_all_ms(sampling, devices, [&] { pipeline.step(w.x, t, Workload::loss); }),
                 ideal, w.device);
    if (!choice.timeline.empty())
      write_timeline(choice, one.name, pipeline.measure(w.x, t, Workload::loss, kTimelineSteps));
  }
}

void run_over_ranks(const Sampling& sampling, const Workload& w, const Choice& choice,
                    Communicator& comm) {
  const double ideal = ideal_ms(sampling, w);
  std::optional<Table> table;
  if (comm.rank() == 0)
    table.emplace("Pipelines over four ranks", message(comm.name(), ", a GPU each"));
  for (const Named& one : schedules(choice))
    for (const bool graph : {false, true}) {
      if (graph && w.device.is_cpu()) continue;
      pp::Sequence model;
      w.fill(model);
      pp::Pipeline pipeline(model, even_cut(one.schedule.stages()), one.schedule, comm,
                            {.receives_wait = choice.receives_wait});
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
      const StepTime time = step_on_all_ms(sampling, {w.device}, step);
      comm.barrier();
      if (table) measured_row(*table, one, graph ? ", graph" : ", eager", time, ideal, w.device);
      if (graph || choice.timeline.empty()) continue;
      const pp::Simulation timeline = pipeline.measure(w.x, w.t, Workload::loss, kTimelineSteps);
      if (table) write_timeline(choice, "ranks-" + one.name, timeline);
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

// Of a stage, or of half of one, with messages as they are measured or assumed.
pp::Costs measure_costs(const Sampling& sampling, const Workload& w, int layers,
                        std::string& source) {
  pp::Costs costs;
  costs.bytes_per_second = bytes_per_second(sampling, w, source);
  costs.latency = 15e-6;
  costs.stages = {measure_stage(sampling, w, layers)};
  return costs;
}

void place_for_costs(const Sampling& sampling, const Workload& w, Choice& choice) {
  std::string source;
  choice.whole = measure_costs(sampling, w, kLayers / kRanks, source);
  choice.half = measure_costs(sampling, w, kLayers / kRanks / 2, source);
}

void run_prediction(const Sampling& sampling, const Workload& w, const Choice& choice,
                    const char* machine, const char* precision) {
  std::string source;
  pp::Costs costs = measure_costs(sampling, w, kLayers / kRanks, source);
  const pp::StageCosts whole = costs.stages[0],
                       half = measure_stage(sampling, w, kLayers / kRanks / 2);
  std::printf(
      "A stage of %d layers: forward %.3f ms, backward %.3f ms (inputs %.3f, weights %.3f), update "
      "%.3f ms; messages of %.1f MB at %.0f GB/s (%s), 15 us each (assumed).\n",
      kLayers / kRanks, whole.forward * 1e3, whole.backward * 1e3, whole.inputs * 1e3,
      whole.weights * 1e3, whole.update * 1e3, whole.output * 1e-6, costs.bytes_per_second * 1e-9,
      source.c_str());
  Table table("Pipelines on four devices: the simulator's prediction, not measured", machine);
  for (const Named& one : schedules(choice)) {
    const bool two = one.schedule.stages() > kRanks;
    costs.stages = {two ? half : whole};
    const pp::Schedule schedule = pp::with_updates(one.schedule);
    const pp::Simulation result = pp::simulate(schedule, costs, {.steps = 10});
    Row row{.name = one.name + ", predicted",
            .precision = precision,
            .value = result.seconds / 10 * 1e3,
            .unit = "ms",
            .limit = result.ideal_seconds() / 10 * 1e3,
            .limit_name = "no rank waits"};
    if (w.device.is_cuda() && one.goal > 0) row.goal = one.goal;
    table.row(row);
  }
}

// Ranks must have one schedule: that for the costs which the first one measures, alone.
void place_for_first_rank(const Sampling& sampling, const Workload& w, Communicator& comm,
                          Choice& choice) {
  choice.whole = choice.half = pp::Costs{};
  if (comm.rank() == 0) place_for_costs(sampling, w, choice);
  for (std::optional<pp::Costs>* costs : {&choice.whole, &choice.half}) {
    (*costs)->stages[0] = comm.broadcast_object((*costs)->stages[0]);
    (*costs)->bytes_per_second = comm.broadcast_object((*costs)->bytes_per_second);
    (*costs)->latency = comm.broadcast_object((*costs)->latency);
  }
}

struct Machine {
  const char* name;
  const char* precision;
  int64_t width, micro_batch;
};

void run_device(const Sampling& sampling, Device device, const Machine& machine,
                const Arguments& arguments, Choice& choice) {
  const DeviceScope scope(device);
  const Workload w{device, machine.width, machine.micro_batch};
  if (arguments.has("--placed")) place_for_costs(sampling, w, choice);
  if (!arguments.has("--four")) {
    run_overhead(sampling, w, choice, machine.name, machine.precision);
    run_prediction(sampling, w, choice, machine.name, machine.precision);
  }
  if (device.is_cpu() ? arguments.has("--four") : device_count(DeviceType::kCuda) >= kRanks)
    run_in_process(sampling, w, choice,
                   device.is_cpu() ? machine.name : "four GPUs of one process");
}

void run_job(const Sampling& sampling, const Machine& machine, const Arguments& arguments,
             Choice& choice) {
  const CommunicatorPtr comm = create_communicator();
  const DeviceScope scope(comm->device());
  const Workload w{comm->device(), machine.width, machine.micro_batch};
  if (arguments.has("--placed")) place_for_first_rank(sampling, w, *comm, choice);
  run_over_ranks(sampling, w, choice, *comm);
}

int body(int argc, char** argv) {
  const Arguments arguments(
      argc, argv, "16 x (Linear, relu) as a pipeline of four ranks, 16 micro-batches.",
      {{"--cpu", "on the CPU, in float32, with smaller layers"},
       {"--ranks", "over the four ranks of a job, a GPU each"},
       {"--four", "only the stages on four devices of this process"},
       {"--schedules=", "only these, with commas between them: 1F1B,interleaved-8,ZB-V"},
       {"--placed", "messages placed for measured costs, and schedules made for them as well"},
       {"--receives-wait", "over ranks: receives begin at their places in the lists"},
       {"--timeline=", "measures two steps and writes PREFIX-NAME.svg"}});
  Choice choice{.only = arguments.value("--schedules="),
                .timeline = arguments.value("--timeline="),
                .receives_wait = arguments.has("--receives-wait")};
  config().matmul_precision = Precision::kTf32;
  const bool cpu_only = arguments.has("--cpu");
  if (!cpu_only && !have_gpu("bench_pipeline")) return 0;
  const Machine machine =
      cpu_only ? Machine{"CPU, width 256, micro-batches of 64", "fp32", 256, 64}
               : Machine{"one GPU, width 4096, micro-batches of 512", "tf32", 4096, 512};
  const int runs = arguments.quick() ? 3 : 9;
  const Sampling sampling = cpu_only ? Sampling{.warm_up = 2, .runs = runs, .calls = 1}
                                     : Sampling{.warm_up = 3, .runs = runs, .calls = 5};
  if (arguments.has("--ranks"))
    run_job(sampling, machine, arguments, choice);
  else
    run_device(sampling, cpu_only ? cpu() : cuda_device(0), machine, arguments, choice);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
