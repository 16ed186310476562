#include "catena/optimizers/arena.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "core/text_hash.h"

namespace catena::optimizers {
namespace {

int64_t aligned(int64_t elements, int64_t itemsize) {
  const int64_t step = ParameterArena::kAlignment / itemsize;
  return (elements + step - 1) / step * step;
}

// Marks the storage of gradient blocks, whose gaps are known to hold zeros, and keeps what the
// storage owned before: the memory itself, where a user's allocator has made it.
struct GradientMark {
  std::shared_ptr<void> owner;
  void operator()(void*) const {}
};

void mark_as_gradient(Storage& storage) {
  storage.owner = std::shared_ptr<void>(storage.data, GradientMark{storage.owner});
}

bool is_marked_as_gradient(const Storage& storage) {
  return std::get_deleter<GradientMark>(storage.owner) != nullptr;
}

}  // namespace

ParameterArena::ParameterArena(std::vector<Slot> slots) : slots_(std::move(slots)) {
  CATENA_CHECK(ValueError, !slots_.empty(), "ParameterArena: no parameters");
  const Parameter& first = slots_.front().parameter;
  const auto itemsize = static_cast<int64_t>(catena::itemsize(first.dtype()));
  int64_t total = 0;
  for (Slot& slot : slots_) {
    slot.size = slot.parameter.size();
    slot.order = slot.parameter.data().order();
    slot.offset = total;
    total += aligned(slot.size, itemsize);
  }
  blocks_.data = zeros({total}, {first.dtype(), first.device()});
  blocks_.gradient = zeros({total}, {first.dtype(), first.device()});
  mark_as_gradient(*blocks_.gradient.storage());
  for (const Slot& slot : slots_) {
    const Array data = slice(this->data(), slot), gradient = slice(this->gradient(), slot);
    const ParameterState& state = *slot.parameter.state();
    data.assign(slot.parameter.data());
    if (!state.is_stale()) gradient.assign(state.gradient_memory());
    slot.parameter.rebind(data, gradient);
  }
}

void ParameterArena::make_states(const std::vector<double>& start_values) {
  const bool is_16_bit = data().itemsize() == 2;
  const ArrayOptions like{is_16_bit ? Dtype::kFloat32 : dtype(), device()};
  blocks_.master = is_16_bit ? data().astype(Dtype::kFloat32) : Array();
  blocks_.states.clear();
  for (const double start : start_values) blocks_.states.push_back(full({size()}, start, like));
}

ArenaRange ParameterArena::range(ElementRange elements) const {
  const auto [begin, end] = elements;
  CATENA_CHECK(IndexError, 0 <= begin && begin <= end && end <= size(),
               "ParameterArena::range: expected a range within the ", size(),
               " elements of the arena, got [", begin, ", ", end, ")");
  const auto part = [&](const Array& block) {
    return block.defined() ? block(Slice(begin, end)) : Array();
  };
  ArenaRange result{part(data()), part(gradient()), part(master()), {}};
  for (const Array& state : states()) result.states.push_back(part(state));
  return result;
}

ElementRange ParameterArena::shard(int64_t index, int64_t count) const {
  CATENA_CHECK(ValueError, 0 <= index && index < count, "ParameterArena::shard: part ", index,
               " of ", count, " parts does not exist");
  const int64_t per_part = aligned((size() + count - 1) / count, data().itemsize());
  return {std::min(size(), index * per_part), std::min(size(), (index + 1) * per_part)};
}

ElementRange ParameterArena::slot_range(size_t first, size_t last) const {
  const auto begin_of = [&](size_t slot) { return slot == 0 ? 0 : end_of(slot - 1); };
  return {begin_of(first), begin_of(last)};
}

Array ParameterArena::slice(const Array& flat, const Slot& slot) const {
  const Shape& shape = slot.parameter.shape();
  const int64_t first =
      static_cast<char*>(flat.raw_data()) - static_cast<const char*>(flat.storage()->data);
  return Array::from_storage(flat.storage(), first + slot.offset * flat.itemsize(), shape,
                             slot.order.strides(shape, flat.itemsize()), flat.dtype());
}

int64_t ParameterArena::end_of(size_t slot) const {
  return slot + 1 < slots_.size() ? slots_[slot + 1].offset : size();
}

bool ParameterArena::in_place() const {
  const char* data = static_cast<const char*>(this->data().raw_data());
  const char* gradient = static_cast<const char*>(this->gradient().raw_data());
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    const ParameterState& state = *slot.parameter.state();
    const int64_t bytes = slot.offset * this->data().itemsize();
    const Array& memory = state.gradient_memory();
    return state.variable.data().raw_data() == data + bytes && memory.defined() &&
           memory.raw_data() == gradient + bytes && memory.storage() == this->gradient().storage();
  });
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
    const int64_t from = slots_[begin].offset, to = end_of(i - 1);
    if (to > from) gradient()(Slice(from, to)).fill(0);
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

ArenaSet::ArenaSet(const Named& named) {
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
  rebuild();
}

bool ArenaSet::in_place() const {
  return std::all_of(arenas_.begin(), arenas_.end(),
                     [](const ParameterArena& a) { return a.in_place(); });
}

void ArenaSet::rebuild() {
  std::vector<std::vector<ParameterArena::Slot>> groups;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Parameter& p = parameters_[i];
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return g[0].parameter.device() == p.device() && g[0].parameter.dtype() == p.dtype();
    });
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->push_back({p, static_cast<int64_t>(i), 0, p.size()});
  }
  std::vector<ParameterArena> arenas;  // the old ones live until all values are copied
  for (auto& group : groups) arenas.emplace_back(std::move(group));
  arenas_ = std::move(arenas);
}

void ArenaSet::make_states(const std::vector<double>& start_values) {
  for (ParameterArena& arena : arenas_) arena.make_states(start_values);
}

void ArenaSet::settle_gradients() const {
  for (const ParameterArena& arena : arenas_) arena.settle_gradients();
}

std::string ArenaSet::structure() const {
  std::string text;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Array& data = parameters_[i].data();
    text += message(names_[i], " ", data.shape(), " ", data.dtype());
    if (!data.order().is_c()) text += message(" in memory ", data.order().axes(data.ndim()));
    text += "\n";
  }
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
  return Array::from_storage(first.storage(), offset, {like.size()},
                             contiguous_strides({like.size()}, first.itemsize()), first.dtype());
}

}  // namespace catena::optimizers
