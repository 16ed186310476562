// A pipeline over the devices of this process: all GPUs, or four CPU devices.
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/core/backend.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/pipeline/drawing.h"
#include "catena/parallel/pipeline/simulate.h"
#include "task.h"

namespace pp = catena::parallel::pipeline;

namespace {

std::vector<catena::Device> devices_for(const task::Options& options) {
  std::vector<catena::Device> devices = examples::devices_of(options.run);
  if (!devices.empty()) return devices;
  const int gpus = catena::device_count(catena::DeviceType::kCuda);
  for (int i = 0; i < (gpus > 0 ? gpus : 4); ++i)
    devices.push_back(gpus > 0 ? catena::cuda_device(i) : catena::cpu(i));
  return devices;
}

int body(int argc, char** argv) {
  const task::Options options =
      task::parse(argc, argv, "Trains a network whose stages are on the devices of this process.",
                  256, examples::DeviceCount::kSeveral);
  const std::vector<catena::Device> devices = devices_for(options);
  const pp::Schedule schedule =
      task::schedule_of(options.schedule, static_cast<int>(devices.size()), 8);
  std::printf("%s\n", pp::draw_text(pp::simulate(schedule)).c_str());

  catena::random::seed(options.run.seed);
  pp::Sequence model;
  task::fill(model);
  const task::Batch sample = task::batch_of(0, 32);
  const pp::Cut cut = pp::partition(model, schedule.stages(), sample.x);
  std::printf("%s\n", cut.text.c_str());

  pp::Pipeline pipeline(model, cut, schedule, devices);
  pipeline.setup([] { return catena::optimizers::Adam(0.003); });
  for (int64_t i = 0; i < options.steps; ++i) {
    const task::Batch batch = task::batch_of(i, options.run.batch);
    pipeline.step(batch.x, batch.t, task::loss);
    if (i % 100 == 0)
      std::printf("step %3lld  loss %.4f\n", static_cast<long long>(i), pipeline.loss());
  }
  const task::Batch test = task::batch_of(1000000, 999);
  std::printf("test accuracy %.4f\n", task::accuracy(pipeline.predict(test.x)[0], test.t));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
