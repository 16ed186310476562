#include "tape.h"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "catena/comm/internals.h"
#include "catena/core/log.h"

namespace catena::parallel {

namespace {

constexpr uint64_t kMany = 10'000;

void warn_about_many() {
  logging::warning("differentiable communication: ", kMany,
                   " calls were recorded on a communicator without a backward pass, and are kept; "
                   "evaluate under "
                   "NoBackprop, or drop them by delegate_variable(comm).unchain_backward()");
}

}  // namespace

void Step::pass() {
  const std::shared_ptr<Step> following = next.lock();
  if (following)
    CATENA_CHECK(
        GradientError, following->passes > passes - passes_before_next, what,
        ": backward has come to this call, but not to the ", following->what,
        " recorded behind it, in which another rank waits for this one. Go back from all "
        "results in one pass: backward({loss, phi}), where phi is what the last call "
        "returned, or delegate_variable(comm); values that want no gradient go through the "
        "communicator as arrays");
  ++passes;
}

std::shared_ptr<Step> Tape::last_step() const {
  // The user may have cut the history off.
  return last_.defined() && last_.creator() ? last_step_.lock() : nullptr;
}

void Tape::append(const std::shared_ptr<Step>& step, const Variable& delegate) {
  const std::shared_ptr<Step> before = last_step();
  if (before) {
    before->next = step;
    before->passes_before_next = before->passes;
  }
  step->number = before ? before->number + 1 : 1;
  if (step->number == kMany) warn_about_many();
  last_ = delegate;
  last_step_ = step;
}

void Tape::release(const Step& step) {
  if (last_step_.lock().get() == &step) last_ = Variable();
}

namespace {

// Never destroyed: communicators may close in destructors of the program.
struct Tapes {
  std::mutex mutex;
  std::unordered_map<const Communicator*, std::shared_ptr<Tape>> of;
};
Tapes& tapes() {
  static Tapes* const all = new Tapes;
  return *all;
}

void forget(const Communicator* comm) {
  std::shared_ptr<Tape> kept;  // the graph is destroyed after the lock is free
  std::lock_guard lock(tapes().mutex);
  if (auto node = tapes().of.extract(comm)) kept = std::move(node.mapped());
}

}  // namespace

std::shared_ptr<Tape> tape_of(Communicator& comm) {
  std::lock_guard lock(tapes().mutex);
  std::shared_ptr<Tape>& tape = tapes().of[&comm];
  if (!tape) {
    tape = std::make_shared<Tape>();
    comm::internals(comm).before_close([key = &comm] { forget(key); });
  }
  return tape;
}

}  // namespace catena::parallel
