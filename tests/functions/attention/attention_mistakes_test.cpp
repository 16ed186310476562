// Lengths, offsets and masks that attention refuses.
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::check_attention_documents;
using F::check_attention_lengths;

class AttentionMistakes : public OnDevice {
 protected:
  Array on_device(const std::vector<int64_t>& numbers, Dtype dtype = Dtype::kInt64) const {
    return array(numbers).astype(dtype).to(device());
  }
  // A device that is not that of the operands.
  Device elsewhere() const { return device() == cpu(1) ? cpu(0) : cpu(1); }
  // Of 3 queries and 5 keys.
  void attend(const F::AttentionOptions& options, int64_t batch = 1) const {
    F::scaled_dot_product_attention(draw({batch, 2, 3, 4}), draw({batch, 2, 5, 4}),
                                    draw({batch, 2, 5, 4}), options);
  }
};

TEST_P(AttentionMistakes, OfOffsets) {
  for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64}) {
    const auto error = [&](const std::vector<int64_t>& offsets) {
      return error_of<ValueError>([&] { check_attention_documents(on_device(offsets, dtype), 5); });
    };
    EXPECT_EQ(error({0, 2, 2, 5}), "no error");
    EXPECT_EQ(error({0, 5}), "no error");
    const std::string ends =
        "ScaledDotProductAttention: documents begin at 0 and end with the "
        "axis, of 5 positions; the offsets are from ";
    EXPECT_EQ(error({0, 2, 4}), ends + "0 to 4");
    EXPECT_EQ(error({0, 2, 6}), ends + "0 to 6");
    EXPECT_EQ(error({1, 2, 5}), ends + "1 to 5");
    EXPECT_EQ(error({-1, 2, 5}), ends + "-1 to 5");
    EXPECT_EQ(error({}), ends + "0 to 0");
    EXPECT_EQ(error({0, 3, 2, 5}),
              "ScaledDotProductAttention: offsets of documents do not fall; offset 1 is 3, offset "
              "2 is 2");
    EXPECT_EQ(error({0, 7, 5}),
              "ScaledDotProductAttention: offsets of documents do not fall; offset 1 is 7, offset "
              "2 is 5");
  }
}

TEST_P(AttentionMistakes, OfLengths) {
  const auto error = [&](const std::vector<int64_t>& lengths) {
    return error_of<ValueError>([&] { check_attention_lengths(on_device(lengths), 5); });
  };
  EXPECT_EQ(error({0, 5, 3}), "no error");
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({5, 6}),
            "ScaledDotProductAttention: key_lengths[1] is 6, outside of [0, 5], the keys");
  EXPECT_EQ(error({-1, 6}),
            "ScaledDotProductAttention: key_lengths[0] is -1, outside of [0, 5], the keys");
}

TEST_P(AttentionMistakes, OfFormsOfNumbers) {
  const std::pair<const char*, void (*)(const Array&, int64_t)> checks[] = {
      {"documents", &check_attention_documents}, {"key_lengths", &check_attention_lengths}};
  for (const auto& [name, check] : checks) {
    expect_contains(error_of<ValueError>([&] { check(Array(), 5); }),
                    {name, " is an undefined array"});
    expect_contains(error_of<ShapeError>([&] {
                      check(zeros({1, 2}, {Dtype::kInt32, device()}), 5);
                    }),
                    {"expected ", name, " as a vector, got shape (1, 2)"});
    expect_contains(error_of<DtypeError>([&] {
                      check(on_device({0, 5}, Dtype::kFloat32), 5);
                    }),
                    {"expected ", name, " of int32 or int64, got float32"});
  }
}

// A call looks at what is on the host.
TEST_P(AttentionMistakes, OfCalls) {
  if (!device().is_cpu()) GTEST_SKIP() << "nobody looks at lengths and offsets on a GPU";
  const auto error = [&](const F::AttentionOptions& options) {
    return error_of<ValueError>([&] { attend(options); });
  };
  const Array of_keys = on_device({0, 5});
  expect_contains(error({.documents = on_device({0, 2}), .key_documents = of_keys}),
                  {"documents begin at 0 and end with the axis, of 3 positions", "from 0 to 2"});
  expect_contains(error({.documents = on_device({0, 3}), .key_documents = on_device({0, 4})}),
                  {"key_documents begin at 0 and end with the axis, of 5", "from 0 to 4"});
  expect_contains(error({.documents = on_device({0, 2, 3}), .key_documents = on_device({0, 7, 5})}),
                  {"offsets of key_documents do not fall; offset 1 is 7, offset 2 is 5"});
  expect_contains(error({.documents = on_device({0, 3})}),
                  {"there are 3 queries and 5 keys", "as key_documents"});
  expect_contains(error({.key_documents = of_keys}), {"key_documents without documents"});
  expect_contains(error({.query_start = on_device({0}),
                         .documents = on_device({0, 3}),
                         .key_documents = of_keys}),
                  {"documents and query_start exclude each other"});
  expect_contains(error({.key_lengths = on_device({6})}),
                  {"key_lengths[0] is 6, outside of [0, 5]"});
  expect_contains(error_of<ShapeError>([&] {
                    attend({.documents = on_device({0, 1, 3}), .key_documents = of_keys});
                  }),
                  {"as many of the keys as of the queries, got (3,) and (2,)"});
}

TEST_P(AttentionMistakes, OfDevices) {
  const auto there = [&](const std::vector<int64_t>& numbers) {
    return array(numbers).to(elsewhere());
  };
  const Array here = on_device({0, 3}), of_keys = on_device({0, 5});
  const F::AttentionOptions wrong[] = {
      {.mask = ones({3, 5}, {Dtype::kBool, elsewhere()})},
      {.mask = zeros({3, 5}, {Dtype::kFloat64, elsewhere()})},
      {.bias = zeros({3, 5}, {Dtype::kFloat64, elsewhere()})},
      {.key_lengths = there({5})},
      {.query_start = there({0})},
      {.documents = there({0, 3}), .key_documents = of_keys},
      {.documents = here, .key_documents = there({0, 5})},
  };
  for (const F::AttentionOptions& options : wrong)
    expect_contains(error_of<DeviceError>([&] { attend(options); }),
                    {"ScaledDotProductAttention", device().name(), elsewhere().name()});
}

CATENA_ON_DEVICES(AttentionMistakes);

}  // namespace
}  // namespace catena
