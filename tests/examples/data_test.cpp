// Missing and damaged data files are named, with what is wrong with them.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "examples.h"

namespace catena::test {
namespace {

struct Damage {
  const char* name;
  std::function<void(const SmallData&)> apply;
  Words texts;  // of the message
};
void PrintTo(const Damage& damage, std::ostream* os) { *os << damage.name; }

constexpr char kLabels[] = "train-labels-idx1-ubyte", kImages[] = "train-images-idx3-ubyte.gz";
constexpr char kPlainImages[] = "train-images-idx3-ubyte";

void cut(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}

void overwrite(const std::string& path, size_t position, const std::string& bytes) {
  std::string content = read_file(path);
  content.replace(position, bytes.size(), bytes);
  write_file(path, content);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all{
      {"MissingFile",
       [](const SmallData& d) { std::filesystem::remove(d / kLabels); },
       {kLabels, "no file"}},
      {"Truncated", [](const SmallData& d) { cut(d / kLabels); }, {kLabels, "cut short"}},
      {"TruncatedGzip", [](const SmallData& d) { cut(d / kImages); }, {kImages, "fetch it again"}},
      {"TooLong",
       [](const SmallData& d) { write_file(d / kLabels, read_file(d / kLabels) + "x"); },
       {kLabels, "longer"}},
      {"Empty",
       [](const SmallData& d) { write_file(d / kLabels, ""); },
       {kLabels, "ends after 0 bytes"}},
      {"WrongMagic",
       [](const SmallData& d) { overwrite(d / kLabels, 0, "PK\3\4"); },
       {kLabels, "magic number", "0x504b0304"}},
      {"ImagesForLabels",
       [](const SmallData& d) {
         write_file(d / kLabels,
                    big_endian(0x803) + big_endian(1) + big_endian(1) + big_endian(1) + "x");
       },
       {kLabels, "expected labels"}},
      {"LabelOutOfRange",
       [](const SmallData& d) { overwrite(d / kLabels, 8 + 7, "\x0a"); },
       {kLabels, "label 10 at position 7", "0 to 9"}},
      {"OtherCount",
       [](const SmallData& d) {
         write_file(d / kLabels, big_endian(0x801) + big_endian(2) + std::string("\1\2"));
       },
       {kLabels, "2 labels for 410 images"}},
      // What the network is not made for.
      {"ImagesOfAnotherSize",
       [](const SmallData& d) {
         for (const std::string part : {"train", "t10k"}) {
           std::filesystem::remove(d / (part + "-images-idx3-ubyte.gz"));
           write_file(d / (part + "-images-idx3-ubyte"), big_endian(0x803) + big_endian(2) +
                                                             big_endian(2) + big_endian(3) +
                                                             std::string(12, 'x'));
           write_file(d / (part + "-labels-idx1-ubyte"),
                      big_endian(0x801) + big_endian(2) + std::string("\1\2"));
         }
       },
       {kPlainImages, "images of 2 x 3 pixels", "expected 28 x 28"}},
      {"NoImages",
       [](const SmallData& d) {
         std::filesystem::remove(d / kImages);
         write_file(d / kPlainImages,
                    big_endian(0x803) + big_endian(0) + big_endian(28) + big_endian(28));
       },
       {kPlainImages, "(0, 28, 28)", "at least one image"}},
  };
  return all;
}

class DamagedDataTest : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedDataTest, IsNamed) {
  const SmallData data;
  GetParam().apply(data);
  const TempFolder out;
  const Finished result =
      run({program("train_mnist"), "--data", data.path(), "--out", out / "out", "--epoch", "1"});
  EXPECT_EQ(result.status, 1) << result.all();
  EXPECT_NE(result.err.find("error"), std::string::npos);
  for (const std::string& text : GetParam().texts)
    EXPECT_NE(result.err.find(text), std::string::npos)
        << "expected '" << text << "' in: " << result.all();
  EXPECT_FALSE(std::filesystem::exists(out / "out/model.npz"));
}
INSTANTIATE_TEST_SUITE_P(Files, DamagedDataTest, ::testing::ValuesIn(damages()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ExampleDataTest, MissingFolderIsNamed) {
  const TempFolder out;
  for (const char* name :
       {"train_mnist", "train_mnist_model_parallel", "train_mnist_data_parallel"}) {
    const Finished result = run({program(name), "--data", out / "nowhere", "--out", out / "out"});
    EXPECT_EQ(result.status, 1) << result.all();
    EXPECT_NE(result.err.find(out / "nowhere"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("does not exist"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("CATENA_MNIST"), std::string::npos) << result.err;  // what to do
  }
}

}  // namespace
}  // namespace catena::test
