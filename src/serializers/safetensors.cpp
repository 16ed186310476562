#include "catena/serializers/safetensors.h"

#include <algorithm>
#include <bit>
#include <set>

#include "array/io/file_io.h"
#include "catena/serializers/npz.h"
#include "serializers/file_formats.h"
#include "serializers/safetensors_header.h"

namespace catena::serializers {
namespace {

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
