// Messages of the ranks when they meet in a save of a CheckpointFolder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/checkpoint_writer.h"
#include "training/rank_talk.h"

namespace catena::training {

// How a rank comes to a save. Exchanged as text.
struct Arrival {
  bool is_busy = false;    // still writes the last one
  std::string save_error;  // of the last one
  RankError error;         // of this one
  uint64_t hash = 0;       // of its slices
  std::string alike;       // the text of an Agreement

  std::string text() const;
  static Arrival of(const std::string& text);
};

// How a save goes on one rank. Exchanged as text.
struct Ending {
  CheckpointWriter::State state = CheckpointWriter::State::kPart;
  bool gives_up = false;  // of rank 0: nobody waits any longer
  int64_t written = 0;    // bytes of its part
  std::string error;

  bool has_ended() const { return state == CheckpointWriter::State::kEnded; }
  bool has_part() const { return state != CheckpointWriter::State::kPart; }

  std::string text(bool gives_up) const;
};
std::vector<Ending> endings_of(const std::vector<std::string>& texts);
// The first rank that the others wait for; rank 0, which waits for them itself, if there is no
// other. -1: none.
int first_late(const std::vector<Ending>& all);
// The error of that rank.
std::string text_of_late(int late, const std::vector<Ending>& all, const SavePlan& plan);

// How long rank 0 lets ranks wait for others that neither end nor fail: a disk that does not answer
// would keep them for ever.
class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds) {}

  bool is_over() const;
  // Begins with the first look, and anew with each sign of life of any rank: bytes that it has
  // written, and its end.
  void look(const std::vector<Ending>& all, bool has_failed);

 private:
  double seconds_;
  int64_t signs_ = -1;  // of life; none before the first look
  CheckpointWriter::Clock::time_point since_;
};

double seconds_since(CheckpointWriter::Clock::time_point start);

}  // namespace catena::training
