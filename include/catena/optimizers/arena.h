// Arenas: the parameters of a model, and their gradients, side by side in one block of memory per
// device and dtype, so that one kernel updates and one transfer moves all of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/function_set.h"

namespace catena::optimizers {

// One block of one device and dtype: two 1-d arrays, of data and of gradients, in which every
// parameter has a slot. Slots begin at multiples of 256 bytes; the gaps hold zeros and stay zero
// under any rule that keeps a zero parameter with a zero gradient.
class ParameterArena {
 public:
  // The place of a parameter in the arena.
  struct Slot {
    Parameter parameter;
    int64_t index;   // in the order of declaration, over all arenas of the set
    int64_t offset;  // in elements
    int64_t size;
  };
  static constexpr int64_t kAlignment = 256;  // bytes

  // Copies the values (and gradients, if there are any) of the parameters into a new block, in the
  // given order, and re-seats the parameters on it. All must be on one device and of one dtype.
  explicit ParameterArena(std::vector<Slot> slots);

  // The device and the dtype of the block, and its arrays and slots in order of their place.
  Device device() const { return data_.device(); }
  Dtype dtype() const { return data_.dtype(); }
  int64_t size() const { return data_.size(); }  // elements, gaps included
  const Array& data() const { return data_; }
  const Array& gradient() const { return gradient_; }
  const std::vector<Slot>& slots() const { return slots_; }
  // The part of an array of the arena's length that belongs to a slot, in the parameter's shape.
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
  Array data_, gradient_;
};

// The arenas of a list of named parameters. The layout follows from the order of declaration alone:
// within a device and dtype the last declared parameter comes first, because its gradient is final
// first; it is the same in every process that declares the same model.
class ArenaSet {
 public:
  using Named = std::vector<std::pair<std::string, Parameter>>;
  ArenaSet() = default;
  // Parameters in order of declaration; one that is listed twice counts once, by its first name.
  // Sets the names ("/l1/W") and positions of the parameters. ValueError when there are none.
  explicit ArenaSet(const Named& named);

  // Whether there is no parameter.
  bool empty() const { return parameters_.empty(); }
  // In order of declaration.
  const Parameters& parameters() const { return parameters_; }
  const std::string& name(size_t index) const { return parameters_[index].name(); }
  const std::vector<ParameterArena>& arenas() const { return arenas_; }
  bool in_place() const;
  // Lays the parameters out anew on the devices where they are now; values and gradients stay.
  void rebuild();
  void settle_gradients() const;

  // One line "/l1/W (3, 4) float32" for every parameter, and a hash of it: what must agree between
  // models that exchange parameters.
  std::string structure() const;
  uint64_t structure_hash() const;

 private:
  Parameters parameters_;
  std::vector<ParameterArena> arenas_;
};

// When gradients[i] (in order of declaration) are those of another arena that is laid out as
// `like`: the whole block of that arena; else an undefined array.
Array common_block(const ParameterArena& like, const Arrays& gradients);

}  // namespace catena::optimizers
