// Frames of the output and the reports of all ranks in one pipe (job/rank_pipe.h), or in mpirun's
// one standard error.
//
// mpirun copies what a rank writes in pieces of up to 4096 bytes and lets pieces of different
// ranks follow each other, so a line may arrive torn in two with another rank's text between.
// Each rank therefore writes blocks of 512 bytes, which those pieces never cut: a mark, the rank,
// the stream, and bytes of that stream without line ends. The launcher takes them apart again.
// What is not a block comes from the starter itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace catena::launch {

constexpr std::size_t kFrameSize = 512;

enum class Stream : char { output = 'o', error = 'e', report = 'r' };

// `job` is 8 hexadecimal digits, so that a catena-run inside a catena-run does not take the other
// one's blocks for its own.
std::string encode_frames(std::string_view job, int rank, Stream stream, std::string_view bytes);

class FrameDecoder {
 public:
  using OnFrame = std::function<void(int rank, Stream stream, std::string_view bytes)>;
  using OnOther = std::function<void(std::string_view bytes)>;

  FrameDecoder(std::string_view job, OnFrame on_frame, OnOther on_other);
  void feed(std::string_view bytes);
  void finish();  // no more input: what is left is not a block

 private:
  bool take_frame();

  std::string mark_;
  std::string pending_;
  OnFrame on_frame_;
  OnOther on_other_;
};

}  // namespace catena::launch
