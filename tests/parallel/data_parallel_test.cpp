// Several devices in one process against one device.
#include "catena/parallel/data_parallel.h"

#include "cuda/gpu.h"
#include "parallel/network.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

constexpr int kSteps = 20;

struct Case {
  std::vector<Device> devices;
  Dtype dtype;
  std::string rule;
  int64_t samples;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.devices.size() << "_" << (c.devices[0].is_cpu() ? "cpus" : "gpus") << "_"
            << name(c.dtype) << "_" << c.rule << "_" << c.samples;
}

Values train_alone(const Case& c) {
  Net net(c.dtype);
  net.to(c.devices[0]);
  const auto optimizer = make_rule(c.rule);
  optimizer->setup(net);
  for (int step = 0; step < kSteps; ++step) {
    optimizer->zero_grads();
    loss_of(net, part(batch_of(step, c.samples, c.dtype), 0, c.samples, c.devices[0])).backward();
    optimizer->update();
  }
  return values_of(net);
}

int gpus_of(const Case& c) { return c.devices[0].is_cpu() ? 0 : int(c.devices.size()); }

class DataParallel : public ::testing::TestWithParam<Case> {};

TEST_P(DataParallel, ReplicasEqualOneDevice) {
  const Case c = GetParam();
  CATENA_NEEDS_GPUS(gpus_of(c));
  Net net(c.dtype);
  Replicas<Net> replicas(net, c.devices);
  const auto optimizer = make_rule(c.rule);
  optimizer->setup(net);
  for (int step = 0; step < kSteps; ++step) {
    const Batch all = batch_of(step, c.samples, c.dtype);
    const Arrays x = scatter_batch(all.x, c.devices), t = scatter_batch(all.t, c.devices);
    replicas.zero_grads();
    for (size_t i = 0; i < replicas.size(); ++i) {
      if (t[i].size() == 0) continue;
      backward(loss_of(replicas[i], {x[i], t[i]}), shard_weight(c.samples, replicas.size(), i));
    }
    replicas.accumulate_into(*optimizer);
    optimizer->update();
    replicas.copy_from(*optimizer);
  }
  expect_equal_training(values_of(net), train_alone(c), c.dtype);
  for (size_t i = 1; i < replicas.size(); ++i) {
    EXPECT_EQ(values_of(replicas[i]), values_of(net));
    EXPECT_EQ(replicas[i].device(), c.devices[i]);
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const bool gpus : {false, true}) {
    for (const int n : {2, 3, 4}) {
      std::vector<Device> devices;
      for (int i = 0; i < n; ++i) devices.push_back(gpus ? cuda_device(i) : cpu(i));
      for (const Dtype dtype : {dtype::float32, dtype::float64}) {
        for (const char* rule : {"SGD", "Adam"}) {
          for (const int64_t samples : {12, 7, 2})
            result.push_back({devices, dtype, rule, samples});
        }
      }
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, DataParallel, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

TEST(DataParallelHelpers, ShardsCoverTheBatch) {
  EXPECT_EQ(shard_size(7, 3, 0), 3);
  EXPECT_EQ(shard_size(7, 3, 2), 2);
  EXPECT_EQ(shard_size(1, 3, 1), 0);
  EXPECT_DOUBLE_EQ(shard_weight(7, 3, 0), 3.0 / 7.0);
  EXPECT_THROW(shard_size(7, 3, 3), ValueError);
  const Arrays parts = scatter_batch(arange(7), {cpu(0), cpu(1), cpu(2)});
  EXPECT_EQ(parts[1].to_vector<int64_t>(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(parts[2].device(), cpu(2));
}

TEST(DataParallelHelpers, CopyFromRefusesAnotherModel) {
  Net net(dtype::float32);
  Replicas<Net> replicas(net, {cpu(0), cpu(1)});
  Net other(dtype::float64);
  optimizers::SGD sgd;
  sgd.setup(other);
  EXPECT_THROW(replicas.copy_from(sgd), ValueError);
}

// Of a layer that the second step does not use, where the replica has moved since, and where not.
TEST(DataParallelHelpers, GradientsOfUnusedParametersAreZero) {
  for (const bool moves : {false, true}) {
    Net net(dtype::float32);
    Replicas<Net> replicas(net, {cpu(0), cpu(1)});
    optimizers::SGD sgd(0.1);
    sgd.setup(net);
    for (const bool with_extra : {true, false}) {
      if (moves && !with_extra) replicas[1].to(cpu(2));
      const Device device = replicas[1].device();
      replicas.zero_grads();
      loss_of(replicas[1], part(batch_of(0, 4, dtype::float32), 0, 4, device), with_extra)
          .backward();
      replicas.accumulate_into(sgd);
      EXPECT_EQ(net.extra.b.grad().to_vector<double>()[0] != 0, with_extra);
      EXPECT_NE(net.l1.b.grad().to_vector<double>()[0], 0);
      sgd.zero_grads();
    }
  }
}

}  // namespace
}  // namespace catena::parallel
