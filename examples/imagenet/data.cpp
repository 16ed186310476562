#include "data.h"

#include <algorithm>

#include "catena/array/io.h"

namespace imagenet {

using catena::Array;
using catena::IoError;
using catena::ShapeError;
namespace dtype = catena::dtype;

namespace {

// Random bits of a number (G. Steele, D. Lea and C. Flood, Fast splittable pseudorandom number
// generators, 2014).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<catena::datasets::Dataset::Column> columns_of(int64_t insize) {
  return {{catena::Dtype::kFloat32, {3, insize, insize}}, {catena::Dtype::kInt32, {}}};
}

// Calls row(i, where its picture goes, where its label goes) for each row of a batch.
template <class Row>
void write_rows(int64_t rows, std::span<const Array> out, const PictureOptions& options,
                const Row& row) {
  float* const pictures = out[0].data<float>();
  int32_t* const labels = out[1].data<int32_t>();
  const int64_t elements = 3 * options.insize * options.insize;
  on_threads(rows, options.threads,
             [&](int64_t i) { row(i, pictures + i * elements, labels + i); });
  for (const Array& column : out) column.note_write();
}

}  // namespace

void write_crop(const Picture& picture, const Array& mean, const Crop& crop, int64_t insize,
                float* to) {
  const float* const means = mean.data<float>();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < insize; ++y) {
      const int64_t begin = (crop.top + y) * picture.width + crop.left;
      const uint8_t* const pixels = picture.rgb.data() + begin * 3 + c;
      const float* const mean_row = means + c * picture.height * picture.width + begin;
      for (int64_t x = 0; x < insize; ++x) {
        const int64_t from = crop.is_flipped ? insize - 1 - x : x;
        *to++ = (float(pixels[from * 3]) - mean_row[from]) / 255;
      }
    }
  }
}

Array load_mean(const std::string& file, int64_t insize) {
  Array mean;
  try {
    mean = catena::load(file);
  } catch (const IoError& error) {
    catena::fail<IoError>("--mean: ", error.what(), "; compute_mean makes the mean picture");
  }
  CATENA_CHECK(ShapeError,
               mean.ndim() == 3 && mean.shape()[0] == 3 && mean.shape()[1] >= insize &&
                   mean.shape()[2] >= insize,
               "--mean: '", file, "' has shape ", mean.shape(),
               ", expected (3, height, width) of at least ", insize, " x ", insize,
               " pixels; make it with compute_mean");
  return mean.astype(dtype::float32).contiguous();
}

PictureDataset::PictureDataset(std::shared_ptr<const Source> source, const Array& mean,
                               const PictureOptions& options)
    : Dataset(source->size(), columns_of(options.insize)),
      source_(std::move(source)),
      mean_(mean),
      options_(options),
      visits_(std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(size()))) {}

Crop PictureDataset::next_crop(int64_t position) const {
  const int64_t down = mean_.shape()[1] - options_.insize;
  const int64_t right = mean_.shape()[2] - options_.insize;
  if (options_.crops == Crops::kCentre) return {down / 2, right / 2};
  const uint64_t visit = visits_[size_t(position)]++;
  const uint64_t bits = mixed(mixed(mixed(options_.seed) ^ uint64_t(position)) ^ visit);
  return {.top = int64_t((bits >> 1) % uint64_t(down + 1)),
          .left = int64_t((bits >> 32) % uint64_t(right + 1)),
          .is_flipped = (bits & 1) != 0};
}

// Whether there is a picture.
bool PictureDataset::write(int64_t position, float* to) const {
  const Crop crop = next_crop(position);
  try {
    const Picture picture = resized(source_->read(position), mean_.shape()[1], mean_.shape()[2]);
    write_crop(picture, mean_, crop, options_.insize, to);
    return true;
  } catch (const IoError& error) {
    skipped_.add(source_->name(position), error.what(), size());
  }
  std::fill_n(to, 3 * options_.insize * options_.insize, 0.0F);
  return false;
}

void PictureDataset::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  write_rows(std::ssize(positions), out, options_, [&](int64_t i, float* picture, int32_t* label) {
    const int64_t position = positions[size_t(i)];
    *label = write(position, picture) ? source_->label(position) : -1;
  });
}

SyntheticDataset::SyntheticDataset(int64_t size, const PictureOptions& options)
    : Dataset(size, columns_of(options.insize)), options_(options) {}

void SyntheticDataset::gather(std::span<const int64_t> positions,
                              std::span<const Array> out) const {
  constexpr int64_t kUsedClasses = 10, kParts = 8;
  check_gather(positions, out);
  write_rows(std::ssize(positions), out, options_, [&](int64_t i, float* picture, int32_t* label) {
    const auto position = uint64_t(positions[size_t(i)]);
    *label = int32_t(position % kUsedClasses);
    uint64_t noise = mixed(mixed(options_.seed) ^ position);
    const int64_t n = options_.insize;
    for (int64_t row = 0; row < 3 * n; ++row) {
      for (int64_t x = 0; x < n; ++x) {
        const int64_t part = (row / n * kParts + row % n * kParts / n) * kParts + x * kParts / n;
        const bool is_bright = (mixed(uint64_t(*label * 3 * kParts * kParts + part)) & 1) != 0;
        noise = noise * 6364136223846793005 + 1442695040888963407;
        *picture++ = (is_bright ? 0.25F : -0.25F) + float(noise >> 40) * 0x1p-25F - 0.25F;
      }
    }
  });
}

}  // namespace imagenet
