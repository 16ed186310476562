// Pictures of memory profiles, read as text: they say what entries() say.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <barrier>
#include <boost/property_tree/xml_parser.hpp>
#include <chrono>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "catena/core/error.h"
#include "catena/core/memory_profile.h"
#include "core/memory_shares.h"
#include "core/svg_text.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena {
namespace {

// A picture that was written and read.
class Picture {
 public:
  explicit Picture(std::string text) : text_(std::move(text)) {
    std::istringstream in(text_);
    boost::property_tree::ptree tree;
    EXPECT_NO_THROW(boost::property_tree::read_xml(in, tree)) << text_;
  }
  explicit Picture(const MemoryProfile& profile, const MemoryPictureOptions& options = {})
      : Picture([&] {
          const TempFolder folder;
          profile.write_svg(folder / "memory.svg", options);
          EXPECT_EQ(folder.entries(), 1) << "nothing but the file is left";
          return read_file(folder / "memory.svg");
        }()) {}

  const std::string& text() const { return text_; }
  // Bytes at the peak by the names in the table.
  std::map<std::string, size_t> table() const {
    std::map<std::string, size_t> rows;
    const std::regex row("<g><title>(.*): ([0-9,]+) bytes at the peak</title><rect");
    for (std::sregex_iterator i(text_.begin(), text_.end(), row), end; i != end; ++i)
      rows[(*i)[1]] = number((*i)[2]);
    return rows;
  }
  size_t peak() const {
    std::smatch found;
    EXPECT_TRUE(
        std::regex_search(text_, found, std::regex("<title>([0-9,]+) bytes at the peak</title>")));
    return found.empty() ? 0 : number(found[1]);
  }
  // When the peak was, in milliseconds.
  double peak_ms() const {
    std::smatch found;
    EXPECT_TRUE(
        std::regex_search(text_, found, std::regex(">peak [0-9.]+ .?i?B at ([0-9.]+) ms<")));
    return found.empty() ? -1 : std::stod(found[1]);
  }
  // Heights of the areas over the base, that of everything first, in pixels.
  std::vector<double> heights() const {
    std::vector<double> result;
    const std::regex area("<path fill=\"[^\"]*\" d=\"M[0-9.]+ ([0-9.]+)([^\"]*)\"");
    for (std::sregex_iterator i(text_.begin(), text_.end(), area), end; i != end; ++i) {
      const std::string steps = (*i)[2];
      const double base = std::stod((*i)[1]);
      double top = base;
      const std::regex vertical("V([0-9.]+)");
      for (std::sregex_iterator v(steps.begin(), steps.end(), vertical); v != end; ++v)
        top = std::min(top, std::stod((*v)[1]));
      result.push_back(base - top);
    }
    return result;
  }

 private:
  static size_t number(std::string text) {
    std::erase(text, ',');
    return std::stoull(text);
  }
  std::string text_;
};

StoragePtr block(const char* caller, size_t bytes, Device device = cpu(0)) {
  const CallScope scope(caller);
  return allocate(device, bytes);
}

size_t held(const MemoryProfile& profile) {
  size_t sum = 0;
  for (const auto& e : profile.entries()) sum += e.held;
  return sum;
}

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

TEST(MemoryPicture, SaysWhatTheEntriesSay) {
  const double before = now_ms();
  const MemoryProfile profile;
  const double begun = now_ms();
  double least_ms = 0, most_ms = 0;
  const StoragePtr kept = block("weights", 3 << 20);
  std::map<std::string, size_t> at_peak;
  size_t peak = 0;
  {
    StoragePtr early = block("early", 1 << 20);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // for some pixels
    early = {};
    const StoragePtr a = block("forward", 1'000'000), b = block("forward", 500'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    least_ms = now_ms() - begun;
    const StoragePtr c = block("loss", 700'000);
    most_ms = now_ms() - before;
    for (const auto& e : profile.entries()) at_peak[e.call] = e.held;
    peak = held(profile);
  }
  const StoragePtr after = block("after", 1000);
  at_peak["after"] = 0;
  const Picture picture(profile);
  EXPECT_EQ(picture.table(), at_peak);
  EXPECT_EQ(picture.peak(), peak);
  EXPECT_LT(held(profile), peak);
  EXPECT_GE(picture.peak_ms(), least_ms - 0.1);
  EXPECT_LE(picture.peak_ms(), most_ms + 0.1);
  expect_contains(picture.text(), {"Memory of cpu:0", ">peak 5.3 MiB at ", " MiB</text>"});
  EXPECT_EQ(picture.text().find("<script"), std::string::npos);
  // The areas by their first allocation, from the top: "after", "loss", "forward", "early",
  // "weights". The table has them by bytes.
  const std::vector<double> heights = picture.heights();
  ASSERT_EQ(heights.size(), 5u);
  const double pixel = heights[1] / double(peak);
  EXPECT_GT(heights[1], 200);
  EXPECT_NEAR(heights[2], pixel * double(peak - at_peak["loss"]), 0.2);
  EXPECT_NEAR(heights[3], pixel * double(at_peak["weights"] + (1 << 20)), 0.2);
  EXPECT_NEAR(heights[4], pixel * double(at_peak["weights"]), 0.2);
  EXPECT_LT(picture.text().rfind("weights: "), picture.text().rfind("forward: "));
}

TEST(MemoryPicture, ShowsThePeakOfManyThreads) {
  constexpr size_t kThreads = 4, kBlocks = 10000;
  MemoryProfile profile;
  std::barrier all_hold(kThreads + 1), all_seen(kThreads + 1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::string name = "worker " + std::to_string(t);
      std::vector<StoragePtr> blocks;
      for (size_t i = 0; i < kBlocks; ++i) {
        block(name.c_str(), 8 * i);
        blocks.push_back(block(name.c_str(), 64 * (t + 1)));
      }
      all_hold.arrive_and_wait();
      all_seen.arrive_and_wait();
      while (!blocks.empty()) blocks.pop_back();
    });
  all_hold.arrive_and_wait();
  const StoragePtr last = block("last", 1 << 20);  // higher than what was released before
  std::map<std::string, size_t> at_peak;
  for (const auto& e : profile.entries()) at_peak[e.call] = e.held;
  const size_t peak = held(profile);
  all_seen.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  const Picture picture(profile);
  EXPECT_EQ(picture.table(), at_peak);
  EXPECT_EQ(picture.peak(), peak);
  EXPECT_EQ(at_peak.size(), kThreads + 1);
}

TEST(MemoryPicture, ThinsOutWithoutLosingThePeak) {
  MemoryProfile profile;
  const auto churn = [] {
    for (int i = 0; i < 100'000; ++i) block("small", 64);
  };
  churn();
  size_t peak = 0;
  {
    const StoragePtr high = block("high", 5 << 20), more = block("more", 1 << 20);
    peak = held(profile);
  }
  churn();
  const Picture picture(profile);
  EXPECT_EQ(picture.peak(), peak);
  EXPECT_EQ(picture.table(),
            (std::map<std::string, size_t>{{"high", 5 << 20}, {"more", 1 << 20}, {"small", 0}}));
  EXPECT_LT(picture.text().size(), 100'000u);
}

TEST(MemoryPicture, FoldsDeepPaths) {
  MemoryProfile profile;
  const CallScope step("step");
  const StoragePtr own = allocate(cpu(0), 4096);
  const CallScope layer("layer");
  const StoragePtr x = block("matmul", 8192), y = block("add", 16384);
  using Table = std::map<std::string, size_t>;
  EXPECT_EQ(Picture(profile).table(), (Table{{"step", 4096}, {"step/layer", 24576}}));
  EXPECT_EQ(Picture(profile, {.levels = 1}).table(), (Table{{"step", 28672}}));
  EXPECT_EQ(Picture(profile, {.levels = 0}).table(),
            (Table{{"step", 4096}, {"step/layer/matmul", 8192}, {"step/layer/add", 16384}}));
  EXPECT_EQ(outermost("a/b/c", 3), "a/b/c");
  EXPECT_EQ(outermost("a/b/c", 2), "a/b");
}

TEST(MemoryPicture, ShowsSomeByNameAndTheOthersTogether) {
  MemoryProfile profile;
  std::vector<StoragePtr> blocks;
  for (size_t i = 1; i <= 20; ++i)
    blocks.push_back(block(("caller " + std::to_string(i)).c_str(), i < 18 ? 4096 : i << 20));
  const auto table = Picture(profile, {.callers = 3}).table();
  EXPECT_EQ(table, (std::map<std::string, size_t>{{"caller 20", 20 << 20},
                                                  {"caller 19", 20 << 20},
                                                  {"caller 18", 20 << 20},
                                                  {"others (17 callers)", 17 * 4096}}))
      << "the pool's sizes are 16 and 20 MiB";
  EXPECT_EQ(Picture(profile, {.callers = 12}).table().size(), 13u);
}

TEST(MemoryPicture, HasAPanelForEachDevice) {
  MemoryProfile profile;
  const StoragePtr x = block("first", 4096), y = block("second", 8192, cpu(1));
  const Picture both(profile);
  expect_contains(both.text(),
                  {"Memory of cpu:0", "Memory of cpu:1", "first: 4,096", "second: 8,"});
  const Picture one(profile, {.device = cpu(1), .width = 500});
  EXPECT_EQ(one.table(), (std::map<std::string, size_t>{{"second", 8192}}));
  expect_contains(one.text(), {"viewBox=\"0 0 500 "});
  expect_contains(Picture(profile, {.device = cpu(7)}).text(),
                  {"Memory of cpu:7", "Nothing was allocated"});
}

TEST(MemoryPicture, OfAnEmptyProfileSaysSo) {
  const MemoryProfile profile;
  const Picture picture(profile);
  expect_contains(picture.text(), {"Memory of cpu:0", "Nothing was allocated"});
  EXPECT_TRUE(picture.table().empty());
}

TEST(MemoryPicture, EscapesNames) {
  MemoryProfile profile;
  const StoragePtr x = block("<script>\"a\" & b\x01\xff</script>", 4096);
  const StoragePtr y = block(
      "gr\xc3\xb6\xc3\x9f"
      "er",
      64);
  const Picture picture(profile, {.levels = 0});
  EXPECT_EQ(picture.text().find("<script"), std::string::npos);
  expect_contains(picture.text(),
                  {"&lt;script&gt;&quot;a&quot; &amp; b\xef\xbf\xbd\xef\xbf\xbd&lt;/",
                   ">gr\xc3\xb6\xc3\x9f"
                   "er</text>"});
}

TEST(MemoryPicture, ShortensLongNames) {
  MemoryProfile profile;
  const std::string name = "first" + std::string(300, 'x') + "last";
  const StoragePtr x = block(name.c_str(), 4096);
  const Picture picture(profile);
  EXPECT_EQ(picture.table().begin()->first, name) << "in the tooltip it is whole";
  EXPECT_TRUE(std::regex_search(picture.text(),
                                std::regex(">firstx{20,60}\xe2\x80\xa6x{20,60}last</text>")));
  EXPECT_EQ(svg_shortened("ab\xc3\xb6<d", 4), "a\xe2\x80\xa6&lt;d");
  EXPECT_EQ(svg_shortened("ab\xc3\xb6<d", 5), "ab\xc3\xb6&lt;d");
}

TEST(MemoryPicture, TextIsWhatXmlAllows) {
  EXPECT_EQ(svg_escaped("a\tb"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(svg_escaped("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
  for (const char* wrong :
       {"\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xef\xbf\xbf"})
    EXPECT_EQ(svg_escaped(wrong).find(wrong), std::string::npos) << wrong;
}

TEST(MemoryPicture, SaysWhyAFileCannotBeWritten) {
  const MemoryProfile profile;
  const TempFolder folder;
  const auto error = [&](const std::string& path) {
    return error_of<IoError>([&] { profile.write_svg(path); });
  };
  expect_contains(error("/nowhere/memory.svg"),
                  {"MemoryProfile::write_svg: /nowhere/memory.svg cannot be written: No such file",
                   "give a file in a folder"});
  expect_contains(error(folder.path()), {"is not a regular file"});
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_contains(error(folder / "pipe"), {"is not a regular file"});
  EXPECT_EQ(folder.entries(), 1);
}

TEST(MemoryPicture, RefusesOptionsOutOfRange) {
  const MemoryProfile profile;
  const auto error = [&](const MemoryPictureOptions& options) {
    return error_of<ValueError>([&] { profile.write_svg("/nowhere/memory.svg", options); });
  };
  expect_contains(error({.callers = 0}), {"write_svg: callers is 0, expected 1 to 12"});
  expect_contains(error({.callers = 13}), {"callers is 13"});
  expect_contains(error({.levels = -1}), {"levels is -1, expected 0 for whole paths"});
  expect_contains(error({.width = 479}), {"width is 479, expected 480 to 10,000 pixels"});
}

int run_program(const std::string& settings) {
  const std::string command = "env " + settings + " 2> /dev/null";
  return std::system(command.c_str());
}

TEST(MemoryPicture, OfAWholeProgram) {
  const TempFolder folder;
  const std::string file = folder / "memory.svg";
  const std::string setting = "CATENA_MEMORY_PROFILE=" + file, program = CATENA_PICTURE_PROGRAM;
  EXPECT_EQ(run_program(setting + ' ' + program), 0);
  EXPECT_EQ(Picture(read_file(file)).table(),
            (std::map<std::string, size_t>{{"program", 3 << 20}}));
  EXPECT_NE(run_program(setting + ' ' + program + " throws"), 0);
  EXPECT_EQ(Picture(read_file(file)).peak(), size_t{3} << 20) << "of one that an exception ends";
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(run_program("CATENA_SIZE=4 CATENA_RANK=2 " + setting + ' ' + program), 0);
  EXPECT_EQ(Picture(read_file(folder / "memory.rank2.svg")).peak(), size_t{3} << 20);
  EXPECT_EQ(run_program("CATENA_MEMORY_PROFILE=/nowhere/memory.svg " + program), 0)
      << "a warning only";
}

}  // namespace
}  // namespace catena
