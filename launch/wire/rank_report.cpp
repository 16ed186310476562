#include "wire/rank_report.h"

#include "base/text.h"
#include "wire/fields.h"

namespace catena::launch {
namespace {

constexpr std::string_view kAlive = "alive", kAsked = "asked", kState = "state", kStart = "start",
                           kEnd = "end";

template <typename Report>
std::string make_line(std::string_view kind, const Report& report) {
  std::string line(kind);
  for (const std::string& word : to_words(report)) line.append("\t").append(word);
  return line + "\n";
}

template <typename Report>
Report read_line(const std::vector<std::string>& words) {
  Report report;
  for (std::size_t i = 1; i < words.size(); ++i) read_word(words[i], report);
  return report;
}

}  // namespace

template <typename Visit>
void each_field(const StartReport*, Visit&& visit) {
  visit("rank", &StartReport::rank);
  visit("size", &StartReport::size);
  visit("local_rank", &StartReport::local_rank);
  visit("local_size", &StartReport::local_size);
  visit("pid", &StartReport::pid);
  visit("started", &StartReport::started);
  visit("host", &StartReport::host);
  visit("board", &StartReport::board);
  visit("log", &StartReport::log);
  visit("step", &StartReport::step);
  visit("digests", &StartReport::digests);
}

template <typename Visit>
void each_field(const StateReport*, Visit&& visit) {
  visit("rank", &StateReport::rank);
  visit("host", &StateReport::host);
  visit("pid", &StateReport::pid);
  visit("state", &StateReport::state);
  visit("ended", &StateReport::ended);
  visit("communicator", &StateReport::communicator);
  visit("calls", &StateReport::calls);
  visit("waits", &StateReport::waits);
  visit("waited", &StateReport::waited);
  visit("updates", &StateReport::updates);
  visit("since_update", &StateReport::since_update);
  visit("step", &StateReport::step);
  visit("own_step", &StateReport::own_step);
}

template <typename Visit>
void each_field(const EndReport*, Visit&& visit) {
  visit("rank", &EndReport::rank);
  visit("host", &EndReport::host);
  visit("exit_code", &EndReport::exit_code);
  visit("signal", &EndReport::signal);
  visit("core_dumped", &EndReport::core_dumped);
  visit("not_started", &EndReport::not_started);
  visit("stop_time", &EndReport::stop_time);
  visit("stop_signal", &EndReport::stop_signal);
  visit("end_time", &EndReport::end_time);
  visit("error", &EndReport::error);
  visit("error_time", &EndReport::error_time);
  visit("peer_error", &EndReport::peer_error);
  visit("peer_error_time", &EndReport::peer_error_time);
  visit("culprit_rank", &EndReport::culprit_rank);
  visit("phase", &EndReport::phase);
  visit("operation", &EndReport::operation);
  visit("last_call", &EndReport::last_call);
  visit("last_lines", &EndReport::last_lines);
  visit("log_problem", &EndReport::log_problem);
  visit("shared_memory", &EndReport::shared_memory);
}

std::string to_line(const AliveReport&) { return std::string(kAlive) + "\n"; }
std::string to_line(const AskedReport&) { return std::string(kAsked) + "\n"; }
std::string to_line(const StateReport& report) { return make_line(kState, report); }
std::string to_line(const StartReport& report) { return make_line(kStart, report); }
std::string to_line(const EndReport& report) { return make_line(kEnd, report); }

RankReport parse_rank_report(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  const std::vector<std::string> words = split(line, '\t');
  if (words.front() == kAlive) return AliveReport{};
  if (words.front() == kAsked) return AskedReport{};
  if (words.front() == kState) return read_line<StateReport>(words);
  if (words.front() == kStart) return read_line<StartReport>(words);
  if (words.front() == kEnd) return read_line<EndReport>(words);
  return {};
}

}  // namespace catena::launch
