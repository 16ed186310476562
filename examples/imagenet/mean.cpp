#include "mean.h"

#include "catena/core/error.h"
#include "common/decoding.h"

namespace imagenet {

Mean mean_of(const std::vector<examples::LabelledPath>& list, int64_t size, int64_t threads) {
  const auto pixels = static_cast<size_t>(size * size);
  std::vector<uint64_t> sums(pixels * 3);
  int64_t added = 0;  // a list may have a picture more than once
  examples::Skipped skipped;
  std::mutex mutex;
  examples::on_threads(std::ssize(list), threads, [&](int64_t i) {
    const std::string& path = list[size_t(i)].path;
    try {
      const examples::Picture picture = examples::resized(examples::read_picture(path), size, size);
      const std::lock_guard lock(mutex);
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += picture.rgb[k];
      ++added;
    } catch (const catena::IoError& error) {
      skipped.add(path, error.what(), std::ssize(list));
    }
  });
  const int64_t left_out = std::ssize(list) - added;
  CATENA_CHECK(IoError, added > 0, "none of the ", left_out, " pictures could be decoded");
  const auto n = static_cast<double>(added);
  Mean mean{catena::Array::uninitialized({3, size, size}, catena::Dtype::kFloat32, catena::cpu()),
            left_out};
  float* const to = mean.picture.data<float>();
  for (size_t k = 0; k < sums.size(); ++k)
    to[k % 3 * pixels + k / 3] = static_cast<float>(static_cast<double>(sums[k]) / n);
  mean.picture.note_write();
  return mean;
}

}  // namespace imagenet
