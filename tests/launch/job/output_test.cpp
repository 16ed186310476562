// The output that never waits for its reader.
#include "job/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace catena::launch {
namespace {

TEST(OutputTest, AReaderThatStandsStillIsNotWaitedFor) {
  std::array<int, 2> out, err;
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(err.data(), O_CLOEXEC), 0);
  Output output(out[1], err[1]);
  const std::string block(1 << 20, 'x');
  output.add(Stream::output, block);
  output.add(Stream::error, "report\n");
  output.flush();
  EXPECT_TRUE(output.pending());
  EXPECT_TRUE(output.full());
  EXPECT_EQ(output.failure(), 0);
  EXPECT_EQ(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0) << "the file that others share is as it was";
  std::string got;
  std::array<char, 65536> bytes;
  while (got.size() < block.size()) {
    const ssize_t count = read(out[0], bytes.data(), bytes.size());
    ASSERT_GT(count, 0);
    got.append(bytes.data(), static_cast<std::size_t>(count));
    output.flush();
  }
  EXPECT_EQ(got, block);
  EXPECT_FALSE(output.pending());
  EXPECT_EQ(read(err[0], bytes.data(), bytes.size()), 7);
  for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
}

// What writing to the file gives, of which nothing is left to write.
int failure_of(const char* path, int flags) {
  const int file = open(path, flags | O_CLOEXEC);
  Output output(file, file);
  output.add(Stream::output, "x");
  output.flush();
  EXPECT_FALSE(output.pending());
  close(file);
  return output.failure();
}

TEST(OutputTest, WhatFailedIsKnown) { EXPECT_EQ(failure_of("/dev/full", O_WRONLY), ENOSPC); }

TEST(OutputTest, TheLastTextBeginsALine) {
  std::array<int, 2> both, other;
  ASSERT_EQ(pipe2(both.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(other.data(), O_CLOEXEC), 0);
  const auto text_of = [&](int error, const std::string& output, const std::string& last,
                           bool more_follows) {
    Output streams(both[1], error);
    streams.add(Stream::output, output);
    streams.add_last(last, more_follows);
    streams.flush();
    std::array<char, 100> bytes;
    const ssize_t count = read(both[0], bytes.data(), bytes.size());
    return std::string(bytes.data(), static_cast<std::size_t>(count));
  };
  EXPECT_EQ(text_of(both[1], "loss", "report", false), "loss\nreport");
  EXPECT_EQ(text_of(both[1], "loss\n", "report", false), "loss\nreport");
  EXPECT_EQ(text_of(both[1], "", "report", false), "report");
  EXPECT_EQ(text_of(both[1], "loss", "", true), "loss\n");
  EXPECT_EQ(text_of(both[1], "loss", "", false), "loss");
  EXPECT_EQ(text_of(other[1], "loss", "report", false), "loss") << "of rank 0, byte for byte";
  for (const int fd : {both[0], both[1], other[0], other[1]}) close(fd);
}

// As catena-run gets a standard output that was closed.
TEST(OutputTest, AFileThatIsOpenForReadingFails) {
  EXPECT_EQ(failure_of("/dev/null", O_RDONLY), EBADF);
}

}  // namespace
}  // namespace catena::launch
