// Batches arrive complete, in order and on the right device, whoever makes them.
#include "catena/datasets/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "catena/array/creation.h"
#include "catena/testing_markers.h"

#include "error_text.h"

namespace catena::datasets {
namespace {

// x: (n, 3) with row i = (i, i + 0.25, i + 0.5); t: i.
DatasetPtr numbered(int64_t n) {
  std::vector<float> x;
  std::vector<int32_t> t;
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < 3; ++k) x.push_back(float(i) + 0.25f * float(k));
    t.push_back(int32_t(i));
  }
  return std::make_shared<TupleDataset>(
      std::vector<Array>{array(x, {n, 3}, cpu(0)), array(t, {n}, cpu(0))});
}

enum class How { kNow, kThread, kResident };

struct Case {
  How how;
  const char* device;
};
void PrintTo(const Case& c, std::ostream* os) { *os << int(c.how) << " on " << c.device; }

class BatchTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    device_ = Device(GetParam().device);
    CATENA_NEEDS_GPUS(device_.is_cuda() ? 1 : 0);
  }
  std::unique_ptr<BatchIterator> make(DatasetPtr data, PositionIterator order, RankOf who = {}) {
    if (GetParam().how == How::kResident) {
      return std::make_unique<ResidentIterator>(data, std::move(order), device_, who);
    }
    PrefetchOptions options;
    options.background = GetParam().how == How::kThread;
    return std::make_unique<PrefetchIterator>(data, std::move(order), device_, who, options);
  }
  Device device_;
};
std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const char* how[] = {"now", "thread", "resident"};
  std::string name = std::string(how[int(info.param.how)]) + "_" + info.param.device;
  name[name.find(':')] = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Batches, BatchTest,
                         ::testing::Values(Case{How::kNow, "cpu:0"}, Case{How::kNow, "cpu:1"},
                                           Case{How::kThread, "cpu:0"},
                                           Case{How::kThread, "cuda:0"},
                                           Case{How::kResident, "cpu:1"},
                                           Case{How::kResident, "cuda:0"}),
                         case_name);

void expect_batch(const Batch& batch, std::span<const int64_t> positions, Device device) {
  EXPECT_EQ(batch.x().device(), device);
  EXPECT_EQ(batch.size(), int64_t(positions.size()));
  const auto x = batch.x().to_vector<float>();
  const auto t = batch.t().to_vector<int32_t>();
  for (size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(t[i], positions[i]);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(x[3 * i + k], float(positions[i]) + 0.25f * float(k));
  }
}

TEST(BatchColumns, MissingOnesAreNamed) {
  Batch batch;
  batch.arrays = {arange(3)};
  EXPECT_EQ(batch.size(), 3);
  EXPECT_EQ(batch.x().size(), 3);
  expect_contains(error_of<IndexError>([&] { batch.t(); }),
                  {"Batch: column 1", "t(), the labels", "1 column"});
  expect_contains(error_of<IndexError>([&] { batch.column(2); }), {"Batch: column 2", "1 column"});
  EXPECT_THROW(Batch().size(), IndexError);
  EXPECT_THROW(Batch().x(), IndexError);
}

TEST_P(BatchTest, EqualsTheOrderForSeveralEpochs) {
  const auto batches = make(numbered(23), ShuffledIterator(23, 5, 7));
  ShuffledIterator order(23, 5, 7);
  EXPECT_EQ(batches->batches_per_epoch(), 5);
  for (int i = 0; i < 17; ++i) {
    const auto positions = order.next();
    const auto batch = batches->next();
    ASSERT_TRUE(batch);
    expect_batch(*batch, positions, device_);
    EXPECT_EQ(batch->global_count, int64_t(positions.size()));
    EXPECT_EQ(batch->weight, 1);
    EXPECT_EQ(batches->epoch(), order.epoch());
    EXPECT_EQ(batches->is_new_epoch(), order.is_new_epoch());
    EXPECT_EQ(batches->epoch_detail(), order.epoch_detail());
  }
}

TEST_P(BatchTest, EndsWithoutRepeat) {
  const auto batches = make(numbered(7), SerialIterator(7, 3));
  for (const int64_t first : {0, 3, 6}) {
    const auto batch = batches->next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->t().to_vector<int32_t>().front(), first);
  }
  EXPECT_TRUE(batches->is_new_epoch());
  EXPECT_FALSE(batches->next());
  EXPECT_FALSE(batches->next());
}

TEST_P(BatchTest, DropsALastBatchThatIsNotFull) {
  const IteratorOptions options{.drop_last = true};
  for (const int rank : {0, 1}) {
    const auto it = make(numbered(11), ShuffledIterator(11, 4, 3, options), {rank, 2});
    PositionIterator order = ShuffledIterator(11, 4, 3, options);
    EXPECT_EQ(it->batches_per_epoch(), 2);
    for (int i = 0; i < 6; ++i) {
      const auto positions = order.next();
      const auto batch = it->next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->size(), 2);
      EXPECT_EQ(batch->global_count, 4);
      EXPECT_EQ(batch->t().to_vector<int32_t>()[0], positions[size_t(2 * rank)]) << i;
      EXPECT_EQ(it->is_new_epoch(), i % 2 == 1);
      EXPECT_EQ(it->epoch(), (i + 1) / 2);
    }
  }
}

TEST_P(BatchTest, KeptBatchesAreNotOverwritten) {
  const auto batches = make(numbered(40), ShuffledIterator(40, 4, 1));
  ShuffledIterator order(40, 4, 1);
  std::vector<Batch> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(*batches->next());
  for (const Batch& batch : kept) expect_batch(batch, order.next(), device_);
}

TEST_P(BatchTest, ResumesAnywhere) {
  for (int before = 0; before < 9; ++before) {
    const auto first = make(numbered(11), ShuffledIterator(11, 3, 5));
    const auto second = make(numbered(11), ShuffledIterator(11, 3, 77));
    second->next();
    for (int i = 0; i < before; ++i) first->next();
    second->set_state(first->state());
    EXPECT_EQ(second->epoch_detail(), first->epoch_detail());
    for (int i = 0; i < 6; ++i) {
      const auto a = first->next(), b = second->next();
      EXPECT_EQ(a->t().to_vector<int32_t>(), b->t().to_vector<int32_t>());
      EXPECT_EQ(first->is_new_epoch(), second->is_new_epoch());
    }
  }
}

TEST_P(BatchTest, RanksGetTheirParts) {
  constexpr int kRanks = 4;
  std::vector<std::unique_ptr<BatchIterator>> parts;
  for (int r = 0; r < kRanks; ++r)
    parts.push_back(make(numbered(10), ShuffledIterator(10, 7, 2), {r, kRanks}));
  ShuffledIterator order(10, 7, 2);
  for (int i = 0; i < 4; ++i) {  // batches of 7 and 3: in the latter one rank has nothing
    const auto global = order.next();
    std::vector<int32_t> joined;
    for (auto& part : parts) {
      const auto batch = part->next();
      EXPECT_EQ(batch->global_count, int64_t(global.size()));
      EXPECT_EQ(batch->weight, double(batch->size()) / double(global.size()));
      EXPECT_EQ(batch->x().shape(), (Shape{batch->size(), 3}));
      const auto t = batch->t().to_vector<int32_t>();
      joined.insert(joined.end(), t.begin(), t.end());
    }
    EXPECT_TRUE(std::equal(joined.begin(), joined.end(), global.begin(), global.end()));
  }
}

TEST_P(BatchTest, GoesAwayAtAnyTime) {
  for (int taken = 0; taken < 4; ++taken) {
    const DatasetPtr data = numbered(100);
    {
      const auto batches = make(data, ShuffledIterator(100, 10, 3));
      for (int i = 0; i < taken; ++i) batches->next();
    }
    EXPECT_EQ(data.use_count(), 1) << "nobody reads it any more";
  }
}

// Fails on one call of gather.
class FailingDataset final : public Dataset {
 public:
  explicit FailingDataset(int failing_call)
      : Dataset(20, {{Dtype::kInt32, Shape{}}}), failing_call_(failing_call) {}
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override {
    if (++calls_ == failing_call_) throw IoError("sample cannot be read");
    for (size_t i = 0; i < positions.size(); ++i) out[0].data<int32_t>()[i] = int32_t(positions[i]);
  }

 private:
  int failing_call_;
  mutable std::atomic<int> calls_{0};
};

TEST_P(BatchTest, ErrorsOfTheDataSetComeOutOfNext) {
  if (GetParam().how == How::kResident) return;  // gathers everything at once, in its constructor
  const auto batches = make(std::make_shared<FailingDataset>(3), SerialIterator(20, 5));
  EXPECT_EQ(batches->next()->arrays[0].to_vector<int32_t>()[0], 0);
  EXPECT_EQ(batches->next()->arrays[0].to_vector<int32_t>()[0], 5);
  EXPECT_THROW(batches->next(), IoError);
  EXPECT_EQ(batches->position(), 10);
  EXPECT_EQ(batches->next()->arrays[0].to_vector<int32_t>()[0], 10);  // tried again
  EXPECT_EQ(batches->position(), 15);
}

// The place in one text.
std::string place_of(const BatchIterator& batches) {
  const BatchPlace place = batches.place();
  return message(place.after.size, " ", place.batch, " ", place.after.seed, " ", place.after.epoch,
                 " ", place.after.position);
}

TEST(BatchIterators, KnowTheirPlace) {
  const auto make = [](int64_t size, int64_t batch, uint64_t seed) {
    return std::make_unique<ResidentIterator>(numbered(size), ShuffledIterator(size, batch, seed),
                                              cpu(0));
  };
  const auto a = make(20, 5, 1), same = make(20, 5, 1);
  EXPECT_EQ(place_of(*a), place_of(*same));
  a->next();
  EXPECT_NE(place_of(*a), place_of(*same));
  same->next();
  EXPECT_EQ(place_of(*a), place_of(*same));
  for (int i = 0; i < 4; ++i) a->next();  // the same position, an epoch later
  EXPECT_NE(place_of(*a), place_of(*same));
  for (const auto& other : {make(21, 5, 1), make(20, 4, 1), make(20, 5, 2)})
    EXPECT_NE(place_of(*other), place_of(*make(20, 5, 1)));
  PrefetchIterator prefetched(numbered(20), ShuffledIterator(20, 5, 1), cpu(0), {0, 2});
  EXPECT_EQ(place_of(prefetched), place_of(*make(20, 5, 1)));
  EXPECT_TRUE(prefetched.repeats());
  EXPECT_EQ(prefetched.batch_size(), 5);
}

TEST(PrefetchIterator, ArgumentsAreChecked) {
  EXPECT_THROW(PrefetchIterator(numbered(5), SerialIterator(6, 2), cpu(0)), ValueError);
  EXPECT_THROW(PrefetchIterator(nullptr, SerialIterator(6, 2), cpu(0)), ValueError);
  EXPECT_THROW(PrefetchIterator(numbered(5), SerialIterator(5, 2), cpu(0), {}, {.depth = 1}),
               ValueError);
  EXPECT_THROW(PrefetchIterator(numbered(5), SerialIterator(5, 2), cpu(0), {2, 2}), ValueError);
  EXPECT_THROW(ResidentIterator(numbered(5), SerialIterator(5, 2), cpu(0), {0, 0}), ValueError);
}

TEST(ResidentIterator, TellsTheOrderOfAnEpoch) {
  const ResidentIterator serial(numbered(5), SerialIterator(5, 2, true), cpu(1));
  EXPECT_EQ(serial.order_of(3).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(serial.repeats());
  ResidentIterator shuffled(numbered(5), ShuffledIterator(5, 5, 1), cpu(1));
  const auto order = shuffled.order_of(0).to_vector<int64_t>();
  expect_batch(*shuffled.next(), order, cpu(1));
}

TEST(ResidentIterator, SkipsAsIfBatchesWereHandedOut) {
  ResidentIterator skips(numbered(7), ShuffledIterator(7, 3, 1), cpu(0)),
      takes(numbered(7), ShuffledIterator(7, 3, 1), cpu(0));
  for (int i = 0; i < 8; ++i) {
    skips.skip();
    takes.next();
    EXPECT_EQ(skips.position(), takes.position());
    EXPECT_EQ(skips.epoch(), takes.epoch());
    EXPECT_EQ(skips.is_new_epoch(), takes.is_new_epoch());
  }
  EXPECT_EQ(skips.next()->t().to_vector<int32_t>(), takes.next()->t().to_vector<int32_t>());
}

TEST(Dataset, OutputsAreChecked) {
  const DatasetPtr data = numbered(5);
  const int64_t positions[] = {0, 5};
  EXPECT_THROW(data->batch(positions), IndexError);
  const std::span<const int64_t> one(positions, 1);
  const auto out = [](Shape x, Dtype t) {
    return std::vector<Array>{Array::uninitialized(x, Dtype::kFloat32, cpu(0)),
                              Array::uninitialized({1}, t, cpu(0))};
  };
  EXPECT_NO_THROW(data->gather(one, out({1, 3}, Dtype::kInt32)));
  EXPECT_THROW(data->gather(one, out({2, 3}, Dtype::kInt32)), ShapeError);
  EXPECT_THROW(data->gather(one, out({1, 3}, Dtype::kInt64)), DtypeError);
  EXPECT_THROW(data->gather(one, {}), ShapeError);
  EXPECT_THROW(TupleDataset({}), ValueError);
  expect_contains(error_of<ValueError>([] {
                    TupleDataset({array({1.f}), Array()});
                  }),
                  {"TupleDataset: array 1 of 2 is undefined"});
  expect_contains(error_of<ValueError>([] {
                    TupleDataset({Array(), array({1.f})});
                  }),
                  {"TupleDataset: array 0 of 2 is undefined"});
  EXPECT_THROW(TupleDataset({array(1.f)}), ShapeError);
  struct Negative final : Dataset {
    Negative() : Dataset(-8, {}) {}
    void gather(std::span<const int64_t>, std::span<const Array>) const override {}
  };
  expect_contains(error_of<ValueError>([] { Negative(); }), {"Dataset: the size is -8"});
  EXPECT_THROW(TupleDataset({array({1.f, 2.f}), array({1.f})}), ShapeError);
}

}  // namespace
}  // namespace catena::datasets
