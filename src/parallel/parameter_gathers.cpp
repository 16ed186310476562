#include "parameter_gathers.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "catena/core/graph.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

constexpr size_t kUnitsInUse = 3;  // that a function's parameters may belong to

bool is_in(const std::string& name, const std::string& part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '/');
}

int64_t first_declared(const ParameterArena& arena) {
  int64_t first = arena.slots()[0].index;
  for (const ParameterArena::Slot& slot : arena.slots()) first = std::min(first, slot.index);
  return first;
}

// The capture of the calling thread, if it may hold work of the ranks.
uint64_t capture_on(const Communicator& comm) {
  return comm.device().is_cuda() ? cuda::capture_id() : 0;
}

}  // namespace

std::string unit_of(const std::string& name, const std::vector<std::string>& units) {
  std::string longest;
  for (const std::string& unit : units)
    if (is_in(name, unit) && unit.size() > longest.size()) longest = unit;
  if (!longest.empty()) return longest;
  return name.substr(0, name.find('/', 1));
}

namespace {

void check_units(const Optimizer& optimizer, const std::vector<std::string>& units) {
  const size_t parameters = optimizer.layout().parameters().size();
  for (const std::string& unit : units) {
    bool has_any = false;
    for (size_t p = 0; p < parameters; ++p)
      has_any = has_any || is_in(optimizer.layout().name(p), unit);
    CATENA_CHECK(ValueError, has_any, "setup: BucketOptions::units has '", unit,
                 "', but no parameter is in it; expected the path of a part of the model, such as "
                 "'/body/block1', as in '",
                 parameters > 0 ? optimizer.layout().name(0) : std::string(), "'");
  }
}

}  // namespace

// Layout ------------------------------------------------------------------------------------------

void ParameterGathers::detach() {
  optimizer_ = nullptr;
  has_moved_ = false;
  stop_observing();
  watch_uses(false);
  arena_of_.clear();
  by_use_.clear();
  units_.clear();
  arrivals_.clear();
  presences_.clear();
  recent_.clear();
  order_.clear();
  before_.clear();
}

void ParameterGathers::attach(Optimizer& optimizer, int number) {
  detach();
  optimizer_ = &optimizer;
  number_ = number;
  const auto& arenas = optimizer.layout().arenas();
  check_units(optimizer, options_.units);
  arrivals_.assign(arenas.size(), {});
  presences_.assign(arenas.size(), {});
  std::vector<std::string> names;
  for (size_t a = 0; a < arenas.size(); ++a) {
    for (const ParameterArena::Slot& slot : arenas[a].slots()) {
      if (!by_units() && !options_.gather_ahead) break;  // no use is waited for
      arena_of_[slot.parameter.state()] = a;
      observe(slot.parameter);
    }
    const size_t slot = size_t(arenas[a].slots()[0].index);
    const std::string unit = unit_of(optimizer.layout().name(slot), options_.units);
    const auto found = std::find(names.begin(), names.end(), unit);
    units_.push_back(size_t(found - names.begin()));
    if (found == names.end()) names.push_back(unit);
  }
  by_use_.resize(arenas.size());
  std::iota(by_use_.begin(), by_use_.end(), size_t(0));
  std::stable_sort(by_use_.begin(), by_use_.end(), [&](size_t a, size_t b) {
    return first_declared(arenas[a]) < first_declared(arenas[b]);
  });
  stays_ = is_new_ = by_units();
  watch_uses(by_units() || (options_.gather_ahead && comm_.device().is_cuda()));
}

void ParameterGathers::attach_again() {
  if (has_moved_) attach(*optimizer_, number_);
}

void ParameterGathers::layout_moves() {
  gather_all();
  watch_uses(false);
  has_moved_ = true;
}

// One arena ---------------------------------------------------------------------------------------

void ParameterGathers::start(size_t index, bool follows) {
  ParameterArena& a = arena(index);
  const comm::CallTag tag{follows ? comm::TagKind::kFollowing : comm::TagKind::kBucket,
                          static_cast<uint16_t>(number_), static_cast<int32_t>(index)};
  const Array whole = memory_for(a);
  const uint64_t capture = capture_on(comm_);
  const Event event = comm_.all_gather_async(a.own_data(), whole, comm_.side_stream(), tag);
  arrivals_[index] = {whole, event, capture};
  ++count_;
  if (capture == 0) return;
  if (!by_units()) gathered_in_ = capture;
  watch_launches();
}

// New memory is the side stream's, which writes it behind all that the current one has done with
// its last owner: so it is used again without events, in captured steps too.
Array ParameterGathers::memory_for(const ParameterArena& arena) {
  note_stream();
  std::optional<StreamScope> scope;
  if (comm_.device().is_cuda()) scope.emplace(comm_.side_stream());
  return arena.memory_for_data();
}

void ParameterGathers::arrive(size_t index) {
  const uint64_t capture = capture_on(comm_);
  if (is_coming(index) && arrivals_[index].capture != capture) {
    CATENA_CHECK(ValueError, capture == 0, "Graph::capture: the values of parameter '",
                 first_name(index),
                 "' were on their way from the other ranks when the capture began, and a graph "
                 "cannot wait for what was sent before it; call prepare_for_capture() of the "
                 "optimizer before Graph::capture");
    arrivals_[index] = {};  // of a capture that has failed
  }
  if (!is_coming(index)) start(index);
  const Arrival arrival = std::exchange(arrivals_[index], {});
  presences_[index] = {};
  if (arrival.event) {
    const Stream user = current_stream(comm_.device());
    user.wait(arrival.event);
    presences_[index] = {arrival.event, user, capture};
  }
  arena(index).take_whole_data(arrival.whole);
}

// Another stream than that of the first use. What came before a capture is there in its replays.
void ParameterGathers::wait_until_here(size_t index) const {
  const Presence& presence = presences_[index];
  if (!presence.event || presence.capture != capture_on(comm_)) return;
  const Stream user = current_stream(comm_.device());
  if (user != presence.waited) user.wait(presence.event);
}

// What arrived next in the step before is on its way while this arena is used.
void ParameterGathers::start_following(size_t index) {
  order_.push_back(index);
  const bool is_as_before = place_ < before_.size() && before_[place_] == index;
  place_ = is_as_before ? place_ + 1 : before_.size();
  if (place_ == before_.size()) return;
  const size_t next = before_[place_];
  if (is_away(next)) start(next);
}

// In the order in which they will be used, one behind the other.
void ParameterGathers::start_all() {
  bool follows = false;
  for (const size_t a : by_use_) {
    if (!is_away(a)) continue;
    start(a, follows);
    follows = true;
  }
}

// Arrays that the program has kept show values that no use will wait for: the stream of the update
// does. All ranks send, however many of them wait.
void ParameterGathers::start_ahead() {
  std::vector<size_t> kept;
  for (size_t a = 0; a < arena_count(); ++a)
    if (arena(a).has_kept_views()) kept.push_back(a);
  start_all();
  for (const size_t a : kept) arrive(a);
}

// Units -------------------------------------------------------------------------------------------

void ParameterGathers::free_unit(size_t unit) {
  for (size_t a = 0; a < arena_count(); ++a)
    if (units_[a] == unit) arena(a).keep_own_data(true);
}

// The side stream writes the memory of units that were freed behind the stream that is current
// then. It must be behind all others that have used them as well.
void ParameterGathers::note_stream() {
  if (!by_units() || !comm_.device().is_cuda()) return;
  const uint64_t capture = capture_on(comm_);
  if (capture != 0 && std::exchange(capture_of_user_, capture) != capture) captured_user_ = {};
  Stream& last = capture == 0 ? user_ : captured_user_;
  const Stream user = current_stream(comm_.device());
  if (user == last) return;
  if (last.defined()) comm_.side_stream().wait(last);
  last = user;
}

// What a capture has gathered comes with the launches of its graph only: until one of them, and
// where the capture failed, the values are not here.
void ParameterGathers::forget_captured(size_t index) {
  Presence& presence = presences_[index];
  if (presence.capture == 0 || presence.capture == capture_on(comm_)) return;
  presence = {};
  arena(index).keep_own_data(by_units());
}

void ParameterGathers::forget_captured() {
  for (size_t a = 0; a < arena_count(); ++a) forget_captured(a);
}

// A unit that was here before a capture is not gathered by the graph.
void ParameterGathers::require_own_capture(size_t index) const {
  const uint64_t capture = capture_on(comm_);
  CATENA_CHECK(ValueError, capture == 0 || presences_[index].capture == capture,
               "Graph::capture: the values of parameter '", first_name(index),
               "' were here before the capture, and an update lets them go; call "
               "prepare_for_capture() of the optimizer before Graph::capture, and the graph "
               "gathers them itself");
}

void ParameterGathers::leave_other_capture(size_t index) {
  if (!by_units() || presences_[index].capture == capture_on(comm_)) return;
  require_own_capture(index);
  arena(index).keep_own_data(true);
}

// A graph that uses values while they are here has no gathers: it must not run once they are gone.
void ParameterGathers::watch_kept_values(size_t index) {
  const uint64_t capture = capture_on(comm_);
  if (capture == 0 || presences_[index].capture == capture) return;
  if (std::exchange(capture_of_kept_, capture) == capture) return;
  const auto check = [this, alive = std::weak_ptr<bool>(alive_), freed = times_freed_] {
    if (!alive.lock()) return;
    if (!by_units()) finish();
    const bool are_here = by_units() ? freed == times_freed_ : all_are_here();
    CATENA_CHECK(ValueError, are_here,
                 "Graph::launch: the graph uses values of parameters that were here when it was "
                 "captured, and that an update has let go; call prepare_for_capture() of the "
                 "optimizer before Graph::capture, and the graph gathers them itself",
                 by_units() ? "" : ", or gather_parameters() before Graph::launch");
  };
  cuda::add_launch_hook(check);
}

bool ParameterGathers::all_are_here() const {
  for (size_t a = 0; a < arena_count(); ++a)
    if (!arena(a).has_whole_data()) return false;
  return true;
}

void ParameterGathers::note_use(size_t unit) {
  if (!recent_.empty() && recent_.front() == unit) return;
  std::erase(recent_, unit);
  recent_.push_front(unit);
  if (recent_.size() <= kUnitsInUse) return;
  free_unit(recent_.back());
  recent_.pop_back();
}

void ParameterGathers::before_use(ParameterState& parameter) {
  const auto found = arena_of_.find(&parameter);
  if (found == arena_of_.end() || has_moved_) return;
  const size_t index = found->second;
  note_stream();
  forget_captured(index);
  if (stays_ || arena(index).has_whole_data()) {
    if (!stays_) leave_other_capture(index);
    wait_until_here(index);
    watch_kept_values(index);
    if (stays_) return;
  }
  if (by_units()) note_use(units_[index]);
  if (arena(index).has_whole_data()) return;
  // A capture gathers what it uses: nothing would wait for the rest, unless it is a step.
  if (!by_units() && !is_coming(index) && capture_on(comm_) == 0) start_all();
  arrive(index);
  if (by_units()) return start_following(index);
  const bool any = std::any_of(arrivals_.begin(), arrivals_.end(),
                               [](const Arrival& arrival) { return arrival.whole.defined(); });
  if (!any && !comm_.device().is_cuda()) watch_uses(false);  // no other stream must wait
}

// The host waits: of reads on other streams nothing will be known.
void ParameterGathers::before_read(ParameterState& parameter) {
  const auto found = arena_of_.find(&parameter);
  if (found == arena_of_.end() || has_moved_ || by_units() || capture_on(comm_) != 0) return;
  const size_t index = found->second;
  if (!is_coming(index)) return;
  arrive(index);
  if (const Event& event = presences_[index].event) event.synchronize();
  comm::internals(comm_).throw_if_failed();
}

// Steps -------------------------------------------------------------------------------------------

void ParameterGathers::step_begins() {
  attach_again();
  forget_captured();
  if (is_new_) settle();
  order_.clear();
  place_ = 0;
  if (!by_units() && options_.gather_ahead) start_all();  // a rank without samples uses none
  if (!by_units() || stays_ || before_.empty()) return;
  const size_t first = before_.front();
  if (is_away(first)) start(first);
}

void ParameterGathers::finish() {
  for (size_t a = 0; a < arena_count(); ++a)
    if (is_coming(a)) arrive(a);
}

void ParameterGathers::settle() {
  attach_again();
  finish();
  forget_captured();
  for (size_t a = 0; by_units() && a < arena_count(); ++a)
    if (arena(a).has_whole_data()) require_own_capture(a);
  times_freed_ += stays_;
  stays_ = is_new_ = false;
  if (!by_units()) return;
  for (size_t a = 0; a < arena_count(); ++a) arena(a).keep_own_data(true);
  recent_.clear();
}

// A step that will be replayed gathers as it begins what the step before has updated.
void ParameterGathers::prepare_for_capture() {
  settle();
  const bool may_capture =
      comm_.device().is_cuda() && comm::internals(comm_).transport().control() != nullptr;
  if (!by_units() && options_.gather_ahead && may_capture) let_go();
}

// Until the next use of a parameter.
void ParameterGathers::let_go() {
  for (size_t a = 0; a < arena_count(); ++a) arena(a).keep_own_data(false);
  watch_uses(true);
}

void ParameterGathers::before_rule() {
  settle();
  if (!order_.empty()) before_ = std::exchange(order_, {});
  watch_launches();
}

// A replay reads values that an eager step may have left on their way, and writes those of this
// rank behind the back of what was gathered before: now, or by the next use if it gathers what it
// reads.
void ParameterGathers::watch_launches() {
  const uint64_t capture = capture_on(comm_);
  if (capture == 0 || std::exchange(capture_, capture) == capture) return;
  const bool gathers_first = gathered_in_ == capture;
  cuda::add_launch_hook([this, gathers_first, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.lock()) return;
    settle();
    if (gathers_first) let_go();
  });
}

void ParameterGathers::after_rule() {
  attach_again();
  if (by_units()) return;
  const uint64_t capture = capture_on(comm_);
  const bool gathers_first = capture != 0 && gathered_in_ == capture;
  const bool is_ahead = options_.gather_ahead && capture == 0;
  if (is_ahead || gathers_first) let_go();
  if (gathers_first) return;
  if (is_ahead) return start_ahead();
  std::vector<size_t> spread;
  for (const size_t a : by_use_)
    if (arena(a).covers().size() != arena(a).size()) spread.push_back(a);
  if (!spread.empty()) gather_now(spread);
}

// On the current stream, in one call of the library.
void ParameterGathers::gather_now(const std::vector<size_t>& arenas) {
  comm_.group([&] {
    for (const size_t index : arenas) {
      const ParameterArena& a = arena(index);
      comm_.all_gather(a.own_data(), a.data().memory);
    }
  });
  count_ += static_cast<int64_t>(arenas.size());
}

void ParameterGathers::gather_all() {
  attach_again();
  if (optimizer_ == nullptr) return;
  forget_captured();
  start_all();
  finish();
  recent_.clear();
  stays_ = true;
}

}  // namespace catena::parallel
