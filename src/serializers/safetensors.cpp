#include "catena/serializers/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "array/io/file_io.h"
#include "catena/serializers/npz.h"
#include "catena/serializers/tensor_file.h"
#include "core/read_budget.h"
#include "serializers/file_formats.h"

namespace catena::serializers {
namespace {

// What a header says. Offsets of tensors count from the end of the header.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  Metadata metadata;
};

using Json = nlohmann::json;

// Types of elements that catena does not have.
struct ForeignType {
  const char* name;
  uint64_t bits;
};
constexpr ForeignType kForeign[] = {{"C64", 64},    {"F8_E4M3", 8},     {"F8_E5M2", 8},
                                    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
                                    {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"F4", 4}};
// So that sizes and strides in bytes fit 63 bits, of shapes with an extent of 0 as well.
constexpr uint64_t kMostBits = uint64_t{INT64_MAX} / 2;
constexpr char kMetadata[] = "__metadata__";

// Bits of an element; 0: not known.
uint64_t foreign_bits(std::string_view name) {
  for (const ForeignType& type : kForeign)
    if (name == type.name) return type.bits;
  return 0;
}

// Follows the events of the JSON reader through the one structure that a header may have, so that
// nothing else is kept in memory and names that come twice are seen.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, SafetensorsHeader& header, ReadBudget& budget)
      : path_(path), header_(header), budget_(budget) {}

  // The events of nlohmann::json::sax_parse.
  bool null() {
    if (place_ != kInHeader || key_ != kMetadata) unexpected("null");
    return true;
  }
  bool boolean(bool) { unexpected("a truth value"); }
  bool number_integer(Json::number_integer_t) { unexpected("a negative number"); }
  bool number_float(Json::number_float_t, const std::string& text) {
    unexpected("the number " + text);
  }
  bool binary(Json::binary_t&) { unexpected("bytes"); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (place_ == kInShape) {
      bad_if(value > uint64_t{INT64_MAX}, message("an extent of ", value));
      TensorInfo& tensor = header_.tensors.back();
      bad_if(tensor.shape.ndim() == kMaxDims,
             message("more than ", kMaxDims, " axes, which catena does not have"));
      tensor.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ != kInOffsets) unexpected("a number");
    bad_if(offsets_seen_ == 2, "more than two data_offsets");
    offsets_[offsets_seen_++] = value;
    return true;
  }
  bool string(std::string& value) {
    if (place_ == kInMetadata) {
      budget_.charge_bytes(value.size());
      header_.metadata[key_] = value;
    } else if (place_ == kInTensor && key_ == "dtype") {
      header_.tensors.back().type = value;
    } else {
      unexpected("the text '" + value.substr(0, 100) + "'");
    }
    return true;
  }
  bool start_object(size_t) {
    if (place_ == kBefore) {
      place_ = kInHeader;
    } else if (place_ == kInHeader) {
      place_ = key_ == kMetadata ? kInMetadata : kInTensor;
      keys_.clear();
      if (place_ == kInTensor) header_.tensors.emplace_back().name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }
  bool end_object() {
    if (place_ == kInTensor) finish_tensor();
    place_ = place_ == kInHeader ? kAfter : kInHeader;
    return true;
  }
  bool start_array(size_t) {
    const bool shape = key_ == "shape", offsets = key_ == "data_offsets";
    if (place_ != kInTensor || !(shape || offsets)) unexpected("a list");
    offsets_seen_ = offsets ? 0 : offsets_seen_;
    place_ = shape ? kInShape : kInOffsets;
    return true;
  }
  bool end_array() {
    bad_if(place_ == kInOffsets && offsets_seen_ != 2, "fewer than two data_offsets");
    place_ = kInTensor;
    return true;
  }
  bool key(std::string& name) {
    key_ = name;
    if (place_ == kInHeader || place_ == kInMetadata) budget_.charge_entry(name);
    if (place_ == kInHeader) {
      CATENA_CHECK(IoError, names_.insert(name).second, "reading '", path_, "': the header has '",
                   name, "' twice");
      return true;
    }
    const bool is_new =
        place_ == kInMetadata ? !header_.metadata.contains(name) : keys_.insert(name).second;
    bad_if(!is_new, "'" + name + "' twice");
    bad_if(place_ == kInTensor && name != "dtype" && name != "shape" && name != "data_offsets",
           "the unknown key '" + name.substr(0, 100) + "'");
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) {
    // Texts begin with a number in brackets and the position, which is said here.
    const std::string text = error.what();
    const size_t begin = text.find(": ");
    // The position counts from 1, and is 0 or beyond the end where the text ends early.
    fail<IoError>("reading '", path_, "': the header is not JSON: at offset ",
                  8 + (position > 0 ? position - 1 : 0), " of the file: ",
                  begin == std::string::npos ? text : text.substr(begin + 2, 300));
  }

 private:
  enum Place { kBefore, kInHeader, kInMetadata, kInTensor, kInShape, kInOffsets, kAfter };

  [[noreturn]] void bad(const std::string& what) const {
    const bool tensor = place_ == kInTensor || place_ == kInShape || place_ == kInOffsets;
    fail<IoError>("reading '", path_, "': in the header, ",
                  tensor                  ? "tensor '" + header_.tensors.back().name + "'"
                  : place_ == kInMetadata ? std::string(kMetadata)
                  : place_ == kInHeader   ? "'" + key_ + "'"
                                          : std::string("the outermost value"),
                  " has ", what);
  }
  void bad_if(bool wrong, const std::string& what) const {
    if (wrong) bad(what);
  }
  [[noreturn]] void unexpected(const std::string& what) const {
    const bool named = place_ == kInTensor || place_ == kInMetadata;
    bad(message(what, named ? message(" as '", key_, "'") : std::string(), ", expected ",
                place_ == kInMetadata                        ? "a text"
                : place_ == kInShape || place_ == kInOffsets ? "a number of at least 0"
                : place_ == kInTensor && key_ == "dtype"     ? "a text"
                : place_ == kInTensor                        ? "a list of numbers"
                                                             : "an object"));
  }
  void finish_tensor() {
    TensorInfo& tensor = header_.tensors.back();
    for (const char* needed : {"dtype", "shape", "data_offsets"})
      bad_if(!keys_.count(needed), message("no '", needed, "'"));
    bad_if(offsets_[0] > offsets_[1], message("data_offsets [", offsets_[0], ", ", offsets_[1],
                                              "] that end before they begin"));
    tensor.offset = offsets_[0];
    tensor.bytes = offsets_[1] - offsets_[0];
    tensor.dtype = find_dtype(&DtypeRow::safetensors, tensor.type);
    uint64_t bits = tensor.dtype ? 8 * itemsize(*tensor.dtype) : foreign_bits(tensor.type);
    if (bits == 0) return;  // listed with its offsets; reading it is an error
    bool overflow = false, empty = false;
    for (const int64_t extent : tensor.shape) {
      empty = empty || extent == 0;
      const auto factor = static_cast<uint64_t>(std::max<int64_t>(extent, 1));
      overflow = __builtin_mul_overflow(bits, factor, &bits) || bits > kMostBits || overflow;
    }
    if (empty) bits = 0;
    bad_if(overflow || bits / 8 != tensor.bytes || bits % 8 != 0,
           message("shape ", tensor.shape, " of ", tensor.type, ", which needs ",
                   overflow ? std::string("too many") : message(bits / 8), " bytes, but ",
                   tensor.bytes, " in data_offsets [", offsets_[0], ", ", offsets_[1], "]"));
  }

  const std::string& path_;
  SafetensorsHeader& header_;
  ReadBudget& budget_;
  Place place_ = kBefore;
  std::string key_;
  std::set<std::string> names_, keys_;
  std::array<uint64_t, 2> offsets_{};
  size_t offsets_seen_ = 0;
};

// The elements follow each other without gap or overlap and fill the file.
void check_offsets(const std::string& path, const std::vector<TensorInfo>& tensors,
                   uint64_t data_bytes) {
  std::vector<const TensorInfo*> ordered;
  for (const TensorInfo& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::pair(*a->offset, a->bytes) < std::pair(*b->offset, b->bytes);
  });
  uint64_t end = 0;
  const TensorInfo* before = nullptr;
  for (const TensorInfo* tensor : ordered) {
    const uint64_t begin = *tensor->offset;
    const auto after = [&] {
      return before ? "'" + before->name + "'" : std::string("the header");
    };
    CATENA_CHECK(IoError, begin >= end, "reading '", path, "': the elements of tensor '",
                 tensor->name, "' begin at ", begin, ", inside those of ", after(),
                 ", which end at ", end);
    CATENA_CHECK(IoError, begin == end, "reading '", path, "': ", begin - end, " bytes between ",
                 after(), " and tensor '", tensor->name, "' belong to no tensor");
    end = begin + tensor->bytes;
    CATENA_CHECK(IoError, end <= data_bytes, "reading '", path, "': the elements of tensor '",
                 tensor->name, "' end at ", end, ", but only ", data_bytes,
                 " bytes follow the header: the file is cut or damaged");
    before = tensor;
  }
  CATENA_CHECK(IoError, end == data_bytes, "reading '", path, "': ", data_bytes - end,
               " bytes behind the last tensor belong to none: the file is damaged");
}

// Reads and checks a header that `data_bytes` bytes of elements follow. IoErrors begin with
// "reading 'path'".
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text,
                                           uint64_t data_bytes) {
  SafetensorsHeader header;
  ReadBudget budget(message("reading '", path, "'"));
  budget.charge_bytes(text.size());
  HeaderReader reader(path, header, budget);
  Json::sax_parse(text.begin(), text.end(), &reader);
  check_offsets(path, header.tensors, data_bytes);
  return header;
}

// The JSON text of a header; `tensors` have offsets. ValueError for texts that are not UTF-8.
std::string make_safetensors_header(const std::string& path, const SafetensorsHeader& header) {
  const auto quoted = [&](const std::string& text) {
    try {
      return Json(text).dump();
    } catch (const Json::type_error&) {
      fail<ValueError>("save_safetensors('", path, "'): '", text,
                       "' is not UTF-8, which names and metadata must be");
    }
  };
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += message("\"", kMetadata, "\":{");
    for (const auto& [key, value] : header.metadata)
      text += (text.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
    text += "}";
  }
  for (const TensorInfo& tensor : header.tensors) {
    const char* const type = row_of(*tensor.dtype).safetensors;
    CATENA_CHECK(DtypeError, *type, "save_safetensors('", path,
                 "'): the format has no elements of ", *tensor.dtype, "; convert '", tensor.name,
                 "' by astype");
    std::string shape;
    for (const int64_t extent : tensor.shape) shape += message(shape.empty() ? "" : ",", extent);
    text += message(text.size() == 1 ? "" : ",", quoted(tensor.name), ":{\"dtype\":\"", type,
                    "\",\"shape\":[", shape, "],\"data_offsets\":[", *tensor.offset, ",",
                    *tensor.offset + tensor.bytes, "]}");
  }
  return text + "}";
}

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kLengthBytes = 8;  // of the header's length, in front of it

// The length of the header, checked.
uint64_t header_length(const io::InputFile& file) {
  CATENA_CHECK(IoError, file.size() > kLengthBytes, "reading '", file.path(),
               "': expected a safetensors file, but ",
               file.size() == 0 ? std::string("it is empty")
                                : message("it has only ", file.size(), " bytes"));
  uint64_t length = 0;
  file.read_at(0, &length, sizeof length);
  char first = 0;
  file.read_at(kLengthBytes, &first, 1);
  CATENA_CHECK(IoError, first == '{', "reading '", file.path(),
               "': expected a safetensors file, but ", foreign_text(file));
  CATENA_CHECK(IoError, length <= kLongestSafetensorsHeader, "reading '", file.path(),
               "': its header claims ", length, " bytes, more than the format's ",
               kLongestSafetensorsHeader, ": it is damaged or of another format");
  CATENA_CHECK(IoError, length <= file.size() - kLengthBytes, "reading '", file.path(),
               "': its header claims ", length, " bytes, but ", file.size() - kLengthBytes,
               " follow: the file is cut or damaged");
  return length;
}

}  // namespace

struct SafetensorsFile::Input {
  io::InputFile file;
};

SafetensorsFile::SafetensorsFile(const std::string& path)
    : TensorFile(path, "safetensors"), input_(new Input{io::InputFile(path)}) {
  const io::InputFile& file = input_->file;
  const uint64_t length = header_length(file), data = kLengthBytes + length;
  std::string text(static_cast<size_t>(length), '\0');
  file.read_at(kLengthBytes, text.data(), text.size());
  SafetensorsHeader header = parse_safetensors_header(path, text, file.size() - data);
  for (TensorInfo& tensor : header.tensors) *tensor.offset += data;
  describe(std::move(header.tensors), std::move(header.metadata), {});
}

SafetensorsFile::~SafetensorsFile() = default;

Array SafetensorsFile::read_elements(size_t index, Dtype dtype) const {
  const TensorInfo& tensor = tensors()[index];
  Array result = Array::uninitialized(tensor.shape, dtype, cpu(0));
  auto* data = static_cast<char*>(result.raw_data());
  const auto bytes = static_cast<size_t>(tensor.bytes);
  if (bytes > 0) input_->file.read_at(*tensor.offset, data, bytes);
  if (dtype == Dtype::kBool)
    std::transform(data, data + bytes, data, [](char b) { return static_cast<char>(b != 0); });
  return result;
}

NamedArrays load_safetensors(const std::string& path, Device device) {
  return SafetensorsFile(path).read_all(device);
}

void save_safetensors(const std::string& path, const NamedArrays& arrays,
                      const Metadata& metadata) {
  std::set<std::string_view> seen;
  SafetensorsHeader header{tensor_infos(arrays), metadata};
  for (const auto& [name, array] : arrays) {
    CATENA_CHECK(ValueError, name != "__metadata__", "save_safetensors('", path,
                 "'): an array is named __metadata__, which the format keeps for texts");
    CATENA_CHECK(ValueError, seen.insert(name).second, "save_safetensors('", path,
                 "'): two arrays are named '", name, "'");
  }
  std::vector<size_t> order(arrays.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Each tensor begins at a multiple of its elements' size if wider ones come first.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return itemsize(arrays[a].second.dtype()) > itemsize(arrays[b].second.dtype());
  });
  std::vector<TensorInfo> infos;
  uint64_t end = 0;
  for (const size_t i : order) {
    infos.push_back(header.tensors[i]);
    infos.back().offset = end;
    end += infos.back().bytes;
  }
  header.tensors = std::move(infos);
  std::string text = make_safetensors_header(path, header);
  text.append((8 - text.size() % 8) % 8, ' ');
  CATENA_CHECK(ValueError, text.size() <= kLongestSafetensorsHeader, "save_safetensors('", path,
               "'): names and metadata make a header of ", text.size(),
               " bytes, the format allows ", kLongestSafetensorsHeader);
  const uint64_t length = text.size();
  io::AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const size_t i : order) {
    const Array host = arrays[i].second.to_cpu().contiguous();
    if (host.nbytes() > 0) file.write(host.raw_data(), static_cast<size_t>(host.nbytes()));
  }
  file.commit();
}

void save_safetensors(const std::string& path, const Parameterized& model, const NameMap& names,
                      const Metadata& metadata) {
  save_safetensors(path, names(to_arrays(model)), metadata);
}

}  // namespace catena::serializers
