// Output folders and snapshots.
#include "catena/training/snapshot.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

TEST(OutputFolder, IsCreatedAndProbed) {
  TempFolder folder;
  prepare_output_folder(folder / "a/b");
  prepare_output_folder(folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a/b"));
}

TEST(OutputFolder, UnwritableOnesAreErrors) {
  TempFolder folder;
  write_file(folder / "file", "");
  for (const std::string& path :
       {folder / "file", folder / "file/below", std::string("/proc/catena"), std::string()}) {
    try {
      prepare_output_folder(path);
      ADD_FAILURE() << path;
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find("output folder"), std::string::npos) << error.what();
      if (!path.empty()) {
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Snapshot, PartsRoundTrip) {
  TempFolder folder;
  Snapshot snapshot;
  snapshot.set("model", {{"l1/W", array({1.f, 2.f})}, {"l1/b", array({3.f})}});
  snapshot.set("optimizer", NamedArrays{});
  snapshot.set("random", pack({~uint64_t{0}, 5}));
  snapshot.save(folder / "s.npz");
  const Snapshot loaded = Snapshot::load(folder / "s.npz");
  const auto model = loaded.part("model");
  ASSERT_EQ(model.size(), 2u);
  EXPECT_EQ(model.at("l1/W").to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_TRUE(loaded.has("optimizer"));
  EXPECT_TRUE(loaded.part("optimizer").empty());
  const auto state = unpack_random_state(loaded.array("random"));
  EXPECT_EQ(state.seed, ~uint64_t{0});
  EXPECT_EQ(state.offset, 5u);
}

TEST(Snapshot, Errors) {
  TempFolder folder;
  Snapshot snapshot;
  snapshot.set("model", {{"W", array({1.f})}});
  EXPECT_THROW(snapshot.set("model", NamedArrays{}), ValueError);
  EXPECT_FALSE(snapshot.has("mod"));
  EXPECT_THROW(snapshot.part("mod"), ValueError);
  EXPECT_THROW(snapshot.array("model"), ValueError);
  EXPECT_THROW(snapshot.save(folder / "none/s.npz"), IoError);
  EXPECT_THROW(Snapshot::load(folder / "none.npz"), IoError);
  EXPECT_THROW(unpack_random_state(array({1.f, 2.f})), ValueError);
}

}  // namespace
}  // namespace catena::training
