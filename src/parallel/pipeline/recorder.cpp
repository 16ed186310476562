#include "parallel/pipeline/recorder.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "parallel/pipeline/rules.h"

namespace catena::parallel::pipeline {
namespace {

double host_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A message begins when both ends are ready.
void join_ends(std::vector<Span>& spans) {
  std::map<std::pair<int, Action>, Span*> ends;
  for (Span& span : spans)
    if (is_message(span.action.kind)) ends[{span.step, span.action}] = &span;
  for (const auto& [key, span] : ends) {
    const auto other = ends.find({key.first, other_end(key.second)});
    if (other == ends.end()) continue;
    const double begin = std::max(span->begin, other->second->begin);
    span->begin = std::min(begin, span->end);
  }
}

}  // namespace

Recorder::Recorder(std::map<int, Device> devices) : devices_(std::move(devices)) {}

Moment Recorder::now(const Stream& stream) {
  if (stream.device().is_cpu()) return {{}, host_seconds()};
  const Event event = Event::create(stream.device(), true);
  event.record(stream);
  return {event, 0};
}

void Recorder::begin() {
  for (const auto& [rank, device] : devices_) synchronize(device);
  for (const auto& [rank, device] : devices_) {
    if (!device.is_cuda() || origins_.count(device.index()) > 0) continue;
    Moment origin = now(current_stream(device));
    origin.event.synchronize();
    origin.seconds = host_seconds();
    origins_[device.index()] = origin;
  }
}

void Recorder::begin(int rank, const Action& action) {
  const Moment issued = now(current_stream(devices_.at(rank)));
  noted_.push_back({rank, step_, action, issued, issued, issued});
}

void Recorder::arrived() {
  Noted& last = noted_.back();
  last.begin = now(current_stream(devices_.at(last.rank)));
}

void Recorder::end() {
  Noted& last = noted_.back();
  last.end = now(current_stream(devices_.at(last.rank)));
}

void Recorder::message(int rank, const Action& action, const Moment& begin, const Moment& end) {
  noted_.push_back({rank, step_, action, begin, begin, end});
}

double Recorder::seconds_of(const Moment& moment) const {
  if (!moment.event) return moment.seconds;
  const Moment& origin = origins_.at(moment.event.state()->device.index());
  return origin.seconds + Event::elapsed_ms(origin.event, moment.event) * 1e-3;
}

std::vector<Span> Recorder::spans() const {
  for (const auto& [rank, device] : devices_) synchronize(device);
  std::vector<Span> spans;
  for (const Noted& n : noted_) {
    if (n.end.event) n.end.event.synchronize();
    spans.push_back(
        {n.rank, n.step, n.action, seconds_of(n.begin), seconds_of(n.end), seconds_of(n.issued)});
  }
  return spans;
}

Simulation measured(const Schedule& schedule, std::vector<Span> spans) {
  join_ends(spans);
  double first = std::numeric_limits<double>::infinity();
  for (const Span& span : spans) first = std::min(first, span.waits_from);
  Simulation result;
  result.name = schedule.name + ", measured";
  result.micro_batches = schedule.micro_batches;
  result.rank_of_stage = schedule.rank_of_stage;
  result.busy.assign(size_t(schedule.ranks()), 0);
  result.peak_bytes.assign(size_t(schedule.ranks()), 0);
  for (Span& span : spans) {
    for (double* time : {&span.begin, &span.end, &span.waits_from}) *time -= first;
    result.seconds = std::max(result.seconds, span.end);
    if (is_send(span.action.kind)) ++result.messages;
    if (!is_message(span.action.kind)) result.busy[size_t(span.rank)] += span.end - span.begin;
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  result.timeline = std::move(spans);
  return result;
}

}  // namespace catena::parallel::pipeline
