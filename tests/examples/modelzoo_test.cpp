// Models of Caffe: pictures become what they expect, results are those computed by hand, over ranks
// and on a GPU too, pictures that do not decode do not count, and messages say where models are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/manipulation.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"
#include "common/picture_dataset.h"
#include "error_text.h"
#include "examples.h"
#include "modelzoo/caffe_mean.h"
#include "modelzoo/colour_net.h"
#include "modelzoo/evaluation.h"

namespace catena::test {
namespace {

using modelzoo::ModelType;

Words evaluation(const std::string& dataset, const std::string& type, const std::string& model,
                 const Words& more = {}) {
  return with({program("evaluate_caffe_net"), dataset, type, model, "--loaderjob=2"}, more);
}

std::string problem(const Words& words) {
  const Finished result = run(words);
  EXPECT_NE(result.status, 0) << result.all();
  EXPECT_LT(result.status, 128) << result.all();
  return result.err;
}

struct Found {
  double loss, top1, top5;
};
[[maybe_unused]] Found found_in(const Finished& result) {
  EXPECT_EQ(result.status, 0) << result.all();
  const auto number = [&](const std::string& before) {
    const size_t at = result.out.find(before);
    EXPECT_NE(at, std::string::npos) << result.all();
    return at == std::string::npos ? -1 : std::stod(result.out.substr(at + before.size()));
  };
  return {number("mean loss      "), number("top-1 accuracy "), number("top-5 accuracy ")};
}

// Pictures of one colour each, red, green, blue, and what the model says of them by its formula.
class PlainPictures {
 public:
  using Rgb = std::array<int, 3>;
  void add(const Rgb& rgb, int32_t label) {
    pixels_.push_back(rgb);
    labels_.push_back(label);
  }
  void save(const std::string& file) const {
    const int64_t n = std::ssize(labels_);
    const Array x = zeros({n, 5, 7, 3}, dtype::uint8);
    for (int64_t i = 0; i < x.size(); ++i)
      x.data<uint8_t>()[i] = static_cast<uint8_t>(pixels_[size_t(i / (5 * 7 * 3))][size_t(i % 3)]);
    save_npz(file, {{"x", x}, {"t", array(labels_).astype(dtype::int64)}});
  }
  Found expected(const Rgb& mean = {128, 128, 128}) const {
    Found sum{0, 0, 0};
    for (size_t i = 0; i < labels_.size(); ++i) {
      std::array<double, 8> scores{};
      for (size_t k = 0; k < 8; ++k)
        for (size_t c = 0; c < 3; ++c)
          scores[k] +=
              (k >> (2 - c) & 1 ? 64.0 : -64.0) * (pixels_[i][c] - mean[c]) / (70.0 * 70.0 / 3.0);
      const double own = scores[size_t(labels_[i])];
      double total = 0;
      for (const double score : scores) total += std::exp(score - own);
      const auto better =
          std::ranges::count_if(scores, [&](double score) { return score > own + 1e-9; });
      sum.loss += std::log(total);
      sum.top1 += better == 0;
      sum.top5 += better < 5;
    }
    const auto n = double(labels_.size());
    return {sum.loss / n, sum.top1 / n, sum.top5 / n};
  }

 private:
  std::vector<Rgb> pixels_;
  std::vector<int32_t> labels_;
};

[[maybe_unused]] void expect_near(const Found& found, const Found& expected) {
  EXPECT_NEAR(found.loss, expected.loss, 2e-3);
  EXPECT_NEAR(found.top1, expected.top1, 1e-4);
  EXPECT_NEAR(found.top5, expected.top5, 1e-4);
}

class ModelzooExample : public ::testing::Test {
 protected:
  ModelzooExample() {
    plain_.add({200, 30, 20}, 4);    // red
    plain_.add({20, 30, 200}, 1);    // blue
    plain_.add({180, 190, 60}, 6);   // yellow
    plain_.add({150, 90, 100}, 5);   // red, which comes before magenta
    plain_.add({250, 240, 230}, 0);  // white, taken for black: the last of all
    plain_.save(arrays());
    write_model("caffenet");
  }
  void write_model(const char* type) {
    write_file(model(), modelzoo::colour_net(modelzoo::model_type(type)));
  }
  std::string model() const { return folder_ / "net.caffemodel"; }
  std::string arrays() const { return folder_ / "plain.npz"; }
  Finished evaluate(const std::string& type, const Words& more = {}) const {
    return run(evaluation(arrays(), type, model(), more));
  }
  TempFolder folder_;
  PlainPictures plain_;
};

TEST_F(ModelzooExample, SaysWhereModelsAre) {
  const std::string readme = read_file(MODELZOO_README);
  for (const ModelType& type : modelzoo::model_types()) {
    expect_contains(problem(evaluation("list", type.name, "nowhere.caffemodel")),
                    {"there is no model 'nowhere.caffemodel'", type.file.c_str(),
                     type.source.c_str(), "make_colour_net"});
    expect_contains(readme, {type.name.c_str(), type.file.c_str(), type.mean.c_str()});
  }
  expect_contains(error_of<IoError>([] { modelzoo::load_mean("ilsvrc_2012_mean.npy", 227); }),
                  {"--mean: ", "python/caffe/imagenet", "--mean 104,117,123"});
  expect_contains(readme, {"python/caffe/imagenet", "evaluate_caffe_net", "make_colour_net"});
}

TEST_F(ModelzooExample, ReadsMeans) {
  const auto pixel = [](const Array& mean, int64_t y, int64_t x) {
    std::vector<float> values;
    for (int64_t c = 0; c < 3; ++c) values.push_back(mean(c, y, x).item<float>());
    return values;
  };
  const std::vector<float> blue_green_red{104, 117.5F, 123}, nothing{0, 0, 0};
  const Array constant = modelzoo::load_mean("104,117.5,123", 224);
  EXPECT_EQ(constant.shape(), (Shape{3, 256, 256}));
  EXPECT_EQ(pixel(constant, 0, 0), blue_green_red);
  EXPECT_EQ(pixel(constant, 255, 200), blue_green_red);
  const TempFolder folder;
  const std::string file = folder / "mean.npy";
  save(file, array(blue_green_red).astype(dtype::float64));
  EXPECT_EQ(pixel(modelzoo::load_mean(file, 224), 9, 9), blue_green_red);
  const Array whole = arange(3 * 256 * 256).reshape({3, 256, 256});
  save(file, whole);
  EXPECT_EQ(testing::difference(modelzoo::load_mean(file, 224), whole.astype(dtype::float32)), "");
  // In the middle: 16 rows and columns are left on each side.
  save(file, broadcast_to(array(blue_green_red).reshape({3, 1, 1}), {3, 224, 224}));
  const Array middle = modelzoo::load_mean(file, 224);
  EXPECT_EQ(pixel(middle, 16, 239), blue_green_red);
  EXPECT_EQ(pixel(middle, 15, 100), nothing);
  EXPECT_EQ(pixel(middle, 100, 240), nothing);
  expect_contains(error_of<ShapeError>([&] { modelzoo::load_mean(file, 227); }),
                  {"mean.npy' has shape (3, 224, 224)", "(3, 256, 256) or (3, 227, 227)"});
  for (const char* text : {"104,117", "104,117,123,1", "104,117,x", "1,2,3,", "mean", ""})
    expect_contains(error_of<ValueError>([&] { modelzoo::load_mean(text, 224); }),
                    {"--mean: '", "blue, green and red"});
}

// Red is the third channel, and nothing is divided.
TEST_F(ModelzooExample, PicturesAreAsCaffeExpectsThem) {
  const Array x = zeros({1, 2, 3, 3}, dtype::uint8);
  for (int64_t i = 0; i < x.size(); ++i) x.data<uint8_t>()[i] = static_cast<uint8_t>(10 + i);
  const Array mean = array({{1.F}, {2.F}, {3.F}}).reshape({3, 1, 1});
  const examples::PictureDataset data(
      std::make_shared<examples::ArraySource>(x, array({4}).astype(dtype::int32)),
      broadcast_to(mean, {3, 2, 3}).contiguous(),
      {.insize = 2, .channels = examples::Channels::kBgr, .divisor = 1});
  const std::vector<float> found = data.all()[0].to_vector<float>();
  // The left part: columns 0 and 1 of both rows.
  EXPECT_EQ(found, (std::vector<float>{11, 14, 20, 23, 9, 12, 18, 21, 7, 10, 16, 19}));
}

#ifdef READS_CAFFE_MODELS

const Words kGray{"--device=cpu", "--mean=128,128,128"};

TEST_F(ModelzooExample, Evaluates) {
  const Found expected = plain_.expected();
  EXPECT_NEAR(expected.top1, 0.6, 1e-9);
  EXPECT_NEAR(expected.top5, 0.8, 1e-9);
  for (const ModelType& type : modelzoo::model_types()) {
    write_model(type.name.c_str());
    const Finished result = evaluate(type.name, kGray);
    expect_near(found_in(result), expected);
    expect_contains(result.out, {"2 layers, 32 weights, 8 classes", "5 pictures, of which 0"});
  }
  // A batch that is not full; the mean that a type has by default.
  write_model("googlenet");
  expect_near(found_in(evaluate("googlenet", {"--device=cpu", "--batchsize=2"})),
              plain_.expected({123, 117, 104}));
}

// What is outside of the crop does not matter.
TEST_F(ModelzooExample, CropsTheMiddle) {
  const Array mean = full({3, 256, 256}, 1e6, {dtype::float32});
  mean(Slice(), Slice(14, 241), Slice(14, 241)).fill(128);
  save(folder_ / "mean.npy", mean);
  expect_near(found_in(evaluate("caffenet", {"--device=cpu", "--mean", folder_ / "mean.npy"})),
              plain_.expected());
}

TEST_F(ModelzooExample, EvaluatesOnAGpu) {
  CATENA_NEEDS_GPU();
  expect_near(found_in(evaluate("caffenet", {"--device=cuda:0", "--mean=128,128,128"})),
              plain_.expected());
}

#ifdef CATENA_RUN
// Four ranks share five pictures two by two: some have none of a batch.
TEST_F(ModelzooExample, RanksEvaluateAsOneProcess) {
  const Finished result = run(on_ranks(
      4, evaluation(arrays(), "caffenet", model(), {"--mean=128,128,128", "--batchsize=2"})));
  expect_near(found_in(result), plain_.expected());
  expect_contains(result.out, {"5 pictures, of which 0"});
}
#endif

TEST_F(ModelzooExample, MakesWhatItNeeds) {
  const std::string made = folder_ / "made/here";
  const Finished result = run({program("make_colour_net"), made, "--pictures=24", "--seed=5"});
  ASSERT_EQ(result.status, 0) << result.all();
  const Words more{"--device=cpu", "--mean", made + "/mean.npy", "--basepath", made};
  const auto evaluated = [&](const std::string& name) {
    return run(evaluation(made + "/" + name, "caffenet", made + "/colour_net.caffemodel", more));
  };
  const Found of_arrays = found_in(evaluated("pictures.npz"));
  EXPECT_GT(of_arrays.top1, 0.7);
  EXPECT_GE(of_arrays.top5, of_arrays.top1);
  EXPECT_LT(of_arrays.loss, 0.7);
#ifdef EXAMPLES_HAVE_PNG
  const Found of_list = found_in(evaluated("list.txt"));
  EXPECT_NEAR(of_list.top1, of_arrays.top1, 0.05);
  EXPECT_NEAR(of_list.loss, of_arrays.loss, 0.05);
  // A picture that is cut short, and one that is not there: as if the list ended before them.
  Words lines{""};
  for (const char c : read_file(made + "/list.txt")) {
    lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  std::string first;
  for (size_t i = 0; i < 10; ++i) first += lines[i];
  write_file(made + "/first.txt", first);
  write_file(made + "/damaged.txt", first + lines[10] + "nowhere.png 3\n");
  std::filesystem::resize_file(made + "/picture10.png", 500);
  const Finished damaged = evaluated("damaged.txt");
  expect_contains(damaged.out, {"12 pictures, of which 2 were skipped"});
  expect_contains(damaged.err,
                  {"skipped '", "picture10.png': libpng: ", "nowhere.png': cannot be"});
  expect_near(found_in(damaged), found_in(evaluated("first.txt")));
#endif
  expect_contains(problem({program("make_colour_net"), made + "/mean.npy/x"}), {"cannot be made"});
}

TEST_F(ModelzooExample, SaysWhatIsWrong) {
  expect_contains(problem(evaluation(arrays(), "googlenet", model(), kGray)),
                  {"the model is not of the type googlenet", "loss3/classifier", "fc8"});
  expect_contains(problem(evaluation(arrays(), "vgg", model())), {"model_type", "vgg", "resnet"});
  expect_contains(problem({program("evaluate_caffe_net"), arrays()}), {"model_type"});
  const auto refused = [&](const NamedArrays& content) {
    save_npz(folder_ / "x.npz", content);
    return problem(evaluation(folder_ / "x.npz", "caffenet", model(), kGray));
  };
  const Array x = zeros({2, 4, 4, 3}, dtype::uint8);
  const auto labels = [](std::vector<double> values) { return array(values); };
  expect_contains(refused({{"x", x}}), {"x.npz' has no array 't'", "labels 't'"});
  expect_contains(refused({{"x", x}, {"t", labels({1, 8})}}), {"has label 8", "0 to 7"});
  expect_contains(refused({{"x", x}, {"t", labels({1, 1.5})}}), {"not all are whole numbers"});
  expect_contains(refused({{"x", x}, {"t", labels({1})}}), {"(2, 4, 4, 3)", "(1,)", "int32 (n)"});
  expect_contains(refused({{"x", x.astype(dtype::float32)}, {"t", labels({1, 2})}}), {"float32"});
  write_file(folder_ / "list", "nothing.png 9\n");
  const auto list = [&](const char* line) {
    write_file(folder_ / "list", line);
    return problem(evaluation(folder_ / "list", "caffenet", model(), kGray));
  };
  expect_contains(list("nothing.png 9\n"), {"list', line 1", "'9'", "from 0 to 7"});
  expect_contains(list("nothing.png 7\n"), {"do not exist, such as '/nothing.png'", "--basepath"});
}

#endif

}  // namespace
}  // namespace catena::test
