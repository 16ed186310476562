// Data sets made of others: parts, several as one, changed samples. They share the data.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "catena/datasets/dataset.h"

namespace catena::datasets {

// The samples at these positions, in this order; a position may come several times. IndexError for
// positions outside the data set.
DatasetPtr subset(DatasetPtr data, std::vector<int64_t> positions);
// Disjoint parts of a random order, which the seed decides: fractions that add up to 1, or numbers
// of samples that add up to the data set's. random_split(data, {0.8, 0.2}, 1). ValueError
// otherwise.
std::vector<DatasetPtr> random_split(const DatasetPtr& data, const std::vector<double>& parts,
                                     uint64_t seed);
// One after the other. Columns must agree, if they have any (ValueError).
DatasetPtr concat(std::vector<DatasetPtr> parts);
// `change` of the arrays of each sample, made when the sample is asked for, by several threads at
// once: augmentation, tokens. What it refers to must live as long as the data set and whatever
// reads it, prefetching threads among them. The results may have any shape.
DatasetPtr map(DatasetPtr data, std::function<Arrays(const Arrays& sample)> change);

}  // namespace catena::datasets
