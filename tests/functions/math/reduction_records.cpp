// Records of reductions that are more than a sum, and of running sums.
#include <limits>

#include "catena/functions/math/cumsum.h"
#include "catena/functions/math/logsumexp.h"
#include "catena/functions/math/moments.h"
#include "catena/functions/math/norm.h"
#include "catena/functions/math/prod.h"
#include "functions/function_record.h"

namespace catena {
namespace {

struct Kind {
  const char *function, *label, *variant;
  std::function<Variable(const Variable&, const ReduceAxes&, bool)> call;
  std::function<double(const Numbers&)> reference;
  std::vector<Shapes> more = {};
};

double unbiased(const Numbers& x) {
  return variance_of(x) * double(x.size()) / (double(x.size()) - 1);
}
std::function<double(const Numbers&)> p_norm(double p) {
  return [p](const Numbers& x) {
    double total = 0;
    for (const double v : x) total += std::pow(std::abs(v), p);
    return std::pow(total, 1 / p);
  };
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Kind> kinds() {
  return {
      {"logsumexp",
       "LogSumExp",
       "",
       [](const Variable& x, const ReduceAxes& axes, bool keep) {
         return F::logsumexp(x, axes, keep);
       },
       [](const Numbers& x) {
         double total = 0;
         for (const double v : x) total += std::exp(v);
         return std::log(total);
       },
       {{{0, 3, 2}}}},
      {"var", "Var", "",
       [](const Variable& x, const ReduceAxes& axes, bool keep) { return F::var(x, axes, keep); },
       variance_of},
      {"var", "Var", "unbiased",
       [](const Variable& x, const ReduceAxes& axes, bool keep) {
         return F::var(x, axes, keep, 1);
       },
       unbiased},
      {"std", "Std", "",
       [](const Variable& x, const ReduceAxes& axes, bool keep) { return F::std(x, axes, keep); },
       [](const Numbers& x) { return std::sqrt(variance_of(x)); }},
      {"norm",
       "Norm",
       "2",
       [](const Variable& x, const ReduceAxes& axes, bool keep) { return F::norm(x, axes, keep); },
       p_norm(2),
       {{{0, 3, 2}}}},
      {"norm", "Norm", "1",
       [](const Variable& x, const ReduceAxes& axes, bool keep) {
         return F::norm(x, axes, keep, 1);
       },
       p_norm(1)},
      {"norm", "Norm", "3",
       [](const Variable& x, const ReduceAxes& axes, bool keep) {
         return F::norm(x, axes, keep, 3);
       },
       p_norm(3)},
      {"norm", "Norm", "infinity",
       [](const Variable& x, const ReduceAxes& axes, bool keep) {
         return F::norm(x, axes, keep, kInfinity);
       },
       [](const Numbers& x) {
         double most = 0;
         for (const double v : x) most = std::max(most, std::abs(v));
         return most;
       }},
      {"prod",
       "Prod",
       "",
       [](const Variable& x, const ReduceAxes& axes, bool keep) { return F::prod(x, axes, keep); },
       [](const Numbers& x) {
         double product = 1;
         for (const double v : x) product *= v;
         return product;
       },
       {{{}}, {{0, 3, 2}}}},
  };
}

FunctionRecord kind_record(const Kind& f, const Axes& axes, bool keepdims) {
  FunctionRecord r;
  r.function = f.function;
  r.variant = message(f.variant, " axes ", axes, keepdims ? ", kept" : "");
  r.shapes = {{{3, 4, 2}}};
  r.shapes.insert(r.shapes.end(), f.more.begin(), f.more.end());
  if (!axes.empty())
    std::erase_if(r.shapes, [](const Shapes& shapes) { return shapes[0].empty(); });
  r.call = unary([=](const Variable& x) { return f.call(x, axes, keepdims); });
  r.reference = [=](const Plains& in) {
    return Plains{over_axes(in[0], axes, keepdims, f.reference)};
  };
  r.errors = {
      error<IndexError>(
          [=](const Draw& draw) {
            f.call(draw({4, 3}), 2, false);
          },
          message(f.label,
                  ": x has 2 axes, 0 to 1, "
                  "or -2 to -1 from the end; the axis given is 2.")),
      integers_refused(f.label, {4, 3, 2}),
  };
  return r;
}

FunctionRecord cumsum_record(std::optional<int64_t> axis, Shapes shapes) {
  FunctionRecord r;
  r.function = "cumsum";
  r.variant = axis ? message("axis ", *axis) : "flattened";
  for (const Shape& shape : shapes) r.shapes.push_back({shape});
  r.call = unary([=](const Variable& x) { return F::cumsum(x, axis); });
  r.reference = [=](const Plains& in) {
    Plain x = in[0];
    if (!axis) x.shape = {int64_t(x.values.size())};
    const auto a = axis ? place_of(*axis, x.shape) : 0;
    return Plains{plain(x.shape, [&](Shape i) {
      double total = 0;
      for (; i[a] >= 0; --i[a]) total += x.at(i);
      return total;
    })};
  };
  r.forward_launches = 1;
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(reduction) {
  FunctionRecords records{cumsum_record({}, {{2, 3}, {}}), cumsum_record(0, {{3, 2}, {0, 2}}),
                          cumsum_record(-1, {{3, 4}, {2, 3, 2}})};
  for (const Kind& f : kinds()) {
    for (const Axes& axes : {Axes{}, Axes{1}, Axes{-1, 0}}) {
      for (const bool keepdims : {false, true}) records.push_back(kind_record(f, axes, keepdims));
    }
  }
  return records;
}

}  // namespace catena
