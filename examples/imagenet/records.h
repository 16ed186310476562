// Decoded pictures in NumPy files, which need no decoding: for training that waits for pictures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/picture_source.h"

namespace imagenet {

struct Written {
  int64_t pictures = 0, skipped = 0;
};

// Writes the pictures of a list, resized to size x size pixels, to `file`, which ends in ".npy":
// uint8 (n, size, size, 3), and their labels, int32 (n), to the file named by labels_of(). Pictures
// that do not decode are named and left out; IoError when none is left, or where a file cannot be
// written. Needs memory for a few hundred pictures, and `threads` threads.
Written write_records(const std::vector<examples::LabelledPath>& list, const std::string& file,
                      int64_t size, int64_t threads);
// "train.labels.npy" for "train.npy".
std::string labels_of(const std::string& file);
// Reads pictures where they are asked for: the file is mapped, and must stay as it is. IoError and
// ShapeError for files that write_records() has not written.
std::shared_ptr<const examples::Source> open_records(const std::string& file);

}  // namespace imagenet
