#include "colour_net.h"

#include <algorithm>
#include <array>
#include <random>

namespace modelzoo {
namespace {

constexpr float kContrast = 64;  // of a colour's channels from kColourMean
constexpr float kShift = 70;     // the largest one of a picture's channel

// What a channel of a colour differs from the mean. Bits: 4 red, 2 green, 1 blue.
float offset_of(int64_t colour, int64_t bit) {
  return (colour >> bit & 1) != 0 ? kContrast : -kContrast;
}

// A message of protocol buffers: fields one after the other, each begun by its number and the form
// of its value.
class Message {
 public:
  Message& integer(uint32_t field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& text(uint32_t field, const std::string& value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  // float32 of little-endian machines, which all that catena runs on are.
  Message& floats(uint32_t field, const std::vector<float>& values) {
    return text(field,
                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t form) { varint(field << 3 | form); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// BlobProto: shape = 7 (dim = 1), data = 5.
Message blob(const std::vector<uint64_t>& shape, const std::vector<float>& values) {
  Message dims;
  for (const uint64_t extent : shape) dims.integer(1, extent);
  return Message().message(7, dims).floats(5, values);
}

// LayerParameter: name = 1, type = 2, bottom = 3, top = 4.
Message layer(const std::string& name, const std::string& type, const std::string& bottom) {
  return Message().text(1, name).text(2, type).text(3, bottom).text(4, name);
}

// pooling_param = 121: pool = 1 (1: the mean), global_pooling = 12.
Message mean_of_pixels() {
  return layer("pool", "Pooling", "data").message(121, Message().integer(1, 1).integer(12, 1));
}

// inner_product_param = 117: num_output = 1; blobs = 7. The logarithm of a normal distribution
// around each colour, with the variance of the shifts, without what is the same for all colours.
Message product(const std::string& name) {
  constexpr float kVariance = kShift * kShift / 3;
  std::vector<float> weights, biases;
  for (int64_t colour = 0; colour < kColours; ++colour) {
    float square = 0;
    for (int64_t channel = 0; channel < 3; ++channel) {  // blue, green, red
      const float offset = offset_of(colour, channel);
      weights.push_back(offset / kVariance);
      square += offset * offset;
    }
    biases.push_back(-square / 2 / kVariance);
  }
  return layer(name, "InnerProduct", "pool")
      .message(117, Message().integer(1, kColours))
      .message(7, blob({kColours, 3}, weights))
      .message(7, blob({kColours}, biases));
}

class Painter {
 public:
  explicit Painter(uint64_t seed) : random_(seed) {}

  examples::Picture paint(int64_t colour) {
    constexpr float kNoise = 32;
    examples::Picture picture{60 + int64_t(random_() % 81), 60 + int64_t(random_() % 81), {}};
    std::array<float, 3> rgb{};
    for (size_t c = 0; c < 3; ++c)
      rgb[c] = kColourMean + offset_of(colour, 2 - int64_t(c)) + up_to(kShift);
    for (int64_t i = 0; i < picture.height * picture.width; ++i)
      for (const float value : rgb)
        picture.rgb.push_back(
            static_cast<uint8_t>(std::clamp(value + up_to(kNoise) + 0.5F, 0.0F, 255.0F)));
    return picture;
  }

 private:
  // From -limit to limit; equal with every standard library, as its distributions are not.
  float up_to(float limit) { return (float(random_() >> 40) * 0x1p-23F - 1) * limit; }
  std::mt19937_64 random_;
};

}  // namespace

// NetParameter: name = 1, layer = 100.
std::string colour_net(const ModelType& type) {
  return Message()
      .text(1, "colours")
      .message(100, mean_of_pixels())
      .message(100, product(type.scores))
      .bytes();
}

std::vector<Coloured> coloured_pictures(int64_t count, uint64_t seed) {
  Painter painter(seed);
  std::vector<Coloured> pictures;
  for (int64_t i = 0; i < count; ++i)
    pictures.push_back({painter.paint(i % kColours), static_cast<int32_t>(i % kColours)});
  return pictures;
}

}  // namespace modelzoo
