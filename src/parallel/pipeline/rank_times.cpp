// Where the time of ranks goes.
#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/simulate.h"
#include "picture.h"

namespace catena::parallel::pipeline {
namespace {

double overlap(double begin, double end, const Span& span) {
  return std::max(0.0, std::min(end, span.end) - std::max(begin, span.begin));
}

// Messages by what receives them, in one order of steps.
using Received = std::map<std::pair<int, Action>, const Span*>;

// The message that a computation needs.
const Span* awaited(const Received& received, const Span& computation) {
  const Action& a = computation.action;
  if (a.kind >= Kind::kSendOutput) return nullptr;
  const Kind kind = a.kind == Kind::kForward ? Kind::kRecvInput : Kind::kRecvGradient;
  const auto found = received.find({computation.step, {kind, a.stage, a.micro_batch}});
  return found == received.end() ? nullptr : found->second;
}

// What a rank does from `free`, when its last computation ended, to the end of this one.
void count(RankTimes& times, double free, const Span& computation, const Span* message) {
  const double begin = std::max(free, computation.begin);
  const double issued = std::clamp(computation.waits_from, free, begin);
  const double on_the_wire = message ? overlap(free, begin, *message) : 0;
  const double host = issued - free - (message ? overlap(free, issued, *message) : 0);
  times.computing += std::max(0.0, computation.end - begin);
  times.messages += on_the_wire;
  times.host += host;
  times.ranks += begin - free - on_the_wire - host;
}

std::string with_share(double seconds, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%5.1f %%", whole > 0 ? 100 * seconds / whole : 0);
  std::string result = text;
  std::replace(result.begin(), result.end(), ',', '.');  // of a program's locale
  return message(short_number(seconds), " s (", result, ")");
}

}  // namespace

std::vector<RankTimes> rank_times(const Simulation& simulation) {
  std::vector<RankTimes> result(size_t(simulation.ranks()));
  std::vector<double> free(result.size(), 0);
  Received received;
  for (const Span& span : simulation.timeline)
    if (is_message(span.action.kind) && !is_send(span.action.kind))
      received[{span.step, span.action}] = &span;
  for (const Span& span : simulation.timeline) {
    if (is_message(span.action.kind) || span.action.kind == Kind::kReduce) continue;
    const size_t rank = size_t(span.rank);
    count(result[rank], free[rank], span, awaited(received, span));
    free[rank] = std::max(free[rank], span.end);
  }
  for (size_t rank = 0; rank < result.size(); ++rank)
    result[rank].ranks += simulation.seconds - free[rank];
  return result;
}

std::string describe_times(const Simulation& simulation) {
  std::string text;
  const std::vector<RankTimes> all = rank_times(simulation);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const RankTimes& t = all[rank];
    const double whole = simulation.seconds;
    text += message("rank ", rank, ": computes ", with_share(t.computing, whole),
                    ", waits for messages ", with_share(t.messages, whole), ", for ranks ",
                    with_share(t.ranks, whole), ", for the host ", with_share(t.host, whole), "\n");
  }
  return text;
}

}  // namespace catena::parallel::pipeline
