#include "training/checkpoint_meeting.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace catena::training {

std::string Arrival::text() const {
  return message(int(is_busy), " ", hash, " ", save_error.size(), " ", alike.size(), " ",
                 save_error, alike, error.packed());
}

Arrival Arrival::of(const std::string& text) {
  Arrival arrival;
  int busy = 0, used = 0;
  unsigned long long hash = 0;
  size_t size = 0, alike = 0;
  std::sscanf(text.c_str(), "%d %llu %zu %zu%n", &busy, &hash, &size, &alike, &used);
  arrival.is_busy = busy != 0;
  arrival.hash = hash;
  arrival.save_error = text.substr(size_t(used) + 1, size);
  arrival.alike = text.substr(size_t(used) + 1 + size, alike);
  arrival.error = RankError::unpacked(text.substr(size_t(used) + 1 + size + alike));
  return arrival;
}

std::string Ending::text(bool gives_up) const {
  return message(int(state), int(gives_up), written, " ", error);
}

std::vector<Ending> endings_of(const std::vector<std::string>& texts) {
  std::vector<Ending> all;
  for (const std::string& text : texts) {
    const size_t space = text.find(' ');
    all.push_back({.state = CheckpointWriter::State(text.at(0) - '0'),
                   .gives_up = text.at(1) == '1',
                   .written = std::stoll(text.substr(2, space - 2)),
                   .error = text.substr(space + 1)});
  }
  return all;
}

int first_late(const std::vector<Ending>& all) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].has_ended()) return int(rank);
  return all[0].has_ended() ? -1 : 0;
}

std::string text_of_late(int late, const std::vector<Ending>& all, const SavePlan& plan) {
  const bool is_completing = late == 0 && all[0].has_part();
  if (!is_completing && std::any_of(all.begin(), all.end(), std::mem_fn(&Ending::has_part)))
    return late_part(late, plan);
  return message(is_completing
                     ? "rank 0 has written its part, but not completed the checkpoint within "
                     : "no rank has written anything for ",
                 plan.timeout, " s; does the file system of '", plan.names.path(),
                 "' answer? If it is slower, raise CheckpointFolderOptions::timeout");
}

double seconds_since(CheckpointWriter::Clock::time_point start) {
  return std::chrono::duration<double>(CheckpointWriter::Clock::now() - start).count();
}

bool Patience::is_over() const { return signs_ >= 0 && seconds_since(since_) > seconds_; }

void Patience::look(const std::vector<Ending>& all, bool has_failed) {
  constexpr double kAfterAFailure = 10;
  if (has_failed) seconds_ = std::min(seconds_, kAfterAFailure);
  int64_t signs = 0;
  for (const Ending& one : all) signs += one.written + int64_t(one.state);
  if (signs == signs_) return;
  signs_ = signs;
  since_ = CheckpointWriter::Clock::now();
}

}  // namespace catena::training
