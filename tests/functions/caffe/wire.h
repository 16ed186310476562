// A small encoder of protocol buffers, for models that are damaged or large.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::caffe_models {

class Wire {
 public:
  Wire& integer(uint32_t field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Wire& number(uint32_t field, float value) {
    key(field, 5);
    raw(&value, sizeof(value));
    return *this;
  }
  Wire& bytes(uint32_t field, const std::string& value) {
    key(field, 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Wire& message(uint32_t field, const Wire& value) { return bytes(field, value.text_); }
  template <class T>
  Wire& packed(uint32_t field, const std::vector<T>& values) {
    return bytes(field, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  // A key alone, for values that are not right.
  Wire& key(uint32_t field, int wire_type) {
    varint(uint64_t(field) << 3 | uint64_t(wire_type));
    return *this;
  }
  Wire& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += char(value | 0x80);
    text_ += char(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void raw(const void* data, size_t size) { text_.append(static_cast<const char*>(data), size); }
  std::string text_;
};

// A blob of this shape (BlobProto), and a layer from one blob to another (LayerParameter).
inline Wire wire_blob(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  Wire dims;
  for (const int64_t extent : shape) dims.integer(1, uint64_t(extent));
  return Wire().message(7, dims).packed(5, values);
}
inline Wire wire_layer(const std::string& name, const std::string& type, const std::string& bottom,
                       const std::string& top) {
  return Wire().bytes(1, name).bytes(2, type).bytes(3, bottom).bytes(4, top);
}

// A file with a convolution, its relu in place, a product and a normalization: layer names have
// slashes.
inline std::string small_model() {
  const std::vector<float> nine(9, 0.25f), sixteen(16, -0.5f);
  Wire convolution = wire_layer("a/3x3", "Convolution", "data", "a");
  convolution.message(106, Wire().integer(1, 1).integer(4, 3).integer(3, 1))
      .message(7, wire_blob({1, 1, 3, 3}, nine))
      .message(7, wire_blob({1}, {0.5f}));
  Wire relu = wire_layer("relu", "ReLU", "a", "a");
  relu.message(123, Wire().number(1, 0.125f));
  Wire product = wire_layer("fc", "InnerProduct", "a", "fc");
  product.message(117, Wire().integer(1, 4).integer(2, 0)).message(7, wire_blob({4, 4}, sixteen));
  Wire norm = wire_layer("bn", "BatchNorm", "fc", "y");
  norm.message(7, wire_blob({4}, {0, 1, 2, 3}))
      .message(7, wire_blob({4}, {1, 1, 2, 2}))
      .message(7, wire_blob({1}, {1}));
  return Wire()
      .bytes(1, "small")
      .message(100, convolution)
      .message(100, relu)
      .message(100, product)
      .message(100, norm)
      .text();
}

// The same convolution in the older format, its numbers not packed.
inline std::string small_v1_model() {
  Wire blob;
  blob.integer(1, 1).integer(2, 1).integer(3, 3).integer(4, 3);
  for (int i = 0; i < 9; ++i) blob.number(5, 0.25f);
  Wire layer;
  layer.bytes(2, "data")
      .bytes(3, "y")
      .bytes(4, "conv1")
      .integer(5, 4)
      .message(6, blob)
      .message(10, Wire().integer(2, 0).integer(4, 3));
  return Wire().bytes(1, "old").message(2, layer).text();
}

}  // namespace catena::caffe_models
