// Helpers of the tests of the example programs: a small data set and a way to run a program.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "catena/array/io.h"
#include "catena/testing.h"
#include "temp_folder.h"

namespace catena::test {

using Words = std::vector<std::string>;

inline std::string program(const std::string& name) { return std::string(PROGRAMS "/") + name; }

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
#ifdef CATENA_RUN
inline Words on_ranks(int ranks, const Words& own) {
  return with({CATENA_RUN, "-n", std::to_string(ranks), "--cpu"}, own);
}
#endif

struct Finished {
  int status = -1;  // exit code, or 128 + signal; 124 after the time limit
  std::string out, err;

  std::string all() const { return out + err; }
  // The last line of standard output.
  std::string last_line() const {
    const size_t end = out.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    const size_t before = out.find_last_of('\n', end);
    return out.substr(before == std::string::npos ? 0 : before + 1,
                      end - (before == std::string::npos ? 0 : before + 1) + 1);
  }
};

// A signal that a program gets once there is a file.
struct Sent {
  int signal = 0;
  std::string once;
};

// Runs a program to its end, at most 60 seconds. One thread a process: the sizes are tiny, and
// equal bits are promised for equal numbers of threads.
inline Finished run(const Words& words, Sent sent = {}) {
  const TempFolder logs;
  const std::string out = logs / "out", err = logs / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    // As on a terminal, although the tests may run in the background.
    for (const int number : {SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  Finished result;
  int status = 0;
  const auto start = std::chrono::steady_clock::now();
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(60)) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      status = 124 << 8;
      break;
    }
    if (sent.signal != 0 && std::filesystem::exists(sent.once)) {
      ::kill(child, sent.signal);
      sent.signal = 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

// By a Python that may have PyTorch: CATENA_TEST_TORCH_PYTHON, or python3.
inline std::string torch_python() {
  const char* const named = std::getenv("CATENA_TEST_TORCH_PYTHON");
  return named ? named : "python3";
}
inline Finished run_python(const std::string& arguments) {
  return run({"/bin/sh", "-c", "'" + torch_python() + "' " + arguments});
}

// The number behind these words, of a program that has ended well.
inline double number_behind(const std::string& words, const Finished& result) {
  EXPECT_EQ(result.status, 0) << result.all();
  const size_t at = result.out.find(words);
  EXPECT_NE(at, std::string::npos) << result.all();
  return at == std::string::npos ? 0 : std::stod(result.out.substr(at + words.size()));
}

// The arrays that two runs have saved, by absolute and relative tolerance.
inline void expect_equal_arrays(const std::string& path, const std::string& other,
                                double tolerance = 0) {
  const auto a = load_npz(path), b = load_npz(other);
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [name, array] : a)
    EXPECT_EQ(testing::difference(b.at(name), array, tolerance, tolerance), "") << name;
}

inline std::string big_endian(uint32_t number) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[size_t(i)] = static_cast<char>(number >> (24 - 8 * i));
  return bytes;
}

inline void write_gzipped(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr) << path;
  EXPECT_EQ(gzwrite(file, bytes.data(), unsigned(bytes.size())), int(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
}

// Random images with random labels as MNIST's four files, the images gzipped, the labels plain.
class SmallData {
 public:
  static constexpr uint32_t kTrain = 410, kTest = 100;  // the last batch of 100 is a short one

  explicit SmallData(uint32_t train = kTrain, uint32_t test = kTest) {
    write("train", train);
    write("t10k", test);
  }
  std::string path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  void write(const std::string& part, uint32_t count) {
    std::string images = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
    for (uint32_t i = 0; i < count * 28 * 28; ++i) images += static_cast<char>(random_() & 255);
    write_gzipped(folder_ / (part + "-images-idx3-ubyte.gz"), images);
    std::string labels = big_endian(0x801) + big_endian(count);
    for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(random_() % 10);
    write_file(folder_ / (part + "-labels-idx1-ubyte"), labels);
  }

  std::mt19937 random_{5};
  TempFolder folder_;
};

// Ended well, with the accuracy as the last line.
inline void expect_trained(const Finished& result) {
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_TRUE(std::regex_match(result.last_line(), std::regex("test accuracy [01]\\.[0-9]{4}")))
      << result.all();
}

}  // namespace catena::test
