// Samples of any shape, and the batches made of them.
#include "catena/datasets/collate.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/datasets/prefetch.h"
#include "catena/testing_markers.h"
#include "error_text.h"

namespace catena::datasets {
namespace {

// Sample i: the numbers i .. 2i as a sequence, and i.
DatasetPtr sequences(int64_t n) {
  std::vector<Arrays> samples;
  for (int64_t i = 0; i < n; ++i)
    samples.push_back({arange(i, 2 * i + 1, 1, dtype::float32), array(int32_t(i))});
  return std::make_shared<ListDataset>(samples);
}

TEST(Collate, StacksSamplesThatAreAlike) {
  const Arrays batch = stack_samples({{ones({2}), array(1)}, {zeros({2}), array(2)}});
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(batch[1].to_vector<int>(), (std::vector<int>{1, 2}));
  expect_contains(error_of<ShapeError>([] {
                    stack_samples({{ones({2})}, {ones({3})}});
                  }),
                  {"array 0 of sample 1", "(3,)", "(2,)", "pad_samples"});
  EXPECT_THROW(stack_samples({{ones({2})}, {ones({2}, dtype::float16)}}), DtypeError);
  EXPECT_THROW(stack_samples({{ones({2})}, {}}), ValueError);
}

TEST(Collate, PadsSamplesThatDiffer) {
  const Arrays batch = pad_samples({.value = -1})(
      {{array({1.f, 2.f}), eye(1)}, {zeros({0}, dtype::float32), eye(2)}});
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[0].dtype(), Dtype::kFloat32);
  EXPECT_EQ(batch[0].to_vector<float>(), (std::vector<float>{1, 2, -1, -1}));
  EXPECT_EQ(batch[1].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(batch[1].to_vector<double>(), (std::vector<double>{1, -1, -1, -1, 1, 0, 0, 1}));
  EXPECT_EQ(batch[2].to_vector<int64_t>(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(pad_samples({.lengths = false})({{array({1.f})}}).size(), 1u);
  EXPECT_THROW(pad_samples()({{ones({2})}, {ones({2, 2})}}), ShapeError);
  const Arrays bytes{ones({2}, Dtype::kUInt8)};
  for (const double value : {-1.5, -1.0, 256.0})
    EXPECT_THROW(pad_samples({.value = value})({bytes, bytes}), ValueError) << value;
}

TEST(ListDataset, ArgumentsAreChecked) {
  EXPECT_THROW(ListDataset({{ones({2})}, {}}), ValueError);
  EXPECT_THROW(ListDataset({{Array()}}), ValueError);
  const DatasetPtr data = sequences(3);
  EXPECT_FALSE(data->has_columns());
  EXPECT_EQ(data->sample(2)[0].to_vector<int>(), (std::vector<int>{2, 3, 4}));
  EXPECT_THROW(data->sample(3), IndexError);
  expect_contains(error_of<ValueError>([&] { data->gather({}, {}); }), {"ask for sample()"});
  expect_contains(
      error_of<ValueError>([&] { ResidentIterator(data, SerialIterator(3, 2), cpu(0)); }),
      {"use PrefetchIterator"});
}

struct Case {
  bool background;
  const char* device;
};

class SampleBatches : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Ways, SampleBatches,
                         ::testing::Values(Case{false, "cpu:0"}, Case{true, "cpu:1"},
                                           Case{true, "cuda:0"}),
                         [](const auto& info) { return "way" + std::to_string(info.index); });

// Each batch is as wide as its longest sequence, also behind narrower ones.
TEST_P(SampleBatches, ArePaddedInOrder) {
  const Device device(GetParam().device);
  CATENA_NEEDS_GPUS(device.is_cuda() ? 1 : 0);
  const DatasetPtr data = sequences(23);
  PrefetchIterator batches(
      data, ShuffledIterator(23, 5, 7), device, {},
      {.background = GetParam().background, .collate = pad_samples({.value = -1})});
  ShuffledIterator order(23, 5, 7);
  for (int i = 0; i < 12; ++i) {
    const auto positions = order.next();
    const auto batch = batches.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->size(), int64_t(positions.size()));
    EXPECT_EQ(batch->x().device(), device);
    const int64_t longest = *std::max_element(positions.begin(), positions.end()) + 1;
    ASSERT_EQ(batch->x().shape(), (Shape{batch->size(), longest}));
    const auto x = batch->x().to_cpu().to_vector<int64_t>();
    const auto lengths = batch->column(2).to_cpu().to_vector<int64_t>();
    for (size_t k = 0; k < positions.size(); ++k) {
      EXPECT_EQ(lengths[k], positions[k] + 1);
      for (int64_t j = 0; j < longest; ++j)
        ASSERT_EQ(x[k * size_t(longest) + size_t(j)], j < lengths[k] ? positions[k] + j : -1);
    }
  }
  const IteratorState state = batches.state();
  const auto next = batches.next()->t().to_cpu().to_vector<int>();
  batches.set_state(state);
  EXPECT_EQ(batches.next()->t().to_cpu().to_vector<int>(), next);
}

// A batch of trees, as one forest: nodes of all samples, and where each begins.
TEST_P(SampleBatches, MayHaveOtherArraysThanTheSamples) {
  const Device device(GetParam().device);
  CATENA_NEEDS_GPUS(device.is_cuda() ? 1 : 0);
  const Collate forest = [](const std::vector<Arrays>& samples) {
    Arrays nodes;
    std::vector<int64_t> begins{0};
    for (const Arrays& sample : samples) {
      nodes.push_back(sample[0]);
      begins.push_back(begins.back() + sample[0].length());
    }
    return Arrays{concatenate(nodes), array(begins)};
  };
  const DatasetPtr data = sequences(7);
  for (const int rank : {0, 1, 2}) {
    PrefetchIterator batches(data, SerialIterator(7, 5), device, {rank, 3},
                             {.background = GetParam().background, .collate = forest});
    const auto first = batches.next(), second = batches.next();
    EXPECT_EQ(first->size(), rank < 2 ? 2 : 1);
    EXPECT_EQ(first->column(1).length(), first->size() + 1);
    EXPECT_EQ(first->x().length(), rank == 0 ? 1 + 2 : rank == 1 ? 3 + 4 : 5);
    EXPECT_EQ(second->size(), rank < 2 ? 1 : 0);
    EXPECT_EQ(second->arrays.size(), rank < 2 ? 2u : 0u);  // no sample, no arrays
    EXPECT_EQ(second->global_count, 2);
    EXPECT_FALSE(batches.next());
  }
}

// Ranks that meet in the model run it on an empty batch.
TEST(SampleBatches, ARankWithoutSamplesGetsArraysWithoutRows) {
  for (const Collate& collate : {Collate(pad_samples({.value = -1})), Collate()}) {
    std::vector<Arrays> alike(5, {ones({2}), array(1)});
    const DatasetPtr data = collate ? sequences(5) : std::make_shared<ListDataset>(alike);
    PrefetchIterator batches(data, SerialIterator(5, 2), cpu(0), {2, 3}, {.collate = collate});
    const auto batch = batches.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->size(), 0);
    EXPECT_EQ(batch->global_count, 2);
    ASSERT_EQ(batch->arrays.size(), collate ? 3u : 2u);
    EXPECT_EQ(batch->x().ndim(), 2);
    for (const Array& array : batch->arrays) EXPECT_EQ(array.length(), 0);
    EXPECT_EQ(batch->x().dtype(), collate ? Dtype::kFloat32 : Dtype::kFloat64);
  }
}

TEST(SampleBatches, ACollateServesColumnsToo) {
  const auto data = std::make_shared<TupleDataset>(Arrays{arange(6).reshape({3, 2})});
  EXPECT_EQ(data->sample(1)[0].to_vector<int>(), (std::vector<int>{2, 3}));
  PrefetchIterator batches(data, SerialIterator(3, 2), cpu(0), {},
                           {.collate = [](const auto& s) { return Arrays{s[0][0]}; }});
  EXPECT_EQ(batches.next()->x().to_vector<int>(), (std::vector<int>{0, 1}));
  PrefetchIterator broken(data, SerialIterator(3, 2), cpu(0), {},
                          {.collate = [](const auto&) { return Arrays{Array()}; }});
  expect_contains(error_of<ValueError>([&] { broken.next(); }), {"array 0", "collate"});
}

}  // namespace
}  // namespace catena::datasets
