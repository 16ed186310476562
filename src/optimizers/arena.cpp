#include "catena/optimizers/arena.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/core/call_scope.h"
#include "core/cached_memory.h"
#include "core/text_hash.h"
#include "optimizers/arena_storage.h"

namespace catena::optimizers {
namespace {

int64_t aligned(int64_t elements, int64_t itemsize) {
  const int64_t step = ParameterArena::kAlignment / itemsize;
  return (elements + step - 1) / step * step;
}

// In memory profiles.
const char* name_of(ArenaBlock block) {
  switch (block) {
    case ArenaBlock::kData: return "parameters";
    case ArenaBlock::kGradient: return "gradients";
    case ArenaBlock::kMaster: return "float32 copies";
    case ArenaBlock::kLow: return "16-bit copies";
    case ArenaBlock::kState: return "optimizer states";
  }
  return "";
}

}  // namespace

bool StateFormat::has_master(Dtype data) const { return masters && is_narrow_float(data); }

Dtype StateFormat::state_dtype(Dtype data) const {
  return dtype.value_or(is_narrow_float(data) ? Dtype::kFloat32 : data);
}

ElementRange intersection(const ElementRange& a, const ElementRange& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Array Block::part(const ElementRange& elements) const {
  CATENA_CHECK(IndexError, elements.begin <= elements.end && covers.contains(elements),
               "Block::part: expected elements in [", covers.begin, ", ", covers.end, "), got [",
               elements.begin, ", ", elements.end, ")");
  return memory(Slice(elements.begin - covers.begin, elements.end - covers.begin));
}

ParameterArena::ParameterArena(std::vector<Slot> slots, ArenaMemoryPtr memory, int64_t parts,
                               const StateFormat& format)
    : slots_(std::move(slots)), memory_(std::move(memory)), format_(format) {
  CATENA_CHECK(ValueError, !slots_.empty() && parts > 0,
               "ParameterArena: expected parameters and at least one part, got ", slots_.size(),
               " parameters and ", parts, " parts");
  device_ = slots_.front().parameter.device();
  dtype_ = slots_.front().parameter.dtype();
  const auto itemsize = static_cast<int64_t>(catena::itemsize(dtype_));
  int64_t total = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.size = slot.parameter.size();
    slot.order = slot.parameter.data().order();
    const bool follows = i > 0 && continues_pack(slots_[i - 1].parameter, slot.parameter);
    slot.offset = follows ? total : aligned(total, itemsize);
    total = slot.offset + slot.size;
  }
  size_ = parts * aligned((total + parts - 1) / parts, itemsize);
  covers_ = {0, size_};
}

void ParameterArena::take_values(const Block& own,
                                 const std::function<void(const Array& whole)>& agree) {
  const Block whole{own.defined() ? zeros({size_}, {dtype_, device_})
                                  : allocate(ArenaBlock::kData, size_, dtype_),
                    covers_};
  for (const Slot& slot : slots_) slice(whole, slot).assign(slot.parameter.data());
  if (own.defined() && agree) agree(whole.memory);
  if (own.defined()) own.memory.assign(whole.part(own.covers));
  data_ = own.defined() ? own : whole;
  covers_ = data_.covers;
  for (const Slot& slot : slots_) {
    seat_data(slot);
    ++slot.parameter.state()->data->moves;
  }
}

void ParameterArena::take_gradients(const Block& own) {
  gradient_ = own;
  if (!own.defined()) {
    gradient_ = {allocate(ArenaBlock::kGradient, size_, dtype_), {0, size_}};
    mark_as_gradient(*gradient_.memory.storage());
  } else {
    covers_ = own.covers;
  }
  for (const Slot& slot : slots_) {
    ParameterState& state = *slot.parameter.state();
    if (!state.has_gradient_here()) state.mark_zero();
    if (gradient_.covers.contains(elements_of(slot))) {
      if (!state.is_stale()) slice(gradient_, slot).assign(state.settle());
      seat_gradient(slot);
    } else if (state.is_stale()) {
      state.bind_gradient({});
    }
  }
  covered_ = range(covers_);
}

Array ParameterArena::allocate(ArenaBlock block, int64_t elements, Dtype dtype) const {
  const CallScope call(name_of(block));
  Array result = memory_ == nullptr ? Array::uninitialized({elements}, dtype, device_)
                                    : memory_->allocate(block, elements, dtype, device_);
  CATENA_CHECK(ValueError,
               result.defined() && result.shape() == Shape{elements} && result.is_contiguous() &&
                   result.dtype() == dtype && result.device() == device_,
               "ArenaMemory::allocate: expected ", elements, " contiguous elements of ", dtype,
               " on ", device_, ", got an array of shape ", result.shape(), ", ", result.dtype(),
               " on ", result.device());
  result.fill(0);
  return result;
}

void ParameterArena::make_states(const std::vector<double>& start_values,
                                 const ElementRange& covers) {
  CATENA_CHECK(IndexError, 0 <= covers.begin && covers.begin <= covers.end && covers.end <= size(),
               "ParameterArena::make_states: expected a range within the ", size(),
               " elements of the arena, got [", covers.begin, ", ", covers.end, ")");
  CATENA_CHECK(IndexError, intersection(data_.covers, gradient_.covers).contains(covers),
               "ParameterArena::make_states: expected a range of which data and gradients are kept "
               "here, in [",
               data_.covers.begin, ", ", data_.covers.end, ") and [", gradient_.covers.begin, ", ",
               gradient_.covers.end, "), got [", covers.begin, ", ", covers.end, ")");
  Arrays blocks;
  for (size_t k = 0; k < start_values.size(); ++k)
    blocks.push_back(allocate(ArenaBlock::kState, covers.size(), state_dtype()));
  if (has_master()) blocks.push_back(allocate(ArenaBlock::kMaster, covers.size(), Dtype::kFloat32));
  make_states(start_values, covers, blocks);
}

void ParameterArena::make_states(const std::vector<double>& start_values,
                                 const ElementRange& covers, const Arrays& blocks) {
  states_.clear();
  for (size_t k = 0; k < start_values.size(); ++k) {
    states_.push_back({blocks[k], covers});
    if (start_values[k] != 0) blocks[k].fill(start_values[k]);
  }
  master_ = has_master() ? Block{blocks[start_values.size()], covers} : Block();
  covers_ = covers;
  give_up_low();
  covered_ = range(covers_);
  copy_data_to_master();
}

std::vector<const Block*> ParameterArena::state_blocks() const {
  std::vector<const Block*> blocks;
  for (const Block& state : states_) blocks.push_back(&state);
  if (master_.defined()) blocks.push_back(&master_);
  return blocks;
}

void ParameterArena::copy_data_to_master() const {
  if (master_.defined()) master_.memory.assign(data_.part(master_.covers));
}

int64_t ParameterArena::state_bytes() const {
  int64_t bytes = 0;
  for (const Block* block : state_blocks()) bytes += block->memory.nbytes();
  return bytes;
}

int64_t ParameterArena::bytes() const {
  const auto bytes_of = [](const Array& a) { return a.defined() ? a.nbytes() : 0; };
  // A block of covers() is a part of the whole one that stays.
  const auto in_memory = [&](const Block& block, const Array& whole, const Array& own) {
    return whole.defined() ? whole.nbytes() : block.memory.nbytes() + bytes_of(own);
  };
  return in_memory(data_, whole_data_, own_data_) +
         in_memory(gradient_, whole_gradient_, own_gradient_) + bytes_of(low()) + state_bytes();
}

ArenaRange ParameterArena::range(const ElementRange& elements) const {
  CATENA_CHECK(IndexError, elements.begin <= elements.end && covers_.contains(elements),
               "ParameterArena::range: expected a range within elements [", covers_.begin, ", ",
               covers_.end, ") of the arena, got [", elements.begin, ", ", elements.end, ")");
  ArenaRange result{data_.part(elements), gradient_.part(elements), {}, {}, {}};
  if (low().defined()) result.low = low()(Slice(elements.begin, elements.end));
  if (master_.defined()) result.master = master_.part(elements);
  for (const Block& state : states_) result.states.push_back(state.part(elements));
  return result;
}

ElementRange ParameterArena::shard(int64_t index, int64_t count) const {
  CATENA_CHECK(ValueError, 0 <= index && index < count, "ParameterArena::shard: part ", index,
               " of ", count, " parts does not exist");
  const int64_t per_part = aligned((size() + count - 1) / count, int64_t(itemsize(dtype())));
  return {std::min(size(), index * per_part), std::min(size(), (index + 1) * per_part)};
}

ElementRange ParameterArena::slot_range(size_t first, size_t last) const {
  const auto begin_of = [&](size_t slot) { return slot == 0 ? 0 : end_of(slot - 1); };
  return {begin_of(first), begin_of(last)};
}

Array ParameterArena::slice(const Block& block, const Slot& slot) {
  CATENA_CHECK(IndexError, block.covers.contains(elements_of(slot)),
               "ParameterArena::slice: expected a block with the elements of parameter '",
               slot.parameter.name(), "', [", slot.offset, ", ", slot.offset + slot.size,
               "), got one with [", block.covers.begin, ", ", block.covers.end, ")");
  const Array& flat = block.memory;
  const Shape& shape = slot.parameter.shape();
  const int64_t first =
      static_cast<char*>(flat.raw_data()) - static_cast<const char*>(flat.storage()->data);
  const int64_t offset = first + (slot.offset - block.covers.begin) * flat.itemsize();
  return Array::from_storage(flat.storage(), offset, shape,
                             slot.order.strides(shape, flat.itemsize()), flat.dtype());
}

int64_t ParameterArena::end_of(size_t slot) const {
  return slot + 1 < slots_.size() ? slots_[slot + 1].offset : size();
}

void ParameterArena::settle_gradients(size_t first, size_t last) const {
  const auto state = [&](size_t i) -> ParameterState& { return *slots_[i].parameter.state(); };
  for (size_t i = first; i < last;) {
    if (!state(i).is_stale()) {
      ++i;
      continue;
    }
    const size_t begin = i;
    for (; i < last && state(i).is_stale(); ++i) state(i).mark_filled();
    const ElementRange here = intersection({slots_[begin].offset, end_of(i - 1)}, gradient_.covers);
    if (here.size() > 0) gradient_.part(here).fill(0);
  }
}

namespace {

// Several sets may hold a parameter. Messages call it by the longest path, which says most: that in
// the whole model.
void name_for_messages(ParameterState& state, const std::string& name) {
  const bool has_path = state.name.starts_with('/');
  if (!has_path || name.size() >= state.name.size()) state.name = name;
  state.listed.store(true, std::memory_order_relaxed);
}

}  // namespace

ArenaSet::ArenaSet(const Named& named, const LayoutOptions& options) : options_(options) {
  std::unordered_set<const ParameterState*> seen;
  for (const auto& [name, parameter] : named) {
    if (!parameter.defined() || !seen.insert(parameter.state()).second) continue;
    name_for_messages(*parameter.state(), name);
    parameters_.push_back(parameter);
    names_.push_back(name);
  }
  CATENA_CHECK(ValueError, !parameters_.empty(),
               "setup: the model has no parameters; list its layers with CATENA_FUNCTIONS, or add "
               "them to the FunctionBag, before setup");
  options_.share = {};
  options_.before_values_move = {};
  lay_out();
  if (options.before_values_move) options.before_values_move(*this);
  take_parameters(options.share);
}

bool ArenaSet::in_place() const {
  return std::all_of(arenas_.begin(), arenas_.end(),
                     [](const ParameterArena& a) { return a.in_place(); });
}

// The last declared first, but packs in the order of their declaration.
std::vector<size_t> ArenaSet::order() const {
  std::vector<size_t> result;
  for (size_t last = parameters_.size(); last > 0;) {
    size_t first = last - 1;
    while (first > 0 && continues_pack(parameters_[first - 1], parameters_[first])) --first;
    for (size_t i = first; i < last; ++i) result.push_back(i);
    last = first;
  }
  return result;
}

// Parameters of one unit, device and dtype, in the order of their places.
std::vector<std::vector<ParameterArena::Slot>> ArenaSet::grouped() const {
  std::vector<std::vector<ParameterArena::Slot>> groups;
  std::vector<std::string> units;
  for (const size_t i : order()) {
    const Parameter& p = parameters_[i];
    const std::string unit = options_.cuts.unit_of ? options_.cuts.unit_of(names_[i]) : "";
    size_t g = 0;
    const auto fits = [&] {
      const Parameter& first = groups[g][0].parameter;
      return units[g] == unit && first.device() == p.device() && first.dtype() == p.dtype();
    };
    while (g < groups.size() && !fits()) ++g;
    if (g == groups.size()) {
      groups.emplace_back();
      units.push_back(unit);
    }
    groups[g].push_back({p, static_cast<int64_t>(i), 0, p.size(), {}});
  }
  return groups;
}

void ArenaSet::lay_out() {
  std::vector<ParameterArena> arenas;
  for (const auto& group : grouped())
    for (auto& slots : cut_slots(group, options_.cuts))
      arenas.emplace_back(std::move(slots), options_.memory, options_.parts, options_.format);
  arenas_ = std::move(arenas);
}

namespace {

// Memory for part `index` of `count` of each arena. The parts of one device and dtype are side by
// side in one block, since a pool would round each of them up, and count writes each for itself.
Arrays part_blocks(const std::vector<ParameterArena>& arenas, int64_t index, int64_t count,
                   ArenaBlock kind) {
  const auto dtype_of = [&](const ParameterArena& arena) {
    if (kind == ArenaBlock::kMaster) return Dtype::kFloat32;
    return kind == ArenaBlock::kState ? arena.state_dtype() : arena.dtype();
  };
  const auto size_of = [&](size_t a) { return arenas[a].shard(index, count).size(); };
  Arrays result(arenas.size());
  for (size_t first = 0; first < arenas.size(); ++first) {
    const ParameterArena& like = arenas[first];
    if (result[first].defined() || (kind == ArenaBlock::kMaster && !like.has_master())) continue;
    std::vector<size_t> members;
    int64_t total = 0;
    for (size_t a = first; a < arenas.size(); ++a) {
      if (arenas[a].device() != like.device() || arenas[a].dtype() != like.dtype()) continue;
      members.push_back(a);
      total += size_of(a);
    }
    const Array block = like.allocate(kind, total, dtype_of(like));
    int64_t begin = 0;
    for (const size_t a : members) {
      result[a] = with_own_count(block(Slice(begin, begin + size_of(a))));
      begin += size_of(a);
    }
  }
  return result;
}

}  // namespace

// Whatever the parameters were built in is given back before more is asked for: of the pools'
// blocks hardly one would serve an arena, which is larger.
// Memory of a communicator stays whole: ranks make it together, which later steps do not.
void ArenaSet::take_parameters(const ArenaShare& share) {
  const auto parts = [&](bool is_cut, ArenaBlock kind) {
    return is_cut && options_.memory == nullptr
               ? part_blocks(arenas_, share.index, share.count, kind)
               : Arrays();
  };
  const auto own = [&](size_t a) { return arenas_[a].shard(share.index, share.count); };
  const Arrays data = parts(share.parts_of_data, ArenaBlock::kData);
  for (size_t a = 0; a < arenas_.size(); ++a) {
    arenas_[a].take_values(data.empty() ? Block() : Block{data[a], own(a)}, share.agree);
    give_back_cached(arenas_[a].device(), size_t(32) << 20);
  }
  const Arrays gradients = parts(share.parts_of_gradients, ArenaBlock::kGradient);
  for (size_t a = 0; a < arenas_.size(); ++a)
    arenas_[a].take_gradients(gradients.empty() ? Block() : Block{gradients[a], own(a)});
  for (const ParameterArena& arena : arenas_) give_back_cached(arena.device(), size_t(2) << 20);
}

void ArenaSet::rebuild() {
  ArenaSet next = *this;  // the old arenas live until all values are copied
  next.lay_out();
  next.take_parameters({});
  *this = std::move(next);
}

void ArenaSet::make_states(const std::vector<double>& start_values, int64_t index, int64_t count) {
  if (count == 1) {
    for (ParameterArena& arena : arenas_) arena.make_states(start_values, {0, arena.size()});
    return;
  }
  std::vector<Arrays> blocks(arenas_.size());  // of each arena
  const auto add = [&](ArenaBlock kind) {
    const Arrays parts = part_blocks(arenas_, index, count, kind);
    for (size_t a = 0; a < arenas_.size(); ++a) blocks[a].push_back(parts[a]);
  };
  for (size_t k = 0; k < start_values.size(); ++k) add(ArenaBlock::kState);
  const bool any_master = std::any_of(arenas_.begin(), arenas_.end(),
                                      [](const auto& arena) { return arena.has_master(); });
  if (any_master) add(ArenaBlock::kMaster);
  for (size_t a = 0; a < arenas_.size(); ++a)
    arenas_[a].make_states(start_values, arenas_[a].shard(index, count), blocks[a]);
}

void ArenaSet::settle_gradients() const {
  for (const ParameterArena& arena : arenas_) arena.settle_gradients();
}

void ArenaSet::adopt_low() {
  for (ParameterArena& arena : arenas_) arena.adopt_low();
}

std::string ArenaSet::structure() const {
  std::vector<std::string> lines(parameters_.size());
  for (const ParameterArena& arena : arenas_) {
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const Shape& shape = slot.parameter.shape();
      std::string& line = lines[size_t(slot.index)];
      line = message(names_[size_t(slot.index)], " ", shape, " ", slot.parameter.dtype());
      if (!slot.order.is_c()) line += message(" in memory ", slot.order.axes(shape.size()));
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

uint64_t ArenaSet::structure_hash() const { return text_hash(structure()); }

Array common_block(const ParameterArena& like, const Arrays& gradients) {
  const auto source = [&](const ParameterArena::Slot& slot) -> const Array& {
    return gradients[size_t(slot.index)];
  };
  const Array& first = source(like.slots().front());
  if (!is_marked_as_gradient(*first.storage())) return {};
  const char* begin = static_cast<const char*>(first.raw_data());
  for (const ParameterArena::Slot& slot : like.slots()) {
    const Array& a = source(slot);
    const bool fits = a.storage() == first.storage() && a.dtype() == like.dtype() &&
                      a.shape() == slot.parameter.shape() &&
                      a.strides() == slot.order.strides(a.shape(), a.itemsize()) &&
                      static_cast<const char*>(a.raw_data()) == begin + slot.offset * a.itemsize();
    if (!fits) return {};
  }
  const int64_t offset = begin - static_cast<const char*>(first.storage()->data);
  const int64_t end = offset + like.size() * first.itemsize();
  if (end > static_cast<int64_t>(first.storage()->bytes)) return {};  // a part of an arena
  return Array::from_storage(first.storage(), offset, {like.size()},
                             contiguous_strides({like.size()}, first.itemsize()), first.dtype());
}

}  // namespace catena::optimizers
