// The networks of examples/imagenet have the layers of Chainer's, and its programs train, compute a
// mean picture, and go on where pictures do not decode.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "error_text.h"
#include "examples.h"
#include "imagenet/networks.h"
#include "imagenet_pictures.h"

namespace catena::test {
namespace {

using imagenet::Arch;

// Scores of one picture in test state.
imagenet::Heads scores_of(imagenet::Network& network) {
  const TestScope test(network);
  const NoBackprop no_graph;
  const Array x = full({1, 3, network.insize(), network.insize()}, 0.1F, {dtype::float32});
  return network(Variable::constant(x));
}

struct Expected {
  int64_t insize, parameters;
  size_t sides;  // in test state
};

// The numbers of parameters are sums over the table of layers, made by hand.
void expect_network(Arch arch, const Expected& expected) {
  const auto network = imagenet::make_network(arch);
  EXPECT_EQ(network->insize(), expected.insize);
  EXPECT_EQ(imagenet::insize_of(arch), expected.insize);
  EXPECT_EQ(network->parameter_count(), expected.parameters);
  const imagenet::Heads heads = scores_of(*network);
  EXPECT_EQ(heads.main.shape(), (Shape{1, 1000}));
  ASSERT_EQ(heads.sides.size(), expected.sides);
  for (const Variable& side : heads.sides) EXPECT_EQ(side.shape(), (Shape{1, 1000}));
  // In train state: the averages of batch normalization are 0 at first.
  const NoBackprop no_graph;
  const Array two = zeros({2, 3, expected.insize, expected.insize}, {dtype::float32});
  two(0).fill(0.1F);
  const imagenet::Heads trained = (*network)(Variable::constant(two));
  for (const float score : trained.main.data().to_vector<float>())
    ASSERT_TRUE(std::isfinite(score));
}

TEST(ImagenetExample, Nin) { expect_network(Arch::kNin, {227, 7'595'176, 0}); }
TEST(ImagenetExample, Alex) { expect_network(Arch::kAlex, {227, 62'378'344, 0}); }
TEST(ImagenetExample, AlexBN) {
  expect_network(Arch::kAlexBN, {227, 62'378'344 + 2 * (96 + 256), 0});
}
TEST(ImagenetExample, GoogLeNet) {
  expect_network(Arch::kGoogLeNet, {224, 13'378'280, 0});
  const auto network = imagenet::make_network(Arch::kGoogLeNet);
  const NoBackprop no_graph;
  const Array x = full({1, 3, 224, 224}, 0.1F, {dtype::float32});
  EXPECT_EQ((*network)(Variable::constant(x)).sides.size(), 2u);
}
TEST(ImagenetExample, GoogLeNetBN) { expect_network(Arch::kGoogLeNetBN, {224, 17'587'128, 2}); }
TEST(ImagenetExample, ResNet50) { expect_network(Arch::kResNet50, {224, 25'557'032, 0}); }
TEST(ImagenetExample, Vit) { expect_network(Arch::kVit, {224, 86'567'656, 0}); }

// A network whose scores are given.
class Fixed final : public imagenet::Network {
 public:
  explicit Fixed(imagenet::Heads heads) : Network(1), heads_(std::move(heads)) {}
  imagenet::Heads operator()(const Variable&) override { return heads_; }
  void visit_parameters(const Visitor&, const std::string&) override {}

 private:
  imagenet::Heads heads_;
};

TEST(ImagenetExample, SideHeadsCountLess) {
  const std::vector<double> a{1, 2, 0.5}, b{-1, 0, 3};
  const auto scores = [](const std::vector<double>& row) {
    return Variable::constant(array({{row[0], row[1], row[2]}, {0.0, 9.0, 9.0}}));
  };
  const auto cross_entropy = [](const std::vector<double>& row, size_t label) {
    double sum = 0;
    for (const double score : row) sum += std::exp(score);
    return std::log(sum) - row[label];
  };
  Fixed network({scores(a), {scores(b), scores(a)}});
  // The second sample does not count.
  const Variables found =
      imagenet::score_of(network, zeros({2}, dtype::float32), array({1, -1}).astype(dtype::int32));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].data().astype(dtype::float64).item<double>(),
              1.3 * cross_entropy(a, 1) + 0.3 * cross_entropy(b, 1), 1e-6);
  EXPECT_EQ(found[1].data().astype(dtype::float64).item<double>(), 1);
}

Words train(const std::string& out, const Words& more) {
  return with({program("train_imagenet"), "--device=cpu", "--batchsize=2", "--epoch=1",
               "--loaderjob=2", "--out=" + out},
              more);
}

TEST(ImagenetExample, TrainsOnMadePictures) {
  const TempFolder out;
  const Finished result =
      run(train(out / "out", {"--synthetic=4", "--summary", "--graph-dot=" + (out / "graph.dot")}));
  EXPECT_EQ(result.status, 0) << result.all();
  expect_contains(result.out, {"train loss", "test accuracy", "block4/b", "7,595,176"});
  expect_contains(read_file(out / "graph.dot"), {"digraph"});
  EXPECT_EQ(load_npz(out / "out/model.npz").size(), 24u);
}

#ifdef CATENA_RUN
TEST(ImagenetExample, TrainsOnRanks) {
  const TempFolder out;
  Words one = train(out / "out", {"--synthetic=4"});
  one.erase(one.begin() + 1);
  const Finished result = run(on_ranks(2, one));
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_TRUE(std::filesystem::exists(out / "out/model.npz"));
}
#endif

#if defined(EXAMPLES_HAVE_JPEG) && defined(EXAMPLES_HAVE_PNG)

// Four pictures of plain colours, of which one is cut short, and lists of them.
class Pictures {
 public:
  Pictures() {
    const auto plain = [](int value) {
      return [=](auto, auto, auto channel) { return value + 10 * static_cast<int>(channel); };
    };
    write_png(folder_ / "a.png", 240, 300, 3, plain(20));
    write_png(folder_ / "b.png", 256, 256, 3, plain(60));
    write_jpeg(folder_ / "c.jpg", 256, 250, 1, [](auto, auto, auto) { return 100; });
    write_jpeg(folder_ / "d.jpg", 256, 250, 3, plain(100));
    std::filesystem::resize_file(folder_ / "d.jpg",
                                 std::filesystem::file_size(folder_ / "d.jpg") / 2);
    write_file(folder_ / "list", "a.png 1\nb.png 2\nc.jpg 3\nd.jpg 4\n");
  }
  std::string list() const { return folder_ / "list"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  Finished compute_mean(const Words& more) const {
    return run(with({program("compute_mean"), list(), "--root", folder_.path()}, more));
  }

 private:
  TempFolder folder_;
};

TEST(ImagenetExample, ComputesTheMean) {
  const Pictures pictures;
  const Finished result = pictures.compute_mean({"--size=230", "--output", pictures / "mean.npy"});
  EXPECT_EQ(result.status, 0) << result.all();
  expect_contains(result.out, {"mean of 3 pictures", "mean.npy'; 1 were skipped"});
  expect_contains(result.err, {"skipped '", "d.jpg': libjpeg: Premature end of JPEG file"});
  const Array mean = load(pictures / "mean.npy");
  EXPECT_EQ(mean.shape(), (Shape{3, 230, 230}));
  const std::vector<float> found = mean.to_vector<float>();
  for (size_t i = 0; i < found.size(); ++i) {
    const double channel = double(i / (230 * 230));
    ASSERT_NEAR(found[i], (20 + 60 + 20 * channel + 100) / 3, 1e-3) << i;
  }
  const Finished other =
      pictures.compute_mean({"--size=230", "-j", "1", "-o", pictures / "other.npy"});
  EXPECT_EQ(read_file(pictures / "mean.npy"), read_file(pictures / "other.npy"));
}

TEST(ImagenetExample, Trains) {
  const Pictures pictures;
  const TempFolder out;
  ASSERT_EQ(pictures.compute_mean({"--output", pictures / "mean.npy"}).status, 0);
  const Finished result =
      run(train(out / "out", {"--mean", pictures / "mean.npy", "--root",
                              std::filesystem::path(pictures.list()).parent_path().string(),
                              pictures.list(), pictures.list()}));
  EXPECT_EQ(result.status, 0) << result.all();
  expect_contains(result.err, {"skipped '", "d.jpg'"});
  const std::string log = read_file(out / "out/log.json");
  // Once in training and once in validation.
  expect_contains(log, {"train_loss", "test_accuracy", "\"skipped\": 2"});
  EXPECT_EQ(log.find("null"), std::string::npos) << log;
  const Words from{pictures.list(), pictures / "x.npy", "--root",
                   std::filesystem::path(pictures.list()).parent_path().string()};
  Words make{program("make_records")};
  make.insert(make.end(), from.begin(), from.end());
  const Finished made = run(make);
  expect_contains(made.out, {"3 pictures are in '", "x.npy'; 1 were skipped"});
  const Finished again = run(train(
      out / "again", {"--mean", pictures / "mean.npy", pictures / "x.npy", pictures / "x.npy"}));
  EXPECT_EQ(again.status, 0) << again.all();
  expect_contains(read_file(out / "again/log.json"), {"\"skipped\": 0"});
  const Finished small = pictures.compute_mean({"--size=100", "--output", pictures / "small.npy"});
  const Finished refused =
      run(train(out / "no", {"--mean", pictures / "small.npy", pictures.list(), pictures.list()}));
  EXPECT_EQ(refused.status, 1) << refused.all();
  expect_contains(refused.err, {"--mean: '", "(3, 100, 100)", "227 x 227", "compute_mean"});
}

#endif

TEST(ImagenetExample, SaysWhatIsWrong) {
  const TempFolder out;
  const auto problem = [&](const Words& more) {
    const Finished result = run(train(out / "out", more));
    EXPECT_NE(result.status, 0) << result.all();
    EXPECT_LT(result.status, 128) << result.all();
    return result.err;
  };
  expect_contains(problem({}), {"there are no pictures", "lists", "--synthetic N"});
  expect_contains(problem({"list"}), {"val"});
  expect_contains(problem({"list", "list", "--synthetic=3"}), {"--synthetic"});
  expect_contains(problem({"list", "list", "--mean", out / "no.npy"}),
                  {"--mean: ", "no.npy", "compute_mean makes"});
  expect_contains(problem({"--synthetic=4", "--arch=vgg"}), {"--arch", "vgg", "googlenetbn"});
  expect_contains(problem({"--synthetic=0"}), {"--synthetic", "above 0"});
  expect_contains(problem({"--synthetic=1"}), {"1"});
  const Finished missing = run({program("compute_mean"), out / "nothing"});
  EXPECT_EQ(missing.status, 1);
  expect_contains(missing.err, {"the list '", "nothing' cannot be read"});
}

}  // namespace
}  // namespace catena::test
