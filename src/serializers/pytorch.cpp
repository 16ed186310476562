#include "catena/serializers/pytorch.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "array/io/zip.h"
#include "serializers/file_formats.h"
#include "serializers/pickle.h"

namespace catena::serializers {
namespace {

constexpr uint64_t kLongestPickle = uint64_t{64} << 20;
constexpr int kDeepest = 64;                             // containers in containers
constexpr size_t kMostEntries = 1'000'000;               // tensors and what is skipped
constexpr uint64_t kLongestNames = uint64_t{256} << 20;  // all names together

// PyTorch's dtypes and the classes of their storages.
struct TorchDtype {
  std::string_view name, storage;
  std::optional<Dtype> dtype;
  int64_t bytes;
};
constexpr TorchDtype kTorchDtypes[] = {{"float64", "DoubleStorage", Dtype::kFloat64, 8},
                                       {"float32", "FloatStorage", Dtype::kFloat32, 4},
                                       {"float16", "HalfStorage", Dtype::kFloat16, 2},
                                       {"bfloat16", "BFloat16Storage", Dtype::kBFloat16, 2},
                                       {"int64", "LongStorage", Dtype::kInt64, 8},
                                       {"int32", "IntStorage", Dtype::kInt32, 4},
                                       {"int16", "ShortStorage", Dtype::kInt16, 2},
                                       {"int8", "CharStorage", Dtype::kInt8, 1},
                                       {"uint8", "ByteStorage", Dtype::kUInt8, 1},
                                       {"bool", "BoolStorage", Dtype::kBool, 1},
                                       {"uint64", "", Dtype::kUInt64, 8},
                                       {"uint32", "", Dtype::kUInt32, 4},
                                       {"uint16", "", Dtype::kUInt16, 2},
                                       {"complex128", "ComplexDoubleStorage", {}, 16},
                                       {"complex64", "ComplexFloatStorage", {}, 8},
                                       {"complex32", "", {}, 4},
                                       {"float8_e4m3fn", "", {}, 1},
                                       {"float8_e5m2", "", {}, 1},
                                       {"float8_e4m3fnuz", "", {}, 1},
                                       {"float8_e5m2fnuz", "", {}, 1},
                                       {"float8_e8m0fnu", "", {}, 1}};
constexpr std::string_view kUntyped = "UntypedStorage";

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

struct PytorchFile::Archive {
  // Where the elements of a tensor are.
  struct Placed {
    size_t member = 0;   // of the archive; none for a storage without bytes
    uint64_t bytes = 0;  // of the storage
    int64_t item = 1;    // bytes of its elements, which are swapped in big-endian archives
    int64_t offset = 0;  // in bytes, as the strides
    Strides strides;
  };

  Archive(PytorchFile& owner, const std::string& path);

  std::string pickle_name() const { return zip.members()[pickle_at].name; }
  [[noreturn]] void bad(const std::string& tensor, const std::string& what) const {
    fail<IoError>("reading '", file.path(), "': tensor '", tensor, "' ", what);
  }
  void find_members();
  void find_byte_order();
  std::string read_member(size_t member) const;
  // What a dict, list or object holds; `name` is its own.
  void walk(const PickleValue& value, const std::string& name, int depth);
  void walk_pairs(const PickleValue& value, const std::string& name, int depth);
  void walk_list(const PickleValue& value, const std::string& name, int depth);
  void skip(const std::string& name, const PickleValue& value);
  void count_entry(const std::string& name);
  void add_tensor(const PickleValue& value, const std::string& name);
  void read_shape(TensorInfo& info, Placed& placed, const PickleValue& value, int64_t item) const;
  void find_storage(const TensorInfo& info, Placed& placed, const PickleValue& value,
                    int64_t item) const;
  void find_member(const TensorInfo& info, Placed& placed, std::string_view key) const;
  // The bytes of a storage, in this machine's order, as a 1-d array of uint8.
  Array storage_of(const Placed& placed) const;
  Array view_of(const TensorInfo& info, const Placed& placed, const Array& storage) const;

  io::InputFile file;
  io::ZipReader zip;
  std::map<std::string_view, size_t> members;
  size_t pickle_at = 0;
  std::string folder;  // of all members: "net/"
  bool swapped = false;

  std::vector<TensorInfo> infos;
  std::vector<Placed> places;
  std::vector<std::string> skipped;
  uint64_t name_bytes = 0;
};

namespace {

const io::InputFile& checked(const io::InputFile& file) {
  const FileFormat format = format_of(file);
  CATENA_CHECK(
      IoError, format != FileFormat::kLegacyPytorch, "reading '", file.path(),
      "': the file is in PyTorch's format of before 1.6, which is not read; save it again, "
      "in Python: torch.save(torch.load(path, map_location='cpu'), path)");
  CATENA_CHECK(IoError, format == FileFormat::kZip, "reading '", file.path(),
               "': expected a .pt file of torch.save, a zip archive, but ", foreign_text(file));
  return file;
}

}  // namespace

PytorchFile::Archive::Archive(PytorchFile& owner, const std::string& path)
    : file(path), zip(checked(file)) {
  find_members();
  find_byte_order();
  const std::string pickle = read_member(pickle_at);
  const bool script = members.count(folder + "constants.pkl") > 0;
  PickleMachine machine(message("'", path, "': member '", pickle_name(), "'"), pickle, script);
  walk(machine.run(), "", 0);
  owner.describe(std::move(infos), {}, std::move(skipped));
}

void PytorchFile::Archive::find_members() {
  constexpr std::string_view kPickle = "/data.pkl";
  bool found = false;
  for (size_t i = 0; i < zip.members().size(); ++i) {
    const std::string& name = zip.members()[i].name;
    CATENA_CHECK(IoError, members.emplace(name, i).second, "reading '", file.path(),
                 "': two members are named '", name, "'");
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    CATENA_CHECK(IoError, !found, "reading '", file.path(), "': two members are named data.pkl: '",
                 pickle_name(), "' and '", name, "'");
    found = true;
    pickle_at = i;
    folder = name.substr(0, name.size() - kPickle.size() + 1);
  }
  CATENA_CHECK(IoError, found, "reading '", file.path(),
               "': expected a .pt file of torch.save, found a zip archive without a data.pkl");
}

void PytorchFile::Archive::find_byte_order() {
  const auto found = members.find(folder + "byteorder");
  if (found == members.end()) return;  // before PyTorch 2.1: little-endian
  const std::string order = read_member(found->second);
  CATENA_CHECK(IoError, order == "little" || order == "big", "reading '", file.path(),
               "': its byte order is '", order.substr(0, 20), "', expected 'little' or 'big'");
  swapped = order == "big";
}

std::string PytorchFile::Archive::read_member(size_t member) const {
  const auto& entry = zip.members()[member];
  CATENA_CHECK(IoError, entry.size <= kLongestPickle, "reading '", file.path(), "': member '",
               entry.name, "' has ", entry.size, " bytes, more than the ", kLongestPickle,
               " of the largest description that is read");
  const auto source = zip.open(entry);
  std::string bytes(static_cast<size_t>(source->size()), '\0');
  source->read(bytes.data(), bytes.size());
  return bytes;
}

void PytorchFile::Archive::count_entry(const std::string& name) {
  name_bytes += name.size();
  CATENA_CHECK(IoError, infos.size() + skipped.size() < kMostEntries && name_bytes < kLongestNames,
               "reading '", file.path(), "': more than ", kMostEntries,
               " entries, which no state dict has");
}

void PytorchFile::Archive::skip(const std::string& name, const PickleValue& value) {
  count_entry(name);
  skipped.push_back((name.empty() ? "the outermost value" : name) + " (" + name_of(value.kind) +
                    ")");
}

void PytorchFile::Archive::walk(const PickleValue& value, const std::string& name, int depth) {
  CATENA_CHECK(IoError, depth <= kDeepest, "reading '", file.path(), "': '", name.substr(0, 200),
               "...' is more than ", kDeepest, " containers deep, or inside itself");
  switch (value.kind) {
    case PickleKind::kTensor:
      return add_tensor(value, name.empty() ? "tensor" : name);
    case PickleKind::kDict:
    case PickleKind::kObject:
      return walk_pairs(value, name, depth);
    case PickleKind::kList:
    case PickleKind::kTuple:
      return walk_list(value, name, depth);
    default:
      skip(name, value);
  }
}

namespace {

std::string key_text(const PickleValue& key) {
  if (key.kind == PickleKind::kText) return std::string(key.text);
  if (key.kind == PickleKind::kInt) return std::to_string(key.integer);
  return "";
}

std::string below(const std::string& name, const std::string& key) {
  return name.empty() ? key : name + "." + key;
}

}  // namespace

void PytorchFile::Archive::walk_pairs(const PickleValue& value, const std::string& name,
                                      int depth) {
  // As in Python, the last value of a key counts, in the place of the first.
  std::vector<std::pair<std::string, const PickleValue*>> pairs;
  std::map<std::string, size_t> places_of;
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const PickleValue& key = *value.items[i];
    const std::string text = key_text(key);
    if (text.empty()) {
      skip(below(name, message("[a key of kind ", name_of(key.kind), "]")), *value.items[i + 1]);
      continue;
    }
    const auto [place, is_new] = places_of.emplace(text, pairs.size());
    if (is_new)
      pairs.emplace_back(text, value.items[i + 1]);
    else
      pairs[place->second].second = value.items[i + 1];
  }
  for (const auto& [key, item] : pairs) walk(*item, below(name, key), depth + 1);
  if (pairs.empty()) count_entry(name);
}

// A list without tensors is one entry of what is skipped.
void PytorchFile::Archive::walk_list(const PickleValue& value, const std::string& name, int depth) {
  const size_t tensors = infos.size(), others = skipped.size();
  for (size_t i = 0; i < value.items.size(); ++i)
    walk(*value.items[i], below(name, std::to_string(i)), depth + 1);
  if (infos.size() > tensors) return;
  skipped.resize(others);
  skip(name, value);
}

void PytorchFile::Archive::add_tensor(const PickleValue& value, const std::string& name) {
  count_entry(name);
  const PickleValue& storage = *value.items[0];
  const std::string_view type = last_part(storage.items[0]->text);
  const std::string_view asked =
      value.items.size() > 4 ? last_part(value.items[4]->text) : std::string_view();
  const auto dtype =
      std::find_if(std::begin(kTorchDtypes), std::end(kTorchDtypes), [&](const TorchDtype& known) {
        return asked.empty() ? !known.storage.empty() && known.storage == type
                             : known.name == asked;
      });
  if (dtype == std::end(kTorchDtypes))
    bad(name, message("is of ", asked.empty() ? storage.items[0]->text : value.items[4]->text,
                      ", which is not known"));
  TensorInfo info{name, message("torch.", dtype->name), dtype->dtype, {}, 0, {}};
  Placed placed;
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
  const auto typed = std::find_if(std::begin(kTorchDtypes), std::end(kTorchDtypes),
                                  [&](const TorchDtype& known) { return known.storage == type; });
  const bool untyped = type == kUntyped;
  if (!untyped && typed == std::end(kTorchDtypes))
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
  find_member(info, placed, storage.items[1]->text);
}

void PytorchFile::Archive::find_member(const TensorInfo& info, Placed& placed,
                                       std::string_view key) const {
  const std::string member = folder + "data/" + std::string(key);
  const auto found = members.find(member);
  if (found == members.end()) bad(info.name, "is in member '" + member + "', which is missing");
  placed.member = found->second;
  const uint64_t there = zip.members()[placed.member].size;
  if (there != placed.bytes || placed.bytes % static_cast<uint64_t>(placed.item) != 0)
    bad(info.name,
        message("is in member '", member, "' of ", there, " bytes, expected ", placed.bytes));
}

Array PytorchFile::Archive::storage_of(const Placed& placed) const {
  const Array bytes =
      Array::uninitialized({static_cast<int64_t>(placed.bytes)}, Dtype::kUInt8, cpu(0));
  if (placed.bytes == 0) return bytes;
  auto* data = static_cast<char*>(bytes.raw_data());
  zip.open(zip.members()[placed.member])->read(data, static_cast<size_t>(placed.bytes));
  if (swapped && placed.item > 1)
    for (char* at = data; at != data + placed.bytes; at += placed.item)
      std::reverse(at, at + placed.item);
  return bytes;
}

// The tensor as a view of its storage, or, where that holds more than the tensor, a copy. An
// expanded tensor has more elements than its storage and stays a view.
Array PytorchFile::Archive::view_of(const TensorInfo& info, const Placed& placed,
                                    const Array& storage) const {
  if (info.bytes == 0) return Array::uninitialized(info.shape, *info.dtype, cpu(0));
  if (info.dtype == Dtype::kBool) {
    auto* data = static_cast<char*>(storage.raw_data());
    std::transform(data, data + placed.bytes, data,
                   [](char b) { return static_cast<char>(b != 0); });
  }
  const Array view = Array::from_storage(storage.storage(), placed.offset, info.shape,
                                         placed.strides, *info.dtype);
  return info.bytes < placed.bytes ? view.copy('K') : view;
}

PytorchFile::PytorchFile(const std::string& path) : TensorFile(path, "PyTorch") {
  archive_ = std::make_unique<Archive>(*this, path);
}

PytorchFile::~PytorchFile() = default;

Array PytorchFile::read_elements(size_t index, Dtype) const {
  const Archive::Placed& placed = archive_->places[index];
  return archive_->view_of(tensors()[index], placed, archive_->storage_of(placed));
}

// Storages that several tensors share are read once, and given to all but the last as copies.
void PytorchFile::read_together(const std::vector<size_t>& indices, NamedArrays& arrays) const {
  using Key = std::pair<size_t, int64_t>;  // the storage and the size of what is swapped
  std::map<Key, size_t> uses;
  std::map<Key, Array> shared;
  const auto key_of = [&](size_t i) {
    return Key(archive_->places[i].member, archive_->places[i].item);
  };
  for (const size_t i : indices) ++uses[key_of(i)];
  for (const size_t i : indices) {
    const TensorInfo& info = tensors()[i];
    const Archive::Placed& placed = archive_->places[i];
    size_t& left = uses[key_of(i)];
    Array storage;
    if (const auto found = shared.find(key_of(i)); found != shared.end() && placed.bytes > 0) {
      storage = found->second;
    } else {
      storage = archive_->storage_of(placed);
      if (left > 1 && placed.bytes > 0) shared.emplace(key_of(i), storage);
    }
    const bool is_expanded = info.bytes > placed.bytes;
    if (is_expanded && left > 1) storage = storage.copy();
    const Array view = archive_->view_of(info, placed, storage);
    const bool is_view = info.bytes > 0 && view.storage() == storage.storage();
    arrays.emplace_back(info.name, is_view && left > 1 && !is_expanded ? view.copy('K') : view);
    if (--left == 0) shared.erase(key_of(i));
  }
}

NamedArrays load_pytorch(const std::string& path, Device device) {
  return PytorchFile(path).read_all(device);
}

}  // namespace catena::serializers
