// Pictures as samples: a crop of each, (3, insize, insize), and its label.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "catena/datasets/dataset.h"
#include "source.h"

namespace imagenet {

// The part of a picture that a sample shows.
struct Crop {
  int64_t top = 0, left = 0;
  bool is_flipped = false;  // left and right
};
// kRandom: anywhere, and flipped every second time. kCentre: the middle, not flipped.
enum class Crops : uint8_t { kRandom, kCentre };

// (picture - mean) / 255 of the crop, as (3, insize, insize). mean: (3, height, width) of the
// picture's size, which has room for the crop.
void write_crop(const Picture& picture, const catena::Array& mean, const Crop& crop, int64_t insize,
                float* to);

// The mean picture of compute_mean, as float32. IoError, and ShapeError unless it is
// (3, height, width) with room for crops of `insize`.
catena::Array load_mean(const std::string& file, int64_t insize);

struct PictureOptions {
  int64_t insize = 227;
  Crops crops = Crops::kCentre;
  uint64_t seed = 0;    // of random crops
  int64_t threads = 1;  // that decode a batch
};

// The pictures of a source, read when they are asked for, in the size of the mean picture. A
// random crop depends on the seed, the sample, and how often this data set has given it: a run that
// is resumed has others. A picture that does not decode is named and counted, and its sample is
// black with label -1, which losses ignore.
class PictureDataset final : public catena::datasets::Dataset {
 public:
  PictureDataset(std::shared_ptr<const Source> source, const catena::Array& mean,
                 const PictureOptions& options);
  void gather(std::span<const int64_t> positions,
              std::span<const catena::Array> out) const override;
  int64_t skipped() const { return skipped_.count(); }

 private:
  Crop next_crop(int64_t position) const;
  bool write(int64_t position, float* to) const;

  std::shared_ptr<const Source> source_;
  catena::Array mean_;
  PictureOptions options_;
  mutable Skipped skipped_;
  std::unique_ptr<std::atomic<uint64_t>[]> visits_;
};

// Pictures that need no files: a coarse pattern for each of ten classes, and noise over it that
// differs from sample to sample, and from seed to seed.
class SyntheticDataset final : public catena::datasets::Dataset {
 public:
  SyntheticDataset(int64_t size, const PictureOptions& options);
  void gather(std::span<const int64_t> positions,
              std::span<const catena::Array> out) const override;

 private:
  PictureOptions options_;
};

}  // namespace imagenet
