#include "data.h"

#include "catena/array/io.h"

namespace imagenet {

using catena::Array;
using catena::IoError;
using catena::ShapeError;
using examples::mixed_bits;

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
  return mean.astype(catena::dtype::float32).contiguous();
}

int32_t SyntheticDataset::write(int64_t position, float* picture) const {
  constexpr int64_t kUsedClasses = 10, kParts = 8;
  const auto label = int32_t(position % kUsedClasses);
  uint64_t noise = mixed_bits(mixed_bits(options().seed) ^ uint64_t(position));
  const int64_t n = options().insize;
  for (int64_t row = 0; row < 3 * n; ++row) {
    for (int64_t x = 0; x < n; ++x) {
      const int64_t part = (row / n * kParts + row % n * kParts / n) * kParts + x * kParts / n;
      const bool is_bright = (mixed_bits(uint64_t(label * 3 * kParts * kParts + part)) & 1) != 0;
      noise = noise * 6364136223846793005 + 1442695040888963407;
      *picture++ = (is_bright ? 0.25F : -0.25F) + float(noise >> 40) * 0x1p-25F - 0.25F;
    }
  }
  return label;
}

}  // namespace imagenet
