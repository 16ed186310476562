// A disk that does not answer, for tests of saves that take long.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace catena::training {

// Rank 0's save hangs when it comes to the index, at most for so long: a pipe that is full is in
// its place.
class SlowIndex {
 public:
  SlowIndex(const std::string& folder, std::chrono::milliseconds held)
      : thread_([this, folder, held] { run(folder, held); }) {}
  ~SlowIndex() {
    is_over_ = true;
    let_go();
    thread_.join();
  }
  void let_go() { is_let_go_ = true; }

 private:
  void run(const std::string& folder, std::chrono::milliseconds held) {
    std::string path;
    while (path.empty() && !is_over_)
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".tmp") path = entry.path() / "index.json";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0) << "the save was faster";
    const int pipe = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    std::array<char, 4096> bytes{};
    while (::write(pipe, bytes.data(), bytes.size()) > 0) continue;
    const auto end = std::chrono::steady_clock::now() + held;
    while (!is_let_go_ && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (!is_over_)
      if (::read(pipe, bytes.data(), bytes.size()) < 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::close(pipe);
  }

  std::atomic<bool> is_let_go_{false}, is_over_{false};
  std::thread thread_;
};

}  // namespace catena::training
