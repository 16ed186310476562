// Parts of data sets, several as one, and changed samples.
#include "catena/datasets/views.h"

#include <gtest/gtest.h>

#include <set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/datasets/prefetch.h"
#include "error_text.h"

namespace catena::datasets {
namespace {

// Column 0: i and i + 0.5, column 1: i.
DatasetPtr rows(int64_t begin, int64_t end) {
  const Array t = arange(begin, end, 1, dtype::int32);
  const Array x = t.astype(dtype::float32).reshape({-1, 1}) + array({0.f, 0.5f});
  return std::make_shared<TupleDataset>(Arrays{x, t});
}
DatasetPtr sequences(int64_t begin, int64_t end) {
  std::vector<Arrays> samples;
  for (int64_t i = begin; i < end; ++i) samples.push_back({full({i + 1}, i)});
  return std::make_shared<ListDataset>(samples);
}

std::vector<int> labels(const DatasetPtr& data) { return data->all()[1].to_vector<int>(); }

TEST(Subset, HasThesePositions) {
  const DatasetPtr part = subset(rows(0, 10), {7, 2, 7});
  EXPECT_EQ(part->size(), 3);
  EXPECT_EQ(labels(part), (std::vector<int>{7, 2, 7}));
  EXPECT_EQ(part->all()[0].to_vector<float>(), (std::vector<float>{7, 7.5, 2, 2.5, 7, 7.5}));
  EXPECT_EQ(part->sample(1)[1].item<int>(), 2);
  EXPECT_EQ(subset(sequences(0, 5), {3})->sample(0)[0].size(), 4);
  EXPECT_THROW(subset(rows(0, 10), {10}), IndexError);
  EXPECT_THROW(subset(rows(0, 10), {-1}), IndexError);
  EXPECT_THROW(subset(nullptr, {}), ValueError);
  EXPECT_THROW(part->sample(3), IndexError);
}

TEST(RandomSplit, EachSampleIsInOnePart) {
  const DatasetPtr data = rows(0, 10);
  for (const std::vector<double>& parts :
       std::vector<std::vector<double>>{{0.8, 0.2}, {8, 2}, {0.75, 0.05, 0.2}}) {
    std::multiset<int> seen;
    int64_t size = 0;
    for (const DatasetPtr& part : random_split(data, parts, 3)) {
      size += part->size();
      for (const int label : labels(part)) seen.insert(label);
    }
    EXPECT_EQ(size, 10);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(seen.count(i), 1u);
  }
  const auto first = [&](uint64_t seed) { return labels(random_split(data, {5, 5}, seed)[0]); };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
  EXPECT_EQ(random_split(data, {0.8, 0.2}, 1)[1]->size(), 2);
  expect_contains(error_of<ValueError>([&] {
                    random_split(data, {0.8, 0.3}, 1);
                  }),
                  {"add up to 1.1", "10 samples"});
  EXPECT_THROW(random_split(data, {11, -1}, 1), ValueError);
}

TEST(Concat, IsOneAfterTheOther) {
  const DatasetPtr data = concat({rows(0, 3), rows(10, 10), rows(20, 25)});
  EXPECT_EQ(data->size(), 8);
  EXPECT_EQ(labels(data), (std::vector<int>{0, 1, 2, 20, 21, 22, 23, 24}));
  EXPECT_EQ(data->sample(3)[1].item<int>(), 20);
  ResidentIterator batches(data, ShuffledIterator(8, 8, 1), cpu(0));
  const auto batch = batches.next();
  const auto x = batch->x().to_vector<float>();
  const auto t = batch->t().to_vector<int>();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(x[2 * i + 1], float(t[i]) + 0.5f);
  EXPECT_EQ(concat({sequences(0, 2), sequences(5, 7)})->sample(2)[0].size(), 6);
  const auto other = std::make_shared<TupleDataset>(Arrays{ones({2, 3}), ones({2})});
  for (const DatasetPtr& wrong : {DatasetPtr(other), sequences(0, 2)})
    expect_contains(error_of<ValueError>([&] {
                      concat({rows(0, 2), wrong});
                    }),
                    {"data set 1", "other columns"});
  EXPECT_THROW(concat({}), ValueError);
  EXPECT_THROW(concat({rows(0, 2), nullptr}), ValueError);
}

TEST(Map, ChangesEachSample) {
  const DatasetPtr data = map(rows(0, 5), [](const Arrays& sample) {
    return Arrays{sample[0] * 2, sample[1], sample[1] + 1};
  });
  EXPECT_EQ(data->sample(2)[0].to_vector<float>(), (std::vector<float>{4, 5}));
  PrefetchIterator batches(data, SerialIterator(5, 3), cpu(0), {}, {.background = true});
  const auto batch = batches.next();
  EXPECT_EQ(batch->arrays.size(), 3u);
  EXPECT_EQ(batch->column(2).to_vector<int>(), (std::vector<int>{1, 2, 3}));
  EXPECT_THROW(map(rows(0, 2), {}), ValueError);
  EXPECT_THROW(map(nullptr, [](const Arrays& s) { return s; }), ValueError);
}

}  // namespace
}  // namespace catena::datasets
