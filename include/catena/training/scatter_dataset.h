// Data sets over ranks: one divided, one for all, one without arrays.
//
// A job that reads one data set on all ranks needs none of these: give the iterator
// datasets::RankOf{comm->rank(), comm->size()}, and each rank gets its part of every batch.
// scatter_dataset is for data that one rank has, and for ranks that go through their own parts
// (PartIterator).
#pragma once

#include <cstdint>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/datasets/dataset.h"

namespace catena::training {

// How a data set is divided.
struct ScatterOptions {
  bool shuffle = false;  // the order that is cut: 0, 1, 2, ..., or a permutation by the seed
  uint64_t seed = 0;
  // The part of every rank is as long as the longest: some samples are then on two ranks.
  bool equal_length = false;
  int root = 0;  // the rank that has the samples, where the others do not
};

// The positions of this rank among `samples`. Lengths differ by at most one; parts are disjoint and
// complete unless equal_length. Collective: ValueError on all ranks unless the numbers and options
// are equal, or with equal_length when there are no samples. Null communicator: one rank.
std::vector<int64_t> scatter_index(int64_t samples, const CommunicatorPtr& comm,
                                   const ScatterOptions& options = {});

// This rank's part of a data set. Where all ranks have it, they only compare its size, and the part
// is a view (datasets::subset). Where only the root has it and the others pass null, the samples
// themselves are sent: rows of columns in the form of their batches (images as float32), samples of
// any shape one by one. Collective: ValueError on all ranks when the root has none, or sizes or
// options differ. Null communicator: the whole, shuffled if asked.
datasets::DatasetPtr scatter_dataset(const datasets::DatasetPtr& data, const CommunicatorPtr& comm,
                                     const ScatterOptions& options = {});

// The root's data set on every rank, as above; the others' is ignored and may be null.
datasets::DatasetPtr broadcast_dataset(const datasets::DatasetPtr& data,
                                       const CommunicatorPtr& comm, int root = 0);

// As many samples, each without arrays: for ranks of a model-parallel program that read no data but
// go through as many batches as the others. ValueError for a null data set, or a negative number.
datasets::DatasetPtr create_empty_dataset(const datasets::DatasetPtr& data);
datasets::DatasetPtr create_empty_dataset(int64_t samples);

}  // namespace catena::training
