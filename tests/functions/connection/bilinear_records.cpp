// Records of bilinear.

#include "catena/functions/connection/bilinear.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord without_bias() {
  FunctionRecord r;
  r.function = "bilinear";
  r.variant = "without bias";
  r.ranges = {{}, {}, {}};
  r.shapes = {{{4, 3}, {4, 2}, {3, 2, 5}},
              {{3, 2, 2}, {3, 3, 1, 2}, {4, 6, 2}},
              {{0, 3}, {0, 2}, {3, 2, 5}}};
  r.call = [](const Variables& v) { return Variables{F::bilinear(v[0], v[1], v[2])}; };
  const std::string inputs = "\nInputs: e1 float64 (4, 3), e2 float64 (4, 2), W float64 (3, 1, 5)";
  r.errors = {
      type_error("Bilinear", {{4, 3}, {4, 2}, {3, 1, 5}},
                 "Expect: prod(e2.shape[1:]) == W.shape[1]\nActual: 2 != 1" + inputs),
      type_error("Bilinear", {{4, 3}, {2, 2}, {3, 2, 5}},
                 "Expect: e1.shape[0] == e2.shape[0]\nActual: 4 != 2\nInputs: e1 float64 (4, 3), "
                 "e2 float64 (2, 2), W float64 (3, 2, 5)"),
      type_error("Bilinear", {{4}, {4, 2}, {3, 2, 5}},
                 "Expect: e1.ndim >= 2\nActual: 1 < 2\nInputs: e1 float64 (4,), e2 float64 (4, 2), "
                 "W float64 (3, 2, 5)"),
  };
  return r;
}

FunctionRecord with_bias() {
  FunctionRecord r;
  r.function = "bilinear";
  r.variant = "V1, V2 and b";
  r.ranges = {{}, {}, {}, {}, {}, {}};
  r.shapes = {{{4, 3}, {4, 2}, {3, 2, 5}, {3, 5}, {2, 5}, {5}},
              {{2, 2, 2}, {2, 1, 3}, {4, 3, 1}, {4, 1}, {3, 1}, {1}}};
  r.call = [](const Variables& v) {
    return Variables{F::bilinear(v[0], v[1], v[2], v[3], v[4], v[5])};
  };
  r.errors = {
      type_error("Bilinear", {{4, 3}, {4, 2}, {3, 2, 5}, {3, 5}, {2, 4}, {5}},
                 "Expect: V2.shape[1] == W.shape[2]\nActual: 4 != 5\nInputs: W float64 (3, 2, 5), "
                 "V1 float64 (3, 5), V2 float64 (2, 4), b float64 (5,)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(bilinear) { return {without_bias(), with_bias()}; }

}  // namespace catena
