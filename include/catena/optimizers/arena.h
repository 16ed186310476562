// Arenas: the parameters of a model, their gradients and the states of an update rule, side by side
// in blocks of memory per device and dtype, so that one kernel updates and one transfer moves all
// of them, or any range.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/optimizers/arena_memory.h"

namespace catena::optimizers {

// Elements [begin, end) of an arena.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool contains(const ElementRange& other) const {
    return begin <= other.begin && other.end <= end;
  }
  bool operator==(const ElementRange&) const = default;
};
// The elements of both; empty when there are none.
ElementRange intersection(const ElementRange& a, const ElementRange& b);

// Memory for a range of an arena's elements: all of them, or those that this process keeps.
struct Block {
  Array memory;         // 1-d, contiguous, covers.size() elements; undefined: there is no block
  ElementRange covers;  // in elements of the arena

  // Whether there is such a block.
  bool defined() const { return memory.defined(); }
  // A view of these elements. IndexError unless the block covers them.
  Array part(const ElementRange& elements) const;
};

// Whether parameters of this dtype have a float32 master copy: those of 16 bits.
bool has_master(Dtype dtype);

// The same elements of an arena's blocks, as 1-d contiguous arrays of one length.
struct ArenaRange {
  Array data, gradient;
  // Float32 copy of 16-bit data, which the rule updates instead of the data; else undefined.
  Array master;
  // 16-bit copy of float32 data, which the rule's kernel writes with the data; else undefined.
  Array low;
  // States of the rule: dtype of the data, float32 if that has 16 bits. Empty before make_states.
  Arrays states;
};

// The blocks of one device and dtype, in which every parameter has a slot. Slots begin at multiples
// of 256 bytes; the gaps of data and gradients hold zeros and stay zero under any rule that keeps a
// zero parameter with a zero gradient. Every block may cover a part of the arena. Master copies and
// states cover what this process updates; data and gradients cover that and maybe more: the whole
// arena, unless keep_data and keep_gradient say otherwise.
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

  // Copies the values (and gradients, if there are any) of the parameters into new blocks, one
  // after the other, and re-seats the parameters on them. Each keeps the order of its axes in
  // memory. All must be on one device and of one dtype. The blocks divide into `parts` parts of
  // equal size.
  explicit ParameterArena(std::vector<Slot> slots, ArenaMemoryPtr memory = {}, int64_t parts = 1);

  // The device and the dtype of the blocks, and the blocks.
  Device device() const { return data_.memory.device(); }
  Dtype dtype() const { return data_.memory.dtype(); }
  int64_t size() const { return size_; }  // elements, gaps included
  const Block& data() const { return data_; }
  const Block& gradient() const { return gradient_; }
  const Block& master() const { return master_; }
  const std::vector<Block>& states() const { return states_; }

  // Makes a state of each start value and, of 16-bit data, the master copy, in place of those that
  // are there, for all elements or for those in `covers`. IndexError outside of the arena, and of
  // the data and gradients that are kept.
  void make_states(const std::vector<double>& start_values);
  void make_states(const std::vector<double>& start_values, const ElementRange& covers);
  // Keeps these elements of the data, or of the gradients, and frees the memory of the others. A
  // parameter of which elements are left out has no values, or no gradient, here: functions that
  // use the values ask ParameterState::before_use, and anything else that needs them is an error
  // that names it (Parameter::release_data, ParameterState::release_gradient). IndexError unless
  // the elements contain covers() and are here. Not during a capture: blocks get other addresses.
  void keep_data(const ElementRange& elements);
  void keep_gradient(const ElementRange& elements);
  // The whole arena again. The kept elements stay. `fill`, called with the whole data, writes the
  // others, from the processes that keep them; without it they are zeros. Graphs find the values
  // that they refer to, unless an update came in between (note_write).
  void make_data_whole(const std::function<void(const Array& whole)>& fill = {});
  // Gradients of which elements were left out are zero afterwards, as after zero_grad.
  void make_gradient_whole();
  bool has_whole_data() const { return data_.covers.size() == size_; }
  bool has_whole_gradient() const { return gradient_.covers.size() == size_; }
  // Counts a write of the values of all parameters, those that are not here included.
  void note_write() const;

  // Gives the master copy, if there is one, the values of the data.
  void copy_data_to_master() const;
  // Lays the 16-bit copies of parameters that somebody has asked for (ParameterState::low) side by
  // side, so that update kernels write them. All get the dtype that was asked for first; copies of
  // another one stay where they are. Nothing where the states cover a part: there a copy is made
  // anew when it is asked for.
  void adopt_low();
  const Array& low() const { return covered_.low; }
  // Before an update: brings the copies in low() up to date. After it: they are, by the kernel.
  void refresh_low() const;
  void mark_low_current() const;
  bool is_low_current() const;  // all of them
  // Bytes of the master copy and of the states, as far as this process keeps them; and of all
  // blocks: data, gradients and 16-bit copies too.
  int64_t state_bytes() const;
  int64_t bytes() const;

  // The elements that master copy and states cover: what a rule can update here.
  const ElementRange& covers() const { return covers_; }
  // All blocks over covers(), without making a view.
  const ArenaRange& covered() const { return covered_; }
  // Views of elements [begin, end). IndexError unless covers() contains them.
  ArenaRange range(const ElementRange& elements) const;
  // Part `index` of `count` parts that cover the arena in order and begin at multiples of 256 bytes
  // of the data; the last ones may be empty. ValueError unless 0 <= index < count.
  ElementRange shard(int64_t index, int64_t count) const;
  // Slots [first, last), each with the gap after it: a bucket.
  ElementRange slot_range(size_t first, size_t last) const;

  // In order of their place in the arena.
  const std::vector<Slot>& slots() const { return slots_; }
  // The part of an array of the arena's length that belongs to a slot, in the parameter's shape and
  // memory order.
  Array slice(const Array& flat, const Slot& slot) const { return slice({flat, {0, size_}}, slot); }
  // The same of a block that covers the slot.
  Array slice(const Block& block, const Slot& slot) const;
  // Elements [slot's offset, next slot's offset): the slot with the gap after it.
  int64_t end_of(size_t slot) const;

  // Whether every parameter still lies here: false after a move to another device, and after
  // somebody else re-seated one. A gradient that is not kept may have other memory meanwhile.
  bool in_place() const;
  // Fills the gradients of parameters that nothing has reached since zero_grads with zeros, each
  // run of neighbours in one call; of all slots, or of [first, last).
  void settle_gradients() const { settle_gradients(0, slots_.size()); }
  void settle_gradients(size_t first, size_t last) const;

 private:
  bool has_low(const Slot& slot) const;
  void give_up_low();
  void check_kept(const char* who, const Block& block, const ElementRange& elements) const;
  Block moved(const Block& block, ArenaBlock kind, const ElementRange& elements) const;
  void take_data(Block&& block);
  void take_gradient(const ElementRange& elements);
  bool has_data_in_place(const Slot& slot) const;
  void seat_data(const Slot& slot) const;
  void seat_gradient(const Slot& slot) const;
  Array allocate(ArenaBlock block, int64_t elements, Dtype dtype, Device device) const;

  std::vector<Slot> slots_;
  ArenaMemoryPtr memory_;
  int64_t size_ = 0;
  Block data_, gradient_;
  Block master_;
  std::vector<Block> states_;
  ElementRange covers_;
  ArenaRange covered_;
};

// Where and how an ArenaSet lays parameters out.
struct LayoutOptions {
  ArenaMemoryPtr memory;  // null: the pools of the devices
  int64_t parts = 1;      // of equal size, into which every arena divides
};

// The arenas of a list of named parameters. The layout follows from the order of declaration alone:
// within a device and dtype the last declared parameter comes first, because its gradient is final
// first; it is the same in every process that declares the same model. Neighbours of one layer that
// asked for it (Parameter::pack) lie in the order of declaration, without gaps.
class ArenaSet {
 public:
  using Named = std::vector<std::pair<std::string, Parameter>>;
  ArenaSet() = default;
  // Parameters in order of declaration; one that is listed twice counts once, by its first name.
  // Other sets may hold the parameters as well, by other names and in other places; the memory is
  // that of the last set that was made or rebuilt. Parameter::name() becomes the name ("/l1/W"),
  // unless it is a longer path already. ValueError when there are no parameters.
  explicit ArenaSet(const Named& named, const LayoutOptions& options = {});

  // Whether there is no parameter.
  bool empty() const { return parameters_.empty(); }
  // In order of declaration.
  const Parameters& parameters() const { return parameters_; }
  // The name that this set was given for parameters()[index].
  const std::string& name(size_t index) const { return names_[index]; }
  const std::vector<ParameterArena>& arenas() const { return arenas_; }
  // For changing what an arena keeps.
  ParameterArena& arena(size_t index) { return arenas_.at(index); }
  bool in_place() const;
  // Lays the parameters out anew on the devices where they are now, in whole arenas; values and
  // gradients stay, states are gone. An error names a parameter whose values are not here.
  void rebuild();
  // ParameterArena::make_states of all arenas; of each, part `index` of `count` (shard()).
  void make_states(const std::vector<double>& start_values, int64_t index = 0, int64_t count = 1);
  void settle_gradients() const;
  // ParameterArena::adopt_low of all arenas.
  void adopt_low();

  // One line "/l1/W (3, 4) float32" for every parameter, with the order of its axes in memory
  // unless that is C order, and a hash of it: what must agree between models that exchange arenas.
  std::string structure() const;
  uint64_t structure_hash() const;

 private:
  std::vector<size_t> order() const;

  Parameters parameters_;
  std::vector<std::string> names_;  // of the parameters
  std::vector<ParameterArena> arenas_;
  LayoutOptions options_;
};

// When gradients[i] (in order of declaration) are those of another arena that is laid out as
// `like`: the whole block of that arena; else an undefined array.
Array common_block(const ParameterArena& like, const Arrays& gradients);

}  // namespace catena::optimizers
