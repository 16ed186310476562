// PackedSequences: the order of rows, padding that nobody reads, gradients, and what is refused.
#include "catena/functions/connection/packed_sequences.h"

#include <limits>

#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/numeric.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Lengths = std::vector<int64_t>;

class PackedSequencesTest : public OnDevice {
 protected:
  // Element (t, k) of padded sequences is 10 t + k, behind an end NaN.
  Array padded(int64_t steps, const std::vector<int32_t>& lengths, bool batch_first = false) const {
    const auto n = int64_t(lengths.size());
    std::vector<double> values;
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t k = 0; k < n; ++k)
        values.push_back(t < lengths[size_t(k)] ? double(10 * t + k)
                                                : std::numeric_limits<double>::quiet_NaN());
    const Array x = array(values, {steps, n, 1});
    return (batch_first ? x.transpose({1, 0, 2}).copy() : x).to(device());
  }
  Array lengths_of(const std::vector<int32_t>& lengths) const { return array(lengths); }
};

std::vector<double> values(const Variable& v) { return v.data().to_vector<double>(); }

TEST_P(PackedSequencesTest, HaveTheirRowsStepByStepTheLongestFirst) {
  struct Case {
    std::vector<int32_t> lengths;
    int64_t steps;
    std::vector<double> rows, reversed;
    Lengths counts;
  };
  for (const Case& c : {
           Case{{2, 3, 1}, 3, {1, 0, 2, 11, 10, 21}, {21, 10, 2, 11, 0, 1}, {3, 2, 1}},
           Case{{2, 2}, 2, {0, 1, 10, 11}, {10, 11, 0, 1}, {2, 2}},
           Case{{2, 2}, 4, {0, 1, 10, 11}, {10, 11, 0, 1}, {2, 2}},  // no sequence is so long
           Case{{1}, 3, {0}, {0}, {1}},
           Case{{1, 1, 4}, 4, {2, 0, 1, 12, 22, 32}, {32, 0, 1, 22, 12, 2}, {3, 1, 1, 1}},
       }) {
    for (const bool batch_first : {false, true}) {
      SCOPED_TRACE(message("first length ", c.lengths[0], batch_first ? ", batch first" : ""));
      const Array x = padded(c.steps, c.lengths, batch_first);
      const F::PackedSequences xs(x, lengths_of(c.lengths), batch_first);
      EXPECT_EQ(values(xs.rows()), c.rows);
      EXPECT_EQ(xs.counts(), c.counts);
      EXPECT_EQ(xs.lengths(), Lengths(c.lengths.begin(), c.lengths.end()));
      EXPECT_EQ(xs.longest(), int64_t(c.counts.size()));
      EXPECT_EQ(xs.equally_long(), c.counts.back() == xs.size());
      EXPECT_EQ(values(xs.reversed().rows()), c.reversed);
      EXPECT_EQ(values(xs.reversed().reversed().rows()), c.rows);
      EXPECT_EQ(testing::difference(xs.padded().data(), nan_to_num(x)), "");
      const Variables list = xs.sequences();
      ASSERT_EQ(list.size(), c.lengths.size());
      for (size_t k = 0; k < list.size(); ++k)
        for (int64_t t = 0; t < c.lengths[k]; ++t)
          EXPECT_EQ(list[k].data()(t, 0).item<double>(), double(10 * t + int64_t(k)));
      const F::PackedSequences again(list);
      EXPECT_EQ(values(again.rows()), c.rows);
      EXPECT_EQ(again.padded().shape(), (Shape{xs.longest(), xs.size(), 1}));
    }
  }
}

TEST_P(PackedSequencesTest, TakeStatesIntoTheirOrderAndBack) {
  const F::PackedSequences xs(padded(3, {2, 3, 1, 3}), lengths_of({2, 3, 1, 3}));
  const Array h = draw({2, 4, 3});
  const Variable sorted = xs.longest_first(h);
  const int64_t order[] = {1, 3, 0, 2};  // of equal lengths the first one comes first
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(testing::difference(sorted.data()(Slice(), i), h(Slice(), order[i])), "") << i;
  EXPECT_EQ(testing::difference(xs.as_given(sorted).data(), h), "");
}

// Numbers behind an end, NaN too, are in no result, and get a gradient of 0.
TEST_P(PackedSequencesTest, NeverReadPadding) {
  const Variable x(padded(3, {2, 3, 1}));
  const F::PackedSequences xs(x, lengths_of({2, 3, 1}));
  const Variable y = xs.reversed().padded();
  y.set_grad(full(y.shape(), std::numeric_limits<double>::quiet_NaN(), {dtype::float64, device()}));
  Array gy = ones(y.shape(), {dtype::float64, device()});
  // A gradient behind an end of the result belongs to nobody.
  gy = where(isnan(x.data()), std::numeric_limits<double>::quiet_NaN(), gy);
  y.set_grad(gy);
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), where(isnan(x.data()), 0.0, 1.0)), "");
}

TEST_P(PackedSequencesTest, HaveGradientsOfBothOrders) {
  const Array lengths = lengths_of({2, 4, 1});
  const auto through = [&](const Variables& v) {
    const F::PackedSequences xs(F::square(v[0]), lengths, true);
    const F::PackedSequences ys = xs.with_rows(xs.rows() * xs.reversed().rows());
    Variables results = ys.sequences();
    results.push_back(ys.padded());
    results.push_back(xs.as_given(F::square(xs.longest_first(v[1]))));
    return results;
  };
  expect_gradients(through, {draw({3, 4, 2}), draw({2, 3, 2}, -1, 1, 1)});
  const auto of_list = [](const Variables& v) {
    return Variables{F::square(F::PackedSequences(v).rows())};
  };
  expect_gradients(of_list, {draw({1, 2}), draw({3, 2}, -1, 1, 1)});
}

TEST_P(PackedSequencesTest, TakeIntegersAndAnyLayout) {
  const Array ids = array({{3, 1, 4}, {1, 5, 9}}).to(device());  // (n, steps)
  const F::PackedSequences xs(ids.T(), array({1, 3}, {dtype::int64}).to(device()));
  EXPECT_EQ(xs.rows().data().to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 5, 9}));
  EXPECT_EQ(xs.padded().data().to_vector<int64_t>(), (std::vector<int64_t>{3, 1, 0, 5, 0, 9}));
}

TEST_P(PackedSequencesTest, RefuseWrongLengths) {
  const Array x = draw({3, 2, 1});
  const auto refused = [&]<class Exception>(const Array& lengths, Exception*) {
    return error_of<Exception>([&] { F::PackedSequences(x, lengths); });
  };
  constexpr ValueError* kValue = nullptr;
  EXPECT_EQ(refused(array({3, 0}), kValue),
            "PackedSequences: length 0 of sequence 1 is outside [1, 3]; leave sequences without "
            "steps out of the batch");
  EXPECT_EQ(refused(array({4, 1}), kValue),
            "PackedSequences: length 4 of sequence 0 is outside [1, 3]");
  EXPECT_EQ(refused(array({1, -1}), kValue),
            "PackedSequences: length -1 of sequence 1 is outside [1, 3]");
  EXPECT_EQ(refused(Array(), kValue), "PackedSequences: lengths is an undefined array");
  EXPECT_EQ(refused(array({2.0, 1.0}), static_cast<DtypeError*>(nullptr)),
            "PackedSequences: expected lengths of int32 or int64, got float64");
  for (const Array& wrong : {array({1, 2, 3}), array({{1, 2}})})
    EXPECT_EQ(
        refused(wrong, static_cast<ShapeError*>(nullptr)),
        message("PackedSequences: expected a length for each of 2 sequences, (2,), got lengths "
                "of shape ",
                wrong.shape(), "; x has shape (3, 2, 1)"));
}

TEST_P(PackedSequencesTest, RefuseWrongSequences) {
  EXPECT_EQ(error_of<ShapeError>([&] { F::PackedSequences xs(draw({3})); }),
            "PackedSequences: expected x as (steps, n, ...), at least one sequence of at least one "
            "step, got shape (3,)");
  EXPECT_THROW(F::PackedSequences xs(draw({0, 2, 1})), ShapeError);
  EXPECT_THROW(F::PackedSequences xs(draw({2, 0, 1}), {}, true), ShapeError);
  EXPECT_EQ(error_of<DtypeError>([&] {
              F::PackedSequences xs(draw({3, 2}) < 0);
            }),
            "PackedSequences: expected numbers, got bool");
  EXPECT_EQ(error_of<ValueError>([&] { F::PackedSequences xs((Variables())); }),
            "PackedSequences: expected at least one sequence");
  EXPECT_EQ(error_of<ValueError>([&] {
              F::PackedSequences xs(Variables{Variable(draw({2, 3})), Variable(draw({0, 3}))});
            }),
            "PackedSequences: expected sequences as (length, ...) of at least one step, got shape "
            "(0, 3) as sequence 1; leave sequences without steps out of the batch");
  EXPECT_THROW(F::PackedSequences xs(Variables{Variable(draw({2, 3})), Variable(draw({2, 4}))}),
               InvalidType);
  const F::PackedSequences xs(draw({3, 2, 1}), lengths_of({3, 1}));
  EXPECT_EQ(error_of<ShapeError>([&] {
              xs.with_rows(draw({6, 1}));
            }),
            "PackedSequences: the sequences have 4 steps together, so many rows are expected; got "
            "shape (6, 1)");
  EXPECT_EQ(
      error_of<ShapeError>([&] {
        xs.longest_first(draw({1, 3, 2}));
      }),
      "PackedSequences: expected states of 2 sequences, (layers, 2, out), got shape (1, 3, 2)");
}

TEST_P(PackedSequencesTest, RefuseOtherDevices) {
  const Device other = device().is_cpu() ? cpu(3) : cpu();
  const F::PackedSequences xs(draw({3, 2, 1}), lengths_of({3, 1}));
  EXPECT_EQ(
      error_of<DeviceError>([&] {
        xs.with_rows(draw({4, 1}).to(other));
      }),
      message("PackedSequences: the sequences are on ", device(), ", the rows are on ", other));
  EXPECT_THROW(xs.as_given(draw({1, 2, 1}).to(other)), DeviceError);
}

CATENA_ON_DEVICES(PackedSequencesTest);

TEST(PackedSequencesOnGpu, TakeLengthsOfTheirDeviceOrTheCpu) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Array x = random_array({3, 2, 1}, -1, 1, Dtype::kFloat32, gpu), lengths = array({1, 3});
  const F::PackedSequences a(x, lengths), b(x, lengths.to(gpu));
  EXPECT_EQ(testing::difference(a.rows().data(), b.rows().data()), "");
  EXPECT_EQ(
      error_of<DeviceError>([&] { F::PackedSequences xs(x.to_cpu(), lengths.to(gpu)); }),
      "PackedSequences: the lengths are on cuda:0, x is on cpu:0; give lengths that are on the "
      "CPU or beside x");
}

TEST(PackedSequencesOnGpu, AreMadeBeforeACapture) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const Array x = random_array({4, 3, 5}, -1, 1, Dtype::kFloat32, gpu), lengths = array({1, 4, 2});
  const F::PackedSequences xs(x, lengths);
  F::NStepLSTM lstm(1, 5, 6), eager = lstm;
  const auto step = [&](F::NStepLSTM& l) {
    l.zero_grads();
    F::sum(F::square(l(xs).ys.padded())).backward();
  };
  step(lstm);
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] { step(lstm); });
  graph.launch();
  step(eager);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NO_THROW(assert_allclose(lstm.gradients()[i], eager.gradients()[i], 1e-5, 1e-5));
  expect_contains(error_of<Error>([&] {
                    cuda::Graph::capture(gpu, [&] { F::PackedSequences inside(x, lengths); });
                  }),
                  {"PackedSequences: the host orders the sequences"});
}

}  // namespace
}  // namespace catena
