// NumberSums: the numbers of several passes added up on their devices.
#pragma once

#include "catena/training/evaluator.h"

namespace catena::training {

// Each number counts by what it declares to have divided by (mean.h), else by its share, and so do
// the terms of sums of several means.
class NumberSums {
 public:
  // Zeros, in memory that stays, as graphs want it: of numbers like these, in float64 if they
  // declare what they counted, else in float32. Without this, sums have the dtype of the numbers.
  void begin(const Numbers& like);
  // ValueError for another number of them than before.
  void add(const Numbers& numbers, double share = 1);
  // The means, given the sum of all shares; of nothing 0.
  Numbers means(double shares = 1) const;
  // Zeros again, after begin().
  void clear();
  bool empty() const { return sums_.empty(); }

 private:
  void add_to(Array& sum, const Array& part) const;
  void add_terms(const Numbers& numbers, double share, bool is_first);

  Numbers sums_;
  std::vector<NumberSums> terms_;  // of each number, empty for those that are no sums of means
  bool stays_ = false;             // the memory
};

}  // namespace catena::training
