#include "common/picture_dataset.h"

#include <algorithm>

#include "catena/core/error.h"

namespace examples {

using catena::Array;

uint64_t mixed_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

PictureRows::PictureRows(int64_t size, const PictureOptions& options)
    : Dataset(size, {{catena::Dtype::kFloat32, {3, options.insize, options.insize}},
                     {catena::Dtype::kInt32, {}}}),
      options_(options) {}

void PictureRows::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  float* const pictures = out[0].data<float>();
  int32_t* const labels = out[1].data<int32_t>();
  const int64_t elements = 3 * options_.insize * options_.insize;
  on_threads(std::ssize(positions), options_.threads,
             [&](int64_t i) { labels[i] = write(positions[size_t(i)], pictures + i * elements); });
  for (const Array& column : out) column.note_write();
}

PictureDataset::PictureDataset(std::shared_ptr<const Source> source, const Array& mean,
                               const PictureOptions& options)
    : PictureRows(source->size(), options),
      source_(std::move(source)),
      mean_(mean),
      visits_(std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(size()))) {}

Crop PictureDataset::next_crop(int64_t position) const {
  const int64_t down = mean_.shape()[1] - options().insize;
  const int64_t right = mean_.shape()[2] - options().insize;
  if (options().crops == Crops::kCentre) return {down / 2, right / 2};
  const uint64_t visit = visits_[size_t(position)]++;
  const uint64_t bits =
      mixed_bits(mixed_bits(mixed_bits(options().seed) ^ uint64_t(position)) ^ visit);
  return {.top = int64_t((bits >> 1) % uint64_t(down + 1)),
          .left = int64_t((bits >> 32) % uint64_t(right + 1)),
          .is_flipped = (bits & 1) != 0};
}

void PictureDataset::write_crop(const Picture& picture, const Crop& crop, float* to) const {
  const float* const means = mean_.data<float>();
  const int64_t insize = options().insize;
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t colour = options().channels == Channels::kRgb ? c : 2 - c;
    for (int64_t y = 0; y < insize; ++y) {
      const int64_t begin = (crop.top + y) * picture.width + crop.left;
      const uint8_t* const pixels = picture.rgb.data() + begin * 3 + colour;
      const float* const mean_row = means + c * picture.height * picture.width + begin;
      for (int64_t x = 0; x < insize; ++x) {
        const int64_t from = crop.is_flipped ? insize - 1 - x : x;
        *to++ = (float(pixels[from * 3]) - mean_row[from]) / options().divisor;
      }
    }
  }
}

int32_t PictureDataset::write(int64_t position, float* picture) const {
  const Crop crop = next_crop(position);
  try {
    write_crop(resized(source_->read(position), mean_.shape()[1], mean_.shape()[2]), crop, picture);
    return source_->label(position);
  } catch (const catena::IoError& error) {
    skipped_.add(source_->name(position), error.what(), size());
  }
  std::fill_n(picture, 3 * options().insize * options().insize, 0.0F);
  return -1;
}

}  // namespace examples
