// The variational auto-encoder learns, writes its pictures, goes on where it ended, and runs over
// ranks.
#include <gtest/gtest.h>

#include <fstream>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/testing.h"
#include "common/pictures.h"
#include "error_text.h"
#include "examples.h"

namespace catena::test {
namespace {

Words train(const SmallData& data, const std::string& out, const Words& more = {}) {
  return with({program("train_vae"), "--device=cpu", "--unit=20", "--dimz=3", "--batchsize=50",
               "--data=" + data.path(), "--out=" + out},
              more);
}

std::string read_header(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  return line;
}

// The numbers of a column of the table, a row each.
std::vector<double> column(const Finished& result, size_t place) {
  std::vector<double> numbers;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<double> row;
    for (double number; words >> number;) row.push_back(number);
    if (row.size() > place) numbers.push_back(row[place]);
  }
  return numbers;
}

TEST(VaeExample, LearnsAndDraws) {
  const SmallData data;
  const TempFolder out;
  const Finished result = run(train(data, out / "out", {"--epoch=4", "--draws=2"}));
  ASSERT_EQ(result.status, 0) << result.all();
  const std::vector<double> losses = column(result, 1);
  ASSERT_EQ(losses.size(), 4u) << result.all();
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_GT(losses.back(), 0);
  EXPECT_EQ(read_header(out / "out/samples.pgm"), "P5 224 224 255");
  EXPECT_EQ(read_header(out / "out/reconstructed.pgm"), "P5 224 56 255");
  EXPECT_EQ(read_file(out / "out/samples.pgm").size(), 15u + 224 * 224);
  EXPECT_EQ(load_npz(out / "out/model.npz").size(), 10u);
}

TEST(VaeExample, GoesOnAsIfItHadNotEnded) {
  const SmallData data;
  const TempFolder out;
  EXPECT_EQ(run(train(data, out / "whole", {"--epoch=2"})).status, 0);
  EXPECT_EQ(run(train(data, out / "parts", {"--epoch=1"})).status, 0);
  const Finished rest = run(train(data, out / "parts", {"--epoch=2", "--resume"}));
  EXPECT_EQ(rest.status, 0) << rest.all();
  expect_equal_arrays(out / "whole/model.npz", out / "parts/model.npz");
  const Finished nothing = run(train(data, out / "none", {"--resume"}));
  EXPECT_EQ(nothing.status, 1);
  expect_contains(nothing.err, {"--resume: there is no", "start without --resume"});
}

#ifdef CATENA_RUN
TEST(VaeExample, RunsOnRanks) {
  const SmallData data;
  const TempFolder out;
  const Finished result = run(on_ranks(3, train(data, out / "out", {"--epoch=2"})));
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_EQ(read_header(out / "out/samples.pgm"), "P5 224 224 255");
}
#endif

// Two images in rows of three: the third place is black.
TEST(Pictures, StandSideBySide) {
  const TempFolder folder;
  const Array images = array({{{0.0, 1.0}}, {{0.5, 2.0}}});
  examples::write_pictures(folder / "x.pgm", images, 3);
  EXPECT_EQ(read_file(folder / "x.pgm"), std::string("P5 6 1 255\n\x00\xff\x80\xff\x00\x00", 17));
  expect_contains(error_of<ShapeError>([&] {
                    examples::write_pictures(folder / "x.pgm", array({1.0, 2.0}), 3);
                  }),
                  {"(n, height, width)", "(2,)"});
  expect_contains(
      error_of<IoError>([&] { examples::write_pictures(folder / "no/x.pgm", images, 3); }),
      {"no/x.pgm' cannot be written"});
}

}  // namespace
}  // namespace catena::test
