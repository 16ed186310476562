// Reads a NetParameter of either format.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>

#include "array/io/file_io.h"
#include "catena/array/casting.h"
#include "catena/core/log.h"
#include "functions/caffe/import/layer_source.h"

namespace catena::functions::caffe {
namespace {

// Field numbers, of LayerParameter and, until 2014, V1LayerParameter.
struct Format {
  uint32_t name, type, bottom, top, blobs;
  bool v1;
};
constexpr Format kLayer{1, 2, 3, 4, 7, false}, kV1Layer{4, 5, 2, 3, 6, true};
constexpr uint32_t kNetLayers = 2, kNetLayer = 100;
constexpr uint32_t kV1OldestLayer = 1;  // V0LayerParameter inside of V1LayerParameter

// int64 packed or not, in the message of BlobShape.
void read_shape(Message shape, std::vector<int64_t>& dims) {
  while (shape.next())
    if (shape.field() == 1) shape.add_to(dims);
}

void add_values(Message& m, size_t width, Blob& blob) {
  const std::string_view values = m.floats(width);
  if (values.empty()) return;
  if (!blob.values.empty() && blob.width != width)
    m.refuse("a blob has numbers of both float32 and float64");
  blob.width = width;
  std::string_view* last = blob.values.empty() ? nullptr : &blob.values.back();
  if (last != nullptr && last->data() + last->size() == values.data())
    *last = {last->data(), last->size() + values.size()};
  else
    blob.values.push_back(values);
}

Blob read_blob(Message m, uint64_t offset) {
  Blob blob;
  blob.offset = offset;
  std::vector<int64_t> shape;
  int64_t legacy[4] = {};  // num, channels, height, width
  bool has_shape = false;
  while (m.next()) switch (m.field()) {
      case 1:
      case 2:
      case 3:
      case 4: legacy[m.field() - 1] = m.integer(); break;
      case 5: add_values(m, 4, blob); break;
      case 7:
        has_shape = true;
        read_shape(m.message(), shape);
        break;
      case 8: add_values(m, 8, blob); break;
    }
  blob.dims = has_shape ? shape : std::vector<int64_t>(legacy, legacy + 4);
  for (const int64_t extent : blob.dims)
    if (extent < 0) m.file().refuse(offset, "a blob has an extent of ", extent);
  return blob;
}

LayerSource read_layer(Message m, uint64_t offset, const Format& format) {
  LayerSource layer{&m.file(), offset, {}, {}, {}, {}, {}, {}};
  int64_t number = 0;
  while (m.next()) {
    const uint32_t field = m.field();
    if (field == format.name)
      layer.name = m.text();
    else if (field == format.type && format.v1)
      number = m.integer();
    else if (field == format.type)
      layer.type = m.text();
    else if (field == format.bottom)
      layer.bottoms.push_back(m.text());
    else if (field == format.top)
      layer.tops.push_back(m.text());
    else if (field == format.blobs) {
      const uint64_t at = m.offset();
      layer.blobs.push_back(read_blob(m.message(), at));
    } else if (field == kV1OldestLayer && format.v1)
      m.refuse(
          "a layer in the format that Caffe wrote until 2013; Caffe's program "
          "upgrade_net_proto_binary converts it");
    else if (m.is_bytes())
      layer.messages.emplace_back(field, m.bytes());
  }
  const LayerType* type = format.v1 ? layer_type_v1(number) : layer_type(layer.type);
  if (type != nullptr) {
    layer.type = name_of(*type);
    layer.options = options_of(*type, format.v1);
  } else if (format.v1) {
    layer.type = message("V1 type ", number);
  }
  return layer;
}

// `layer` if there are any, else `layers`.
std::vector<LayerSource> read_layers(const ModelBytes& file) {
  std::vector<LayerSource> current, v1;
  for (Message m(file, file.bytes); m.next();) {
    const uint64_t at = m.offset();
    if (m.field() == kNetLayer)
      current.push_back(read_layer(m.message(), at, kLayer));
    else if (m.field() == kNetLayers)
      v1.push_back(read_layer(m.message(), at, kV1Layer));
  }
  return current.empty() ? v1 : current;
}

// What the bytes are, if they are something else that people have beside models.
const char* other_kind(std::string_view bytes) {
  if (bytes.empty()) return "the file is empty";
  if (bytes.starts_with("\x89HDF")) return "this is an HDF5 file; let Caffe save a .caffemodel";
  if (bytes.starts_with("PK")) return "this is a zip file or .npz";
  const std::string_view begin = bytes.substr(0, 256);
  if (std::all_of(begin.begin(), begin.end(),
                  [](unsigned char c) { return std::isprint(c) || std::isspace(c); }))
    return "this is a text; a .prototxt describes a network and has no weights, expected is the "
           ".caffemodel that Caffe saved";
  return nullptr;
}

// Not mapped: a file that is cut meanwhile would end the program.
std::string bytes_of(const std::string& path) {
  try {
    const io::InputFile file(path);
    CATENA_CHECK(IoError, file.size() <= INT32_MAX, "'", path, "' has ", file.size(),
                 " bytes, expected at most 2^31 - 1, which Caffe reads; is it a .caffemodel?");
    std::string bytes(file.size(), '\0');
    file.read_at(0, bytes.data(), bytes.size());
    return bytes;
  } catch (const IoError& e) {
    fail<IoError>("CaffeFunction: ", e.what());
  }
}

class Blobs {
 public:
  explicit Blobs(Net& net) : net_(net) {}
  std::vector<int> numbers(const std::vector<std::string>& names) {
    std::vector<int> result;
    for (const std::string& name : names) {
      const auto [entry, is_new] = known_.try_emplace(name, int(net_.blobs.size()));
      if (is_new) net_.blobs.push_back(name);
      result.push_back(entry->second);
    }
    return result;
  }

 private:
  Net& net_;
  std::map<std::string, int> known_;
};

void warn_unless_data(const LayerSource& layer) {
  if (!is_data(layer.type))
    logging::warning("CaffeFunction: '", layer.file->path, "': layer '", layer.name,
                     "' is left out, for its type is not supported: ", layer.type);
}

}  // namespace

int64_t Blob::count() const {
  size_t bytes = 0;
  for (const std::string_view& v : values) bytes += v.size();
  return static_cast<int64_t>(bytes / width);
}

Array Blob::array(const Shape& shape) const {
  const Array result =
      Array::uninitialized(shape, width == 4 ? Dtype::kFloat32 : Dtype::kFloat64, cpu(0));
  char* to = static_cast<char*>(result.raw_data());
  for (const std::string_view& v : values) {
    std::memcpy(to, v.data(), v.size());
    to += v.size();
  }
  return result.astype(Dtype::kFloat32, false);
}

const Blob& LayerSource::blob(size_t i, const char* what) const {
  if (i >= blobs.size())
    refuse("its weights ", what, " are missing: the layer has ", blobs.size(),
           blobs.empty() ? " blobs; is this a definition without weights?" : " blobs");
  return blobs[i];
}

Array LayerSource::blob(size_t i, const char* what, const Shape& shape) const {
  const Blob& b = blob(i, what);
  // The numbers that are there bound the extents, so that their product has 64 bits.
  int64_t expected = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && expected > b.count() / extent + 1)) {
      expected = -1;
      break;
    }
    expected *= extent;
  }
  if (expected != b.count())
    file->refuse(b.offset, "layer '", name, "' (", type, "): ", what, " has ", b.count(),
                 " numbers, expected are those of shape ", shape);
  return b.array(shape);
}

Net import_net(const std::string& path, FunctionBag& fs) {
  const std::string bytes = bytes_of(path);
  const ModelBytes file{path, bytes};
  if (const char* other = other_kind(file.bytes)) file.refuse(0, other);
  const std::vector<LayerSource> layers = read_layers(file);
  if (layers.empty())
    file.refuse(file.bytes.size(), "the file ends without a layer; is it a .caffemodel?");
  Net net;
  Blobs blobs(net);
  for (const LayerSource& layer : layers) {
    const BuiltLayer built = build_layer(layer, fs);
    if (!built.step) warn_unless_data(layer);
    net.layers.push_back(
        {blobs.numbers(layer.bottoms), blobs.numbers(layer.tops), built.function, built.step});
    net.described.push_back(
        {layer.name, layer.type, layer.bottoms, layer.tops, built.step != nullptr});
  }
  return net;
}

}  // namespace catena::functions::caffe
