// The mean of many pictures.
#pragma once

#include <string>
#include <vector>

#include "catena/array/array.h"
#include "common/picture_list.h"

namespace imagenet {

struct Mean {
  catena::Array picture;  // float32 (3, size, size), from 0 to 255
  int64_t skipped = 0;    // pictures that did not decode
};

// The mean of the pictures of a list, each resized to size x size pixels. Pictures that do not
// decode are named and left out; IoError when none is left. Decodes on `threads` threads, with the
// same result for any number of them.
Mean mean_of(const std::vector<examples::LabelledPath>& list, int64_t size, int64_t threads);

}  // namespace imagenet
