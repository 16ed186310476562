// Each way in which a plug-in can be wrong has its own clear reason.
#include "catena/core/plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "catena/core/entry_scope.h"
#include "temp_folder.h"

namespace catena {
namespace {

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() { ::setenv("CATENA_PLUGIN_PATH", (folder_.path() + ":" TEST_PLUGINS).c_str(), 1); }
  ~PluginTest() override { ::unsetenv("CATENA_PLUGIN_PATH"); }

  TempFolder folder_;
};

void expect_contains(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST_F(PluginTest, IsEnteredOnce) {
  ::unsetenv("CATENA_TEST_ENTERED");
  EXPECT_EQ(load_plugin("usable"), "");
  EXPECT_EQ(load_plugin("usable"), "");
  EXPECT_STREQ(std::getenv("CATENA_TEST_ENTERED"), "x");
  EXPECT_EQ(plugin_error("usable"), "");
}

TEST_F(PluginTest, MissingNamesFileAndFolders) {
  expect_contains(load_plugin("nowhere"), {"'nowhere' is not built or not installed",
                                           "libcatena_nowhere.so", "CATENA_PLUGIN_PATH"});
  EXPECT_EQ(plugin_error("nowhere"), load_plugin("nowhere"));
  EXPECT_EQ(plugin_error("never tried"), "");
}

// Its entry function, which would end the process, must not be called.
TEST_F(PluginTest, OfAnotherBuildNamesBothAndWhatToDo) {
  expect_contains(load_plugin("other_build"),
                  {"'other_build' is of another build", TEST_PLUGINS "/libcatena_other_build.so",
                   "0.0.9-0123456789abcdef", abi_tag(), "rebuild the plug-in"});
}

// Also below a function whose name begins its errors: it puts the name in front once.
TEST_F(PluginTest, ThatRefusesKeepsItsReason) {
  const EntryScope call("to");
  EXPECT_EQ(load_plugin("unusable"), "plug-in 'unusable': the vendor library is too old");
}

TEST_F(PluginTest, ForeignLibraryIsNamed) {
  expect_contains(load_plugin("foreign"), {"libcatena_foreign.so is not a catena plug-in"});
}

TEST_F(PluginTest, DamagedFileKeepsTheLoadersWords) {
  write_file(folder_ / "libcatena_damaged.so", "no library");
  expect_contains(load_plugin("damaged"),
                  {"'damaged' does not load", folder_ / "libcatena_damaged.so"});
}

// The loader would map it whole and get SIGBUS.
TEST_F(PluginTest, FilesThatAreCutOffAreNamed) {
  const std::string whole = TEST_PLUGINS "/libcatena_unusable.so";
  const auto size = std::filesystem::file_size(whole);
  int number = 0;
  for (const auto kept : {size - 1, size - 4000, size / 2, std::uintmax_t{3000}}) {
    const std::string name = "cut" + std::to_string(++number);
    const std::string file = folder_ / ("libcatena_" + name + ".so");
    std::filesystem::copy(whole, file);
    std::filesystem::resize_file(file, kept);
    expect_contains(load_plugin(name.c_str()),
                    {"'" + name + "' does not load: " + file + " is cut off: it has " +
                         std::to_string(kept) + " of " + std::to_string(size) + " bytes",
                     "Install it again"});
  }
}

TEST_F(PluginTest, PipesAndFoldersOfThatNameAreNamed) {
  ASSERT_EQ(mkfifo((folder_ / "libcatena_pipe.so").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "libcatena_folder.so");
  for (const char* name : {"pipe", "folder"})
    expect_contains(load_plugin(name), {"libcatena_" + std::string(name) +
                                        ".so is not a regular "
                                        "file"});
}

TEST_F(PluginTest, MissingLibraryNamesItAndWhatToDo) {
  expect_contains(
      load_plugin("needy"),
      {"'needy' does not load: libcatena_test_vendor.so: cannot open shared object file",
       "; install this library, or set LD_LIBRARY_PATH", "catena-run --check"});
}

// Packages put plug-ins into a folder of their own.
TEST_F(PluginTest, IsFoundInTheFolderOfLibcatena) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&abi_tag), &info), 0);
  const std::filesystem::path folder =
      std::filesystem::canonical(info.dli_fname).parent_path() / "catena";
  const bool there = std::filesystem::exists(folder);
  std::filesystem::create_directory(folder);
  const auto file = folder / "libcatena_packaged.so";
  std::filesystem::copy(TEST_PLUGINS "/libcatena_unusable.so", file,
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(load_plugin("packaged"), "plug-in 'packaged': the vendor library is too old");
  std::filesystem::remove(file);
  if (!there) std::filesystem::remove(folder);
}

}  // namespace
}  // namespace catena
