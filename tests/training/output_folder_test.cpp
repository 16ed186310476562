// Output folders are made, and tried before a run starts.
#include "catena/training/output_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "catena/core/error.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

TEST(OutputFolder, IsCreatedAndProbed) {
  TempFolder folder;
  prepare_output_folder(folder / "a/b");
  prepare_output_folder(folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a/b"));
}

// The probe had a name that anybody could guess, and emptied what a link of that name leads to.
TEST(OutputFolder, TheProbeFollowsNoPlantedLink) {
  TempFolder folder;
  write_file(folder / "thesis", "kept");
  std::filesystem::create_directory(folder / "out");
  const std::string guess = "out/.writable." + std::to_string(::getpid());
  std::filesystem::create_symlink(folder / "thesis", folder / guess);
  prepare_output_folder(folder / "out");
  EXPECT_EQ(read_file(folder / "thesis"), "kept");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / guess));
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

}  // namespace
}  // namespace catena::training
