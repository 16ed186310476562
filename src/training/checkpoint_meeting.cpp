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

std::vector<std::string> errors_of(const std::vector<Arrival>& all) {
  std::vector<std::string> errors;
  for (const Arrival& one : all) errors.push_back(one.error);
  return errors;
}

std::vector<std::string> alike_of(const std::vector<Arrival>& all) {
  std::vector<std::string> texts;
  for (const Arrival& one : all) texts.push_back(one.alike);
  return texts;
}

std::string Ending::text(bool gives_up) const {
  return message(int(has_ended), int(gives_up), error);
}

std::vector<Ending> endings_of(const std::vector<std::string>& texts) {
  std::vector<Ending> all;
  for (const std::string& text : texts)
    all.push_back({text.at(0) == '1', text.at(1) == '1', text.substr(2)});
  return all;
}

int first_late(const std::vector<Ending>& all) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].has_ended) return int(rank);
  return all[0].has_ended ? -1 : 0;
}

double seconds_since(CheckpointWriter::Clock::time_point start) {
  return std::chrono::duration<double>(CheckpointWriter::Clock::now() - start).count();
}

bool Patience::is_over() const { return has_begun_ && seconds_since(since_) > seconds_; }

void Patience::look(const std::vector<Ending>& all, bool has_failed) {
  constexpr double kAfterAFailure = 10;
  if (has_failed) seconds_ = std::min(seconds_, kAfterAFailure);
  const auto ended =
      std::count_if(all.begin(), all.end(), [](const Ending& one) { return one.has_ended; });
  if (ended == ended_) return;
  ended_ = ended;
  has_begun_ = true;
  since_ = CheckpointWriter::Clock::now();
}

}  // namespace catena::training
