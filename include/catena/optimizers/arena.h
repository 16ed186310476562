// Arenas: the parameters of a model, their gradients and the states of an update rule, side by side
// in blocks of memory per device and dtype, so that one kernel updates and one transfer moves all
// of them, or any range.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

// What a rule keeps of parameters beside their values.
struct StateFormat {
  std::optional<Dtype> dtype = {};  // of states; none: that of the data, float32 if it has 16 bits
  bool masters = true;              // whether 16-bit data has a float32 master copy

  // Whether parameters of this dtype have a master copy, and of what dtype their states are.
  bool has_master(Dtype data) const;
  Dtype state_dtype(Dtype data) const;
};

// The same elements of an arena's blocks, as 1-d contiguous arrays of one length.
struct ArenaRange {
  Array data, gradient;
  // Float32 copy of 16-bit data, which the rule updates instead of the data; else undefined.
  Array master;
  // 16-bit copy of float32 data, which the rule's kernel writes with the data; else undefined.
  Array low;
  // States of the rule: of ParameterArena::state_dtype(). Empty before make_states.
  Arrays states;

  // What the rule updates.
  const Array& updated() const { return master.defined() ? master : data; }
};

// The blocks of one device and dtype, in which every parameter has a slot. Slots begin at multiples
// of 256 bytes; the gaps of data and gradients hold zeros and stay zero under any rule that keeps a
// zero parameter with a zero gradient. Master copies and states cover what this process updates,
// covers(). Data and gradients cover that or the whole arena. While they cover a part of it, no
// parameter has values here, so that all processes ask for them at the same uses, and gradients of
// which elements are left out are not here: functions ask ParameterState::before_use, and anything
// else that needs them is an error that names the parameter (Parameter::release_data,
// ParameterState::release_gradient).
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

  // Gives the parameters their slots. Each keeps the order of its axes in memory. All must be on
  // one device and of one dtype. The arena divides into `parts` parts of equal size. There are no
  // blocks yet: take_values() and then take_gradients() come next.
  ParameterArena(std::vector<Slot> slots, ArenaMemoryPtr memory, int64_t parts,
                 const StateFormat& format = {});
  // Copies the values of the parameters into a new block and re-seats the parameters on it, so that
  // the arrays that they were built in are free. With `own`, a block of what this process keeps,
  // the values go there; the whole lives during the call, and `agree`, if there is one, may change
  // it.
  void take_values(const Block& own, const std::function<void(const Array& whole)>& agree);
  // Copies the gradients, if there are any, into a new block. With `own`, which holds zeros, no
  // whole block is made: gradients are open (see below), and those that are there stay where they
  // are.
  void take_gradients(const Block& own);

  // The device and the dtype of the blocks, and the blocks.
  Device device() const { return device_; }
  Dtype dtype() const { return dtype_; }
  int64_t size() const { return size_; }  // elements, gaps included
  const Block& data() const { return data_; }
  const Block& gradient() const { return gradient_; }
  const Block& master() const { return master_; }
  const std::vector<Block>& states() const { return states_; }
  // The states, and the master copy behind them if there is one.
  std::vector<const Block*> state_blocks() const;

  // Makes a state of each start value and, with has_master(), the master copy, in place of those
  // that are there, for the elements in `covers`. IndexError outside of the arena, and of the data
  // and gradients that are kept.
  void make_states(const std::vector<double>& start_values, const ElementRange& covers);
  // The same in `blocks`: one array of zeros for each state, of covers.size() elements of
  // state_dtype(), and then one for the master copy, if there is one.
  void make_states(const std::vector<double>& start_values, const ElementRange& covers,
                   const Arrays& blocks);
  Dtype state_dtype() const { return format_.state_dtype(dtype_); }
  bool has_master() const { return format_.has_master(dtype_); }
  // Training in which each process updates covers() alone. Gradients are open while backward passes
  // add to them, collected for a reduction, and kept when covers() has the sum over processes.
  //
  // All gradients in one whole block, in which every parameter has its own: `memory`, of size()
  // elements, if it is defined, else a new one. Nothing where they are in one already; else those
  // that passes made elsewhere since reopen_gradient() are copied.
  void collect_gradient(const Array& memory = {});
  // Where a reduction is to leave covers() of collected gradients: in the whole block, which stays
  // for later steps, or, with `frees`, in memory of its own.
  Array own_gradient(bool frees);
  // From now on `own`, which own_gradient() gave, has the gradients of covers(), and the others are
  // not here: reading one is a GradientError that names the parameter.
  void keep_own_gradient(const Array& own);
  // Whether that was the last call of these.
  bool keeps_own_gradient() const { return keeps_own_gradient_; }
  // Whether own_gradient(true) has memory of its own, and the whole block goes with each reduction.
  bool frees_gradients() const { return memory_ == nullptr; }
  // What is kept becomes a sum that later passes leave alone: their gradients begin with zero, in
  // memory of their own until they are collected. own_gradient(true) still gives the sum.
  void set_own_gradient_aside();
  // Open again: in the whole block if it stayed, else each parameter that is not in covers() gets
  // memory when a pass first adds to its gradient. What is known of gradients stays, but not their
  // values. Nothing for those that are open or collected.
  void reopen_gradient();
  // The same for the values. Lets all parameters' values go; the memory of those outside of
  // covers() too with `frees`. Not during a capture then: blocks get other addresses.
  void keep_own_data(bool frees);
  // Whether somebody else holds an array in the whole block, which take_whole_data() would fill
  // under its eyes: a parameter's, a view of one, or the block itself. While the values are let go
  // and the block has stayed.
  bool has_kept_views() const;
  // Memory of the whole arena for the values, in which those of covers() are not yet: to be filled
  // by an exchange of own_data(). The block that stayed, or a new one.
  Array memory_for_data() const;
  // The values of covers(), which processes exchange.
  Array own_data() const { return data_.part(covers_); }
  // `whole`, from memory_for_data() and filled since or being filled, holds the values.
  void take_whole_data(const Array& whole);

  // Whether all values are in this process.
  bool has_whole_data() const { return data_.covers.size() == size_; }
  // The same of all gradients.
  bool has_whole_gradient() const { return gradient_.covers.size() == size_; }
  // Counts a write of the values of all parameters, those that are not here included.
  void note_write() const;

  // Gives the master copy, if there is one, the values of the data.
  void copy_data_to_master() const;
  // Zeros from the memory of arenas.
  Array allocate(ArenaBlock block, int64_t elements, Dtype dtype) const;
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
  static Array slice(const Block& block, const Slot& slot);
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
  void take_data(Block&& block);
  void take_gradient_block(Block&& block);
  uint64_t writes_of_data() const;
  bool has_data_in_place(const Slot& slot) const;
  void seat_data(const Slot& slot) const;
  void seat_gradient(const Slot& slot) const;

  std::vector<Slot> slots_;
  ArenaMemoryPtr memory_;
  StateFormat format_;
  Device device_;
  Dtype dtype_ = Dtype::kFloat32;
  int64_t size_ = 0;
  Block data_, gradient_;
  Block master_;
  std::vector<Block> states_;
  // Of blocks that are not in use: whole ones while covers() is kept, and of covers() alone while
  // they are whole. Undefined where there are none.
  Array whole_gradient_, own_gradient_, whole_data_, own_data_;
  bool keeps_own_gradient_ = false;
  uint64_t writes_when_taken_ = 0;  // of the data, in take_whole_data
  ElementRange covers_;
  ArenaRange covered_;
};

// How the parameters of one device and dtype are spread over several arenas, so that each can be
// reduced, gathered and freed by itself. By default they are all in one.
struct ArenaCuts {
  // Parameters of different units never share an arena. Called with a parameter's name ("/l1/W").
  std::function<std::string(const std::string& name)> unit_of;
  // Bytes from which the first arena of a unit is closed, and the others; as many trailing
  // parameters as fit in last_bytes get one of their own. 0: nothing is cut.
  int64_t first_bytes = 0, bytes = 0, last_bytes = 0;

  // Whether anything is cut.
  bool any() const { return unit_of || first_bytes > 0 || bytes > 0 || last_bytes > 0; }
};

// What a process keeps of arenas that several processes share.
struct ArenaShare {
  int64_t index = 0, count = 1;  // part `index` of `count`, of master copies and states
  // Of gradients, and of the data, that part alone, too, from setup on.
  bool parts_of_gradients = false, parts_of_data = false;
  // With parts_of_data: makes the values of an arena, as this process has built them, those of all
  // processes, in place. Collective.
  std::function<void(const Array& whole)> agree = {};
};

class ArenaSet;

// Where and how an ArenaSet lays parameters out.
struct LayoutOptions {
  ArenaMemoryPtr memory;  // null: the pools of the devices
  int64_t parts = 1;      // of equal size, into which every arena divides
  ArenaCuts cuts = {};
  // What the constructor makes of arenas; rebuild() makes whole ones.
  ArenaShare share = {};
  // Called by the constructor when every parameter has its slot, and none has moved.
  std::function<void(const ArenaSet&)> before_values_move = {};
  StateFormat format = {};  // of states and master copies
};

// The arenas of a list of named parameters. The layout follows from the order of declaration and
// the options alone: within a device and dtype the last declared parameter comes first, because its
// gradient is final first; it is the same in every process that declares the same model. Neighbours
// of one layer that asked for it (Parameter::pack) lie in the order of declaration, without gaps.
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
  // ParameterArena::make_states of all arenas; of each, part `index` of `count` (shard()). Parts
  // are side by side in one block for each state, device and dtype.
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
  std::vector<std::vector<ParameterArena::Slot>> grouped() const;
  void lay_out();
  void take_parameters(const ArenaShare& share);

  Parameters parameters_;
  std::vector<std::string> names_;  // of the parameters
  std::vector<ParameterArena> arenas_;
  LayoutOptions options_;
};

// When gradients[i] (in order of declaration) are those of another arena that is laid out as
// `like`: the whole block of that arena; else an undefined array.
Array common_block(const ParameterArena& like, const Arrays& gradients);

}  // namespace catena::optimizers
