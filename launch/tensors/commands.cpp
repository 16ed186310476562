#include "tensors/commands.h"

#include <algorithm>
#include <cstdio>

#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/printable.h"
#include "catena/serializers/name_map.h"
#include "catena/serializers/safetensors.h"

namespace catena::launch::tensors {
namespace {

using serializers::NameMap;
using serializers::TensorFile;
using serializers::TensorInfo;

NameMap map_of(const Options& options) {
  return options.map.empty() ? NameMap() : NameMap::read(options.map);
}

void print(const std::string& text) { std::puts(printable(text).c_str()); }
void print_line(const std::string& text) { std::puts(printable_line(text).c_str()); }

std::string count_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " tensor" : " tensors");
}

int list(const Options& options) {
  const auto file = serializers::open_tensor_file(options.first);
  uint64_t bytes = 0;
  std::vector<std::vector<std::string>> rows;
  for (const TensorInfo& tensor : file->tensors()) {
    bytes += tensor.bytes;
    rows.push_back({printable_line(tensor.name), printable_line(tensor.type),
                    to_string(tensor.shape), std::to_string(tensor.bytes) + " bytes",
                    tensor.offset ? "at " + std::to_string(*tensor.offset) : std::string()});
  }
  print(options.first + ": " + file->format() + ", " + count_text(file->size()) + ", " +
        std::to_string(bytes) + " bytes");
  std::vector<size_t> widths(5);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    print(line);
  }
  for (const auto& [key, value] : file->metadata()) print_line("metadata " + key + ": " + value);
  for (const std::string& entry : file->skipped()) print_line("not a tensor: " + entry);
  return 0;
}

// Whether elements are equal; NaN equals NaN.
bool are_equal(const Array& a, const Array& b) {
  const Array same = equal(a, b);
  return (is_float(a.dtype()) ? logical_or(same, logical_and(isnan(a), isnan(b))) : same)
      .all()
      .truth();
}

// The first tensor whose elements differ, and by how much; or nothing.
std::string first_difference(const TensorFile& a, const TensorFile& b, const NameMap& names) {
  std::set<std::string> targets;
  for (const std::string& name : a.names()) targets.insert(name);
  std::map<std::string, std::string> origin;
  for (const std::string& name : b.names())
    if (const auto now = names(name, targets)) origin[*now] = name;
  for (const TensorInfo& tensor : a.tensors()) {
    const auto other = origin.find(tensor.name);
    if (other == origin.end()) continue;  // the map keeps what there is
    const Array left = a[tensor.name], right = b[other->second];
    if (left.size() == 0 || are_equal(left, right)) continue;
    std::string text = message("'", tensor.name, "' has other elements in '", b.path(), "'");
    if (!is_float(left.dtype())) return text;
    const Array difference =
        absolute(left.astype(dtype::float64) - right.astype(dtype::float64)).max();
    return text + message(", by up to ", difference.item<double>());
  }
  return "";
}

int compare(const Options& options) {
  const auto a = serializers::open_tensor_file(options.first);
  const auto b = serializers::open_tensor_file(options.second);
  const NameMap names = map_of(options);
  const auto comparison = serializers::compare_tensors(
      a->tensors(), b->tensors(),
      {"'" + options.first + "'", "'" + options.second + "'", names, false});
  print(comparison.table);
  if (!comparison.fits) {
    print("first mismatch: " + comparison.first_mismatch);
    return 1;
  }
  if (options.values) {
    const std::string difference = first_difference(*a, *b, names);
    if (!difference.empty()) {
      print("first difference: " + difference);
      return 1;
    }
  }
  print(count_text(a->size()) + " fit" + (options.values ? " and are equal" : ""));
  return 0;
}

int convert(const Options& options) {
  const std::string& out = options.second;
  const bool npz = out.ends_with(".npz");
  CATENA_CHECK(ValueError, npz || out.ends_with(".safetensors"), "convert: '", out,
               "' ends with neither .safetensors nor .npz, which choose the format");
  CATENA_CHECK(ValueError, npz || !options.compressed,
               "convert: --compressed is for .npz; safetensors files are never compressed");
  const auto file = serializers::open_tensor_file(options.first);
  const NameMap names = map_of(options);
  std::vector<std::string> wanted;
  for (const std::string& name : file->names())
    if (names(name)) wanted.push_back(name);
  const NamedArrays arrays = names(file->read_many(wanted));
  if (npz)
    save_npz(out, arrays, options.compressed);
  else
    serializers::save_safetensors(out, arrays, file->metadata());
  const size_t left_out = file->size() - arrays.size();
  print(out + ": " + count_text(arrays.size()) +
        (left_out > 0 ? ", " + std::to_string(left_out) + " left out by the map" : ""));
  if (npz && !file->metadata().empty()) print("an .npz keeps no metadata: left out");
  for (const std::string& entry : file->skipped()) print_line("not a tensor, left out: " + entry);
  return 0;
}

}  // namespace

int run(const Options& options) {
  switch (options.command) {
    case Options::kList: return list(options);
    case Options::kCompare: return compare(options);
    case Options::kConvert: break;
  }
  return convert(options);
}

}  // namespace catena::launch::tensors
