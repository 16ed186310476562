// Files read where they lie, archives read by piece, raw files.
#include <gtest/gtest.h>

#include <filesystem>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "temp_folder.h"

namespace catena {
namespace {

class MappedTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "a.npy"; }
  TempFolder folder_;
};

// np.save into an open file several times: np.load of the name reads the first array.
TEST_F(MappedTest, WhatStandsBehindAnArrayIsLeftAlone) {
  const Array a = arange(6).reshape({2, 3});
  const std::string two = dumps(a.T()) + dumps(ones({2})) + "x";
  write_file(path(), two);
  for (const Array& read : {load(path()), load(path(), MmapMode::kRead), loads(two)}) {
    EXPECT_EQ(read.shape(), (Shape{3, 2}));
    EXPECT_EQ(read.to_vector<double>(), a.T().to_vector<double>());
  }
  write_file(path(), dumps(a).substr(0, dumps(a).size() - 1));
  expect_contains(error_of<IoError>([&] { load(path()); }), {"needs 48 bytes", "47 follow"});
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }), {"47 follow"});
}

TEST_F(MappedTest, LoadOfAnArchiveSaysHowToReadIt) {
  save_npz(path(), {{"x", arange(3)}});
  expect_contains(error_of<IoError>([&] { load(path()); }), {"a.npy", "zip archive", "load_npz"});
}

TEST_F(MappedTest, EveryDtypeAndLayout) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const Array a = arange(12).astype(static_cast<Dtype>(i)).reshape({3, 4});
    for (const Array& view : {a, a.T(), a(Slice(0, 0)), a(1, 2)}) {
      save(path(), view);
      const Array mapped = load(path(), MmapMode::kRead);
      EXPECT_EQ(mapped.dtype(), view.dtype());
      EXPECT_EQ(mapped.shape(), view.shape());
      EXPECT_EQ(mapped.to_vector<double>(), view.to_vector<double>());
      EXPECT_EQ(mapped.device(), cpu(0));
    }
  }
}

TEST_F(MappedTest, ReadOnlyRefusesWrites) {
  save(path(), arange(6));
  const Array a = load(path(), MmapMode::kRead);
  expect_contains(error_of<ValueError>([&] { a(Slice(0, 3)).fill(1); }), {"fill", "read-only"});
  EXPECT_THROW(a.assign(zeros({6})), ValueError);
  EXPECT_THROW(multiply(a, 2, a), ValueError);
  EXPECT_EQ((a + 1)[5].item<int>(), 6);
}

TEST_F(MappedTest, CopyOnWriteStaysInMemory) {
  save(path(), arange(6));
  const std::string before = read_file(path());
  const Array a = load(path(), MmapMode::kCopyOnWrite);
  a *= 10;
  EXPECT_EQ(a[5].item<int>(), 50);
  EXPECT_EQ(read_file(path()), before);
}

TEST_F(MappedTest, ReadWriteGoesToTheFile) {
  save(path(), arange(6).reshape({2, 3}));
  {
    const Array row = load(path(), MmapMode::kReadWrite)[1];  // the view keeps the mapping
    row.fill(7);
  }
  EXPECT_EQ(load(path()).to_vector<int>(), (std::vector<int>{0, 1, 2, 7, 7, 7}));
}

// Replacing a file leaves the mapping of the old one.
TEST_F(MappedTest, AFileMayBeReplacedAndRemoved) {
  save(path(), arange(1000));
  const Array a = load(path(), MmapMode::kRead);
  save(path(), zeros({3}));
  std::filesystem::remove(path());
  EXPECT_EQ(a[999].item<int>(), 999);
}

TEST_F(MappedTest, FilesThatCannotBeMapped) {
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }),
                  {"a.npy", "No such file"});
  expect_contains(error_of<IoError>([&] { load(folder_.path(), MmapMode::kRead); }),
                  {"regular file"});
  write_file(path(), "");
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }),
                  {"found only 0 bytes"});
  save(path(), arange(6));
  const std::string whole = read_file(path());
  write_file(path(), whole.substr(0, whole.size() - 1));
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }),
                  {"needs 48 bytes at offset 128", "47 follow"});
  std::string swapped = whole;
  swapped[swapped.find("<i8")] = '>';
  write_file(path(), swapped);
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }),
                  {"big-endian", "without a mapping"});
  std::string shifted = whole;
  shifted.erase(shifted.find('\n') - 1, 1);  // one blank less
  shifted[8] = static_cast<char>(shifted[8] - 1);
  write_file(path(), shifted);
  EXPECT_EQ(load(path())[5].item<int>(), 5);
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }), {"offset 127"});
  save(path(), ones({3}, dtype::bool_));
  std::string odd = read_file(path());
  odd.back() = 2;
  write_file(path(), odd);
  expect_contains(error_of<IoError>([&] { load(path(), MmapMode::kRead); }), {"offset 130 is 2"});
}

TEST_F(MappedTest, DumpsAndLoads) {
  const Array a = arange(6, dtype::int16).reshape({2, 3}).T();
  const std::string bytes = dumps(a);
  save(path(), a);
  EXPECT_EQ(bytes, read_file(path()));
  EXPECT_EQ(loads(bytes).to_vector<int>(), a.to_vector<int>());
  EXPECT_EQ(loads(bytes, cpu(2)).device(), cpu(2));
  expect_contains(error_of<IoError>([&] { loads(std::string_view(bytes).substr(0, 20)); }),
                  {"loads"});
}

TEST_F(MappedTest, NpzFileReadsWhatIsAskedFor) {
  const std::string path = folder_ / "a.npz";
  save_npz(path, {{"z", arange(3)}, {"a/b", ones({2, 2})}});
  NpzFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"z", "a/b"}));
  EXPECT_EQ(file.size(), 2u);
  EXPECT_TRUE(file.contains("z"));
  EXPECT_FALSE(file.contains("z.npy"));
  EXPECT_EQ(file["z"].to_vector<int>(), (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(file["z"].shares_memory_with(file["z"]));
  expect_contains(error_of<IndexError>([&] { file["y"]; }), {"a.npz", "'y'", "z, a/b"});
  EXPECT_EQ(NpzFile(path, cpu(1))["a/b"].device(), cpu(1));
  // Damage of one member is found when it is read.
  std::string bytes = read_file(path);
  bytes[bytes.find("NUMPY") + 130] ^= 1;
  write_file(path, bytes);
  const NpzFile damaged(path);
  EXPECT_EQ(damaged["a/b"].size(), 4);
  expect_contains(error_of<IoError>([&] { damaged["z"]; }), {"'z.npy'", "checksum"});
  NpzFile moved = std::move(file);
  EXPECT_EQ(moved.size(), 2u);
  moved.close();
  EXPECT_THROW(moved.names(), ValueError);
  EXPECT_THROW(moved["z"], ValueError);
  moved.close();
}

TEST_F(MappedTest, RawFiles) {
  const std::string path = folder_ / "raw";
  const Array a = arange(6, dtype::int32).reshape({2, 3});
  tofile(path, a.T());
  EXPECT_EQ(std::filesystem::file_size(path), 24u);
  EXPECT_EQ(fromfile(path, {.dtype = dtype::int32}).to_vector<int>(), a.T().to_vector<int>());
  EXPECT_EQ(fromfile(path, {.dtype = dtype::int32, .count = 2, .offset = 4}).to_vector<int>(),
            (std::vector<int>{3, 1}));
  expect_contains(error_of<IoError>([&] { fromfile(path, {.dtype = dtype::int32, .offset = 2}); }),
                  {"22 bytes at offset 2", "int32"});
  expect_contains(error_of<IoError>([&] { fromfile(path, {.dtype = dtype::int32, .count = 7}); }),
                  {"7 elements of int32", "24 bytes are left"});
  EXPECT_THROW(fromfile(path, {.offset = 25}), IoError);
  EXPECT_THROW(fromfile(path, {.count = -2}), ValueError);
  EXPECT_EQ(fromfile(path, {.dtype = dtype::int8, .count = 0}).size(), 0);
}

TEST_F(MappedTest, TextOfRawFiles) {
  const std::string path = folder_ / "text";
  const Array a = array({0.1, -2., 1e-7, 1. / 3});
  tofile(path, a, ", ");
  EXPECT_EQ(read_file(path), "0.1, -2.0, 1e-07, 0.3333333333333333");
  EXPECT_EQ(fromfile(path, {.separator = ","}).to_vector<double>(), a.to_vector<double>());
  write_file(path, " 1\n2\t 3 ");
  EXPECT_EQ(fromfile(path, {.dtype = dtype::uint8, .separator = " "}).to_vector<int>(),
            (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(fromfile(path, {.count = 2, .separator = " "}).size(), 2);
  expect_contains(error_of<IoError>([&] { fromfile(path, {.count = 4, .separator = " "}); }),
                  {"after 3 numbers", "expected 4"});
  expect_contains(error_of<IoError>([&] { fromfile(path, {.separator = ";"}); }),
                  {"separator ';'", "offset 3"});
  write_file(path, "1;x;3");
  expect_contains(error_of<IoError>([&] { fromfile(path, {.separator = ";"}); }),
                  {"offset 2", "is not a valid float64"});
  EXPECT_THROW(tofile(path, a, ",", "%d %d"), ValueError);
}

}  // namespace
}  // namespace catena
