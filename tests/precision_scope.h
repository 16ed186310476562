// Another precision of products for a part of a test.
#pragma once

#include "catena/core/config.h"

namespace catena {

// While it lives, config().matmul_precision is `precision`.
class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision) : before_(config().matmul_precision) {
    config().matmul_precision = precision;
  }
  ~PrecisionScope() { config().matmul_precision = before_; }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  const Precision before_;
};

}  // namespace catena
