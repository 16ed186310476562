// Persistent: an array that belongs to a layer but is not trained, as running means or the table of
// a sampler, shared by handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "catena/array/creation.h"

namespace catena {

struct Placement;

// What ranks that train one model together do with such an array. All start from rank 0's values:
// setup and broadcast_state of a multi-node optimizer copy them to the other ranks.
enum class OverRanks : uint8_t {
  kEqual,    // the same bits on every rank, as of parameters, and compared with them
  kMean,     // each rank's own until parallel::average_persistents, which gives all the mean, to
             // which ranks contribute by their samples (Persistent::count_samples)
  kPerRank,  // each rank's own
};
// "equal", "mean", "per rank".
const char* name(OverRanks over_ranks);

// State behind Persistent handles.
struct PersistentState : RefCounted {
  Array data;
  OverRanks over_ranks = OverRanks::kEqual;
  int64_t samples = 0;  // see Persistent::count_samples
  std::string path;     // "bn1/avg_mean", the longest that a listing of a model gave
  std::shared_ptr<const Placement> placement;
  static void destroy(PersistentState* state) { delete state; }
};

// A layer writes into the array (bn.avg_mean.data() *= 0.9), whose place in memory changes only
// when the model moves to another device. Models move, copy, save and load it under its name;
// gradients, optimizers and their arenas do not see it. An undefined one (default-constructed, of a
// layer that was moved from) may be assigned, compared and asked whether it is defined(); anything
// else is a ValueError that names the call.
//
// As with arrays, two threads may not write, or one write while another reads, at the same time.
class Persistent {
 public:
  Persistent() = default;
  // Takes the array, of any dtype, as initial value; a copy unless it is contiguous. ValueError
  // when it is undefined, DtypeError for kMean unless it is of a floating dtype.
  explicit Persistent(const Array& initial, OverRanks over_ranks = OverRanks::kEqual);

  // The value, its properties, and what ranks do with it; a ValueError for an undefined handle.
  bool defined() const { return bool(state_); }
  const Array& data() const { return known("Persistent::data").data; }
  Dtype dtype() const { return known("Persistent::dtype").data.dtype(); }
  const Shape& shape() const { return known("Persistent::shape").data.shape(); }
  int64_t size() const { return known("Persistent::size").data.size(); }
  Device device() const { return known("Persistent::device").data.device(); }
  OverRanks over_ranks() const { return known("Persistent::over_ranks").over_ranks; }
  // Where a model has it: "bn1/avg_mean", or "" when no model has listed it yet. Any thread.
  std::string path() const;

  // Copies the values of `source`, from any device; the array stays. ShapeError, DtypeError.
  void copy_from(const Array& source) const;
  void to(Device device) const;
  // For layers that collect an OverRanks::kMean array: so many samples went into it, on the host's
  // count. The next averaging weighs this rank by them, and begins again at 0. Where no rank
  // counts, all weigh the same. Launches of a graph count as well, where the array is on a GPU.
  void count_samples(int64_t n) const;
  int64_t samples() const { return known("Persistent::samples").samples; }
  void forget_samples() const { known("Persistent::forget_samples").samples = 0; }
  // An independent one with the same values.
  Persistent clone() const;
  // Says how the array lies over ranks (placement.h). ShapeError for a box in which it does not
  // fit, ValueError for a box of an array with OverRanks::kPerRank, of which there is no whole.
  void place(const Placement& placement) const;
  // Null: it is whole on every rank.
  const Placement* placement() const { return known("Persistent::placement").placement.get(); }

  // Remembers where a model has it, for messages; any thread.
  void note_path(const std::string& path) const;

  friend bool operator==(const Persistent& a, const Persistent& b) { return a.state_ == b.state_; }

 private:
  PersistentState& known(const char* who) const {
    if (!state_) [[unlikely]]
      fail_undefined(who);
    return *state_;
  }
  [[noreturn, gnu::cold]] static void fail_undefined(const char* who);

  IntrusivePtr<PersistentState> state_;
};

// A Persistent that is a member of a layer: copying the layer makes a new one, moving it keeps the
// array, assigning writes into the existing one (what happens over ranks stays as declared).
// Assigning a temporary writes too where a model has listed the existing one and shape and dtype
// agree. That is for layers and models: to copy the values of one array, write
// a.copy_from(b.data()).
class OwnedPersistent : public Persistent {
 public:
  OwnedPersistent() = default;
  explicit OwnedPersistent(const Array& initial, OverRanks over_ranks = OverRanks::kEqual)
      : Persistent(initial, over_ranks) {}
  OwnedPersistent(const OwnedPersistent& other)
      : Persistent(other.defined() ? other.clone() : Persistent()) {}
  [[deprecated("makes a new array; Persistent p = layer.p is one more handle of the same")]]  //
  OwnedPersistent(OwnedPersistent& other)
      : OwnedPersistent(static_cast<const OwnedPersistent&>(other)) {}
  OwnedPersistent(OwnedPersistent&&) noexcept = default;
  OwnedPersistent& operator=(const OwnedPersistent& other);
  [[deprecated("copies values; write a.copy_from(b.data())")]]  //
  OwnedPersistent&
  operator=(OwnedPersistent& other) {
    return *this = static_cast<const OwnedPersistent&>(other);
  }
  OwnedPersistent& operator=(OwnedPersistent&& other) noexcept;
};

}  // namespace catena
