// Slices of tensors: what any two have in common, and who writes which.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "error_text.h"
#include "serializers/slice_plan.h"
#include "serializers/slice_reader.h"
#include "serializers/slice_writer.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

// A random box of a tensor, in a random order, of which a random range is there.
class RandomSlices {
 public:
  explicit RandomSlices(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  Shape shape() {
    Shape shape;
    for (int64_t axes = 1 + below(4); axes > 0; --axes) shape.push_back(1 + below(5));
    return shape;
  }
  TensorSlice slice(const Shape& shape) {
    TensorSlice slice{.name = "t", .dtype = Dtype::kInt32, .shape = shape};
    Axes axes;
    for (const int64_t extent : shape) {
      slice.extent.push_back(below(2) == 0 ? extent : 1 + below(extent));
      slice.begin.push_back(below(extent - slice.extent.back() + 1));
      axes.push_back(int64_t(axes.size()));
    }
    std::shuffle(axes.begin(), axes.end(), random_);
    slice.order = MemoryOrder(axes);
    const int64_t count = element_count(slice.extent);
    slice.elements.begin = below(2) == 0 ? 0 : below(count);
    slice.elements.end =
        below(2) == 0 ? count : slice.elements.begin + below(count - slice.elements.begin + 1);
    return slice;
  }

 private:
  std::mt19937_64 random_;
};

// The number of each element of a slice in the whole tensor, in C order.
std::vector<int32_t> numbers_of(const TensorSlice& slice) {
  const Axes axes = slice.order.axes(slice.shape.ndim());
  std::vector<int32_t> numbers;
  for (int64_t k = slice.elements.begin; k < slice.elements.end; ++k) {
    int64_t rest = k;
    std::vector<int64_t> place(slice.shape.size());
    for (size_t a = axes.size(); a-- > 0;) {
      const auto axis = size_t(axes[a]);
      place[axis] = slice.begin[axis] + rest % slice.extent[axis];
      rest /= slice.extent[axis];
    }
    int64_t number = 0;
    for (size_t axis = 0; axis < place.size(); ++axis)
      number = number * slice.shape[axis] + place[axis];
    numbers.push_back(int32_t(number));
  }
  return numbers;
}

TEST(Slices, CommonElementsAreCopiedWhateverBoxesAndOrders) {
  RandomSlices random(7);
  for (int round = 0; round < 5000; ++round) {
    const Shape shape = random.shape();
    const TensorSlice source = random.slice(shape), target = random.slice(shape);
    const std::vector<int32_t> from = numbers_of(source), wanted = numbers_of(target);
    std::vector<int32_t> to(wanted.size(), -1), expected = to;
    int64_t common = 0;
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (std::find(from.begin(), from.end(), wanted[k]) == from.end()) continue;
      expected[k] = wanted[k];
      ++common;
    }
    ASSERT_EQ(copy_common(source, reinterpret_cast<const char*>(from.data()), target,
                          reinterpret_cast<char*>(to.data())),
              common)
        << round;
    ASSERT_EQ(to, expected) << round;
  }
}

TEST(Slices, PackAndUnpack) {
  RandomSlices random(3);
  std::vector<TensorSlice> slices;
  for (int k = 0; k < 100; ++k) {
    slices.push_back(random.slice(random.shape()));
    slices.back().is_equal = k % 2 == 0;
    slices.back().is_value = k % 3 == 0;
  }
  const std::vector<TensorSlice> again = unpack(pack(slices));
  ASSERT_EQ(again.size(), slices.size());
  for (size_t k = 0; k < slices.size(); ++k) {
    EXPECT_EQ(numbers_of(again[k]), numbers_of(slices[k]));
    EXPECT_EQ(again[k].shape, slices[k].shape);
    EXPECT_EQ(again[k].is_equal, slices[k].is_equal);
    EXPECT_EQ(again[k].is_value, slices[k].is_value);
  }
}

TEST(Slices, HashesOfOtherListsDiffer) {
  RandomSlices random(9);
  std::vector<TensorSlice> slices;
  for (int k = 0; k < 20; ++k) slices.push_back(random.slice(random.shape()));
  const uint64_t hash = hash_of(slices);
  EXPECT_EQ(hash_of(unpack(pack(slices))), hash);
  const auto expect_other = [&](auto change) {
    std::vector<TensorSlice> other = slices;
    change(other[7]);
    EXPECT_NE(hash_of(other), hash);
  };
  expect_other([](TensorSlice& slice) { slice.name = "u"; });
  expect_other([](TensorSlice& slice) { slice.dtype = Dtype::kFloat32; });
  expect_other([](TensorSlice& slice) { ++slice.shape[0]; });
  expect_other([](TensorSlice& slice) { ++slice.begin[0]; });
  expect_other([](TensorSlice& slice) { ++slice.extent[0]; });
  expect_other([](TensorSlice& slice) { ++slice.elements.begin; });
  expect_other([](TensorSlice& slice) { ++slice.elements.end; });
  expect_other([](TensorSlice& slice) { slice.is_value = true; });
  expect_other([](TensorSlice& slice) { slice.is_equal = false; });
  const auto hash_of_order = [](const MemoryOrder& order) {
    const TensorSlice slice{.name = "t",
                            .dtype = Dtype::kInt32,
                            .shape = {2, 3},
                            .begin = {0, 0},
                            .extent = {2, 3},
                            .order = order,
                            .elements = {0, 6}};
    return hash_of({slice});
  };
  EXPECT_NE(hash_of_order(MemoryOrder({1, 0})), hash_of_order({}));
}

TensorSlice range_of(const std::string& name, int64_t size, int64_t begin, int64_t end) {
  return {.name = name,
          .dtype = Dtype::kFloat32,
          .shape = {size},
          .begin = {0},
          .extent = {size},
          .order = {},
          .elements = {begin, end}};
}

TEST(SlicePlan, WhatAllHaveIsWrittenOnceInEqualShares) {
  constexpr int64_t kSize = 10'000'000;
  const std::vector<TensorSlice> own = {range_of("large", kSize, 0, kSize),
                                        range_of("a", 100, 0, 100), range_of("b", 100, 0, 100)};
  const auto plan = plan_pieces({own, own, own});
  std::vector<int> written(size_t(kSize), 0);
  std::vector<int64_t> bytes(3);
  int small = 0;
  for (size_t rank = 0; rank < 3; ++rank) {
    for (const Piece& piece : plan[rank]) {
      bytes[rank] += piece.slice.bytes();
      EXPECT_LE(piece.slice.bytes(), kPieceBytes);
      EXPECT_EQ(piece.slice.name, own[piece.part].name);
      small += piece.slice.name != "large";
      if (piece.slice.name == "large")
        for (int64_t k = piece.slice.elements.begin; k < piece.slice.elements.end; ++k)
          ++written[size_t(k)];
    }
  }
  EXPECT_EQ(std::count(written.begin(), written.end(), 1), kSize);
  EXPECT_EQ(small, 2);
  EXPECT_LT(*std::max_element(bytes.begin(), bytes.end()),
            *std::min_element(bytes.begin(), bytes.end()) + 2000);
}

TEST(SlicePlan, WhatMayDifferIsTheFirstRanks) {
  TensorSlice own = range_of("mean", 1'000'000, 0, 1'000'000), busy = own;
  busy.name = "of rank 1";
  own.is_equal = false;
  const auto plan = plan_pieces({{}, {busy, own}, {own}});
  EXPECT_TRUE(plan[0].empty());
  EXPECT_TRUE(std::any_of(plan[1].begin(), plan[1].end(),
                          [](const Piece& piece) { return piece.slice.name == "mean"; }));
  EXPECT_TRUE(plan[2].empty());
}

TEST(SlicePlan, ATensorWithoutElementsIsThere) {
  const auto plan = plan_pieces({{range_of("none", 0, 0, 0)}});
  ASSERT_EQ(plan[0].size(), 1u);
  EXPECT_EQ(plan[0][0].slice.bytes(), 0);
}

TEST(SlicePlan, RefusesWhatDoesNotMakeOneTensor) {
  const auto error = [](std::vector<std::vector<TensorSlice>> slices) {
    return error_of<ValueError>([&] { plan_pieces(slices); });
  };
  expect_contains(error({{range_of("w", 10, 0, 5)}, {range_of("w", 10, 6, 10)}}),
                  {"'w'", "have 9 elements", "expected 10"});
  expect_contains(error({{range_of("w", 10, 0, 6)}, {range_of("w", 10, 5, 10)}}),
                  {"have 11 elements"});
  expect_contains(error({{range_of("w", 10, 0, 10)}, {range_of("w", 12, 0, 12)}}),
                  {"'w' stands for", "(10,)", "(12,)"});
}

TEST(SliceIndex, TextAndBack) {
  SliceIndex index{.step = 5, .id = "abc", .ranks = 2, .entries = {"model", "t"}};
  index.files = {{"rank-00000.slices", 400}, {"rank-00001.slices", 40}};
  index.tensors["model/w"] = {{range_of("model/w", 110, 0, 100), 0, 0, 7},
                              {range_of("model/w", 110, 100, 110), 1, 0, 8}};
  const SliceIndex again = parse_index(to_text(index), "index");
  EXPECT_EQ(again.step, 5);
  EXPECT_EQ(again.entries, index.entries);
  ASSERT_EQ(again.tensors.at("model/w").size(), 2u);
  EXPECT_EQ(again.tensors.at("model/w")[1].slice.elements.begin, 100);
  EXPECT_EQ(again.tensors.at("model/w")[1].crc, 8u);
}

TEST(SliceIndex, RefusesWhatIsOutside) {
  const auto error = [](SliceIndex index) {
    return error_of<IoError>([&] { parse_index(to_text(index), "run/index.json"); });
  };
  SliceIndex index{.entries = {"t"}};
  index.files = {{"f", 400}};
  index.tensors["t"] = {{range_of("t", 100, 0, 100), 0, 0, 7}};
  EXPECT_EQ(error(index), "no error");
  SliceIndex other = index;
  other.tensors["t"][0].offset = 4;
  expect_contains(error(other), {"run/index.json", "'t'", "outside of its file"});
  other = index;
  other.tensors["t"][0].file = 1;
  expect_contains(error(other), {"in no file"});
  other = index;
  other.tensors["t"][0].slice.elements.end = 101;
  expect_contains(error(other), {"a slice of 't' is outside of it"});
  for (const int64_t begin : {50, 51}) {  // of a half
    TensorSlice half = range_of("t", 100, 0, 50);
    half.begin = {begin};
    half.extent = {50};
    other.tensors["t"][0].slice = half;
    EXPECT_EQ(error(other) == "no error", begin == 50);
    if (begin == 51) continue;
    ++other.tensors["t"][0].slice.elements.end;
    expect_contains(error(other), {"a slice of 't' is outside of it"});
  }
  std::string later = to_text(index);
  later.replace(later.find("\"version\": 1"), 12, "\"version\": 2");
  expect_contains(error_of<IoError>([&] { parse_index(later, "index"); }), {"the version is 2"});
  other = index;
  other.files[0].name = ".f";
  expect_contains(error(other), {"the name of a file is '.f'"});
  other = index;
  other.files[0].name = "../f";
  expect_contains(error(other), {"the name of a file is '../f'"});
}

// Where a half is there twice, the other is missing.
TEST(SliceIndex, RefusesElementsThatAreThereTwice) {
  const auto error = [](const std::vector<TensorSlice>& slices) {
    SliceIndex index{.entries = {"t"}};
    index.files = {{"f", 800}};
    for (const TensorSlice& slice : slices) index.tensors["t"].push_back({slice, 0, 0, 7});
    return error_of<IoError>([&] { parse_index(to_text(index), "run/index.json"); });
  };
  EXPECT_EQ(error({range_of("t", 100, 50, 100), range_of("t", 100, 0, 50)}), "no error");
  expect_contains(error({range_of("t", 100, 0, 50), range_of("t", 100, 0, 50)}),
                  {"run/index.json", "two slices of 't' have the same elements"});
  expect_contains(error({range_of("t", 100, 49, 100), range_of("t", 100, 0, 50)}),
                  {"two slices of 't'"});
  const auto box = [](int64_t begin, int64_t extent) {
    return TensorSlice{.name = "t",
                       .shape = {4, 2},
                       .begin = {begin, 0},
                       .extent = {extent, 2},
                       .elements = {0, 2 * extent}};
  };
  EXPECT_EQ(error({box(0, 2), box(2, 2)}), "no error");
  expect_contains(error({box(0, 2), box(1, 2), box(3, 1)}), {"two slices of 't'"});
}

// A small text can ask for much memory.
TEST(SliceIndex, DeepAndLargeTexts) {
  expect_contains(error_of<IoError>([] { parse_index(std::string(1000, '['), "index"); }),
                  {"index: ", "more than 64 containers deep"});
  std::string large = "[";
  for (int i = 0; i < 12'000'000; ++i) large += "0,";
  expect_contains(error_of<IoError>([&] { parse_index(large + "0]", "index"); }),
                  {"more than 512 MiB of memory"});
}

TEST(SliceIndex, NamesHaveNoControlCharacters) {
  require_index_name("l1/W");
  for (const char* const name : {"a\nb", "a\x7f", "\x1b"})
    EXPECT_THROW(require_index_name(name), ValueError) << name;
}

// A checkpoint of 200 bytes: the first half of a tensor.
void write_half(const std::string& folder, uint32_t crc) {
  SliceIndex index{.entries = {"t"}};
  index.files = {{"f", 200}};
  index.tensors["t"] = {{range_of("t", 100, 0, 50), 0, 0, crc}};
  const std::string text = to_text(index);
  char complete[64];
  std::snprintf(complete, sizeof complete, "%zu %08x\n", text.size(),
                crc_of(text.data(), text.size()));
  write_file(folder + "/f", std::string(200, 'x'));
  write_file(folder + "/" + kIndexName, text);
  write_file(folder + "/" + kCompleteName, complete);
}

TEST(SliceReader, FindsWhatIsDamagedAndWhatNobodyHasWritten) {
  const TempFolder folder;
  const uint32_t crc = crc_of(std::string(200, 'x').data(), 200);
  write_half(folder.path(), crc + 1);
  const auto check = [&] { SliceReader(folder.path()).check_pieces(0, 1); };
  expect_contains(error_of<DamageError>(check), {"is damaged: bytes 0 to 200, of 't'"});
  write_half(folder.path(), crc);
  EXPECT_EQ(error_of<DamageError>(check), "no error");
  expect_contains(error_of<DamageError>([&] { SliceReader(folder.path()).read_whole("t"); }),
                  {"has 50 of 100 elements of 't'"});
}

TEST(StagedSlices, EndEarlyWhenCancelled) {
  const TempFolder folder;
  const Array a = zeros({8}, dtype::float32);
  StagedSlices staged;
  staged.copy({part_of("a", a)}, {{0, range_of("a", 8, 0, 8)}});
  for (const bool cancelled : {false, true})
    EXPECT_EQ(staged.write(folder / (cancelled ? "cut" : "whole"), cancelled).size(),
              cancelled ? 0u : 1u);
}

TEST(TensorPart, IsFlatWhateverTheStrides) {
  const Array a = arange(12, dtype::float64).reshape({3, 4});
  EXPECT_EQ(part_of("a", a(Slice(), Slice(none, none, 2))).flat().to_vector<double>(),
            (std::vector<double>{0, 2, 4, 6, 8, 10}));
}

// Whatever a byte becomes: an error, or an index that was checked.
TEST(SliceIndex, DamagedTextEndsInAnError) {
  SliceIndex index{.step = 5, .id = "abc", .ranks = 1, .entries = {"t"}};
  index.files = {{"f", 400}};
  index.tensors["t"] = {{range_of("t", 100, 0, 100), 0, 0, 7}};
  const std::string text = to_text(index);
  int errors = 0;
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (int k = 0; k < 1 + round % 3; ++k)
      damaged[random() % damaged.size()] = char(random() % 256);
    if (round % 5 == 0) damaged.resize(random() % damaged.size());
    try {
      parse_index(damaged, "index");
    } catch (const IoError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace catena::serializers
