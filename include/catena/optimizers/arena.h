// Arenas: the parameters of a model, their gradients and the states of an update rule, side by side
// in blocks of memory per device and dtype, so that one kernel updates and one transfer moves all
// of them, or any range.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/function_set.h"

namespace catena::optimizers {

// The same elements of an arena's blocks, as 1-d contiguous arrays of one length.
struct ArenaRange {
  Array data, gradient;
  // Float32 copy of 16-bit data, which the rule updates in their place; else undefined.
  Array master;
  // Of the rule, in the dtype of the data, float32 of 16-bit data; none before make_states.
  Arrays states;
};

// Elements [begin, end) of an arena.
struct ElementRange {
  int64_t begin, end;
  bool operator==(const ElementRange&) const = default;
};

// The blocks of one device and dtype, in which every parameter has a slot. Slots begin at multiples
// of 256 bytes; the gaps of data and gradients hold zeros and stay zero under any rule that keeps a
// zero parameter with a zero gradient.
class ParameterArena {
 public:
  // The place of a parameter in the arena.
  struct Slot {
    Parameter parameter;
    int64_t index;   // in the order of declaration, over all arenas of the set
    int64_t offset;  // in elements
    int64_t size;
    // Of the parameter's axes, when the arena was made: data, gradient and states have it.
    MemoryOrder order = {};
  };
  static constexpr int64_t kAlignment = 256;  // bytes

  // Copies the values (and gradients, if there are any) of the parameters into a new block, one
  // after the other, and re-seats the parameters on it. Each keeps the order of its axes in memory.
  // All must be on one device and of one dtype.
  explicit ParameterArena(std::vector<Slot> slots);

  // The device and the dtype of the blocks, and the blocks.
  Device device() const { return data().device(); }
  Dtype dtype() const { return data().dtype(); }
  int64_t size() const { return data().size(); }  // elements, gaps included
  const Array& data() const { return blocks_.data; }
  const Array& gradient() const { return blocks_.gradient; }
  const Array& master() const { return blocks_.master; }
  const Arrays& states() const { return blocks_.states; }

  // Makes a state of each start value and, of 16-bit data, the master copy, in place of those that
  // are there.
  void make_states(const std::vector<double>& start_values);

  // All elements, without making a view.
  const ArenaRange& whole() const { return blocks_; }
  // Views of elements [begin, end). IndexError unless 0 <= begin <= end <= size().
  ArenaRange range(ElementRange elements) const;
  // Part `index` of `count` parts that cover the arena in order and begin at multiples of 256 bytes
  // of the data; the last ones may be empty. ValueError unless 0 <= index < count.
  ElementRange shard(int64_t index, int64_t count) const;
  // Slots [first, last), each with the gap after it: a bucket.
  ElementRange slot_range(size_t first, size_t last) const;

  // In order of their place in the arena.
  const std::vector<Slot>& slots() const { return slots_; }
  // The part of an array of the arena's length that belongs to a slot, in the parameter's shape and
  // memory order.
  Array slice(const Array& flat, const Slot& slot) const;
  // Elements [slot's offset, next slot's offset): the slot with the gap after it.
  int64_t end_of(size_t slot) const;

  // Whether every parameter still lies here: false after a move to another device, and after
  // somebody else re-seated one.
  bool in_place() const;
  // Fills the gradients of parameters that nothing has reached since zero_grads with zeros, each
  // run of neighbours in one call; of all slots, or of [first, last).
  void settle_gradients() const { settle_gradients(0, slots_.size()); }
  void settle_gradients(size_t first, size_t last) const;

 private:
  std::vector<Slot> slots_;
  ArenaRange blocks_;
};

// The arenas of a list of named parameters. The layout follows from the order of declaration alone:
// within a device and dtype the last declared parameter comes first, because its gradient is final
// first; it is the same in every process that declares the same model.
class ArenaSet {
 public:
  using Named = std::vector<std::pair<std::string, Parameter>>;
  ArenaSet() = default;
  // Parameters in order of declaration; one that is listed twice counts once, by its first name.
  // Other sets may hold the parameters as well, by other names and in other places; the memory is
  // that of the last set that was made or rebuilt. Parameter::name() becomes the name ("/l1/W"),
  // unless it is a longer path already. ValueError when there are no parameters.
  explicit ArenaSet(const Named& named);

  // Whether there is no parameter.
  bool empty() const { return parameters_.empty(); }
  // In order of declaration.
  const Parameters& parameters() const { return parameters_; }
  // The name that this set was given for parameters()[index].
  const std::string& name(size_t index) const { return names_[index]; }
  const std::vector<ParameterArena>& arenas() const { return arenas_; }
  bool in_place() const;
  // Lays the parameters out anew on the devices where they are now; values and gradients stay,
  // states are gone.
  void rebuild();
  // ParameterArena::make_states of all arenas.
  void make_states(const std::vector<double>& start_values);
  void settle_gradients() const;

  // One line "/l1/W (3, 4) float32" for every parameter, with the order of its axes in memory
  // unless that is C order, and a hash of it: what must agree between models that exchange arenas.
  std::string structure() const;
  uint64_t structure_hash() const;

 private:
  Parameters parameters_;
  std::vector<std::string> names_;  // of the parameters
  std::vector<ParameterArena> arenas_;
};

// When gradients[i] (in order of declaration) are those of another arena that is laid out as
// `like`: the whole block of that arena; else an undefined array.
Array common_block(const ParameterArena& like, const Arrays& gradients);

}  // namespace catena::optimizers
