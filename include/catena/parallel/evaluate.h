// Averages over a data set that is spread over batches and ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Sums numerators and counts, so that the result is the mean over samples whatever the sizes of
// batches and shards (a mean of means is not).
//
//   MeanOverSamples test;
//   for (...) test.add("loss", loss.data(), n);
//   double loss = test.result(*comm).at("loss");
class MeanOverSamples {
 public:
  // `mean` is the mean over n samples. The array form (one element) stays on its device and does
  // not wait for it. n = 0 adds nothing, whatever the mean.
  void add(const std::string& name, double mean, int64_t n);
  void add(const std::string& name, const Array& mean, int64_t n);
  // Means over everything added here; not a number where nothing was counted.
  std::map<std::string, double> result() const;
  // Means over everything added on all ranks, the same on each. All ranks must call it; a rank may
  // have added nothing. Summed in order of rank.
  std::map<std::string, double> result(Communicator& comm) const;
  void clear() { sums_.clear(); }

 private:
  struct Sum {
    double host = 0;
    Array device;  // 0-d float64
    int64_t count = 0;
  };
  NamedArrays totals() const;  // name -> [sum, count]
  std::map<std::string, Sum> sums_;
};

}  // namespace catena::parallel
