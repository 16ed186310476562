// RandomLog: the random numbers that a piece of code drew, so that it can draw the same ones again.
#pragma once

#include <vector>

#include "catena/kernels/random.h"

namespace catena {

// Which numbers calls of RandomState took, in order. Small: the numbers themselves are computed.
class RandomLog {
 public:
  bool empty() const { return draws_.empty(); }

 private:
  friend class RandomLogScope;
  friend class RandomState;
  std::vector<RandomBits> draws_;
};

// While it lives, draws of the calling thread, from any state, are noted in the log, or taken from
// it again. Draws that are taken again leave the states alone, so that other threads are not
// disturbed, and in captured graphs are those of the same launch. More draws than were noted are a
// ValueError. Scopes nest; a draw is noted in those that note, up to one that repeats.
class RandomLogScope {
 public:
  enum class Mode : uint8_t { kNote, kRepeat };
  RandomLogScope(RandomLog& log, Mode mode);
  ~RandomLogScope();
  RandomLogScope(const RandomLogScope&) = delete;
  RandomLogScope& operator=(const RandomLogScope&) = delete;

 private:
  friend class RandomState;
  static RandomLogScope*& innermost();
  // The next bits of the nearest scope that repeats; null without one.
  const RandomBits* repeated();
  // In all scopes that note, up to the nearest that repeats.
  void note(const RandomBits& bits);

  RandomLog& log_;
  Mode mode_;
  size_t next_ = 0;
  RandomLogScope* outer_;
};

}  // namespace catena
