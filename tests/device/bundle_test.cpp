#include "backends/cuda/jit/compile/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "temp_folder.h"

namespace catena::jit {
namespace {

namespace fs = std::filesystem;

TEST(Bundle, RoundTripsAndRefusesDamage) {
  const TempFolder folder;
  std::map<Hash128, std::string> cubins;
  for (int i = 0; i < 100; ++i)
    cubins[hash128("k" + std::to_string(i))] = std::string(size_t(i * 7 + 1), char('a' + i % 26));
  const std::string path = folder.path() + "/test.bundle";
  write_bundle(path, cubins);
  {
    const auto bundle = Bundle::open(path);
    ASSERT_NE(bundle, nullptr);
    EXPECT_EQ(bundle->size(), cubins.size());
    for (const auto& [key, cubin] : cubins) {
      const auto found = bundle->find(key);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(*found, cubin);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found->data()) % 16, 0u);
    }
    for (int i = 0; i < 20; ++i)
      EXPECT_FALSE(bundle->find(hash128("absent" + std::to_string(i))).has_value());
  }
  std::string why;
  fs::resize_file(path, fs::file_size(path) - 10);
  EXPECT_EQ(Bundle::open(path, &why), nullptr);
  EXPECT_NE(why.find("cut short"), std::string::npos) << why;
  std::ofstream(path) << "something else that is long enough to have a header";
  EXPECT_EQ(Bundle::open(path, &why), nullptr);
  EXPECT_EQ(Bundle::open(folder.path() + "/missing", &why), nullptr);
}

}  // namespace
}  // namespace catena::jit
