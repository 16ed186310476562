// Pictures as samples: a crop of each, (3, insize, insize), and its label.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "catena/datasets/dataset.h"
#include "common/picture_source.h"

namespace examples {

// The part of a picture that a sample shows.
struct Crop {
  int64_t top = 0, left = 0;
  bool is_flipped = false;  // left and right
};
// kRandom: anywhere, and flipped every second time. kCentre: the middle, not flipped.
enum class Crops : uint8_t { kRandom, kCentre };

// The order of the channels of samples.
enum class Channels : uint8_t { kRgb, kBgr };

struct PictureOptions {
  int64_t insize = 227;
  Crops crops = Crops::kCentre;
  Channels channels = Channels::kRgb;
  float divisor = 255;  // of what is left when the mean is subtracted
  uint64_t seed = 0;    // of random crops
  int64_t threads = 1;  // that decode a batch
};

// Random bits of a number (G. Steele, D. Lea and C. Flood, Fast splittable pseudorandom number
// generators, 2014).
uint64_t mixed_bits(uint64_t x);

// Samples that are made when they are asked for, on several threads: float32 (3, insize, insize)
// and an int32 label.
class PictureRows : public catena::datasets::Dataset {
 public:
  void gather(std::span<const int64_t> positions,
              std::span<const catena::Array> out) const override;

 protected:
  PictureRows(int64_t size, const PictureOptions& options);
  // Writes a picture and returns its label.
  virtual int32_t write(int64_t position, float* picture) const = 0;
  const PictureOptions& options() const { return options_; }

 private:
  PictureOptions options_;
};

// The pictures of a source in the size of the mean picture; a sample is
// (crop of the picture - the same crop of the mean) / divisor. A random crop depends on the seed,
// the sample, and how often this data set has given it: a run that is resumed has others. A picture
// that does not decode is named and counted, and its sample is black with label -1, which losses
// ignore.
class PictureDataset final : public PictureRows {
 public:
  // mean: float32 (3, height, width) on a CPU, from 0 to 255, with room for crops, its channels in
  // the order of the samples.
  PictureDataset(std::shared_ptr<const Source> source, const catena::Array& mean,
                 const PictureOptions& options);
  int64_t skipped() const { return skipped_.count(); }

 private:
  int32_t write(int64_t position, float* picture) const override;
  Crop next_crop(int64_t position) const;
  void write_crop(const Picture& picture, const Crop& crop, float* to) const;

  std::shared_ptr<const Source> source_;
  catena::Array mean_;
  mutable Skipped skipped_;
  std::unique_ptr<std::atomic<uint64_t>[]> visits_;
};

}  // namespace examples
