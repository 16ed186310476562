// The mean that a model of Caffe expects to be subtracted from its pictures.
#pragma once

#include <string>

#include "catena/array/array.h"

namespace modelzoo {

constexpr int64_t kSize = 256;  // pictures are made that high and wide before they are cropped

// The mean as float32 (3, kSize, kSize), from 0 to 255, in Caffe's order of channels: blue, green,
// red. `text` is three numbers, "104,117,123", or the name of a .npy file of shape (3),
// (3, kSize, kSize), or (3, insize, insize), which is the mean of the crops in the middle.
// IoError for a file that cannot be read, ShapeError for one of another shape, ValueError for other
// texts.
catena::Array load_mean(const std::string& text, int64_t insize);

}  // namespace modelzoo
