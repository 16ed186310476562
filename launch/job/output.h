// Standard output and standard error of catena-run, written without ever waiting for whoever reads
// them: a reader that stops reading must not keep Ctrl-C from ending the job.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/process.h"
#include "wire/output_frames.h"

namespace catena::launch {

class Output {
 public:
  // Descriptors of the two streams.
  explicit Output(int output = 1, int error = 2);

  void add(Stream stream, std::string_view bytes);
  // The last text of standard error. Where both streams go to the same file or terminal, it begins
  // a line, and so does what others print there afterwards.
  void add_last(std::string_view text, bool more_follows);
  // Writes what can be written at once, in the order of `add` over both streams.
  void flush();
  bool pending() const { return !queue_.empty(); }
  // More should not be read from the ranks for now.
  bool full() const { return size_ > kFull; }
  // What to wait for with POLLOUT; -1 when nothing is pending.
  int fd() const;
  // Waits until everything is written, for so many seconds at most, or until a signal comes. Then
  // what waits for standard output is dropped, for standard error may have another reader.
  void drain(SignalQueue& signals, double seconds);
  // Forgets what waits for this stream.
  void drop(Stream stream);
  // Whether standard output could not be written any more; its text is then gone. `errno` of the
  // write: EPIPE when the reader is gone.
  int failure() const { return failure_; }

 private:
  struct Piece {
    Stream stream;
    std::string bytes;
  };
  struct Sink {
    int fd = -1;
    Descriptor own;       // the same file opened again, in a mode that does not wait
    bool socket = false;  // has a call of its own for that
    bool waits = false;   // neither: only small pieces, when poll says that there is room
    bool dead = false;
  };
  static Sink make_sink(int fd);
  static long write_some(const Sink& sink, std::string_view bytes);
  Sink& sink_of(Stream stream) { return sinks_[stream == Stream::output ? 0 : 1]; }
  const Sink& sink_of(Stream stream) const { return sinks_[stream == Stream::output ? 0 : 1]; }

  static constexpr std::size_t kFull = 256 * 1024;
  // What a job that is being ended may still say while nobody reads.
  static constexpr std::size_t kMost = 16 * 1024 * 1024;

  std::array<Sink, 2> sinks_;
  std::deque<Piece> queue_;
  std::size_t size_ = 0;
  int failure_ = 0;
  bool same_file_ = false;  // both streams
  bool mid_line_ = false;   // standard output
};

}  // namespace catena::launch
