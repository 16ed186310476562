#include "core/disk_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "catena/core/error.h"
#include "environment_scope.h"

namespace catena {
namespace {

namespace fs = std::filesystem;

class CacheFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/catena_cache_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_F(CacheFiles, MakesAValueOnce) {
  const DiskCache cache(folder_);
  const Hash128 key = hash128("some kernel");
  int calls = 0;
  bool made = false;
  const auto make = [&] {
    ++calls;
    return std::string(5000, 'x') + '\0' + "end";
  };
  const std::string first = cache.get(key, make, &made);
  EXPECT_TRUE(made);
  EXPECT_EQ(cache.get(key, make, &made), first);
  EXPECT_FALSE(made);
  EXPECT_EQ(calls, 1);
  std::string other;
  EXPECT_FALSE(cache.read(hash128("another kernel"), other));
}

TEST_F(CacheFiles, KindsAreApart) {
  const DiskCache kernels(folder_), plans(folder_, kPlanCache);
  const Hash128 key = hash128("one key");
  bool made = false;
  kernels.get(
      key, [] { return std::string("a kernel"); }, &made);
  EXPECT_EQ(plans.get(
                key, [] { return std::string("a plan"); }, &made),
            "a plan");
  EXPECT_TRUE(made);
  EXPECT_TRUE(fs::exists(folder_ + "/plans/" + to_hex(key) + ".plan"));
  std::string value;
  EXPECT_TRUE(kernels.read(key, value));
  EXPECT_EQ(value, "a kernel");
  EXPECT_EQ(kernels.uses().hits, 1u);
  EXPECT_EQ(plans.uses().hits, 0u);
  EXPECT_EQ(plans.uses().misses, 1u);
}

// Such as a plan of a library that refuses it now.
TEST_F(CacheFiles, RefusedValuesAreMadeAgainAndReplaced) {
  const DiskCache cache(folder_, kPlanCache);
  const Hash128 key = hash128("problem");
  bool made = false;
  cache.get(
      key, [] { return std::string("old"); }, &made);
  const auto is_new = [](const std::string& value) { return value == "new"; };
  std::string value;
  EXPECT_FALSE(cache.read(key, value, is_new));
  const auto make = [] { return std::string("new"); };
  EXPECT_EQ(cache.get(key, make, &made, is_new), "new");
  EXPECT_TRUE(made);
  EXPECT_EQ(cache.get(key, make, &made, is_new), "new");
  EXPECT_FALSE(made);
  EXPECT_EQ(cache.uses().hits, 1u);  // not of the refused value
}

TEST_F(CacheFiles, EmptyValuesAreNotKept) {
  const DiskCache cache(folder_, kPlanCache);
  bool made = false;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache.get(
                  hash128("problem"), [] { return std::string(); }, &made),
              "");
    EXPECT_TRUE(made);
  }
  EXPECT_FALSE(fs::exists(folder_ + "/plans/" + to_hex(hash128("problem")) + ".plan"));
}

TEST_F(CacheFiles, CountsTheUsesOfAllProcesses) {
  const DiskCache cache(folder_);
  EXPECT_EQ(cache.uses().hits + cache.uses().misses, 0u);
  bool made = false;
  const auto make = [] { return std::string("a compiled kernel"); };
  std::string value;
  EXPECT_FALSE(cache.read(hash128("kernel"), value));  // only what had to be made is a miss
  cache.get(hash128("kernel"), make, &made);
  cache.get(hash128("another"), make, &made);
  cache.get(hash128("kernel"), make, &made);
  EXPECT_TRUE(DiskCache(folder_).read(hash128("kernel"), value));
  EXPECT_EQ(DiskCache(folder_).uses().hits, 2u);
  EXPECT_EQ(DiskCache(folder_).uses().misses, 2u);
  EXPECT_EQ(DiskCache("").uses().hits, 0u);
}

TEST_F(CacheFiles, DamagedFilesAreMadeAgain) {
  const DiskCache cache(folder_);
  const Hash128 key = hash128("kernel");
  bool made = false;
  const auto make = [] { return std::string("a compiled kernel"); };
  cache.get(key, make, &made);
  const std::string path = folder_ + "/kernels/" + to_hex(key) + ".cubin";
  ASSERT_TRUE(fs::exists(path));
  const auto size = fs::file_size(path);
  for (const int damage : {0, 1, 2}) {
    if (damage == 0) {  // one bit of the value
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(size) - 3);
      file.put('#');
    } else {  // cut short, emptied
      fs::resize_file(path, damage == 1 ? size - 4 : 0);
    }
    std::string value;
    EXPECT_FALSE(cache.read(key, value)) << "damage " << damage;
    EXPECT_EQ(cache.get(key, make, &made), "a compiled kernel");
    EXPECT_TRUE(made) << "damage " << damage;
    EXPECT_TRUE(cache.read(key, value));
  }
}

// In a folder that others may write: pipes are not waited for, links are not followed.
TEST_F(CacheFiles, PlantedPipesAndLinksDoNoHarm) {
  const Hash128 key = hash128("kernel");
  const std::string name = folder_ + "/kernels/" + to_hex(key), thesis = folder_ + "/thesis";
  fs::create_directories(folder_ + "/kernels");
  std::ofstream(thesis) << "kept";
  ASSERT_EQ(mkfifo((folder_ + "/kernels/counts").c_str(), 0666), 0);
  ASSERT_EQ(mkfifo((name + ".cubin").c_str(), 0666), 0);
  fs::create_symlink(thesis, name + ".lock");
  fs::create_symlink(thesis, name + ".tmp" + std::to_string(getpid()) + "_0");
  bool made = false;
  const auto make = [] { return std::string("a compiled kernel"); };
  EXPECT_EQ(DiskCache(folder_).get(key, make, &made), "a compiled kernel");
  EXPECT_TRUE(made);
  EXPECT_EQ(DiskCache(folder_).uses().hits, 0u);
  EXPECT_EQ(DiskCache(folder_).get(key, make, &made), "a compiled kernel");
  EXPECT_FALSE(made);  // the pipe was replaced
  EXPECT_EQ(fs::file_size(thesis), 4u);
}

// A value that others may have written, and one that was put under the name of another key.
TEST_F(CacheFiles, PlantedValuesAreMadeAgain) {
  const DiskCache cache(folder_);
  const Hash128 key = hash128("kernel"), other = hash128("another kernel");
  const auto path = [&](const Hash128& of) {
    return folder_ + "/kernels/" + to_hex(of) + ".cubin";
  };
  const auto make = [] { return std::string("a compiled kernel"); };
  bool made = false;
  cache.get(
      other, [] { return std::string("a planted kernel"); }, &made);
  std::vector<std::function<void()>> plants = {[&] { fs::copy_file(path(other), path(key)); },
                                               [&] { ::chmod(path(key).c_str(), 0666); },
                                               [&] { ::chmod(path(key).c_str(), 0664); }};
  if (::geteuid() == 0)
    plants.push_back([&] { ASSERT_EQ(::chown(path(key).c_str(), 65534, 0), 0); });
  for (size_t k = 0; k < plants.size(); ++k) {
    plants[k]();
    std::string value;
    EXPECT_FALSE(cache.read(key, value)) << "plant " << k;
    EXPECT_EQ(cache.get(key, make, &made), "a compiled kernel");
    EXPECT_TRUE(made) << "plant " << k;
    EXPECT_TRUE(cache.read(key, value));
  }
}

TEST_F(CacheFiles, LocksThatOthersCanHoldAreNotWaitedFor) {
  const Hash128 key = hash128("kernel");
  fs::create_directories(folder_ + "/kernels");
  std::vector<int> files;
  for (const std::string& name : {to_hex(key) + ".lock", std::string("counts")}) {
    files.push_back(::open((folder_ + "/kernels/" + name).c_str(), O_RDWR | O_CREAT, 0644));
    ASSERT_EQ(::flock(files.back(), LOCK_EX), 0);
  }
  bool made = false;
  const auto make = [] { return std::string("a compiled kernel"); };
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(DiskCache(folder_).get(key, make, &made), "a compiled kernel");
  EXPECT_FALSE(made);
  for (const int file : files) ::close(file);
}

TEST_F(CacheFiles, SeveralProcessesMakeItOnce) {
  const Hash128 key = hash128("shared kernel");
  const std::string log = folder_ + "/calls";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      bool made = false;
      const std::string value = DiskCache(folder_).get(
          key,
          [&] {
            std::ofstream(log, std::ios::app) << "called\n";
            usleep(200000);
            return std::string("result");
          },
          &made);
      _exit(value == "result" ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::ifstream calls(log);
  std::string line;
  int count = 0;
  while (std::getline(calls, line)) ++count;
  EXPECT_EQ(count, 1);
}

// The folder that the environment names, with those variables set and the others not.
std::string folder_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  EnvironmentScope environment;
  for (const char* name : {"CATENA_CACHE_DIR", "CUPY_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
    environment.set(name, {});
  for (const auto& [name, value] : variables) environment.set(name, value);
  return cache_folder();
}

TEST_F(CacheFiles, TheEnvironmentNamesTheFolder) {
  EXPECT_EQ(folder_with({}), "");
  EXPECT_EQ(folder_with({{"HOME", "/h"}}), "/h/.cache/catena");
  EXPECT_EQ(folder_with({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}), "/x/catena");
  EXPECT_EQ(folder_with({{"XDG_CACHE_HOME", "/x"}, {"CUPY_CACHE_DIR", "/c"}}), "/c");
  EXPECT_EQ(folder_with({{"CUPY_CACHE_DIR", "/c"}, {"CATENA_CACHE_DIR", "/k"}}), "/k");
  EXPECT_EQ(folder_with({{"CUPY_CACHE_DIR", "/c"}, {"CATENA_CACHE_DIR", ""}}), "")
      << "none is kept";
}

TEST_F(CacheFiles, WorksWithoutAFolder) {
  bool made = false;
  EXPECT_EQ(DiskCache("").get(
                hash128("k"), [] { return std::string("v"); }, &made),
            "v");
  EXPECT_TRUE(made);
  EXPECT_EQ(DiskCache("/proc/no/such/place")
                .get(
                    hash128("k"), [] { return std::string("v"); }, &made),
            "v");
}

TEST(Hash, DependsOnEveryByteAndTheLength) {
  const std::string text(1000, 'q');
  const Hash128 original = hash128(text);
  for (size_t i = 0; i < text.size(); i += 37) {
    std::string changed = text;
    changed[i] = 'r';
    EXPECT_NE(hash128(changed), original);
  }
  EXPECT_NE(hash128(text + std::string(1, '\0')), original);
  EXPECT_EQ(to_hex({0x0123456789abcdefu, 0xfedcba9876543210u}), "0123456789abcdeffedcba9876543210");
}

}  // namespace
}  // namespace catena
