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

// Marks the storage of gradient blocks, whose gaps are known to hold zeros.
const std::shared_ptr<void>& gradient_mark() {
  static const std::shared_ptr<void> mark = std::make_shared<char>();
  return mark;
}

}  // namespace

ParameterArena::ParameterArena(std::vector<Slot> slots) : slots_(std::move(slots)) {
  CATENA_CHECK(ValueError, !slots_.empty(), "ParameterArena: no parameters");
  const Parameter& first = slots_.front().parameter;
  const auto itemsize = static_cast<int64_t>(catena::itemsize(first.dtype()));
  int64_t total = 0;
  for (Slot& slot : slots_) {
    slot.size = slot.parameter.size();
    slot.offset = total;
    total += aligned(slot.size, itemsize);
  }
  data_ = zeros({total}, {first.dtype(), first.device()});
  gradient_ = zeros({total}, {first.dtype(), first.device()});
  gradient_.storage()->owner = gradient_mark();
  for (const Slot& slot : slots_) {
    const Array data = slice(data_, slot), gradient = slice(gradient_, slot);
    const ParameterState& state = *slot.parameter.state();
    data.assign(slot.parameter.data());
    if (!state.is_stale()) gradient.assign(state.gradient_memory());
    slot.parameter.rebind(data, gradient);
  }
}

Array ParameterArena::slice(const Array& flat, const Slot& slot) const {
  return flat(Slice(slot.offset, slot.offset + slot.size)).reshape(slot.parameter.shape());
}

int64_t ParameterArena::end_of(size_t slot) const {
  return slot + 1 < slots_.size() ? slots_[slot + 1].offset : size();
}

bool ParameterArena::in_place() const {
  const char* data = static_cast<const char*>(data_.raw_data());
  const char* gradient = static_cast<const char*>(gradient_.raw_data());
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    const ParameterState& state = *slot.parameter.state();
    const int64_t bytes = slot.offset * data_.itemsize();
    const Array& memory = state.gradient_memory();
    return state.variable.data().raw_data() == data + bytes && memory.defined() &&
           memory.raw_data() == gradient + bytes && memory.storage() == gradient_.storage();
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
    if (to > from) gradient_(Slice(from, to)).fill(0);
  }
}

ArenaSet::ArenaSet(const Named& named) {
  std::unordered_set<const ParameterState*> seen;
  for (const auto& [name, parameter] : named) {
    if (!parameter.defined() || !seen.insert(parameter.state()).second) continue;
    parameter.state()->name = name;
    parameter.state()->listed.store(true, std::memory_order_relaxed);
    parameter.state()->index = static_cast<int64_t>(parameters_.size());
    parameters_.push_back(parameter);
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

void ArenaSet::settle_gradients() const {
  for (const ParameterArena& arena : arenas_) arena.settle_gradients();
}

std::string ArenaSet::structure() const {
  std::string text;
  for (const Parameter& p : parameters_)
    text += message(p.name(), " ", p.shape(), " ", p.dtype(), "\n");
  return text;
}

uint64_t ArenaSet::structure_hash() const { return text_hash(structure()); }

Array common_block(const ParameterArena& like, const Arrays& gradients) {
  const auto source = [&](const ParameterArena::Slot& slot) -> const Array& {
    return gradients[size_t(slot.index)];
  };
  const Array& first = source(like.slots().front());
  if (first.storage()->owner != gradient_mark()) return {};
  const char* begin = static_cast<const char*>(first.raw_data());
  for (const ParameterArena::Slot& slot : like.slots()) {
    const Array& a = source(slot);
    const bool fits = a.storage() == first.storage() && a.dtype() == like.dtype() &&
                      a.is_contiguous() && a.shape() == slot.parameter.shape() &&
                      static_cast<const char*>(a.raw_data()) == begin + slot.offset * a.itemsize();
    if (!fits) return {};
  }
  const int64_t offset = begin - static_cast<const char*>(first.storage()->data);
  return Array::from_storage(first.storage(), offset, {like.size()},
                             contiguous_strides({like.size()}, first.itemsize()), first.dtype());
}

}  // namespace catena::optimizers
