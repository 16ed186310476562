#include "serializers/torch_container.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "array/io/zip.h"
#include "catena/core/error.h"
#include "serializers/file_formats.h"

namespace catena::serializers {
namespace {

constexpr uint64_t kLongestPickle = uint64_t{64} << 20;
constexpr uint64_t kLongestOrder = 20;  // of the text that names the order of bytes

// Dtypes that catena does not have, and the classes of their storages.
struct OtherTorchDtype {
  std::string_view name, storage;
  int64_t bytes;
};
constexpr OtherTorchDtype kOtherTorchDtypes[] = {{"complex128", "ComplexDoubleStorage", 16},
                                                 {"complex64", "ComplexFloatStorage", 8},
                                                 {"complex32", "", 4},
                                                 {"float8_e4m3fn", "", 1},
                                                 {"float8_e5m2", "", 1},
                                                 {"float8_e4m3fnuz", "", 1},
                                                 {"float8_e5m2fnuz", "", 1},
                                                 {"float8_e8m0fnu", "", 1}};

TorchDtype torch_dtype(Dtype d) { return {row_of(d).torch, d, int64_t(itemsize(d))}; }

}  // namespace

std::optional<TorchDtype> find_torch_dtype(std::string_view name) {
  if (const auto dtype = find_dtype(&DtypeRow::torch, name)) return torch_dtype(*dtype);
  for (const OtherTorchDtype& known : kOtherTorchDtypes)
    if (name == known.name) return TorchDtype{known.name, {}, known.bytes};
  return {};
}
std::optional<TorchDtype> find_torch_storage(std::string_view storage) {
  if (const auto dtype = find_dtype(&DtypeRow::torch_storage, storage)) return torch_dtype(*dtype);
  for (const OtherTorchDtype& known : kOtherTorchDtypes)
    if (!storage.empty() && storage == known.storage)
      return TorchDtype{known.name, {}, known.bytes};
  return {};
}
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

PickleMachine& TorchContainer::start_pickle(const std::string& name, std::string text, bool script,
                                            ReadBudget& budget) {
  budget.charge_bytes(text.size());
  text_ = std::move(text);
  machine_ = std::make_unique<PickleMachine>(name, text_, script, budget);
  return *machine_;
}

void TorchContainer::forget_pickle() {
  value_ = nullptr;
  machine_.reset();
  text_ = {};
}

// Zip archives ------------------------------------------------------------------------------------

namespace {

class TorchArchive final : public TorchContainer {
 public:
  TorchArchive(const io::InputFile& file, ReadBudget& budget) : file_(file), zip_(file) {
    const size_t pickle = find_members();
    find_byte_order();
    const bool script = members_.count(folder_ + "constants.pkl") > 0;
    value_ = &start_pickle(message("'", file.path(), "': member '", member_name(pickle), "'"),
                           read_member(pickle, kLongestPickle), script, budget)
                  .run();
  }

  std::optional<size_t> find(std::string_view key) const override {
    const auto found = members_.find(folder_ + "data/" + std::string(key));
    return found == members_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string name_of(std::string_view key) const override {
    return message("member '", folder_, "data/", key, "'");
  }
  uint64_t bytes(size_t storage) const override { return zip_.members()[storage].size; }
  void read(size_t storage, char* destination) const override {
    const auto& member = zip_.members()[storage];
    zip_.open(member)->read(destination, static_cast<size_t>(member.size));
  }
  bool is_swapped() const override { return swapped_; }

 private:
  const std::string& member_name(size_t member) const { return zip_.members()[member].name; }
  size_t find_members();
  void find_byte_order();
  std::string read_member(size_t member, uint64_t longest) const;

  const io::InputFile& file_;
  io::ZipReader zip_;
  std::map<std::string_view, size_t> members_;
  std::string folder_;  // of all members: "net/"
  bool swapped_ = false;
};

// The number of the pickle.
size_t TorchArchive::find_members() {
  constexpr std::string_view kPickle = "/data.pkl";
  std::optional<size_t> pickle;
  for (size_t i = 0; i < zip_.members().size(); ++i) {
    const std::string& name = member_name(i);
    CATENA_CHECK(IoError, members_.emplace(name, i).second, "reading '", file_.path(),
                 "': two members are named '", name, "'");
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    CATENA_CHECK(IoError, !pickle, "reading '", file_.path(),
                 "': two members are named data.pkl: '", member_name(*pickle), "' and '", name,
                 "'");
    pickle = i;
    folder_ = name.substr(0, name.size() - kPickle.size() + 1);
  }
  CATENA_CHECK(IoError, pickle, "reading '", file_.path(),
               "': expected a .pt file of torch.save, found a zip archive without a data.pkl");
  return *pickle;
}

void TorchArchive::find_byte_order() {
  const auto found = members_.find(folder_ + "byteorder");
  if (found == members_.end()) return;  // before PyTorch 2.1: little-endian
  const std::string order = read_member(found->second, kLongestOrder);
  CATENA_CHECK(IoError, order == "little" || order == "big", "reading '", file_.path(),
               "': its byte order is '", order, "', expected 'little' or 'big'");
  swapped_ = order == "big";
}

std::string TorchArchive::read_member(size_t member, uint64_t longest) const {
  const auto& entry = zip_.members()[member];
  CATENA_CHECK(IoError, entry.size <= longest, "reading '", file_.path(), "': member '", entry.name,
               "' has ", entry.size, " bytes, more than the ", longest, " that are read");
  const auto source = zip_.open(entry);
  std::string bytes(static_cast<size_t>(source->size()), '\0');
  source->read(bytes.data(), bytes.size());
  return bytes;
}

// Before the zip archives -------------------------------------------------------------------------

// Five pickles: a magic number, the version 1001, what the machine was, what was saved, and the
// keys of the storages. Then for each key the number of elements, 8 bytes, and the elements, in
// little-endian order on every machine.
class LegacyTorchFile final : public TorchContainer {
 public:
  LegacyTorchFile(const io::InputFile& file, ReadBudget& budget) : file_(file) {
    std::string text(static_cast<size_t>(std::min(file.size(), kLongestPickle)), '\0');
    file.read_at(0, text.data(), text.size());
    PickleMachine& pickles =
        start_pickle(message("'", file.path(), "'"), std::move(text), false, budget);
    pickles.run();  // compared by format_of
    const PickleValue& version = pickles.run();
    CATENA_CHECK(IoError, version.kind == PickleKind::kInt && version.integer == kVersion,
                 "reading '", file.path(), "': its version is not ", kVersion,
                 ", the one of PyTorch before 1.6");
    pickles.run();
    value_ = &pickles.run();
    const PickleValue& keys = pickles.run();
    place_storages(keys, pickles);
  }

  std::optional<size_t> find(std::string_view key) const override {
    const auto found = numbers_.find(std::string(key));
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string name_of(std::string_view key) const override {
    return message("storage '", key, "'");
  }
  uint64_t bytes(size_t storage) const override { return places_[storage].bytes; }
  void read(size_t storage, char* destination) const override {
    const Place& place = places_[storage];
    file_.read_at(place.offset, destination, static_cast<size_t>(place.bytes));
  }

 private:
  static constexpr int64_t kVersion = 1001;
  struct Place {
    uint64_t offset, bytes;
  };
  void place_storages(const PickleValue& keys, const PickleMachine& pickles);

  const io::InputFile& file_;
  std::vector<Place> places_;
  std::unordered_map<std::string, size_t> numbers_;
};

void LegacyTorchFile::place_storages(const PickleValue& keys, const PickleMachine& pickles) {
  std::unordered_map<std::string_view, const PickleValue*> known;
  for (const PickleValue* storage : pickles.storages())
    known.emplace(storage->items[1]->text, storage);
  uint64_t at = pickles.position();
  for (const PickleValue* key : keys.items) {
    const auto found = known.find(key->text);
    CATENA_CHECK(IoError, found != known.end(), "reading '", file_.path(), "': storage '",
                 key->text.substr(0, 100), "' belongs to no tensor: the file is damaged");
    const std::string_view type = last_part(found->second->items[0]->text);
    const std::optional<TorchDtype> typed = find_torch_storage(type);
    CATENA_CHECK(IoError, typed || type == kUntypedStorage, "reading '", file_.path(),
                 "': storage '", key->text, "' is a ", type, ", which is not known");
    const auto item = static_cast<uint64_t>(typed ? typed->bytes : 1);
    uint64_t count = 0;
    file_.read_at(at, &count, sizeof count);
    at += sizeof count;
    CATENA_CHECK(IoError, count <= (file_.size() - at) / item, "reading '", file_.path(),
                 "': storage '", key->text, "' has ", count, " elements of ", item, " bytes, but ",
                 file_.size() - at, " bytes follow: the file is cut or damaged");
    CATENA_CHECK(IoError, numbers_.emplace(key->text, places_.size()).second, "reading '",
                 file_.path(), "': two storages are named '", key->text, "'");
    places_.push_back({at, count * item});
    at += count * item;
  }
}

static_assert(std::endian::native == std::endian::little);

}  // namespace

std::unique_ptr<TorchContainer> TorchContainer::open(const io::InputFile& file,
                                                     ReadBudget& budget) {
  const FileFormat format = format_of(file);
  if (format == FileFormat::kLegacyPytorch) return std::make_unique<LegacyTorchFile>(file, budget);
  CATENA_CHECK(IoError, format == FileFormat::kZip, "reading '", file.path(),
               "': expected a .pt file of torch.save, but ", foreign_text(file));
  return std::make_unique<TorchArchive>(file, budget);
}

}  // namespace catena::serializers
