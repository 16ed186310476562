// What is special to pictures of ImageNet: their mean, and made ones in their place.
#pragma once

#include <string>

#include "common/picture_dataset.h"

namespace imagenet {

// The mean picture of compute_mean, as float32. IoError, and ShapeError unless it is
// (3, height, width) with room for crops of `insize`.
catena::Array load_mean(const std::string& file, int64_t insize);

// Pictures that need no files: a coarse pattern for each of ten classes, and noise over it that
// differs from sample to sample, and from seed to seed.
class SyntheticDataset final : public examples::PictureRows {
 public:
  SyntheticDataset(int64_t size, const examples::PictureOptions& options)
      : PictureRows(size, options) {}

 private:
  int32_t write(int64_t position, float* picture) const override;
};

}  // namespace imagenet
