// Pictures of examples/imagenet: decoding, resizing, crops, and files that are not as they should
// be.
#include "imagenet_pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/core/error.h"
#include "common/decoding.h"
#include "common/picture_list.h"
#include "error_text.h"
#include "imagenet/data.h"
#include "imagenet/mean.h"
#include "imagenet/records.h"
#include "temp_folder.h"

namespace catena::test {
namespace {

using examples::Picture;

#if defined(EXAMPLES_HAVE_JPEG) && defined(EXAMPLES_HAVE_PNG)

int smooth(int64_t y, int64_t x, int64_t c) { return static_cast<int>(20 + 5 * y + 4 * x + 9 * c); }

TEST(ImagenetPictures, PngComesBackBitForBit) {
  const TempFolder folder;
  const std::string path = folder / "x.png";
  const auto value = [](int64_t y, int64_t x, int64_t c) { return int(y * 97 + x * 31 + c * 7); };
  write_png(path, 5, 7, 3, value);
  const Picture colours = examples::read_picture(path);
  EXPECT_EQ(colours.height, 5);
  EXPECT_EQ(colours.width, 7);
  EXPECT_EQ(colours.rgb, picture_of(5, 7, value).rgb);
}

std::string refusal(const std::string& path) {
  return error_of<IoError>([&] { examples::read_picture(path); });
}

TEST(ImagenetPictures, SaysWhatIsWrongWithAFile) {
  const TempFolder folder;
  expect_contains(refusal(folder / "nothing"), {"cannot be opened", "No such file"});
  write_file(folder / "empty", "");
  expect_contains(refusal(folder / "empty"), {"is empty"});
  std::filesystem::create_directory(folder / "folder");
  expect_contains(refusal(folder / "folder"), {"cannot be read"});
  write_file(folder / "text", "no picture");
  expect_contains(refusal(folder / "text"), {"neither a JPEG nor a PNG file"});
  write_file(folder / "begin.jpg", "\xff\xd8\xff\xe0 and so on");
  expect_contains(refusal(folder / "begin.jpg"), {"libjpeg: "});
  write_file(folder / "begin.png", "\x89PNG\r\n\x1a\n and so on");
  expect_contains(refusal(folder / "begin.png"), {"libpng: "});
}

// Each prefix of a file, and each file with one byte changed, is refused or decodes to a picture of
// some size; nothing else happens.
TEST(ImagenetPictures, DamagedFilesAreRefused) {
  const TempFolder folder;
  write_jpeg(folder / "x.jpg", 24, 24, 3, smooth);
  write_png(folder / "x.png", 24, 24, 3, smooth);
  for (const std::string name : {"x.jpg", "x.png"}) {
    const std::string whole = read_file(folder / name);
    const std::string path = folder / ("damaged-" + name);
    for (size_t length = 1; length + 2 < whole.size(); length += 23) {
      write_file(path, whole.substr(0, length));
      EXPECT_NE(refusal(path), "") << name << " of " << length << " bytes";
    }
    for (size_t i = 0; i < whole.size(); i += 7) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0x55);
      write_file(path, changed);
      try {
        const Picture picture = examples::read_picture(path);
        EXPECT_EQ(int64_t(picture.rgb.size()), picture.height * picture.width * 3);
      } catch (const IoError&) {
      }
    }
  }
}

// A row of a batch: the crop of a picture whose pixels say where they are.
class CropsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSize = 8, kInsize = 5;
  static int value(int64_t y, int64_t x, int64_t c) { return int(y * 10 + x + 80 * c); }

  CropsTest() {
    write_png(folder_ / "a.png", kSize, kSize, 3, value);
    mean_ = full({3, kSize, kSize}, 0.0F, {dtype::float32});
    for (int64_t i = 0; i < mean_.size(); ++i) mean_.data<float>()[i] = float(i % 13);
  }
  static auto source(std::vector<examples::LabelledPath> list) {
    return std::make_shared<examples::ListSource>(std::move(list));
  }
  examples::PictureDataset pictures(examples::Crops crops, uint64_t seed = 3) const {
    return {source({{folder_ / "a.png", 7}, {folder_ / "none.png", 8}}),
            mean_,
            {.insize = kInsize, .crops = crops, .seed = seed, .threads = 2}};
  }
  float expected(int64_t c, int64_t y, int64_t x) const {
    return (float(value(y, x, c)) - float(((c * kSize + y) * kSize + x) % 13)) / 255;
  }
  // The crop that a sample shows; fails where it does not show one.
  examples::Crop find(const Array& sample) const {
    const float* const found = sample.data<float>();
    for (int64_t k = 0; k < (kSize - kInsize + 1) * (kSize - kInsize + 1) * 2; ++k) {
      const examples::Crop crop{k / 2 / 4, k / 2 % 4, k % 2 == 1};
      bool is_equal = true;
      for (int64_t i = 0; i < 3 * kInsize * kInsize && is_equal; ++i) {
        const int64_t x = i % kInsize;
        is_equal = found[i] == expected(i / kInsize / kInsize, crop.top + i / kInsize % kInsize,
                                        crop.left + (crop.is_flipped ? kInsize - 1 - x : x));
      }
      if (is_equal) return crop;
    }
    ADD_FAILURE() << "the sample is not a crop of the picture";
    return {};
  }
  TempFolder folder_;
  Array mean_;
};

TEST_F(CropsTest, OfTheCentre) {
  const auto data = pictures(examples::Crops::kCentre);
  const datasets::Arrays batch = data.all();
  const examples::Crop crop = find(batch[0](0));
  EXPECT_EQ(crop.top, 1);
  EXPECT_EQ(crop.left, 1);
  EXPECT_FALSE(crop.is_flipped);
  // The other file is not there.
  EXPECT_EQ(batch[1].to_vector<int32_t>(), (std::vector<int32_t>{7, -1}));
  for (const float x : batch[0](1).contiguous().to_vector<float>()) EXPECT_EQ(x, 0);
  EXPECT_EQ(data.skipped(), 1);
  data.all();
  EXPECT_EQ(data.skipped(), 1);
}

TEST_F(CropsTest, AtRandom) {
  const auto draw = [&](uint64_t seed) {
    const auto data = pictures(examples::Crops::kRandom, seed);
    std::vector<std::array<int64_t, 3>> crops;
    for (int i = 0; i < 400; ++i) {
      const examples::Crop crop = find(data.sample(0)[0]);
      crops.push_back({crop.top, crop.left, crop.is_flipped});
    }
    return crops;
  };
  const auto crops = draw(3);
  EXPECT_EQ(crops, draw(3));
  EXPECT_NE(crops, draw(4));
  // 32 kinds, of which each is missed with probability 3e-6.
  const std::set kinds(crops.begin(), crops.end());
  EXPECT_EQ(kinds.size(), 32u);
}

TEST_F(CropsTest, RefusesAListWithoutAnyPicture) {
  const examples::PictureDataset data(
      source({{folder_ / "x", 0}, {folder_ / "y", 1}}), mean_,
      {.insize = kInsize, .crops = examples::Crops::kCentre, .threads = 1});
  expect_contains(error_of<IoError>([&] { data.all(); }),
                  {"none of the 2 pictures", "cannot be opened"});
}

// Of three files the second one does not decode.
TEST(ImagenetRecords, HoldWhatTheFilesHold) {
  const TempFolder folder;
  const auto value = [](int64_t y, int64_t x, int64_t c) { return int(y * 97 + x * 31 + c * 7); };
  write_png(folder / "a.png", 4, 4, 3, value);
  write_file(folder / "b.png", "no picture");
  write_png(folder / "c.png", 8, 6, 1, [](auto, auto, auto) { return 50; });
  const std::string file = folder / "x.npy";
  const imagenet::Written written = imagenet::write_records(
      {{folder / "a.png", 3}, {folder / "b.png", 4}, {folder / "c.png", 5}}, file, 4, 2);
  EXPECT_EQ(written.pictures, 2);
  EXPECT_EQ(written.skipped, 1);
  EXPECT_EQ(load(file).shape(), (Shape{2, 4, 4, 3}));
  const auto records = imagenet::open_records(file);
  ASSERT_EQ(records->size(), 2);
  EXPECT_EQ(records->read(0).rgb, picture_of(4, 4, value).rgb);
  EXPECT_EQ(records->read(1).rgb, std::vector<uint8_t>(48, 50));
  EXPECT_EQ(records->label(0), 3);
  EXPECT_EQ(records->label(1), 5);
  EXPECT_EQ(folder.entries(), 5);
  const auto refused = [&] { imagenet::open_records(file); };
  save(folder / "x.labels.npy", array({3, 1000}).astype(dtype::int32));
  expect_contains(error_of<IoError>(refused), {"x.labels.npy' has label 1000", "0 to 999"});
  save(folder / "x.labels.npy", array({3}).astype(dtype::int32));
  expect_contains(error_of<ShapeError>(refused), {"(2, 4, 4, 3)", "(1,)", "make_records"});
  expect_contains(error_of<ValueError>([&] { imagenet::write_records({}, "x.txt", 4, 1); }),
                  {"'.npy'", "x.txt"});
  expect_contains(error_of<IoError>([&] {
                    imagenet::write_records({{folder / "b.png", 4}}, folder / "no/x.npy", 4, 1);
                  }),
                  {"no/x.npy.unfinished' cannot be written"});
}

// A list may name a picture more than once, and each time counts.
TEST(ImagenetMean, IsThatOfThePicturesThatDecode) {
  const TempFolder folder;
  write_png(folder / "a.png", 4, 4, 3, [](auto, auto, auto) { return 60; });
  write_png(folder / "b.png", 2, 2, 3, [](auto, auto, auto) { return 90; });
  write_file(folder / "c.png", "no picture");
  const examples::LabelledPath a{folder / "a.png"}, b{folder / "b.png"}, c{folder / "c.png"};
  const imagenet::Mean mean = imagenet::mean_of({a, c, b, c, a}, 4, 2);
  EXPECT_EQ(mean.skipped, 2);
  EXPECT_EQ(mean.picture.to_vector<float>(), std::vector<float>(48, 70));
  const std::vector<examples::LabelledPath> damaged{c, c};
  const auto none = {"none of the 2 pictures could be decoded"};
  expect_contains(error_of<IoError>([&] { imagenet::mean_of(damaged, 4, 1); }), none);
  expect_contains(
      error_of<IoError>([&] { imagenet::write_records(damaged, folder / "x.npy", 4, 1); }), none);
  EXPECT_EQ(imagenet::write_records({a, c, c}, folder / "x.npy", 4, 1).skipped, 2);
}

#else

TEST(ImagenetPictures, NamesThePackageThatIsMissing) {
  const TempFolder folder;
  for (const std::string bytes : {"\xff\xd8\xff\xe0", "\x89PNG\r\n\x1a\n"}) {
    write_file(folder / "x", bytes);
    try {
      examples::read_picture(folder / "x");
    } catch (const ValueError& error) {
      expect_contains(error.what(), {"-dev", "configure and build again"});
    } catch (const IoError&) {  // this library is there
    }
  }
}

#endif

Picture row_of(const std::vector<uint8_t>& values) {
  Picture picture{1, int64_t(values.size()), {}};
  for (const uint8_t v : values) picture.rgb.insert(picture.rgb.end(), {v, v, uint8_t(v / 2)});
  return picture;
}

std::vector<int> reds_of(const Picture& picture) {
  std::vector<int> reds;
  for (size_t i = 0; i < picture.rgb.size(); i += 3) reds.push_back(picture.rgb[i]);
  return reds;
}

TEST(ImagenetPictures, AreResized) {
  const Picture two = row_of({40, 200});
  EXPECT_EQ(reds_of(examples::resized(two, 1, 4)), (std::vector<int>{40, 80, 160, 200}));
  EXPECT_EQ(reds_of(examples::resized(two, 2, 2)), (std::vector<int>{40, 200, 40, 200}));
  // Weights 3, 3, 1 of the first three pixels, and 1, 3, 3 of the last three.
  const Picture four = row_of({10, 80, 150, 220});
  EXPECT_EQ(reds_of(examples::resized(four, 1, 2)), (std::vector<int>{60, 170}));
  EXPECT_EQ(examples::resized(four, 1, 2).rgb[2], 30);
  Picture standing = four;
  std::swap(standing.height, standing.width);
  EXPECT_EQ(reds_of(examples::resized(standing, 2, 1)), (std::vector<int>{60, 170}));
  EXPECT_EQ(examples::resized(four, 1, 4).rgb, four.rgb);
  EXPECT_EQ(reds_of(examples::resized(row_of({77, 77, 77}), 5, 7)), std::vector<int>(35, 77));
  expect_contains(error_of<ValueError>([&] { examples::resized(four, 0, 3); }), {"1 x 4", "0 x 3"});
}

TEST(ImagenetLists, HavePathsAndLabels) {
  const TempFolder folder;
  write_file(folder / "a b.jpg", "x");
  write_file(folder / "list", "  a b.jpg  12\r\n\nsub/c.png\t999\n");
  const auto list = examples::read_list(folder / "list", folder.path());
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].path, folder / "a b.jpg");
  EXPECT_EQ(list[0].label, 12);
  EXPECT_EQ(list[1].path, folder / "sub/c.png");
  EXPECT_EQ(list[1].label, 999);
  const auto refusal_of = [&](const std::string& text) {
    write_file(folder / "list", text);
    return error_of<IoError>([&] { examples::read_list(folder / "list", folder.path()); });
  };
  expect_contains(refusal_of("a b.jpg 1\nx.jpg\n"), {"list', line 2", "a path and a label"});
  expect_contains(refusal_of("  7\n"), {"line 1", "a path and a label"});
  expect_contains(refusal_of("x.jpg cat"), {"line 1", "'cat'", "0 to 999"});
  expect_contains(refusal_of("x.jpg 1000"), {"'1000'"});
  expect_contains(refusal_of("x.jpg -1"), {"'-1'"});
  expect_contains(refusal_of("\n \n"), {"has no pictures"});
  expect_contains(refusal_of("x.jpg 1"), {"do not exist", "x.jpg'", "--root"});
  expect_contains(error_of<IoError>([&] { examples::read_list(folder / "no", "."); }),
                  {"the list '", "no' cannot be read"});
}

TEST(ImagenetLists, AreWorkedOffByThreads) {
  for (const int64_t threads : {1, 3, 100}) {
    std::vector<std::atomic<int>> calls(50);
    examples::on_threads(50, threads, [&](int64_t i) { ++calls[size_t(i)]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_THROW(examples::on_threads(50, threads,
                                      [](int64_t i) {
                                        if (i == 7) throw ValueError("seven");
                                      }),
                 ValueError);
  }
  examples::on_threads(0, 4, [](int64_t) { FAIL(); });
}

TEST(ImagenetPictures, MadeOnesDifferByClassAndSample) {
  const examples::PictureOptions options{.insize = 16, .seed = 5, .threads = 2};
  const imagenet::SyntheticDataset data(25, options);
  const datasets::Arrays all = data.all();
  const std::vector<int32_t> labels = all[1].to_vector<int32_t>();
  EXPECT_EQ(labels[3], 3);
  EXPECT_EQ(labels[24], 4);
  const auto distance = [&](int64_t i, int64_t k) {
    double sum = 0;
    for (int64_t e = 0; e < 3 * 16 * 16; ++e)
      sum += std::abs(double(all[0].data<float>()[i * 768 + e]) -
                      double(all[0].data<float>()[k * 768 + e]));
    return sum / 768;
  };
  EXPECT_GT(distance(3, 13), 0.05);
  EXPECT_GT(distance(3, 4), distance(3, 13) + 0.05);
  EXPECT_LT(distance(3, 23), distance(3, 5));
}

}  // namespace
}  // namespace catena::test
