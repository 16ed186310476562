#include "wire/output_frames.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace catena::launch {
namespace {

struct Received {
  std::map<std::pair<int, Stream>, std::string> streams;
  std::string other;
  FrameDecoder decoder{"0badcafe",
                       [this](int rank, Stream stream, std::string_view bytes) {
                         streams[{rank, stream}] += bytes;
                       },
                       [this](std::string_view bytes) { other += bytes; }};
};

std::string all_bytes(int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(i);
  return bytes;
}

TEST(Frame, BlocksHaveOneSizeAndOneLineEnd) {
  const std::string frames = encode_frames("0badcafe", 3, Stream::output, all_bytes(2000));
  ASSERT_EQ(frames.size() % kFrameSize, 0u);
  for (std::size_t at = 0; at < frames.size(); at += kFrameSize) {
    const std::string block = frames.substr(at, kFrameSize);
    EXPECT_EQ(block.find('\n'), kFrameSize - 1);
    EXPECT_EQ(block.find('\0'), std::string::npos);
  }
}

TEST(Frame, BytesThatAreEscapedAtTheEndOfABlock) {
  for (int before = int(kFrameSize) - 40; before < int(kFrameSize); ++before) {
    const std::string sent = std::string(std::size_t(before), 'a') + "\n\n";
    const std::string frames = encode_frames("0badcafe", 0, Stream::output, sent);
    EXPECT_EQ(frames.size() % kFrameSize, 0u) << before;
    Received received;
    received.decoder.feed(frames);
    EXPECT_EQ((received.streams[{0, Stream::output}]), sent) << before;
  }
}

TEST(Frame, AnyPiecesGiveTheSameBytes) {
  const std::string sent = all_bytes(5000);
  const std::string frames = "mpirun says\n" + encode_frames("0badcafe", 0, Stream::output, sent) +
                             encode_frames("0badcafe", 123456, Stream::error, "x\n") + "bye\n";
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Received received;
    for (std::size_t at = 0; at < frames.size();) {
      const std::size_t size = 1 + random() % 700;
      received.decoder.feed(std::string_view(frames).substr(at, size));
      at += size;
    }
    received.decoder.finish();
    EXPECT_EQ((received.streams[{0, Stream::output}]), sent);
    EXPECT_EQ((received.streams[{123456, Stream::error}]), "x\n");
    EXPECT_EQ(received.other, "mpirun says\nbye\n");
  }
}

TEST(Frame, BlocksOfAnotherJobAndDamagedOnesAreNotOurs) {
  const std::string other_job = encode_frames("11111111", 0, Stream::output, "inner");
  std::string damaged = encode_frames("0badcafe", 0, Stream::output, "text");
  damaged[14] = 'x';
  damaged += encode_frames("0badcafe", 0, Stream::output, "text");
  damaged.replace(kFrameSize + 20, 3, "999");  // the length
  Received received;
  received.decoder.feed(other_job + damaged + encode_frames("0badcafe", 1, Stream::output, "good"));
  received.decoder.finish();
  EXPECT_EQ(received.streams.size(), 1u);
  EXPECT_EQ((received.streams[{1, Stream::output}]), "good");
  EXPECT_EQ(received.other, other_job + damaged);
}

TEST(Frame, CutOffBlockIsHandedOutAtTheEnd) {
  const std::string frame = encode_frames("0badcafe", 1, Stream::output, "good");
  Received received;
  received.decoder.feed(frame.substr(0, 100));
  EXPECT_EQ(received.other, "");
  received.decoder.finish();
  EXPECT_EQ(received.other, frame.substr(0, 100));
}

}  // namespace
}  // namespace catena::launch
