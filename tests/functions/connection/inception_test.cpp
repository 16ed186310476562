// The blocks of GoogLeNet: against their paths written out, their names, sizes and states.
#include "catena/functions/connection/inception.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "catena/serializers/npz.h"
#include "functions/functions_test_util.h"
#include "temp_folder.h"

namespace catena {
namespace {

class Inception : public OnDevice {
 protected:
  Variable images(const Shape& shape = {2, 5, 7, 9}) const {
    return Variable(draw(shape, -1, 1, 1, Dtype::kFloat32));
  }
};

// The largest of the 3 x 3 elements around each.
Array largest_around(const Array& x) {
  return F::max_pooling_2d(x, 3, {.stride = F::Extent2D(1), .pad = 1}).data();
}

TEST_P(Inception, JoinsItsPaths) {
  const DeviceScope scope(device());
  F::Inception block(5, 2, 3, 4, 2, 3, 1);
  EXPECT_EQ(
      block.parameter_names(),
      (std::vector<std::string>{"conv1/W", "conv1/b", "conv3/W", "conv3/b", "conv5/W", "conv5/b",
                                "proj3/W", "proj3/b", "proj5/W", "proj5/b", "projp/W", "projp/b"}));
  const Variable x = images(), y = block(x);
  ASSERT_EQ(y.shape(), (Shape{2, 2 + 4 + 3 + 1, 7, 9}));
  const Variables paths = {block.conv1(x), block.conv3(F::relu(block.proj3(x))),
                           block.conv5(F::relu(block.proj5(x))),
                           block.projp(largest_around(x.data()))};
  int64_t first = 0;
  for (const Variable& path : paths) {
    const int64_t channels = path.shape()[1];
    const Array part = y.data()(Slice(), Slice(first, first + channels));
    EXPECT_EQ(testing::difference(part, maximum(path.data(), 0.0f), 1e-6, 1e-6), "");
    first += channels;
  }
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  for (const Parameter& p : block.parameters()) EXPECT_TRUE(p.grad().defined());
}

TEST_P(Inception, RefusesChannelsBelowOne) {
  EXPECT_THROW(F::Inception(5, 0, 3, 4, 2, 3, 1), ValueError);
  EXPECT_THROW(F::Inception(5, 2, 3, 4, 2, 3, 1)(images({2, 4, 7, 9})), InvalidType);
}

class InceptionBN : public Inception {};

TEST_P(InceptionBN, OfStrideOneHasFourPaths) {
  const DeviceScope scope(device());
  F::InceptionBN block(5, 2, 3, 4, 3, 2, "avg", 1);
  const Variable x = images(), y = block(x, false);
  ASSERT_EQ(y.shape(), (Shape{2, 2 + 4 + 2 + 1, 7, 9}));
  // In test state, with statistics 0 and 1, each normalization divides by sqrt(1 + eps).
  const double factor = 1 / std::sqrt(1 + 2e-5);
  const auto normalized = [&](const Variable& h) { return F::relu(h * factor); };
  const Variable pool = F::average_pooling_2d(x, 3, {.stride = F::Extent2D(1), .pad = 1});
  const Variable expected =
      F::concat({normalized((*block.conv1)(x)), normalized(block.conv3(normalized(block.proj3(x)))),
                 normalized(block.conv33b(normalized(block.conv33a(normalized(block.proj33(x)))))),
                 normalized((*block.poolp)(pool))});
  EXPECT_EQ(testing::difference(y.data(), expected.data(), 1e-5, 1e-5), "");
  EXPECT_FALSE(block.conv1->b.defined());
}

TEST_P(InceptionBN, OfStrideTwoPassesTheImagesOn) {
  const DeviceScope scope(device());
  F::InceptionBN block(5, 0, 3, 4, 3, 2, "max", {}, 2);
  EXPECT_FALSE(block.conv1.has_value());
  EXPECT_FALSE(block.poolpn.has_value());
  const Variable x = images(), y = block(x);
  ASSERT_EQ(y.shape(), (Shape{2, 4 + 2 + 5, 4, 5}));
  const Array pool =
      largest_around(x.data())(Slice(), Slice(), Slice(none, none, 2), Slice(none, none, 2));
  EXPECT_EQ(testing::difference(y.data()(Slice(), Slice(6, none)), pool), "");
  // Convolutions round down, max pooling up, as in Chainer.
  EXPECT_THROW(block(images({2, 5, 8, 9})), InvalidType);
}

// Optional layers keep their names, and are copied, trained and saved with the others.
TEST_P(InceptionBN, IsAModel) {
  const DeviceScope scope(device());
  F::InceptionBN block(5, 2, 3, 4, 3, 2, "max", 1);
  const std::vector<std::string> names = block.parameter_names();
  for (const char* name : {"conv1/W", "conv1n/gamma", "poolp/W", "poolpn/beta", "proj33n/beta"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(&block["poolp"], &*block.poolp);
  const F::InceptionBN copy = block;
  const Variable x = images();
  const Array before = block(x, false).data();
  const Array trained = block(x).data();  // the batch's statistics, and other averages from now on
  EXPECT_NE(testing::difference(before, trained, 1e-3, 1e-3), "");
  EXPECT_EQ(testing::difference(copy(x, false).data(), before), "");
  block.eval();
  EXPECT_FALSE(block.conv1n->training());
  const TempFolder folder;
  serializers::save(folder / "m.npz", block);
  F::InceptionBN loaded(5, 2, 3, 4, 3, 2, "max", 1);
  serializers::load(folder / "m.npz", loaded);
  EXPECT_EQ(testing::difference(loaded(x, false).data(), block(x).data()), "");
}

TEST_P(InceptionBN, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(error_of<ValueError>([] { F::InceptionBN(5, 2, 3, 4, 3, 2, "mean", 1); }),
            "InceptionBN: expected the pooltype \"max\" or \"avg\", got \"mean\"");
  EXPECT_EQ(error_of<ValueError>([] { F::InceptionBN(5, 2, 3, 4, 3, 2, "max"); }),
            "InceptionBN: out1 is 2, which wants stride 1 and proj_pool; got stride 1 and no "
            "proj_pool; out1 0 leaves that path out");
  EXPECT_THROW(F::InceptionBN(5, 2, 3, 4, 3, 2, "max", 1, 2), ValueError);
  EXPECT_THROW(F::InceptionBN(5, -1, 3, 4, 3, 2, "max", 1), ValueError);
  EXPECT_THROW(F::InceptionBN(5, 0, 0, 4, 3, 2, "max", 1), ValueError);
}

CATENA_ON_DEVICES(Inception);
CATENA_ON_DEVICES(InceptionBN);

}  // namespace
}  // namespace catena
