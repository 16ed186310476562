// A layer as a file has it, before it becomes a function.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "functions/caffe/import/message.h"
#include "functions/caffe/net.h"

namespace catena::functions::caffe {

// Weights (BlobProto). The numbers stay in the file until array() copies them.
struct Blob {
  uint64_t offset = 0;
  std::vector<int64_t> dims;             // of its shape, or num, channels, height, width
  std::vector<std::string_view> values;  // bytes, in order
  size_t width = 4;                      // of a value: 8 for float64

  // How many numbers there are.
  int64_t count() const;
  // They as float32 on the CPU, count() of them whatever the shape.
  Array array(const Shape& shape) const;
};

struct LayerSource {
  const ModelBytes* file;
  uint64_t offset;
  std::string name, type;
  std::vector<std::string> bottoms, tops;
  std::vector<Blob> blobs;
  // Bytes of all fields that are messages, with their numbers.
  std::vector<std::pair<uint32_t, std::string_view>> messages;
  uint32_t options = 0;  // the number of the field with this type's options

  // IoError that names the layer.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    file->refuse(offset, "layer '", name, "' (", type, "): ", parts...);
  }
  // f(message) for each field of the options. Repeated ones follow one another, as protocol buffers
  // merge them.
  template <class F>
  void each_option(F f) const {
    for (const auto& [field, bytes] : messages) {
      if (field != options) continue;
      for (Message m(*file, bytes); m.next();) f(m);
    }
  }
  // Blob i as an array of that shape; IoError unless it is there and has as many numbers. `what`
  // names it: "W".
  Array blob(size_t i, const char* what, const Shape& shape) const;
  const Blob& blob(size_t i, const char* what) const;
};

// Makes a layer's step, and adds its function, if it has one, to the bag. An empty step for types
// that are not supported.
struct BuiltLayer {
  Step step;
  int function = -1;
};
BuiltLayer build_layer(const LayerSource& source, FunctionBag& fs);

// What a type is called, where its options are, and whether it only brings data. `v1` is the number
// of the type in the older format. Null for types that are not known.
struct LayerType;
const LayerType* layer_type(const std::string& name);
const LayerType* layer_type_v1(int64_t v1);
// Names and numbers that a LayerSource needs.
const char* name_of(const LayerType& type);
uint32_t options_of(const LayerType& type, bool v1);
// Types of layers that bring data: they are left out without a warning.
bool is_data(const std::string& type);

}  // namespace catena::functions::caffe
