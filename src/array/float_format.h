// The common format of the floats of an array, chosen as in NumPy.
#pragma once

#include <string>
#include <vector>

#include "catena/array/format.h"

namespace catena {

class FloatFormat {
 public:
  // `values` are the elements that will be printed, of dtype d.
  FloatFormat(const std::vector<double>& values, Dtype d, const PrintOptions& options);
  std::string operator()(double value) const;

 private:
  bool needs_exponent(const std::vector<double>& finite) const;
  void fit_scientific(const std::vector<double>& finite);
  void fit_positional(const std::vector<double>& finite);
  int unique_fraction(double value, bool scientific) const;
  std::string trimmed(double value, bool scientific) const;
  std::string not_finite(double value) const;
  std::string with_sign(std::string text) const;

  Dtype dtype_;
  const PrintOptions& options_;
  bool scientific_ = false;
  bool equal_fraction_ = false;  // all numbers get `fraction_` digits; otherwise blanks fill up
  size_t left_ = 0, right_ = 0;  // characters before and after the point
  int fraction_ = 0, exponent_digits_ = 2;
};

}  // namespace catena
