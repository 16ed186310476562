#include "parallel/gathers/update_gathers.h"

#include "catena/comm/internals.h"
#include "catena/comm/transport.h"

namespace catena::parallel {

// On a GPU every stream waits for itself: uses are told even when all values have arrived.
UpdateGathers::UpdateGathers(Communicator& comm, const BucketOptions& options)
    : ParameterGathers(comm, options,
                       !options.gather_ahead     ? Watch::kNothing
                       : comm.device().is_cuda() ? Watch::kUses
                                                 : Watch::kReads) {}

// Uses --------------------------------------------------------------------------------------------

void UpdateGathers::before_use(ParameterState& parameter) {
  const auto known = arena_of(parameter);
  if (!known) return;
  const size_t index = *known;
  forget_captured(index);
  if (is_here(index)) {
    wait_until_here(index);
    return watch_kept_values(index);
  }
  // A capture gathers what it uses: nothing would wait for the rest, unless it is a step.
  if (!is_coming(index) && current_capture() == 0) start_all();
  arrive(index);
  if (!is_any_coming() && !comm_.device().is_cuda()) watch_uses(false);
}

// The host waits: of reads on other streams nothing will be known.
void UpdateGathers::before_read(ParameterState& parameter) {
  const auto index = arena_of(parameter);
  if (!index || current_capture() != 0) return;
  forget_captured(*index);
  if (!is_coming(*index)) return;
  arrive(*index);
  if (const Event& event = arrival_of(*index)) event.synchronize();
  comm::internals(comm_).throw_if_failed();
}

// Steps -------------------------------------------------------------------------------------------

void UpdateGathers::step_begins() {
  attach_again();
  forget_captured();
  if (options_.gather_ahead) start_all();  // a rank without samples uses none
}

// A step that will be replayed gathers as it begins what the step before has updated.
void UpdateGathers::prepare_for_capture() {
  settle();
  const bool may_capture =
      comm_.device().is_cuda() && comm::internals(comm_).transport().control() != nullptr;
  if (options_.gather_ahead && may_capture) let_go_all();
}

void UpdateGathers::before_rule() {
  settle();
  watch_launches();
}

void UpdateGathers::after_rule() {
  attach_again();
  if (gathers_in_this_capture()) return let_go_all();
  if (options_.gather_ahead && current_capture() == 0) {
    let_go_all();
    return start_ahead();
  }
  std::vector<size_t> spread;
  for (const size_t a : by_declaration())
    if (arena(a).covers().size() != arena(a).size()) spread.push_back(a);
  if (!spread.empty()) gather_now(spread);
}

void UpdateGathers::let_go_all() {
  for (size_t a = 0; a < arena_count(); ++a) let_go(a);
  watch_uses(true);
}

// Arrays that the program has kept show values that no use will wait for: the stream of the update
// does. All ranks send, however many of them wait.
void UpdateGathers::start_ahead() {
  std::vector<size_t> kept;
  for (size_t a = 0; a < arena_count(); ++a)
    if (arena(a).has_kept_views()) kept.push_back(a);
  start_all();
  for (const size_t a : kept) arrive(a);
}

// On the current stream, in one call of the library.
void UpdateGathers::gather_now(const std::vector<size_t>& arenas) {
  const comm::PurposeScope purpose(&comm_, "update");
  comm_.group([&] {
    for (const size_t index : arenas) {
      const optimizers::ParameterArena& a = arena(index);
      comm_.all_gather(a.own_data(), a.data().memory);
    }
  });
  add_to_count(static_cast<int64_t>(arenas.size()));
}

bool UpdateGathers::is_any_coming() const {
  for (size_t a = 0; a < arena_count(); ++a)
    if (is_coming(a)) return true;
  return false;
}

bool UpdateGathers::are_all_here() const {
  for (size_t a = 0; a < arena_count(); ++a)
    if (!is_here(a)) return false;
  return true;
}

// Captures ----------------------------------------------------------------------------------------

// A replay reads values that an eager step may have left on their way, and writes those of this
// rank behind the back of what was gathered before: now, or by the next use if it gathers what it
// reads.
void UpdateGathers::watch_launches() {
  if (!is_new_to_launches()) return;
  before_launches([this, gathers = gathers_in_this_capture()] {
    settle();
    if (gathers) let_go_all();
  });
}

// A graph that uses values while they are here has no gathers: it must not run once they are gone.
void UpdateGathers::watch_kept_values(size_t index) {
  if (!is_first_reader(index)) return;
  before_launches([this] {
    finish();
    CATENA_CHECK(ValueError, are_all_here(),
                 "Graph::launch: the graph uses values of parameters that were here when it was "
                 "captured, and that an update has let go; call prepare_for_capture() of the "
                 "optimizer before Graph::capture, and the graph gathers them itself, or "
                 "gather_parameters() before Graph::launch");
  });
}

}  // namespace catena::parallel
