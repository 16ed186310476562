// State that a provider keeps from a forward call for its backward call.
#pragma once

#include <type_traits>
#include <utility>

#include "catena/core/intrusive.h"

namespace catena {

// Base of what providers keep: masks, positions, reserve spaces, seeds. Each provider derives its
// own struct, which no other one reads. Not changed after the forward call, for backward calls may
// be repeated and run on several threads.
class KeptState : public RefCounted {
 public:
  virtual ~KeptState() = default;
  static void destroy(const KeptState* state) { delete state; }
};

// A slot's function for calls of this kind: true when it has taken the call.
template <class Call>
using SlotFunction = bool (*)(const Call&);

// As a SlotFunction, what takes every call.
template <auto kFunction, class Call>
bool take_call(const Call& call) {
  if constexpr (std::is_void_v<decltype(kFunction(call))>) {
    kFunction(call);
    return true;
  } else {
    return kFunction(call);
  }
}

// The state of a forward call and the function that is to be asked for the backward call. The
// struct of a forward call has a pointer to one (`Kept<GradCall>* kept`, null: no backward call
// will follow), into which its provider may keep something; the struct of the backward call has it
// as `const Kept<GradCall>* kept`. The backward slot then asks the function that was kept, alone,
// whatever rules say by now. Where nothing was kept, any provider may serve the backward call.
template <class BackwardCall>
class Kept {
 public:
  // For a provider that has taken the forward call: its own backward function, which is of a slot
  // of BackwardCall, and its state. A backward function that may decline is asked all the same:
  // what it declines is an error.
  template <auto kBackward>
  void keep(IntrusivePtr<const KeptState> state) {
    maker_ = origin_ = &take_call<kBackward, BackwardCall>;
    state_ = std::move(state);
  }
  // For that backward function: its state, or null if the call has none of it.
  template <auto kBackward, class State>
  const State* state() const {
    const bool own = origin_ == &take_call<kBackward, BackwardCall>;
    return own ? static_cast<const State*>(state_.get()) : nullptr;
  }
  // The function to ask; null: all providers.
  SlotFunction<BackwardCall> maker() const { return maker_; }
  // Asks another function in its place, which asks maker(): for tests that count calls.
  void redirect(SlotFunction<BackwardCall> maker) { maker_ = maker; }

 private:
  SlotFunction<BackwardCall> maker_ = nullptr, origin_ = nullptr;
  IntrusivePtr<const KeptState> state_;
};

// A backward call that comes with what the forward call's provider kept.
template <class Call>
concept HasKept = requires(const Call& call, const Kept<Call>* kept) {
  kept = call.kept;
};

}  // namespace catena
