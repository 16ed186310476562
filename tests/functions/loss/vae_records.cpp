// Records of the losses of variational auto-encoders and of cross_covariance.
#include "catena/functions/loss/cross_covariance.h"
#include "catena/functions/loss/vae.h"
#include "functions/loss/reductions.h"

namespace catena {
namespace {

FunctionRecord vae_record(const char* function, F::Reduction reduction, size_t operands,
                          std::function<Variable(const Variables&)> call) {
  FunctionRecord r;
  r.function = function;
  r.variant = name_of(reduction);
  r.ranges = {operands, InputRange{-2, 2}};
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 2, 3}, Shape{0, 3}, Shape{}})
    r.shapes.push_back(Shapes(operands, shape));
  r.call = [=](const Variables& v) { return Variables{call(v)}; };
  r.error = 1e-4;  // sums of 12 numbers near 4
  return r;
}

FunctionRecord kl_record(F::Reduction reduction) {
  return vae_record("gaussian_kl_divergence", reduction, 2, [=](const Variables& v) {
    return reduction == F::Reduction::kSum ? F::gaussian_kl_divergence(v[0], v[1])
                                           : F::gaussian_kl_divergence(v[0], v[1], reduction);
  });
}

FunctionRecord bernoulli_record(F::Reduction reduction) {
  FunctionRecord r = vae_record("bernoulli_nll", reduction, 2, [=](const Variables& v) {
    return reduction == F::Reduction::kSum ? F::bernoulli_nll(v[0], v[1])
                                           : F::bernoulli_nll(v[0], v[1], reduction);
  });
  r.ranges[0] = {0, 1};
  return r;
}

FunctionRecord gaussian_record(F::Reduction reduction) {
  return vae_record("gaussian_nll", reduction, 3, [=](const Variables& v) {
    return reduction == F::Reduction::kSum ? F::gaussian_nll(v[0], v[1], v[2])
                                           : F::gaussian_nll(v[0], v[1], v[2], reduction);
  });
}

FunctionRecord vae_errors() {
  FunctionRecord r = kl_record(F::Reduction::kSum);
  r.variant = "errors";
  r.shapes = {{{4, 3}, {4, 3}}};
  const std::string expected = "\nExpected are arrays of one floating dtype and shape.";
  r.errors = {
      type_error(
          "GaussianKLDivergence", {{2, 3}, {2, 4}},
          "Expect: ln_var.shape[1] == mean.shape[1]\nActual: 4 != 3\nInputs: mean float64 (2, 3), "
          "ln_var float64 (2, 4)" +
              expected),
      type_error(
          "BernoulliNLL",
          [](const Draw& draw) {
            F::bernoulli_nll(draw.labels({0, 1}, {2}), draw({2}));
          },
          "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2,), y float64 (2,)" +
              expected),
      type_error(
          "GaussianNLL",
          [](const Draw& draw) {
            F::gaussian_nll(draw({2}), draw({2}), draw({2, 1}));
          },
          "Expect: ln_var.ndim == x.ndim\nActual: 2 != 1\nInputs: x float64 (2,), ln_var float64 "
          "(2, 1)" +
              expected),
      error<ValueError>([](const Draw& draw) { F::bernoulli_nll(0.5, draw({2})); },
                        "BernoulliNLL: expected a variable or an array, got a number"),
  };
  return r;
}

FunctionRecord cross_covariance_record() {
  FunctionRecord r;
  r.function = "cross_covariance";
  r.ranges = {{-2, 2}, {-2, 2}};
  r.shapes = {{{5, 3}, {5, 2}}, {{1, 3}, {1, 2}}, {{0, 3}, {0, 2}}, {{4, 0}, {4, 2}}};
  r.call = binary([](const Variable& y, const Variable& z) { return F::cross_covariance(y, z); });
  r.errors = {
      type_error(
          "CrossCovariance", {{2, 3}, {3, 3}},
          "Expect: y.shape[0] == z.shape[0]\nActual: 2 != 3\nInputs: y float64 (2, 3), z float64 "
          "(3, 3)\nExpected are (n, j) and (n, k), of one floating dtype."),
      type_error(
          "CrossCovariance", {{2}, {2, 3}},
          "Expect: y.ndim == 2\nActual: 1 != 2\nInputs: y float64 (2,), z float64 (2, 3)\nExpected "
          "are (n, j) and (n, k), of one floating dtype."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(vae) {
  FunctionRecords records{vae_errors(), cross_covariance_record()};
  for (const F::Reduction reduction :
       {F::Reduction::kSum, F::Reduction::kMean, F::Reduction::kNone}) {
    records.push_back(kl_record(reduction));
    records.push_back(bernoulli_record(reduction));
    records.push_back(gaussian_record(reduction));
  }
  return records;
}

}  // namespace catena
