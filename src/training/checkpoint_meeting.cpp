#include "training/checkpoint_meeting.h"

#include <algorithm>
#include <cstdio>

namespace catena::training {

std::string Arrival::text() const {
  return message(int(is_busy), " ", hash, " ", save_error.size(), " ", alike.size(), " ",
                 save_error, alike, error);
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
  arrival.error = text.substr(size_t(used) + 1 + size + alike);
  return arrival;
}

std::string Ending::text(bool gives_up) const {
  return message(int(has_ended), int(gives_up), int(has_part), written, " ", error);
}

std::vector<Ending> endings_of(const std::vector<std::string>& texts) {
  std::vector<Ending> all;
  for (const std::string& text : texts) {
    const size_t space = text.find(' ');
    all.push_back({.has_ended = text.at(0) == '1',
                   .gives_up = text.at(1) == '1',
                   .has_part = text.at(2) == '1',
                   .written = std::stoll(text.substr(3, space - 3)),
                   .error = text.substr(space + 1)});
  }
  return all;
}

int first_late(const std::vector<Ending>& all) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].has_ended) return int(rank);
  return all[0].has_ended ? -1 : 0;
}

std::string text_of_late(int late, const std::vector<Ending>& all, const SavePlan& plan) {
  if (late == 0 && all[0].has_part) return late_completion(plan);
  if (std::any_of(all.begin(), all.end(), [](const Ending& one) { return one.has_part; }))
    return late_part(late, plan);
  return late_writing(plan);
}

double seconds_since(CheckpointWriter::Clock::time_point start) {
  return std::chrono::duration<double>(CheckpointWriter::Clock::now() - start).count();
}

bool Patience::is_over() const { return signs_ >= 0 && seconds_since(since_) > seconds_; }

void Patience::look(const std::vector<Ending>& all, bool has_failed) {
  constexpr double kAfterAFailure = 10;
  if (has_failed) seconds_ = std::min(seconds_, kAfterAFailure);
  int64_t signs = 0;
  for (const Ending& one : all) signs += one.written + int(one.has_part) + int(one.has_ended);
  if (signs == signs_) return;
  signs_ = signs;
  since_ = CheckpointWriter::Clock::now();
}

}  // namespace catena::training
