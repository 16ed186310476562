#include "serializers/slice_index.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/hash128.h"
#include "core/read_budget.h"
#include "core/text_hash.h"

namespace catena::serializers {
namespace {

using SliceJson = nlohmann::json;

constexpr const char* kSliceFormat = "catena checkpoint";
constexpr int kSliceVersion = 1;

SliceJson json_of(const Dims& dims) { return std::vector<int64_t>(dims.begin(), dims.end()); }
Dims dims_of(const SliceJson& json) { return Dims(json.get<std::vector<int64_t>>()); }

// What a slice is of its tensor. Members that say nothing are left out.
SliceJson json_of(const TensorSlice& slice) {
  SliceJson json = {{"elements", {slice.elements.begin, slice.elements.end}}};
  if (!slice.has_whole_box()) {
    json["begin"] = json_of(slice.begin);
    json["extent"] = json_of(slice.extent);
  }
  if (!slice.order.is_c()) json["order"] = json_of(slice.order.axes(slice.shape.ndim()));
  return json;
}

SliceJson json_of_tensor(const TensorSlice& slice) {
  SliceJson json = {
      {"name", slice.name}, {"dtype", to_string(slice.dtype)}, {"shape", json_of(slice.shape)}};
  if (slice.is_value) json["value"] = true;
  return json;
}

TensorSlice tensor_of(const SliceJson& json) {
  TensorSlice tensor;
  tensor.name = json.at("name").get<std::string>();
  tensor.dtype = parse_dtype(json.at("dtype").get<std::string>());
  tensor.shape = dims_of(json.at("shape"));
  tensor.is_value = json.value("value", false);
  (void)element_count(tensor.shape);
  return tensor;
}

void check(bool good, const TensorSlice& slice) {
  CATENA_CHECK(IoError, good, "a slice of '", slice.name, "' is outside of it");
}

TensorSlice slice_of(const SliceJson& json, TensorSlice slice) {
  const size_t axes = slice.shape.size();
  slice.begin = json.contains("begin") ? dims_of(json.at("begin")) : Shape(axes, 0);
  slice.extent = json.contains("extent") ? dims_of(json.at("extent")) : slice.shape;
  if (json.contains("order")) slice.order = MemoryOrder(dims_of(json.at("order")));
  const SliceJson& range = json.at("elements");
  slice.elements = {range.at(0).get<int64_t>(), range.at(1).get<int64_t>()};
  check(slice.begin.size() == axes && slice.extent.size() == axes, slice);
  check(!json.contains("order") || json.at("order").size() == axes, slice);
  for (size_t axis = 0; axis < axes; ++axis)
    check(slice.begin[axis] >= 0 && slice.extent[axis] >= 0 &&
              slice.extent[axis] <= slice.shape[axis] &&
              slice.begin[axis] <= slice.shape[axis] - slice.extent[axis],
          slice);
  check(0 <= slice.elements.begin && slice.elements.begin <= slice.elements.end &&
            slice.elements.end <= element_count(slice.extent),
        slice);
  return slice;
}

SliceJson json_of(const SliceRecord& record) {
  SliceJson json = json_of(record.slice);
  json["file"] = record.file;
  json["offset"] = record.offset;
  json["crc32"] = record.crc;
  return json;
}

SliceRecord record_of(const SliceJson& json, const TensorSlice& tensor) {
  return {slice_of(json, tensor), json.at("file").get<int64_t>(), json.at("offset").get<int64_t>(),
          json.at("crc32").get<uint32_t>()};
}

SliceJson json_of(const std::map<std::string, std::vector<SliceRecord>>& tensors) {
  SliceJson list = SliceJson::array();
  for (const auto& [name, records] : tensors) {
    SliceJson tensor = json_of_tensor(records.front().slice);
    tensor["slices"] = SliceJson::array();
    for (const SliceRecord& record : records) tensor["slices"].push_back(json_of(record));
    list.push_back(std::move(tensor));
  }
  return list;
}

std::map<std::string, std::vector<SliceRecord>> tensors_of(const SliceJson& list) {
  std::map<std::string, std::vector<SliceRecord>> tensors;
  for (const SliceJson& json : list) {
    const TensorSlice tensor = tensor_of(json);
    std::vector<SliceRecord>& records = tensors[tensor.name];
    for (const SliceJson& slice : json.at("slices")) records.push_back(record_of(slice, tensor));
    CATENA_CHECK(IoError, !records.empty(), "'", tensor.name, "' has no slices");
  }
  return tensors;
}

// Whether the boxes of two slices have.
bool have_common_elements(const TensorSlice& a, const TensorSlice& b) {
  for (size_t axis = 0; axis < a.shape.size(); ++axis)
    if (a.begin[axis] >= b.begin[axis] + b.extent[axis] ||
        b.begin[axis] >= a.begin[axis] + a.extent[axis])
      return false;
  return true;
}

// Each element is in one slice at most: where one is there twice, another is missing, and numbers
// of elements do not show it.
void check_disjoint(const std::vector<SliceRecord>& records, ReadBudget& budget) {
  using Slices = std::vector<const TensorSlice*>;
  std::map<std::vector<int64_t>, Slices> boxes;  // by begin, extent and order
  for (const SliceRecord& record : records) {
    const TensorSlice& slice = record.slice;
    if (slice.elements.size() == 0) continue;
    std::vector<int64_t> box;
    for (const Dims& dims :
         {Dims(slice.begin), Dims(slice.extent), Dims(slice.order.axes(slice.shape.ndim()))})
      box.insert(box.end(), dims.begin(), dims.end());
    boxes[box].push_back(&slice);
  }
  Slices firsts;
  for (auto& [box, slices] : boxes) {
    std::sort(slices.begin(), slices.end(), [](const TensorSlice* a, const TensorSlice* b) {
      return a->elements.begin < b->elements.begin;
    });
    const TensorSlice& first = *slices.front();
    budget.charge_steps(firsts.size());
    const bool is_disjoint =
        std::none_of(
            firsts.begin(), firsts.end(),
            [&](const TensorSlice* other) { return have_common_elements(*other, first); }) &&
        std::adjacent_find(slices.begin(), slices.end(), [](const auto* a, const auto* b) {
          return a->elements.end > b->elements.begin;
        }) == slices.end();
    CATENA_CHECK(IoError, is_disjoint, "two slices of '", first.name, "' have the same elements");
    firsts.push_back(&first);
  }
}

void check_files(const SliceIndex& index) {
  for (const auto& [name, records] : index.tensors) {
    for (const SliceRecord& record : records) {
      const bool known = record.file >= 0 && record.file < int64_t(index.files.size());
      CATENA_CHECK(IoError, known, "a slice of '", name, "' is in no file");
      const int64_t most = index.files[size_t(record.file)].bytes - record.slice.bytes();
      CATENA_CHECK(IoError, record.offset >= 0 && record.offset <= most, "a slice of '", name,
                   "' is outside of its file");
    }
  }
  for (const SliceFile& file : index.files)
    CATENA_CHECK(IoError, file.name.find('/') == std::string::npos && !file.name.starts_with('.'),
                 "the name of a file is '", file.name, "'");
}

// Calls f and makes what it throws an IoError that begins with the source.
template <class F>
auto read_as(const std::string& source, F f) {
  try {
    return f();
  } catch (const std::exception& error) {
    fail<IoError>(source, ": not the index of a checkpoint: ", error.what());
  }
}

}  // namespace

namespace {

// The text of an index, whose values are charged.
SliceJson parse_text(const std::string& text, ReadBudget& budget) {
  constexpr uint64_t kValueBytes = 48;  // of a value, or of a key
  return SliceJson::parse(text, [&](int depth, SliceJson::parse_event_t event, SliceJson&) {
    using Event = SliceJson::parse_event_t;
    budget.check_depth(depth);
    if (event != Event::object_end && event != Event::array_end) budget.charge_bytes(kValueBytes);
    return true;
  });
}

}  // namespace

std::string to_text(const SliceIndex& index) {
  SliceJson json = {{"format", kSliceFormat}, {"version", kSliceVersion},
                    {"step", index.step},     {"id", index.id},
                    {"ranks", index.ranks},   {"entries", index.entries}};
  json["files"] = SliceJson::array();
  for (const SliceFile& file : index.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  json["tensors"] = json_of(index.tensors);
  return json.dump(1) + "\n";
}

SliceIndex parse_index(const std::string& text, const std::string& source) {
  return read_as(source, [&] {
    ReadBudget budget("its JSON");
    const SliceJson json = parse_text(text, budget);
    CATENA_CHECK(IoError, json.at("format") == kSliceFormat, "the format is ",
                 json.at("format").dump());
    CATENA_CHECK(IoError, json.at("version") == kSliceVersion, "the version is ",
                 json.at("version").dump(), ", this library reads version ", kSliceVersion);
    SliceIndex index;
    index.step = json.at("step").get<int64_t>();
    index.id = json.at("id").get<std::string>();
    index.ranks = json.at("ranks").get<int64_t>();
    index.entries = json.at("entries").get<std::vector<std::string>>();
    for (const SliceJson& file : json.at("files"))
      index.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<int64_t>()});
    index.tensors = tensors_of(json.at("tensors"));
    for (const auto& [name, records] : index.tensors) check_disjoint(records, budget);
    check_files(index);
    return index;
  });
}

std::string to_text(const SliceFile& file, const std::vector<SliceRecord>& records) {
  std::map<std::string, std::vector<SliceRecord>> tensors;
  for (const SliceRecord& record : records) tensors[record.slice.name].push_back(record);
  const SliceJson json = {
      {"name", file.name}, {"bytes", file.bytes}, {"tensors", json_of(tensors)}};
  return json.dump();
}

void parse_records(const std::string& text, const std::string& source, SliceFile& file,
                   std::vector<SliceRecord>& records) {
  read_as(source, [&] {
    const SliceJson json = SliceJson::parse(text);
    file = {json.at("name").get<std::string>(), json.at("bytes").get<int64_t>()};
    for (auto& [name, own] : tensors_of(json.at("tensors")))
      records.insert(records.end(), own.begin(), own.end());
  });
}

std::string pack(const std::vector<TensorSlice>& slices) {
  SliceJson list = SliceJson::array();
  for (const TensorSlice& slice : slices) {
    SliceJson json = json_of_tensor(slice);
    json.update(json_of(slice));
    json["equal"] = slice.is_equal;
    list.push_back(std::move(json));
  }
  return list.dump();
}

std::vector<TensorSlice> unpack(const std::string& text) {
  std::vector<TensorSlice> slices;
  for (const SliceJson& json : SliceJson::parse(text)) {
    slices.push_back(slice_of(json, tensor_of(json)));
    slices.back().is_equal = json.at("equal").get<bool>();
  }
  return slices;
}

namespace {

class SliceHash {
 public:
  void add(int64_t number) { hash_ = mix64(hash_ ^ uint64_t(number)) + kStep; }
  void add(const Dims& dims) {
    add(int64_t(dims.size()));
    for (const int64_t each : dims) add(each);
  }
  uint64_t value() const { return hash_; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // so that zeros count
  uint64_t hash_ = kStep;
};

}  // namespace

uint64_t hash_of(const std::vector<TensorSlice>& slices) {
  SliceHash hash;
  for (const TensorSlice& slice : slices) {
    hash.add(int64_t(text_hash(slice.name)));
    hash.add(int64_t(slice.dtype));
    hash.add(slice.shape);
    hash.add(slice.begin);
    hash.add(slice.extent);
    hash.add(slice.order.axes(slice.shape.ndim()));
    hash.add(slice.elements.begin);
    hash.add(slice.elements.end);
    hash.add(int64_t(slice.is_equal) + 2 * int64_t(slice.is_value));
  }
  return hash.value();
}

namespace {

bool is_utf8(const std::string& text) {
  try {
    SliceJson(text).dump();
    return true;
  } catch (const SliceJson::type_error&) {
    return false;
  }
}

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

}  // namespace

void require_index_name(const std::string& name) {
  CATENA_CHECK(
      ValueError, is_utf8(name) && std::none_of(name.begin(), name.end(), is_control),
      "checkpoint: expected names of layers and entries in UTF-8 without control characters, got ",
      SliceJson(name).dump(-1, ' ', true, SliceJson::error_handler_t::replace));
}

uint32_t crc_of(const void* data, size_t bytes, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(data), bytes));
}

}  // namespace catena::serializers
