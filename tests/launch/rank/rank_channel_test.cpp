// Which way the blocks of a rank process take.
#include "rank/rank_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.h"
#include "job/rank_pipe.h"
#include "wire/pipe_name.h"

namespace catena::launch {
namespace {

struct Sent {
  std::string to_pipe, to_standard_error;
};

std::string read_all(Descriptor& source) {
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t got = 0; (got = read(source.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(got));
  return text;
}

// What a process sends whose launcher has named that pipe; "own": the launcher's.
Sent send_hello(std::string named) {
  RankPipe pipe = RankPipe::make();
  if (named == "own") named = pipe.name();
  Pipe error = make_pipe();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(error.write.get(), STDERR_FILENO);
    error.write.reset();
    RankChannel channel(named);
    channel.set_sender("0badcafe", 1);
    channel.send(Stream::output, "hello");
    channel.drain(1);
    std::fputs("stray", stderr);
    _exit(0);
  }
  error.write.reset();
  Sent sent;
  sent.to_standard_error = read_all(error.read);
  waitpid(pid, nullptr, 0);
  pipe.close_for_new_writers();
  sent.to_pipe = read_all(pipe.reader());
  return sent;
}

TEST(RankChannelTest, WritesIntoTheLaunchersPipe) {
  const Sent sent = send_hello("own");
  EXPECT_EQ(sent.to_pipe, encode_frames("0badcafe", 1, Stream::output, "hello"));
  EXPECT_EQ(sent.to_standard_error, "");
}

// No pipe, one that is gone, something else under its name: where process numbers are others, that
// may be anybody's pipe.
TEST(RankChannelTest, WritesToStandardErrorOtherwise) {
  const Pipe other = make_pipe();
  const std::string name = name_pipe(other.write.get());
  const std::vector<std::string> parts = split(name, ':');
  ASSERT_EQ(parts.size(), 3u);
  const std::string &path = parts[0], &number = parts[1], &kernel = parts[2];
  for (const std::string& wrong :
       std::vector<std::string>{"", "/proc/1073741824/fd/3:1:" + kernel, path,
                                path + ":1:" + kernel, path + "::" + kernel, path + ":" + number,
                                path + ":" + number + ":another", "/dev/null:1:" + kernel}) {
    const Sent sent = send_hello(wrong);
    EXPECT_EQ(sent.to_pipe, "") << wrong;
    EXPECT_EQ(sent.to_standard_error, encode_frames("0badcafe", 1, Stream::output, "hello"))
        << wrong;
  }
}

TEST(RankChannelTest, OnlyPipesHaveAName) {
  const Descriptor file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(name_pipe(file.get()), "");
  EXPECT_EQ(name_pipe(-1), "");
  EXPECT_FALSE(open_pipe("/dev/null:").open());
}

}  // namespace
}  // namespace catena::launch
