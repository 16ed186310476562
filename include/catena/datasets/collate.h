// Functions that make the arrays of a batch from its samples.
#pragma once

#include <vector>

#include "catena/datasets/dataset.h"

namespace catena::datasets {

// One array for each array of a sample, (samples, ...): the default. ShapeError that names the
// sample when they differ in shape, DtypeError in dtype, ValueError in number.
Arrays stack_samples(const std::vector<Arrays>& samples);

// How pad_samples fills up.
struct PadOptions {
  double value = 0;     // of what is added behind the elements; ValueError where a dtype lacks it
  bool lengths = true;  // whether the lengths of the first arrays come last, int64 (samples)
};
// The same for arrays of one number of dimensions whose extents differ, sequences above all: each
// is as large as the largest of its batch. A mask of the steps that are there is
// `expand_dims(lengths, 1) > arange(x.shape()[1])`.
//
//   PrefetchIterator batches(data, order, device, {}, {.collate = datasets::pad_samples()});
Collate pad_samples(const PadOptions& options = {});

namespace detail {
struct PadSamples {
  PadOptions options;
  Arrays operator()(const std::vector<Arrays>& samples) const;
};
}  // namespace detail

}  // namespace catena::datasets
