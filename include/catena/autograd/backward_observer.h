// BackwardObserver: notified by backward passes when the gradients of parameters become final. Base
// of data-parallel reduction, of pipelines and of hooks of users.
#pragma once

#include <optional>

#include "catena/core/intrusive.h"

namespace catena {

class BackwardObserver;
class Parameter;
class PassStart;
struct KeptValues;
struct ParameterState;

namespace detail {
// What parameters and running passes hold of an observer, which may be gone: null then.
struct ObserverLink : RefCounted {
  BackwardObserver* observer;
  explicit ObserverLink(BackwardObserver* o) : observer(o) {}
  static void destroy(ObserverLink* link) { delete link; }
};
}  // namespace detail

// Observes any number of parameters, and a parameter may have any number of observers, which are
// notified in the order in which they were added. Observing keeps neither alive: a parameter that
// is destroyed is forgotten, and an observer that is destroyed gets no further calls.
//
// A pass calls its observers from the thread that runs it. Observers may be added, removed and
// destroyed in between and from their own calls (one that is added during a pass is notified from
// the next one on), but not while another thread runs a pass over the same parameters. An exception
// from a call ends the pass, which then notifies nobody of its end.
class BackwardObserver {
 public:
  BackwardObserver() : link_(new detail::ObserverLink(this)) {}
  virtual ~BackwardObserver() {
    watch_uses(false);
    link_->observer = nullptr;
  }
  BackwardObserver(const BackwardObserver&) = delete;
  BackwardObserver& operator=(const BackwardObserver&) = delete;

  // Asking twice is asking once. ValueError for an undefined parameter.
  void observe(const Parameter& parameter);
  // The parameter need not be observed.
  void stop_observing(const Parameter& parameter);
  // All of them, without looking at any.
  void stop_observing();

  // A pass that reaches a parameter of this observer is about to run its first function: the last
  // moment at which the memory of gradients may be given another place
  // (ParameterState::bind_gradient).
  virtual void backward_begins() {}
  // Behind backward_begins: what the pass starts with, which an observer that weighs losses may
  // change (pass_start.h). Not for parameters that only passes inside the pass reach.
  virtual void backward_starts(PassStart&) {}
  // All uses of the parameter in the running pass are done. Once a pass, also for a parameter that
  // no gradient has reached (ParameterState::has_gradient).
  virtual void gradient_is_final(ParameterState& parameter) = 0;
  // The pass is done.
  virtual void backward_ends() {}
  // A function of the calling thread is about to use the parameter (FunctionCall): its values must
  // be there when this returns. Only while watch_uses is on.
  virtual void before_use(ParameterState&) {}

  // Somebody else than a function, on the calling thread, asks for values that are not here. May
  // bring what is on its way already, and then waits for it on the host: nothing is told of further
  // reads, on whatever stream they are.
  virtual void before_read(ParameterState&) {}
  // What this process keeps of values that are not all here; nothing of others.
  virtual std::optional<KeptValues> kept_values(ParameterState&);

  bool watches_uses() const { return watches_uses_; }  // whether before_use is called

 protected:
  // Whether before_use is called; off at first. While any observer watches, calls of functions look
  // for observers of their operands.
  void watch_uses(bool on);

 private:
  IntrusivePtr<detail::ObserverLink> link_;
  bool watches_uses_ = false;
};

}  // namespace catena
