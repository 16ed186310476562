#include "catena/autograd/persistent.h"

#include <mutex>
#include <utility>

#include "catena/autograd/placement.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/graph.h"

namespace catena {
namespace {

ForkMutex& persistent_path_mutex() {
  static auto& mutex = *new ForkMutex;  // outlives what static objects hold
  return mutex;
}

}  // namespace

const char* name(OverRanks over_ranks) {
  switch (over_ranks) {
    case OverRanks::kEqual: return "equal";
    case OverRanks::kMean: return "mean";
    default: return "per rank";
  }
}

void Persistent::fail_undefined(const char* who) {
  fail<ValueError>(who, ": this persistent array is undefined; was its layer moved from?");
}

// A capture stands for the first launch.
void Persistent::count_samples(int64_t n) const {
  PersistentState& state = known("Persistent::count_samples");
  state.samples += n;
  if (!state.data.device().is_cuda() || cuda::capture_id() == 0) return;
  cuda::add_launch_hook([kept = state_, n, is_first = true]() mutable {
    if (!std::exchange(is_first, false)) kept->samples += n;
  });
}

Persistent::Persistent(const Array& initial, OverRanks over_ranks) : state_(new PersistentState) {
  check_defined("Persistent", initial);
  CATENA_CHECK(DtypeError, over_ranks != OverRanks::kMean || is_float(initial.dtype()),
               "Persistent: a mean over ranks (OverRanks::kMean) needs a floating dtype, got ",
               initial.dtype());
  state_->data = initial.contiguous();
  state_->over_ranks = over_ranks;
}

void Persistent::note_path(const std::string& path) const {
  PersistentState& state = known("Persistent::note_path");
  const std::lock_guard lock(persistent_path_mutex());
  if (path.size() > state.path.size()) state.path = path;
}

std::string Persistent::path() const {
  const PersistentState& state = known("Persistent::path");
  const std::lock_guard lock(persistent_path_mutex());
  return state.path;
}

void Persistent::copy_from(const Array& source) const {
  const Array& own = known("Persistent::copy_from").data;
  check_defined("Persistent::copy_from", source);
  const bool fits = source.shape() == own.shape() && source.dtype() == own.dtype();
  if (!fits) {
    const std::string at = path();
    const std::string text = message(
        "Persistent::copy_from: ",
        at.empty() ? "the array (no model has listed it yet)" : "'" + at + "'", " is ", own.dtype(),
        " of shape ", own.shape(), ", got ", source.dtype(), " of shape ", source.shape());
    if (source.shape() != own.shape()) throw ShapeError(text);
    throw DtypeError(text);
  }
  own.assign(source);
}

void Persistent::to(Device device) const {
  PersistentState& state = known("Persistent::to");
  if (device != state.data.device()) state.data = state.data.to(device);
}

Persistent Persistent::clone() const {
  const PersistentState& state = known("Persistent::clone");
  Persistent result(state.data.copy(), state.over_ranks);
  result.state_->placement = state.placement;
  return result;
}

void Persistent::place(const Placement& placement) const {
  PersistentState& state = known("Persistent::place");
  const std::string named = message("the persistent array '", path(), "'");
  CATENA_CHECK(ValueError, !placement.has_box() || state.over_ranks != OverRanks::kPerRank,
               "Persistent::place: ", named,
               " is declared OverRanks::kPerRank, each rank's own; a slice of a whole is kEqual, "
               "or kMean where it follows each rank's data");
  check_box("Persistent::place", named, shape(), placement);
  state.placement = std::make_shared<const Placement>(placement);
}

OwnedPersistent& OwnedPersistent::operator=(const OwnedPersistent& other) {
  if (this == &other || !other.defined()) return *this;
  if (!defined())
    Persistent::operator=(other.clone());
  else
    copy_from(other.data());
  return *this;
}

OwnedPersistent& OwnedPersistent::operator=(OwnedPersistent&& other) noexcept {
  if (this == &other) return *this;
  const bool writes = defined() && other.defined() && !path().empty() && other.path().empty() &&
                      shape() == other.shape() && dtype() == other.dtype();
  if (writes) {
    copy_from(other.data());
    static_cast<Persistent&>(other) = Persistent();
  } else {
    Persistent::operator=(std::move(other));
  }
  return *this;
}

}  // namespace catena
