#include "catena/serializers/pytorch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "serializers/torch_container.h"

namespace catena::serializers {

namespace {

constexpr uint64_t kStepsOfKey = 64;  // to find it again

}  // namespace

struct PytorchFile::Archive {
  // Where the elements of a tensor are.
  struct Placed {
    size_t storage = 0;  // of the container; none for a storage without bytes
    uint64_t bytes = 0;  // of the storage
    int64_t item = 1;    // bytes of its elements, which are swapped in big-endian files
    bool is_bool = false;
    int64_t offset = 0;  // in bytes, as the strides
    Strides strides;
  };

  Archive(PytorchFile& owner, const std::string& path);

  [[noreturn]] void bad(const std::string& tensor, const std::string& what) const {
    fail<IoError>("reading '", file.path(), "': tensor '", tensor, "' ", what);
  }
  // What a dict, list or object holds; `name` is its own.
  void walk(const PickleValue& value, const std::string& name, int depth);
  void walk_pairs(const PickleValue& value, const std::string& name, int depth);
  void walk_list(const PickleValue& value, const std::string& name, int depth);
  void skip(const std::string& name, const PickleValue& value);
  std::string below(const std::string& name, const std::string& key);
  void add_tensor(const PickleValue& value, const std::string& name);
  void read_shape(TensorInfo& info, Placed& placed, const PickleValue& value, int64_t item) const;
  void find_storage(const TensorInfo& info, Placed& placed, const PickleValue& value,
                    int64_t item) const;
  void find_bytes(const TensorInfo& info, Placed& placed, std::string_view key) const;
  // What tensors with equal keys read alike.
  using StorageKey = std::tuple<size_t, int64_t, bool>;
  StorageKey key_of(size_t tensor) const {
    const Placed& placed = places[tensor];
    return {placed.storage, container->is_swapped() ? placed.item : 1, placed.is_bool};
  }
  // The bytes of a storage as the tensor reads them, as a 1-d array of uint8.
  Array storage_of(const Placed& placed) const;

  io::InputFile file;
  ReadBudget budget;
  std::unique_ptr<TorchContainer> container;

  std::vector<TensorInfo> infos;
  std::vector<Placed> places;
  std::vector<std::string> skipped;
};

PytorchFile::Archive::Archive(PytorchFile& owner, const std::string& path)
    : file(path),
      budget(message("reading '", path, "'")),
      container(TorchContainer::open(file, budget)) {
  walk(container->value(), "", 0);
  container->forget_pickle();
  owner.describe(std::move(infos), {}, std::move(skipped));
}

void PytorchFile::Archive::skip(const std::string& name, const PickleValue& value) {
  budget.charge_entry(name);
  const bool is_named = value.kind == PickleKind::kOther;
  skipped.push_back(message(name.empty() ? "the outermost value" : name, " (",
                            is_named ? value.text : serializers::name_of(value.kind), ")"));
}

void PytorchFile::Archive::walk(const PickleValue& value, const std::string& name, int depth) {
  budget.check_depth(depth);
  switch (value.kind) {
    case PickleKind::kTensor: return add_tensor(value, name.empty() ? "tensor" : name);
    case PickleKind::kDict:
    case PickleKind::kObject: return walk_pairs(value, name, depth);
    case PickleKind::kList:
    case PickleKind::kTuple: return walk_list(value, name, depth);
    default: skip(name, value);
  }
}

namespace {

// "" for keys that are neither texts nor numbers.
std::string key_text(const PickleValue& key) {
  if (key.kind == PickleKind::kText) return std::string(key.text);
  if (key.kind == PickleKind::kInt) return std::to_string(key.integer);
  return "";
}

}  // namespace

std::string PytorchFile::Archive::below(const std::string& name, const std::string& key) {
  budget.charge_steps(name.size() + key.size());
  std::string joined = name.empty() ? key : name + "." + key;
  budget.check_name(joined);
  return joined;
}

void PytorchFile::Archive::walk_pairs(const PickleValue& value, const std::string& name,
                                      int depth) {
  // As in Python, the last value of a key counts, in the place of the first.
  std::vector<std::pair<std::string, const PickleValue*>> pairs;
  std::unordered_map<std::string, size_t> places_of;
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const PickleValue& key = *value.items[i];
    budget.check_name(key.text);
    budget.charge_steps(kStepsOfKey + key.text.size());
    const std::string text = key_text(key);
    if (text.empty()) {
      skip(below(name, message("[a key of kind ", serializers::name_of(key.kind), "]")),
           *value.items[i + 1]);
      continue;
    }
    const auto [place, is_new] = places_of.emplace(text, pairs.size());
    if (is_new)
      pairs.emplace_back(text, value.items[i + 1]);
    else
      pairs[place->second].second = value.items[i + 1];
  }
  for (const auto& [key, item] : pairs) walk(*item, below(name, key), depth + 1);
  if (pairs.empty()) budget.charge_entry(name);  // there may be many
}

// A list without tensors is one entry of what is skipped.
void PytorchFile::Archive::walk_list(const PickleValue& value, const std::string& name, int depth) {
  budget.charge_steps(value.items.size());
  const auto may_hold_tensors = [](const PickleValue* item) {
    return item->kind == PickleKind::kTensor || !item->items.empty();
  };
  if (std::none_of(value.items.begin(), value.items.end(), may_hold_tensors))
    return skip(name, value);
  const size_t tensors = infos.size(), others = skipped.size();
  for (size_t i = 0; i < value.items.size(); ++i)
    walk(*value.items[i], below(name, std::to_string(i)), depth + 1);
  if (infos.size() > tensors) return;
  skipped.resize(others);
  skip(name, value);
}

void PytorchFile::Archive::add_tensor(const PickleValue& value, const std::string& name) {
  budget.charge_entry(name);
  const bool has_own_dtype = value.items.size() > 4;
  const std::string_view type = value.items[0]->items[0]->text;
  const std::string_view asked = has_own_dtype ? value.items[4]->text : type;
  const std::optional<TorchDtype> dtype =
      has_own_dtype ? find_torch_dtype(last_part(asked)) : find_torch_storage(last_part(asked));
  if (!dtype) bad(name, message("is of ", asked, ", which is not known"));
  TensorInfo info{name, message("torch.", dtype->name), dtype->dtype, {}, 0, {}};
  Placed placed;
  placed.is_bool = dtype->dtype == Dtype::kBool;
  read_shape(info, placed, value, dtype->bytes);
  find_storage(info, placed, value, dtype->bytes);
  infos.push_back(std::move(info));
  places.push_back(std::move(placed));
}

namespace {

// The bytes from the first element of a view to the end of its last; 0 without elements. Nothing
// where that overflows.
std::optional<int64_t> reach_of(const Shape& shape, const Strides& strides, int64_t item) {
  int64_t reach = item;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(reach, step, &reach))
      return {};
  }
  return reach;
}

}  // namespace

// The shape, the strides in bytes and the size of a tensor whose elements have `item` bytes.
void PytorchFile::Archive::read_shape(TensorInfo& info, Placed& placed, const PickleValue& value,
                                      int64_t item) const {
  const PickleValue &size = *value.items[2], &stride = *value.items[3];
  if (size.items.size() != stride.items.size() || size.items.size() > size_t{kMaxDims})
    bad(info.name, message("has ", size.items.size(), " axes and ", stride.items.size(),
                           " strides, expected as many, at most ", kMaxDims));
  int64_t bytes = item;  // without the axes that have no elements
  bool fits = true, empty = false;
  for (size_t i = 0; i < size.items.size() && fits; ++i) {
    const PickleValue &extent = *size.items[i], &step = *stride.items[i];
    int64_t step_bytes = 0;
    fits = extent.kind == PickleKind::kInt && step.kind == PickleKind::kInt &&
           extent.integer >= 0 && step.integer >= 0 &&
           !__builtin_mul_overflow(step.integer, item, &step_bytes) &&
           !__builtin_mul_overflow(bytes, std::max<int64_t>(extent.integer, 1), &bytes);
    empty = empty || extent.integer == 0;
    info.shape.push_back(extent.integer);
    placed.strides.push_back(step_bytes);
  }
  if (!fits) bad(info.name, "has extents or strides below 0 or too large: the file is damaged");
  info.bytes = empty ? 0 : static_cast<uint64_t>(bytes);
}

// The storage of a tensor whose elements have `item` bytes: the tensor is inside it, and it is
// there.
void PytorchFile::Archive::find_storage(const TensorInfo& info, Placed& placed,
                                        const PickleValue& value, int64_t item) const {
  const PickleValue& storage = *value.items[0];
  const std::string_view type = last_part(storage.items[0]->text);
  const std::optional<TorchDtype> typed = find_torch_storage(type);
  const bool untyped = type == kUntypedStorage;
  if (!untyped && !typed)
    bad(info.name, message("is stored in a ", storage.items[0]->text, ", which is not known"));
  placed.item = untyped ? item : typed->bytes;
  const int64_t count = storage.items[3]->integer, offset = value.items[1]->integer;
  const auto reach = reach_of(info.shape, placed.strides, item);
  int64_t stored = 0, end = 0;
  const bool fits = count >= 0 && offset >= 0 && reach &&
                    !__builtin_mul_overflow(count, untyped ? 1 : typed->bytes, &stored) &&
                    !__builtin_mul_overflow(offset, item, &placed.offset) &&
                    !__builtin_add_overflow(placed.offset, *reach, &end) &&
                    (*reach == 0 || end <= stored);
  if (!fits)
    bad(info.name, message("reads beyond its storage of ", count, untyped ? " bytes" : " elements",
                           ": the file is damaged"));
  if (*reach == 0) {
    placed.offset = 0;
    return;
  }
  placed.bytes = static_cast<uint64_t>(stored);
  find_bytes(info, placed, storage.items[1]->text);
}

void PytorchFile::Archive::find_bytes(const TensorInfo& info, Placed& placed,
                                      std::string_view key) const {
  budget.check_name(key);
  const auto found = container->find(key);
  if (!found) bad(info.name, message("is in ", container->name_of(key), ", which is missing"));
  placed.storage = *found;
  const uint64_t there = container->bytes(*found);
  if (there != placed.bytes || placed.bytes % static_cast<uint64_t>(placed.item) != 0)
    bad(info.name, message("is in ", container->name_of(key), " of ", there, " bytes, expected ",
                           placed.bytes));
}

Array PytorchFile::Archive::storage_of(const Placed& placed) const {
  const Array bytes =
      Array::uninitialized({static_cast<int64_t>(placed.bytes)}, Dtype::kUInt8, cpu(0));
  if (placed.bytes == 0) return bytes;
  auto* data = static_cast<char*>(bytes.raw_data());
  container->read(placed.storage, data);
  if (container->is_swapped() && placed.item > 1)
    for (char* at = data; at != data + placed.bytes; at += placed.item)
      std::reverse(at, at + placed.item);
  if (placed.is_bool)
    std::transform(data, data + placed.bytes, data,
                   [](char b) { return static_cast<char>(b != 0); });
  return bytes;
}

namespace {

// The tensor as a view of its storage.
Array view_of(const TensorInfo& info, int64_t offset, const Strides& strides,
              const Array& storage) {
  if (info.bytes == 0) return Array::uninitialized(info.shape, *info.dtype, cpu(0));
  return Array::from_storage(storage.storage(), offset, info.shape, strides, *info.dtype);
}

}  // namespace

PytorchFile::PytorchFile(const std::string& path) : TensorFile(path, "PyTorch") {
  archive_ = std::make_unique<Archive>(*this, path);
}

PytorchFile::~PytorchFile() = default;

// A copy where the storage holds more than the tensor. An expanded tensor has more elements than
// its storage and stays a view.
Array PytorchFile::read_elements(size_t index, Dtype) const {
  const TensorInfo& info = tensors()[index];
  const Archive::Placed& placed = archive_->places[index];
  const Array view = view_of(info, placed.offset, placed.strides, archive_->storage_of(placed));
  return info.bytes < placed.bytes ? view.copy('K') : view;
}

// Storages that several tensors share are read once and stay shared: copies could need much more
// memory than the file has.
void PytorchFile::read_together(const std::vector<size_t>& indices, NamedArrays& arrays) const {
  std::map<Archive::StorageKey, size_t> uses;
  std::map<Archive::StorageKey, Array> shared;
  for (const size_t i : indices) ++uses[archive_->key_of(i)];
  for (const size_t i : indices) {
    const TensorInfo& info = tensors()[i];
    const Archive::Placed& placed = archive_->places[i];
    if (placed.bytes == 0 || uses[archive_->key_of(i)] == 1) {
      arrays.emplace_back(info.name, read_elements(i, *info.dtype));
      continue;
    }
    Array& storage = shared[archive_->key_of(i)];
    if (!storage.defined()) storage = archive_->storage_of(placed);
    arrays.emplace_back(info.name, view_of(info, placed.offset, placed.strides, storage));
  }
}

NamedArrays load_pytorch(const std::string& path, Device device) {
  return PytorchFile(path).read_all(device);
}

}  // namespace catena::serializers
