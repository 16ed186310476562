#include "parallel/gathers/parameter_gathers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catena/core/graph.h"
#include "parallel/gathers/unit_gathers.h"
#include "parallel/gathers/units.h"
#include "parallel/gathers/update_gathers.h"

namespace catena::parallel {

using optimizers::ParameterArena;

std::unique_ptr<ParameterGathers> ParameterGathers::create(Communicator& comm,
                                                           const BucketOptions& options) {
  if (gathers_units(comm, options)) return std::make_unique<UnitGathers>(comm, options);
  return std::make_unique<UpdateGathers>(comm, options);
}

// Layout ------------------------------------------------------------------------------------------

namespace {

int64_t first_declared(const ParameterArena& arena) {
  int64_t first = arena.slots()[0].index;
  for (const ParameterArena::Slot& slot : arena.slots()) first = std::min(first, slot.index);
  return first;
}

}  // namespace

void ParameterGathers::detach() {
  optimizer_ = nullptr;
  has_moved_ = false;
  stop_observing();
  watch_uses(false);
  arena_of_.clear();
  by_declaration_.clear();
  arrivals_.clear();
  presences_.clear();
  detached();
}

void ParameterGathers::attach(Optimizer& optimizer, int number) {
  detach();
  optimizer_ = &optimizer;
  number_ = number;
  const auto& arenas = optimizer.layout().arenas();
  check_units(optimizer, options_.units);
  arrivals_.assign(arenas.size(), {});
  presences_.assign(arenas.size(), {});
  for (size_t a = 0; watch_ != Watch::kNothing && a < arenas.size(); ++a)
    for (const ParameterArena::Slot& slot : arenas[a].slots()) {
      arena_of_[slot.parameter.state()] = a;
      observe(slot.parameter);
    }
  by_declaration_.resize(arenas.size());
  std::iota(by_declaration_.begin(), by_declaration_.end(), size_t(0));
  std::stable_sort(by_declaration_.begin(), by_declaration_.end(), [&](size_t a, size_t b) {
    return first_declared(arenas[a]) < first_declared(arenas[b]);
  });
  attached();
  watch_uses(watch_ == Watch::kUses);
}

void ParameterGathers::attach_again() {
  if (has_moved_) attach(*optimizer_, number_);
}

void ParameterGathers::layout_moves() {
  gather_all();
  watch_uses(false);
  has_moved_ = true;
}

std::optional<size_t> ParameterGathers::arena_of(const ParameterState& parameter) const {
  const auto found = arena_of_.find(&parameter);
  if (found == arena_of_.end() || has_moved_) return std::nullopt;
  return found->second;
}

// One arena ---------------------------------------------------------------------------------------

void ParameterGathers::start(size_t index) {
  if (is_away(index)) send_for(index, false);
}

// `follows` another one in the same batch.
void ParameterGathers::send_for(size_t index, bool follows) {
  ParameterArena& a = arena(index);
  const comm::CallTag tag{follows ? comm::TagKind::kFollowing : comm::TagKind::kBucket,
                          static_cast<uint16_t>(number_), static_cast<int32_t>(index)};
  about_to_gather();
  const Array whole = memory_for(a);
  const uint64_t capture = current_capture();
  const Event event = comm_.all_gather_async(a.own_data(), whole, comm_.side_stream(), tag);
  arrivals_[index] = {whole, event, capture};
  ++count_;
  if (capture == 0) return;
  gathered_in_ = capture;
  watch_launches();
}

// New memory is the side stream's, which writes it behind all that the current one has done with
// its last owner: so it is used again without events, in captured steps too.
Array ParameterGathers::memory_for(const ParameterArena& arena) const {
  std::optional<StreamScope> scope;
  if (comm_.device().is_cuda()) scope.emplace(comm_.side_stream());
  return arena.memory_for_data();
}

void ParameterGathers::arrive(size_t index) {
  forget_captured(index);
  const uint64_t capture = current_capture();
  CATENA_CHECK(ValueError, !is_coming(index) || arrivals_[index].capture == capture,
               "Graph::capture: the values of parameter '", first_name(index),
               "' were on their way from the other ranks when the capture began, and a graph "
               "cannot wait for what was sent before it; call prepare_for_capture() of the "
               "optimizer before Graph::capture");
  if (!is_coming(index)) send_for(index, false);
  const Arrival arrival = std::exchange(arrivals_[index], {});
  presences_[index] = {};
  if (arrival.event) {
    const Stream user = current_stream(comm_.device());
    user.wait(arrival.event);
    presences_[index] = {arrival.event, user, capture};
  }
  arena(index).take_whole_data(arrival.whole);
}

// What came before a capture is there in its replays.
void ParameterGathers::wait_until_here(size_t index) const {
  const Presence& presence = presences_[index];
  if (!presence.event || !is_of_this_capture(index)) return;
  const Stream user = current_stream(comm_.device());
  if (user != presence.waited) user.wait(presence.event);
}

void ParameterGathers::forget_captured(size_t index) {
  const uint64_t capture = current_capture();
  const auto is_forgotten = [&](uint64_t other) { return other != 0 && other != capture; };
  if (is_forgotten(arrivals_[index].capture)) arrivals_[index] = {};
  if (!is_forgotten(presences_[index].capture)) return;
  presences_[index] = {};
  let_go(index);
}

// All arenas --------------------------------------------------------------------------------------

void ParameterGathers::start_all() {
  bool follows = false;
  for (const size_t a : by_declaration_) {
    if (!is_away(a)) continue;
    send_for(a, follows);
    follows = true;
  }
}

void ParameterGathers::forget_captured() {
  for (size_t a = 0; a < arena_count(); ++a) forget_captured(a);
}

void ParameterGathers::finish() {
  forget_captured();
  for (size_t a = 0; a < arena_count(); ++a)
    if (is_coming(a)) arrive(a);
}

void ParameterGathers::gather_all() {
  attach_again();
  if (optimizer_ == nullptr) return;
  forget_captured();
  start_all();
  finish();
  all_gathered();
}

// Captures ----------------------------------------------------------------------------------------

uint64_t ParameterGathers::current_capture() const {
  return comm_.device().is_cuda() ? cuda::capture_id() : 0;
}

bool ParameterGathers::is_of_this_capture(size_t index) const {
  return presences_[index].capture == current_capture();
}

bool ParameterGathers::gathers_in_this_capture() const {
  const uint64_t capture = current_capture();
  return capture != 0 && gathered_in_ == capture;
}

bool ParameterGathers::is_new_to_launches() {
  const uint64_t capture = current_capture();
  return capture != 0 && std::exchange(watched_in_, capture) != capture;
}

bool ParameterGathers::is_first_reader(size_t index) {
  const uint64_t capture = current_capture();
  if (capture == 0 || is_of_this_capture(index)) return false;
  return std::exchange(read_in_, capture) != capture;
}

void ParameterGathers::before_launches(std::function<void()> hook) {
  cuda::add_launch_hook([alive = std::weak_ptr<bool>(alive_), hook = std::move(hook)] {
    if (alive.lock()) hook();
  });
}

}  // namespace catena::parallel
