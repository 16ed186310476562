// train_gan: alone, and on two ranks under the launcher; train_gan_split on its two ranks.
#include <gtest/gtest.h>

#include <algorithm>

#include "catena/array/io.h"
#include "catena/testing.h"
#include "examples.h"

namespace catena::test {
namespace {

void expect_a_gan(const Finished& result, const std::string& out) {
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_TRUE(
      std::regex_search(result.out, std::regex("epoch .*dis loss .*gen loss .*real .*fake")))
      << result.all();
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 3) << "two epochs";
  EXPECT_EQ(result.out.find("nan"), std::string::npos) << result.out;
  const std::string picture = read_file(out + "/samples.pgm");
  EXPECT_EQ(picture.size(), std::string("P5 224 224 255\n").size() + 224 * 224);
  const auto generator = load_npz(out + "/generator.npz");
  EXPECT_TRUE(generator.contains("bn1/avg_mean") && generator.contains("l3/W"));
}

Words short_run(const SmallData& data, const std::string& out,
                const std::string& name = "train_gan") {
  return {program(name), "--data", data.path(), "--out", out, "--short", "--batchsize", "32"};
}

TEST(GanExample, TrainsAlone) {
  const SmallData data;
  const TempFolder folder;
  expect_a_gan(run(short_run(data, folder / "out")), folder / "out");
  EXPECT_EQ(run({program("train_gan"), "--epoch-count", "3"}).status, 2);
}

// The rate rises in the first epoch, and both optimizers have moments: all of it is resumed.
TEST(GanExample, GoesOnAsIfItHadNotEnded) {
  const SmallData data;
  const TempFolder folder;
  const auto train = [&](const std::string& out, const Words& more) {
    const Finished result = run(with({program("train_gan"), "--device=cpu", "--data=" + data.path(),
                                      "--batchsize=100", "--warmup=2", "--out=" + (folder / out)},
                                     more));
    EXPECT_EQ(result.status, 0) << result.all();
  };
  train("whole", {"--epoch=3"});
  train("parts", {"--epoch=1"});
  const std::string whole = folder / "whole/generator.npz", parts = folder / "parts/generator.npz";
  EXPECT_NE(testing::difference(load_npz(whole).at("l3/W"), load_npz(parts).at("l3/W")), "");
  train("parts", {"--epoch=3", "--resume"});
  expect_equal_arrays(whole, parts);
  EXPECT_EQ(read_file(folder / "whole/samples.pgm"), read_file(folder / "parts/samples.pgm"));
}

#ifdef CATENA_RUN
TEST(GanExample, TrainsOnTwoRanks) {
  const SmallData data;
  const TempFolder folder;
  expect_a_gan(run(on_ranks(2, short_run(data, folder / "out"))), folder / "out");
}

TEST(GanExample, TrainsWithOneNetworkOnEachRank) {
  const SmallData data;
  const TempFolder folder;
  const Words own = short_run(data, folder / "out", "train_gan_split");
  expect_a_gan(run(on_ranks(2, own)), folder / "out");
  EXPECT_EQ(run(own).status, 1) << "it is for two ranks";
}
#endif

}  // namespace
}  // namespace catena::test
