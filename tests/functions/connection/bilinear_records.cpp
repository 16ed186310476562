// Records of bilinear.

#include "catena/functions/connection/bilinear.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// e1 and e2 flattened: element j of row i.
double flat(const Plain& e, int64_t i, int64_t j) {
  return e.values[size_t(i * (int64_t(e.values.size()) / e.shape[0]) + j)];
}

Plains reference(const Plains& in) {
  const Plain &e1 = in[0], &e2 = in[1], &W = in[2];
  const int64_t n = e1.shape[0], J = W.shape[0], K = W.shape[1], L = W.shape[2];
  return {plain({n, L}, [&](const Shape& at) {
    const int64_t i = at[0], l = at[1];
    double y = in.size() > 3 ? in[5](l) : 0;
    for (int64_t j = 0; j < J; ++j) {
      for (int64_t k = 0; k < K; ++k) y += flat(e1, i, j) * flat(e2, i, k) * W(j, k, l);
      if (in.size() > 3) y += flat(e1, i, j) * in[3](j, l);
    }
    for (int64_t k = 0; in.size() > 3 && k < K; ++k) y += flat(e2, i, k) * in[4](k, l);
    return y;
  })};
}

FunctionRecord without_bias() {
  FunctionRecord r;
  r.function = "bilinear";
  r.variant = "without bias";
  r.ranges = {{}, {}, {}};
  r.shapes = {{{4, 3}, {4, 2}, {3, 2, 5}},
              {{3, 2, 2}, {3, 3, 1, 2}, {4, 6, 2}},
              {{0, 3}, {0, 2}, {3, 2, 5}}};
  r.call = [](const Variables& v) { return Variables{F::bilinear(v[0], v[1], v[2])}; };
  r.reference = reference;
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
  r.reference = reference;
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
