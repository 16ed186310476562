#include "job/job_states.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <variant>

#include "job/rank_progress.h"
#include "job/report.h"
#include "wire/rank_report.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "catena-states";
constexpr double kPublishEvery = 0.5;  // seconds
constexpr double kShownAge = 0.1;      // seconds

// Those of which nothing can be seen from here.
std::string describe_unseen(const JobSpec& spec, const std::vector<StateReport>& seen) {
  std::vector<int> unseen;
  for (int rank = 0; rank < spec.ranks; ++rank)
    if (std::none_of(seen.begin(), seen.end(),
                     [rank](const StateReport& state) { return state.rank == rank; }))
      unseen.push_back(rank);
  if (unseen.empty()) return "";
  const std::string where = spec.remote ? "on other hosts, or not started; there, or where "
                                          "catena-run was started, catena-run --status " +
                                              spec.id + " shows them"
                                        : "not started";
  return "  " + name_ranks(unseen) + ": " + where + "\n";
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    text += "  " + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string updates_of(const StateReport& state) {
  if (state.updates == 0) return "";
  return ", " + std::to_string(state.updates) + (state.updates == 1 ? " update" : " updates");
}

std::string age_of(const StateReport& state) {
  return state.age < kShownAge ? "" : ", seen " + seconds_text(state.age) + " ago";
}

}  // namespace

std::vector<StateReport> states_on(const comm::StatusBoard& board) {
  const std::uint64_t now = comm::monotonic_ns();
  std::vector<StateReport> states;
  for (int at = 0; at < board.slots(); ++at)
    if (board.read(at).rank >= 0) states.push_back(state_of_slot(board, at, now));
  return states;
}

std::string describe_ranks(const JobSpec& spec, const comm::StatusBoard* board,
                           const std::vector<StateReport>& others) {
  std::vector<StateReport> states = board ? states_on(*board) : std::vector<StateReport>();
  for (const StateReport& other : others)
    if (std::none_of(states.begin(), states.end(),
                     [&](const StateReport& state) { return state.rank == other.rank; }))
      states.push_back(other);
  std::sort(states.begin(), states.end(),
            [](const StateReport& a, const StateReport& b) { return a.rank < b.rank; });
  std::string text;
  for (const StateReport& state : states)
    text += "  rank " + std::to_string(state.rank) + " on " + state.host + ", process " +
            std::to_string(state.pid) + updates_of(state) + age_of(state) + ": " + state.state +
            "\n";
  text += describe_unseen(spec, states);
  return text +
         indented(describe_updates(states) + describe_stragglers(progress_of(states, board)) +
                  describe_slow_ranks(states));
}

// With many ranks reports come all the time.
void OtherStates::note(const StateReport& report) {
  heard_[report.rank] = {report, monotonic_seconds()};
  late_ = true;
  if (monotonic_seconds() - published_ >= kPublishEvery) publish();
}

void OtherStates::note_end(int rank, bool well) {
  const auto known = heard_.find(rank);
  if (known == heard_.end()) return;
  StateReport& state = known->second.state;
  state.ended = true;
  state.state = well ? "ended" : "failed";
  publish();
}

void OtherStates::publish_late() {
  if (late_) publish();
}

std::vector<StateReport> OtherStates::all() const {
  const double now = monotonic_seconds();
  std::vector<StateReport> all;
  for (const auto& [rank, heard] : heard_) all.push_back(aged(heard.state, now - heard.time));
  return all;
}

// A new file takes the place of the old one in one step, so that nobody reads half of one. The time
// before each report is of the clock that all processes of this host share.
void OtherStates::publish() {
  published_ = monotonic_seconds();
  late_ = false;
  std::string text;
  for (const auto& [rank, heard] : heard_)
    text += std::to_string(heard.time) + " " + to_line(heard.state);
  Descriptor next(memfd_create(kFileName, MFD_CLOEXEC));
  if (!next.open()) return;  // no descriptor is left; the job goes on
  if (write(next.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return;
  if (file_.open())
    dup3(next.get(), file_.get(), O_CLOEXEC);
  else
    file_ = std::move(next);
}

std::string describe_now(const JobSpec& spec, const comm::StatusBoard* board,
                         const OtherStates& others) {
  std::string text =
      "catena-run: job " + spec.id + "\n" + describe_ranks(spec, board, others.all());
  text.pop_back();
  return text;
}

std::vector<StateReport> published_states(int pid) {
  std::vector<StateReport> states;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.find(kFileName) == std::string::npos) continue;
    std::ifstream file(entry.path());
    double heard = 0;
    for (std::string line; file >> heard && file.ignore() && std::getline(file, line);) {
      const RankReport report = parse_rank_report(line);
      if (const auto* state = std::get_if<StateReport>(&report))
        states.push_back(aged(*state, monotonic_seconds() - heard));
    }
    break;
  }
  return states;
}

}  // namespace catena::launch
