#include "check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace catena::launch {
namespace {

using State = CheckItem::State;

TEST(Check, OneCommandInstallsEverythingMissing) {
  const std::string text = format_check({{State::good, "a", "fine", ""},
                                         {State::absent, "bb", "not needed", ""},
                                         {State::missing, "c", "not found", "pkg2 pkg1"},
                                         {State::missing, "d", "not found", "pkg1"}});
  EXPECT_EQ(text.find("ok       a   fine\n-        bb  not needed\nMISSING  c   not found\n"), 0u);
  EXPECT_NE(text.find("apt-get install pkg1 pkg2\n"), std::string::npos);
}

TEST(Check, NothingToInstall) {
  EXPECT_EQ(format_check({{State::good, "a", "fine", ""}}), "ok       a  fine\n");
}

TEST(Check, MissingMpirunNamesItsPackage) {
  const auto items = check_mpi("/nowhere/mpirun");
  EXPECT_EQ(items.front().state, State::missing);
  EXPECT_EQ(items.front().packages, "openmpi-bin");
}

TEST(Check, PluginThatDoesNotLoadSaysWhy) {
  const std::string folder = testing::TempDir() + "catena-check-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libcatena_cuda.so") << "no library";
  for (const CheckItem& item : check_plugins({folder})) {
    if (item.name != "libcatena_cuda") {
      EXPECT_EQ(item.state, State::absent) << item.name;
      continue;
    }
    EXPECT_EQ(item.state, State::missing);
    EXPECT_EQ(item.text.find("does not load: "), 0u) << item.text;
  }
  std::filesystem::remove_all(folder);
}

TEST(Check, LibrariesForGpusAreOnlyMissedBesideGpus) {
  for (const CheckItem& item : check_libraries(false))
    EXPECT_TRUE(item.state != State::missing || item.name == "OpenBLAS") << item.name;
}

}  // namespace
}  // namespace catena::launch
