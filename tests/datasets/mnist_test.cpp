// idx files: what they hold, and a clear error for every way in which they can be wrong.
#include "catena/datasets/mnist.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "environment_scope.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::datasets {
namespace {

std::string idx(int code, const std::vector<int64_t>& shape, const std::string& data) {
  std::string file{'\0', '\0', static_cast<char>(code), static_cast<char>(shape.size())};
  for (const int64_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift & 0xff);
  }
  return file + data;
}

void write_gzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

class MnistTest : public ::testing::Test {
 protected:
  // A data set of 2 x 3 pixels: 4 training and 2 test images.
  void write_all() {
    std::string pixels;
    for (int i = 0; i < 24; ++i) pixels += static_cast<char>(i * 10);
    write_file(folder_ / "train-images-idx3-ubyte", idx(8, {4, 2, 3}, pixels));
    write_gzip(folder_ / "train-labels-idx1-ubyte.gz", idx(8, {4}, std::string("\3\0\1\2", 4)));
    write_gzip(folder_ / "t10k-images-idx3-ubyte.gz", idx(8, {2, 2, 3}, pixels.substr(0, 12)));
    write_file(folder_ / "t10k-labels-idx1-ubyte", idx(8, {2}, "\2\1"));
  }
  Mnist load(int ndim = 1, int classes = 4) {
    return load_mnist({.folder = folder_.path(), .ndim = ndim, .classes = classes});
  }
  TempFolder folder_;
};

TEST_F(MnistTest, ReadsPlainAndGzippedFiles) {
  write_all();
  const Mnist mnist = load();
  EXPECT_EQ(mnist.folder, folder_.path());
  EXPECT_EQ(mnist.train->size(), 4);
  EXPECT_EQ(mnist.test->size(), 2);
  const int64_t positions[] = {2, 0};
  const auto batch = mnist.train->batch(positions);
  EXPECT_EQ(batch[0].shape(), (Shape{2, 6}));
  EXPECT_EQ(batch[1].to_vector<int32_t>(), (std::vector<int32_t>{1, 3}));
  const auto x = batch[0].to_vector<float>();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(x[size_t(i)], float(120 + 10 * i) * (1.0f / 255));
    EXPECT_EQ(x[size_t(6 + i)], float(10 * i) * (1.0f / 255));
  }
  EXPECT_EQ(load(2).train->columns()[0].shape, (Shape{2, 3}));
  EXPECT_EQ(load(3).train->columns()[0].shape, (Shape{1, 2, 3}));
  const Mnist images = mnist.images();
  EXPECT_EQ(images.test->columns()[0].shape, (Shape{1, 2, 3}));
  EXPECT_EQ(images.train->batch(positions)[0].to_vector<float>(), x);
  EXPECT_EQ(images.train->images().raw_data(), mnist.train->images().raw_data()) << "shared";
  EXPECT_THROW(mnist.train->with_shape({5}), ShapeError);
  EXPECT_THROW(Mnist().images(), ValueError);
  EXPECT_THROW(load(4), ValueError);
}

TEST_F(MnistTest, ReadsEveryElementType) {
  write_file(folder_ / "a", idx(0x0B, {2}, std::string("\x01\x02\xff\xfe", 4)));
  EXPECT_EQ(read_idx(folder_ / "a").to_vector<int16_t>(), (std::vector<int16_t>{0x0102, -2}));
  write_file(folder_ / "a", idx(0x0C, {1, 1}, std::string("\0\0\1\0", 4)));
  EXPECT_EQ(read_idx(folder_ / "a").to_vector<int32_t>(), (std::vector<int32_t>{256}));
  write_file(folder_ / "a", idx(0x0D, {1}, std::string("\x3f\x80\0\0", 4)));
  EXPECT_EQ(read_idx(folder_ / "a").to_vector<float>(), (std::vector<float>{1.0f}));
  write_file(folder_ / "a", idx(0x0E, {1}, std::string("\x3f\xf0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(read_idx(folder_ / "a").to_vector<double>(), (std::vector<double>{1.0}));
  write_file(folder_ / "a", idx(0x09, {1}, "\xff"));
  EXPECT_EQ(read_idx(folder_ / "a").to_vector<int8_t>(), (std::vector<int8_t>{-1}));
}

TEST_F(MnistTest, DamagedFilesAreNamed) {
  const std::string path = folder_ / "images";
  const auto error = [&](const std::string& bytes) {
    write_file(path, bytes);
    return error_of<IoError>([&] { read_idx(path); });
  };
  const std::string good = idx(8, {2, 3}, "123456");
  expect_contains(error(""), {"images'", "ends after 0 bytes", "magic number"});
  expect_contains(error("PK\3\4"), {"images'", "0x504b0304", "expected 0x0000"});
  expect_contains(error(std::string("\0\0\x08\0", 4)), {"0x00000800", "expected"});
  expect_contains(error(good.substr(0, 7)), {"ends inside its header of 2 dimensions"});
  expect_contains(error(good.substr(0, 15)),
                  {"cut short", "(2, 3) of uint8, which is 6 bytes", "only 3"});
  expect_contains(error(good + "7"), {"longer than it should be"});
  expect_contains(error(idx(8, {2000000000, 2000000000, 8}, "1")),
                  {"cut short", "more than the file can hold"});
  expect_contains(error(idx(8, {4000000000, 4000000000, 4000000000}, "1")), {"too many bytes"});
  expect_contains(error_of<IoError>([&] { read_idx(folder_ / "none"); }),
                  {"none'", "No such file", "CATENA_MNIST"});
  expect_contains(error_of<IoError>([&] { read_idx(folder_.path()); }), {"not a regular file"});
}

TEST_F(MnistTest, TruncatedGzipIsNamed) {
  std::string pixels;
  for (int i = 0; i < 6000; ++i) pixels += static_cast<char>(i * i % 251);
  write_gzip(folder_ / "whole.gz", idx(8, {10, 20, 30}, pixels));
  const std::string bytes = read_file(folder_ / "whole.gz");
  EXPECT_EQ(read_idx(folder_ / "whole.gz").size(), 6000);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    write_file(folder_ / "cut.gz", bytes.substr(0, size));
    expect_contains(error_of<IoError>([&] { read_idx(folder_ / "cut.gz"); }), {"cut.gz'"});
  }
}

TEST_F(MnistTest, FilesMustFitTogether) {
  expect_contains(
      error_of<IoError>([&] { load(); }),
      {"'train-images-idx3-ubyte' or 'train-images-idx3-ubyte.gz'", "dataset-fashion-mnist"});
  write_all();
  expect_contains(error_of<IoError>([&] { load(1, 3); }),
                  {"train-labels", "label 3 at position 0", "expected 0 to 2"});
  write_file(folder_ / "t10k-labels-idx1-ubyte", idx(8, {3}, "\1\1\1"));
  expect_contains(error_of<IoError>([&] { load(); }), {"t10k-labels", "3 labels for 2 images"});
  write_file(folder_ / "t10k-labels-idx1-ubyte", idx(8, {2, 1, 1}, "\1\1"));
  expect_contains(error_of<IoError>([&] { load(); }),
                  {"t10k-labels", "uint8 of shape (2, 1, 1)", "0x00000801"});
  write_all();
  write_file(folder_ / "train-images-idx3-ubyte", idx(8, {4}, "1234"));
  expect_contains(error_of<IoError>([&] { load(); }), {"train-images", "shape (4,)", "0x00000803"});
  write_all();
  write_file(folder_ / "t10k-labels-idx1-ubyte", idx(0x0D, {2}, "12345678"));
  expect_contains(error_of<IoError>([&] { load(); }), {"float32", "expected labels"});
  expect_contains(error_of<IoError>([&] { load_mnist({.folder = folder_ / "none"}); }),
                  {"none' does not exist"});
}

TEST_F(MnistTest, ImagesOfAnotherSizeAndEmptyFilesAreNamed) {
  write_all();
  const auto load_pixels = [&](const Shape& pixels) {
    return load_mnist({.folder = folder_.path(), .classes = 4, .pixels = pixels});
  };
  EXPECT_EQ(load_pixels({2, 3}).train->size(), 4);
  expect_contains(error_of<IoError>([&] {
                    load_pixels({28, 28});
                  }),
                  {"train-images-idx3-ubyte'", "2 x 3 pixels", "expected 28 x 28"});
  expect_contains(error_of<ValueError>([&] { load_pixels({784}); }), {"pixels is (784,)"});
  write_file(folder_ / "train-images-idx3-ubyte", idx(8, {0, 2, 3}, ""));
  expect_contains(error_of<IoError>([&] { load(); }),
                  {"train-images-idx3-ubyte'", "shape is (0, 2, 3)", "at least one image"});
}

TEST_F(MnistTest, FolderFromEnvironment) {
  write_all();
  const EnvironmentScope environment("CATENA_MNIST", folder_.path());
  EXPECT_EQ(find_mnist(), folder_.path());
  EXPECT_EQ(find_mnist("/usr"), "/usr");
}

TEST(FashionMnist, PackagedDataSet) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    GTEST_SKIP() << "********** the package dataset-fashion-mnist is missing: real images NOT read "
                    "**********";
  }
  const Mnist mnist = load_mnist();
  EXPECT_EQ(mnist.train->size(), 60000);
  EXPECT_EQ(mnist.test->size(), 10000);
  EXPECT_EQ(mnist.train->columns()[0].shape, Shape{784});
  std::vector<int> counts(10);
  for (const int32_t label : mnist.train->labels().to_vector<int32_t>()) ++counts[size_t(label)];
  EXPECT_EQ(counts, std::vector<int>(10, 6000));
  const uint8_t* pixels = mnist.train->images().data<uint8_t>();
  EXPECT_EQ(*std::max_element(pixels, pixels + 60000 * 784), 255);
}

}  // namespace
}  // namespace catena::datasets
