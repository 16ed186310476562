#include "task.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "common/command_line.h"

namespace task {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

Batch batch_of(int64_t step, int64_t n) {
  catena::RandomState random(static_cast<uint64_t>(step) + 1);
  const auto radius = random.uniform({n}, 0.1, 1.0, {catena::Dtype::kFloat64, catena::cpu(0)});
  const auto noise = random.normal({n}, 0, 0.03, {catena::Dtype::kFloat64, catena::cpu(0)});
  const auto r = radius.to_vector<double>(), e = noise.to_vector<double>();
  std::vector<float> points;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<int32_t>(i % 3);
    const double angle = 5 * r[size_t(i)] + 2.0944 * label + e[size_t(i)];
    points.push_back(static_cast<float>(r[size_t(i)] * std::cos(angle)));
    points.push_back(static_cast<float>(r[size_t(i)] * std::sin(angle)));
    labels.push_back(label);
  }
  return {catena::array(points, {n, 2}, catena::cpu(0)),
          catena::array(labels, {n}, catena::cpu(0))};
}

void fill(pp::Sequence& model) {
  const catena::DeviceScope scope(catena::cpu(0));
  model.add("in", F::Linear(2, 64)).add([](const Variable& h) { return F::relu(h); });
  for (int i = 1; i <= 7; ++i) {
    model.add("l" + std::to_string(i), F::Linear(64, 64));
    if (i % 2 == 0) model.add("bn" + std::to_string(i), F::BatchNormalization(64));
    model.add([](const Variable& h) { return F::relu(h); });
  }
  model.add("dropout", F::Dropout(0.1)).add("out", F::Linear(64, 3));
}

Variable loss(const Variable& y, const Array& t) { return F::softmax_cross_entropy(y, t); }

double accuracy(const Array& y, const Array& t) {
  return F::accuracy(y, t.to(y.device())).item<double>();
}

pp::Schedule schedule_of(const std::string& name, int ranks, int micro_batches) {
  if (name == "gpipe") return pp::gpipe(ranks, micro_batches);
  if (name == "1f1b") return pp::one_forward_one_backward(ranks, micro_batches);
  if (name == "interleaved") return pp::interleaved(ranks, 2, micro_batches);
  if (name == "zero-bubble") return pp::zero_bubble(ranks, micro_batches);
  if (name == "zb-v") return pp::zb_v(ranks, micro_batches);
  catena::fail<catena::ValueError>("schedule '", name,
                                   "': expected gpipe, 1f1b, interleaved, zero-bubble or zb-v");
}

Options parse(int argc, char** argv, const std::string& description, int64_t batch,
              examples::DeviceCount devices) {
  Options o{.run = {.batch = batch}};
  examples::CommandLine line(description);
  line.add_text("schedule", o.schedule, "gpipe, 1f1b, interleaved, zero-bubble or zb-v");
  line.add_count("steps", o.steps, "updates");
  line.add_count("-b,--batchsize", o.run.batch, "points of one update");
  if (devices == examples::DeviceCount::kOne)
    examples::add_device_options(line, o.run);
  else
    examples::add_device_options(line, o.run, devices, "all GPUs, else cpu:0 to cpu:3");
  line.add_whole("--seed", o.run.seed, "of weights and dropout");
  line.parse(argc, argv);
  return o;
}

}  // namespace task
