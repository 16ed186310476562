#include "parallel/gathers/unit_gathers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "autograd/parameter_uses.h"
#include "core/cached_memory.h"
#include "parallel/gathers/units.h"

namespace catena::parallel {
namespace {

constexpr size_t kUnitsInUse = 3;  // that a function's parameters may belong to

}  // namespace

// Layout ------------------------------------------------------------------------------------------

void UnitGathers::detached() {
  units_.clear();
  bytes_.clear();
  recent_.clear();
  order_.clear();
  before_.clear();
  kept_.clear();
}

void UnitGathers::attached() {
  if (comm_.rank() == 0) warn_of_large_units(optimizer(), options_.units);
  std::vector<std::string> names;
  for (size_t a = 0; a < arena_count(); ++a) {
    const std::string unit = unit_of(first_name(a), options_.units);
    const auto found = std::find(names.begin(), names.end(), unit);
    units_.push_back(size_t(found - names.begin()));
    if (found == names.end()) {
      names.push_back(unit);
      bytes_.push_back(0);
    }
    bytes_[units_.back()] += bytes_of(a);
  }
  most_bytes_ = std::max(*std::max_element(bytes_.begin(), bytes_.end()),
                         bytes_of_small_units(comm_.device()));
  stays_ = is_new_ = true;
  for (size_t a = 0; a < arena_count(); ++a) stays_ = is_new_ = stays_ && is_here(a);
}

// Uses --------------------------------------------------------------------------------------------

void UnitGathers::before_use(ParameterState& parameter) {
  const auto known = arena_of(parameter);
  if (!known) return;
  const size_t index = *known;
  note_stream();
  forget_captured(index);
  if (is_here(index)) {
    if (!stays_) require_own_capture(index);
    wait_until_here(index);
    watch_kept_values(index);
  }
  if (stays_) return;
  const bool was_kept = kept_.erase(index) > 0;
  if (!is_here(index)) kept_arrive();
  note_use(units_[index]);
  if (is_here(index) && !was_kept) return;
  if (!was_kept) arrive(index);
  start_following(index);
}

void UnitGathers::backward_begins() {
  left_.assign(bytes_.size(), 0);
  for (size_t a = 0; a < arena_count(); ++a) left_[units_[a]] += arena(a).slots().size();
}

// A unit with which a pass is done makes room for what was kept, and that for what comes next.
void UnitGathers::gradient_is_final(ParameterState& parameter) {
  const auto known = arena_of(parameter);
  if (!known || kept_.empty()) return;
  const size_t unit = units_[*known];
  if (left_[unit] == 0 || --left_[unit] > 0) return;
  kept_arrive();
  std::erase_if(recent_, [&](const Use& other) { return other.unit == unit; });
  let_unit_go(unit);
  if (place_ < before_.size()) start(before_[place_]);
}

std::optional<KeptValues> UnitGathers::kept_values(ParameterState& parameter) {
  const auto known = arena_of(parameter);
  if (!known) return {};
  forget_captured(*known);
  if (is_coming(*known)) arrive(*known);
  if (is_here(*known)) return {};
  const optimizers::ParameterArena& own = arena(*known);
  const auto slot = std::find_if(own.slots().begin(), own.slots().end(), [&](const auto& each) {
    return each.parameter.state() == &parameter;
  });
  const int64_t first = slot->offset, start = own.covers().begin;
  auto here = intersection({first, first + slot->size}, own.covers());
  if (here.size() == 0) here = {start, start};
  return KeptValues{own.data().part(here), here.size() > 0 ? here.begin - first : 0, slot->order};
}

// What arrived next in the step before is on its way while this arena is used, or was kept.
void UnitGathers::start_following(size_t index) {
  order_.push_back(index);
  const bool is_as_before = place_ < before_.size() && before_[place_] == index;
  place_ = is_as_before ? place_ + 1 : before_.size();
  if (place_ < before_.size()) start(before_[place_]);
}

// Backward says nothing of uses of values that are here: those that were kept are in use when it is
// done with others, or needs others.
void UnitGathers::kept_arrive() {
  for (const size_t index : kept_)
    if (recent_.empty() || recent_.front().unit != units_[index])
      recent_.push_front({units_[index], 0});
  while (place_ < before_.size() && kept_.contains(before_[place_]))
    order_.push_back(before_[place_++]);
  kept_.clear();
}

// What the running call does not use makes room for what comes. What stays must not depend on what
// is gathered ahead: the units of all steps would not come in one order.
void UnitGathers::note_use(size_t unit) {
  const Use use{unit, current_use()};
  std::erase_if(recent_, [&](const Use& other) { return other.unit == unit; });
  recent_.push_front(use);
  const auto is_too_much = [&] {
    int64_t bytes = 0;
    for (const Use& other : recent_) bytes += bytes_[other.unit];
    return bytes > most_bytes_ && recent_.back().call != use.call;
  };
  while (recent_.size() > kUnitsInUse || is_too_much()) {
    if (!keep_for_arrival(recent_.back().unit, unit)) let_unit_go(recent_.back().unit);
    recent_.pop_back();
  }
}

// Whether a unit arrived next after the one in use in the step before, as at the turn from forward
// to backward: it stays instead of what would be on its way.
bool UnitGathers::keep_for_arrival(size_t unit, size_t used) {
  size_t next = place_;
  while (next < before_.size() && units_[before_[next]] == used) ++next;
  const size_t first = next;
  for (; next < before_.size() && units_[before_[next]] == unit; ++next)
    if (is_here(before_[next])) kept_.insert(before_[next]);
  return next > first;
}

void UnitGathers::let_unit_go(size_t unit) {
  for (size_t a = 0; a < arena_count(); ++a)
    if (units_[a] == unit) let_go(a);
}

// The memory is freed.
void UnitGathers::let_go(size_t index) {
  kept_.erase(index);
  arena(index).keep_own_data(true);
}

// The side stream writes the memory of units that were freed behind the stream that is current
// then. It must be behind all others that have used them as well.
void UnitGathers::note_stream() {
  if (!comm_.device().is_cuda()) return;
  const uint64_t capture = current_capture();
  if (capture != 0 && std::exchange(capture_of_user_, capture) != capture) captured_user_ = {};
  Stream& last = capture == 0 ? user_ : captured_user_;
  const Stream user = current_stream(comm_.device());
  if (user == last) return;
  if (last.defined()) comm_.side_stream().wait(last);
  last = user;
}

// Steps -------------------------------------------------------------------------------------------

void UnitGathers::step_begins() {
  attach_again();
  forget_captured();
  if (is_new_) free_all();
  order_.clear();
  place_ = 0;
  if (!stays_ && !before_.empty()) start(before_.front());
}

void UnitGathers::before_rule() {
  free_all();
  if (!order_.empty()) before_ = std::exchange(order_, {});
  watch_launches();
}

// A hook may have gathered all in between: the values of other ranks are old now.
void UnitGathers::after_rule() {
  attach_again();
  if (stays_) free_all();
}

void UnitGathers::all_gathered() {
  recent_.clear();
  kept_.clear();
  stays_ = true;
}

void UnitGathers::free_all() {
  settle();
  for (size_t a = 0; a < arena_count(); ++a)
    if (is_here(a)) require_own_capture(a);
  const bool were_all_here = std::exchange(stays_, false);
  times_freed_ += were_all_here;
  is_new_ = false;
  for (size_t a = 0; a < arena_count(); ++a) let_go(a);
  recent_.clear();
  if (were_all_here) give_back_cached(comm_.device(), size_t(32) << 20);
}

// Captures ----------------------------------------------------------------------------------------

// A unit that was here before a capture is not gathered by the graph.
void UnitGathers::require_own_capture(size_t index) const {
  CATENA_CHECK(ValueError, current_capture() == 0 || is_of_this_capture(index),
               "Graph::capture: the values of parameter '", first_name(index),
               "' were here before the capture, and an update lets them go; call "
               "prepare_for_capture() of the optimizer before Graph::capture, and the graph "
               "gathers them itself");
}

// A replay writes this rank's values behind the back of units that an eager step has here.
void UnitGathers::watch_launches() {
  if (is_new_to_launches()) before_launches([this] { free_all(); });
}

// A graph that uses values while they are here has no gathers: it must not run once they are gone.
void UnitGathers::watch_kept_values(size_t index) {
  if (!is_first_reader(index)) return;
  before_launches([this, freed = times_freed_] {
    CATENA_CHECK(ValueError, freed == times_freed_,
                 "Graph::launch: the graph uses values of parameters that were here when it was "
                 "captured, and that an update has let go; call prepare_for_capture() of the "
                 "optimizer before Graph::capture, and the graph gathers them itself");
  });
}

}  // namespace catena::parallel
