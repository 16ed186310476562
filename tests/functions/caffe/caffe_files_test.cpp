// Files that CaffeFunction refuses: damaged, truncated, of another kind, too large; and what it
// takes beyond what Caffe writes today.
#include <random>

#include "catena/array/io.h"
#include "catena/functions/caffe/caffe_function.h"
#include "functions/caffe/wire.h"
#include "functions/functions_test_util.h"
#include "temp_folder.h"

namespace catena {
namespace {

using namespace caffe_models;

class CaffeFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& bytes) {
    const std::string path = folder_ / "model.caffemodel";
    write_file(path, bytes);
    return path;
  }
  // What the error says behind the path.
  std::string refused(const std::string& bytes) {
    const std::string path = file(bytes);
    const std::string text = error_of<IoError>([&] { F::CaffeFunction{path}; });
    const std::string begin = "CaffeFunction: '" + path + "', ";
    EXPECT_EQ(text.find(begin), 0u) << text;
    return text.substr(std::min(begin.size(), text.size()));
  }
  Array run(const std::string& bytes) {
    const F::CaffeFunction f(file(bytes));
    const Array x = ones({1, 1, 4, 4}, {Dtype::kFloat32});
    return f({{"data", x}}, {"y"}, {}, false)[0].data();
  }
  TempFolder folder_;
};

// One layer "f" of a type from data to y; `rest` are its options and blobs.
std::string one_layer(const std::string& type, const std::vector<std::pair<uint32_t, Wire>>& rest) {
  Wire layer = wire_layer("f", type, "data", "y");
  for (const auto& [field, value] : rest) layer.message(field, value);
  return Wire().message(100, layer).text();
}

TEST_F(CaffeFiles, TruncatedAnywhere) {
  const std::string whole = small_model();
  ASSERT_NO_THROW(F::CaffeFunction{file(whole)});
  int refused_count = 0;
  ::testing::internal::CaptureStderr();
  for (size_t n = 0; n < whole.size(); ++n) try {
      F::CaffeFunction{file(whole.substr(0, n))};
    } catch (const IoError& e) {
      expect_contains(e.what(), {"at byte "});
      ++refused_count;
    }
  ::testing::internal::GetCapturedStderr();
  // A file that ends between two layers is a model of fewer.
  EXPECT_EQ(refused_count, int(whole.size()) - 3);
}

TEST_F(CaffeFiles, DamagedAnywhere) {
  ::testing::internal::CaptureStderr();  // warnings of types that nobody knows
  std::mt19937 random(3);
  for (const std::string& whole : {small_model(), small_v1_model()})
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = char(random());
      try {
        F::CaffeFunction{file(damaged)};
      } catch (const IoError&) {  // others end the test
      }
    }
  ::testing::internal::GetCapturedStderr();
}

TEST_F(CaffeFiles, OfAnotherKind) {
  EXPECT_EQ(refused(""), "at byte 0: the file is empty");
  EXPECT_EQ(refused("name: \"AlexNet\"\nlayer {\n"),
            "at byte 0: this is a text; a .prototxt describes a network and has no weights, "
            "expected is the .caffemodel that Caffe saved");
  EXPECT_EQ(refused("\x89HDF\r\n\x1a\n"),
            "at byte 0: this is an HDF5 file; let Caffe save a .caffemodel");
  const std::string npz = folder_ / "w.npz";
  save_npz(npz, {{"W", ones({2})}});
  EXPECT_EQ(refused(read_file(npz)), "at byte 0: this is a zip file or .npz");
  EXPECT_EQ(refused(Wire().bytes(1, "mean").integer(4, 7).text()),
            "at byte 8: the file ends without a layer; is it a .caffemodel?");
  EXPECT_EQ(refused("\x0e\xff\x01\x02"),
            "at byte 0: a field of a wire type that protocol buffers do not have");
  EXPECT_EQ(refused(std::string("\x02\x00\x01\x02", 4)),
            "at byte 0: a field of a number that protocol buffers do not have");
  EXPECT_EQ(refused(Wire().message(2, Wire().message(1, Wire().bytes(1, "conv"))).text()),
            "at byte 2: a layer in the format that Caffe wrote until 2013; Caffe's program "
            "upgrade_net_proto_binary converts it");
}

TEST_F(CaffeFiles, ThatAreNotThere) {
  const std::string missing = folder_ / "none.caffemodel";
  const std::string text = error_of<IoError>([&] { F::CaffeFunction{missing}; });
  EXPECT_EQ(text,
            "CaffeFunction: reading '" + missing + "': cannot open it: No such file or directory");
  EXPECT_THROW(F::CaffeFunction{folder_.path()}, IoError);
  const std::string large = folder_ / "large.caffemodel";
  write_file(large, "");
  std::filesystem::resize_file(large, uintmax_t{1} << 31);
  EXPECT_EQ(error_of<IoError>([&] { F::CaffeFunction{large}; }),
            "CaffeFunction: '" + large +
                "' has 2147483648 bytes, expected at most 2^31 - 1, which "
                "Caffe reads; is it a .caffemodel?");
}

// Lengths and extents beyond what is there are noticed before anything is allocated.
TEST_F(CaffeFiles, TooLarge) {
  EXPECT_EQ(refused(Wire().bytes(1, "x").key(100, 2).varint(uint64_t{1} << 40).text()),
            "at byte 3: field 100 has 1099511627776 bytes, but the file or the message ends after "
            "0");
  EXPECT_EQ(refused(Wire().key(100, 2).varint((uint64_t{1} << 32) + 1).text() + "x"),
            "at byte 0: field 100 has 4294967297 bytes, but the file or the message ends after 1");
  const Wire kernel = Wire().integer(4, 3).integer(1, 1);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(
      refused(one_layer("Convolution", {{106, kernel}, {7, wire_blob({huge, huge, 3, 3}, {1})}})),
      "at byte 35: layer 'f' (Convolution): W has 1 numbers, expected are those of shape "
      "(1099511627776, 1099511627776, 3, 3)");
  EXPECT_EQ(refused(one_layer("InnerProduct", {{7, wire_blob({huge, huge}, {})}})).substr(0, 30),
            "at byte 29: layer 'f' (InnerPr");
  EXPECT_EQ(
      refused(one_layer("Pooling", {{121, Wire().integer(2, uint64_t{1} << 63)}})),
      "at byte 0: layer 'f' (Pooling): kernel_size is -9223372036854775808, expected one of 32 "
      "bits");
  std::string endless = Wire().key(1, 0).text() + std::string(11, '\xff');
  EXPECT_EQ(refused(endless), "at byte 0: an integer of more than 64 bits");
}

TEST_F(CaffeFiles, WhoseWeightsDoNotFit) {
  const Wire kernel = Wire().integer(4, 3).integer(1, 2).integer(2, 0);
  const std::vector<float> nine(9);
  EXPECT_EQ(refused(one_layer("Convolution", {{106, kernel}})),
            "at byte 0: layer 'f' (Convolution): its weights W are missing: the layer has 0 blobs; "
            "is this a definition without weights?");
  EXPECT_EQ(refused(one_layer("Convolution", {{106, kernel}, {7, wire_blob({1, 1, 3, 3}, nine)}})),
            "at byte 0: layer 'f' (Convolution): num_output is 2, but W is for 1");
  EXPECT_EQ(refused(one_layer("Convolution",
                              {{106, Wire().integer(4, 2)}, {7, wire_blob({1, 1, 3, 3}, nine)}}))
                .substr(0, 60),
            "at byte 33: layer 'f' (Convolution): W has 9 numbers, expect");
  EXPECT_EQ(refused(one_layer("Convolution", {{106, kernel}, {7, wire_blob({-1, 1, 3, 3}, nine)}})),
            "at byte 37: a blob has an extent of -1");
  EXPECT_EQ(
      refused(one_layer("InnerProduct", {{7, wire_blob({3, 3}, nine)}})),
      "at byte 0: layer 'f' (InnerProduct): its weights b are missing: the layer has 1 blobs");
  EXPECT_EQ(refused(one_layer("BatchNorm", {{7, wire_blob({9}, nine)}, {7, wire_blob({1}, {1})}}))
                .substr(0, 40),
            "at byte 70: layer 'f' (BatchNorm): the v");
  const std::string half = one_layer("InnerProduct", {{7, Wire().packed(5, std::vector<char>(7))}});
  EXPECT_EQ(refused(half), "at byte 31: field 5 has 7 bytes, which are no floats of 4");
  EXPECT_EQ(refused(Wire().message(100, Wire().integer(1, 3)).text()),
            "at byte 3: field 1 is expected to hold bytes, but has wire type 0");
}

TEST_F(CaffeFiles, WithOptionsThatAreNotSupported) {
  EXPECT_EQ(refused(one_layer("Pooling", {{121, Wire().integer(1, 2).integer(2, 2)}})),
            "at byte 0: layer 'f' (Pooling): pooling 2 (stochastic is 2) is not supported; maximum "
            "and average are");
  EXPECT_EQ(
      refused(one_layer("LRN", {{118, Wire().integer(4, 1)}})),
      "at byte 0: layer 'f' (LRN): normalization within channels is not supported; that across "
      "channels is");
  const Wire W = wire_blob({1, 1}, {1});
  EXPECT_EQ(refused(one_layer("InnerProduct", {{117, Wire().integer(5, 2)}, {7, W}})),
            "at byte 0: layer 'f' (InnerProduct): products along another axis than 1");
  EXPECT_EQ(
      refused(one_layer("Convolution", {{106, Wire().integer(4, 1).integer(6, 0)},
                                        {7, wire_blob({1, 1, 1, 1}, {1})},
                                        {7, wire_blob({1}, {1})}})),
      "at byte 0: layer 'f' (Convolution): Convolution2D: expected a stride of at least 1, got "
      "(0, 0)");
  EXPECT_EQ(refused(one_layer("SoftmaxWithLoss", {})),
            "at byte 0: layer 'f' (SoftmaxWithLoss): it has 1 bottoms, expected at least 2");
  EXPECT_EQ(
      refused(one_layer("Eltwise", {{110, Wire().number(2, 1).number(2, 1)}})),
      "at byte 0: layer 'f' (Eltwise): it has 2 factors for 1 bottoms; expected is one for each "
      "term of a sum");
  EXPECT_EQ(refused(one_layer("Dropout", {{108, Wire().number(1, 1)}})),
            "at byte 0: layer 'f' (Dropout): its dropout_ratio is 1, expected is one of [0, 1)");
  const Wire product =
      wire_layer("f", "InnerProduct", "data", "y").message(117, Wire().integer(2, 0)).message(7, W);
  EXPECT_EQ(refused(Wire().message(100, product).message(100, product).text()).substr(0, 60),
            "at byte 48: layer 'f' (InnerProduct): another layer with wei");
}

TEST_F(CaffeFiles, NumbersMayComeInPieces) {
  const Array expected = run(small_v1_model());
  EXPECT_EQ(expected.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(expected.at({0, 0, 0, 0}).item<float>(), 2.25f);
  // float64, half of them in another field of the same message.
  Wire doubles = Wire().packed(8, std::vector<double>(4, 0.25)).bytes(99, "unknown");
  doubles.packed(8, std::vector<double>(5, 0.25))
      .integer(1, 1)
      .integer(2, 1)
      .integer(3, 3)
      .integer(4, 3);
  const Wire options = Wire().integer(2, 0);
  Wire layer = wire_layer("f", "Convolution", "data", "y");
  layer.message(106, options).message(7, doubles).message(106, Wire().integer(4, 3));  // merged
  EXPECT_EQ(testing::difference(run(Wire().message(100, layer).text()), expected), "");
}

// A file that has both formats is read as the newer one.
TEST_F(CaffeFiles, TheNewerFormatWins) {
  const std::string both = small_v1_model() + small_model();
  const F::CaffeFunction f(file(both));
  EXPECT_EQ(f.forwards(), (std::vector<std::string>{"a/3x3", "relu", "fc", "bn"}));
}

}  // namespace
}  // namespace catena
