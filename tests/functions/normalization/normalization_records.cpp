// Records of normalizations.
#include <algorithm>
#include <cmath>

#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;

// The number at a channel of axis 1 of x.
int64_t channel(const Shape& index) { return index[1]; }

// Sums over everything but the channels of f(index).
std::vector<double> channel_means(const Plain& x, const std::function<double(const Shape&)>& f) {
  std::vector<double> means(size_t(x.shape[1]), 0.0);
  const double count = double(x.values.size()) / double(x.shape[1]);
  plain(x.shape, [&](const Shape& i) {
    means[size_t(channel(i))] += f(i) / count;
    return 0.0;
  });
  return means;
}

struct Statistics {
  std::vector<double> mean, var;
};
Statistics statistics_of(const Plain& x) {
  Statistics s;
  s.mean = channel_means(x, [&](const Shape& i) { return x.at(i); });
  s.var = channel_means(x, [&](const Shape& i) {
    const double d = x.at(i) - s.mean[size_t(channel(i))];
    return d * d;
  });
  return s;
}

Plain normalized(const Plains& in, const Statistics& s) {
  return plain(in[0].shape, [&](const Shape& i) {
    const auto c = size_t(channel(i));
    return (in[0].at(i) - s.mean[c]) / std::sqrt(s.var[c] + kEps) * in[1].values[c] +
           in[2].values[c];
  });
}

const Shape kBatches[] = {{7, 3}, {3, 3, 5}, {4, 3, 2, 2}};

FunctionRecord batch_normalization_record() {
  FunctionRecord r;
  r.function = "batch_normalization";
  r.ranges = {{-2, 3}, {0.5, 2}, {-1, 1}};
  for (const Shape& x : kBatches) r.shapes.push_back({x, {3}, {3}});
  r.call = [](const Variables& v) {
    return Variables{F::batch_normalization(v[0], v[1], v[2], {.eps = kEps})};
  };
  r.reference = [](const Plains& in) { return Plains{normalized(in, statistics_of(in[0]))}; };
  r.forward_launches = r.backward_launches = 1;
  const auto call = [](Shape x, Shape gamma, Dtype dtype = Dtype::kFloat64) {
    return [=](const Draw& draw) {
      F::batch_normalization(draw(x, 0, 5, 0, dtype), draw(gamma), draw({3}));
    };
  };
  const std::string label = "BatchNormalization";
  r.errors = {
      type_error(label, call({2, 4, 5}, {3}),
                 "Expect: in_types[0].shape[1] == channels[0]\nActual: 4 != 3"),
      type_error(label, call({3}, {3}), "Expect: in_types[0].ndim >= 2\nActual: 1 < 2"),
      type_error(label, call({2, 3}, {3}, Dtype::kInt32),
                 "Expect: in_types[0].dtype.kind == f\nActual: i != f\nThe input is int32, the "
                 "layer float64: convert the input with .astype(dtype::float64)."),
      type_error(label, call({2, 4}, {4}),
                 "Expect: in_types[2].shape[0] == channels[0]\nActual: 3 != 4"),
      type_error(
          label,
          [](const Draw& draw) {
            F::batch_normalization(draw({4, 3, 2}), draw({3}), draw({3}),
                                   {.residual = Variable(draw({4, 3, 5}))});
          },
          "Expect: in_types[3].shape[2] == in_types[0].shape[2]\nActual: 5 != 2"),
  };
  return r;
}

// y = relu(normalized + residual).
FunctionRecord fused_record() {
  FunctionRecord r = batch_normalization_record();
  r.variant = "relu and residual";
  r.ranges.push_back({-2, 2});
  for (Shapes& shapes : r.shapes) shapes.push_back(shapes[0]);
  r.call = [](const Variables& v) {
    return Variables{
        F::batch_normalization(v[0], v[1], v[2], {.eps = kEps, .relu = true, .residual = v[3]})};
  };
  r.reference = [](const Plains& in) {
    Plain y = normalized(in, statistics_of(in[0]));
    for (size_t i = 0; i < y.values.size(); ++i)
      y.values[i] = std::max(y.values[i] + in[3].values[i], 0.0);
    return Plains{y};
  };
  r.errors.clear();
  return r;
}

FunctionRecord fixed_record() {
  FunctionRecord r;
  r.function = "fixed_batch_normalization";
  r.ranges = {{-2, 3}, {0.5, 2}, {-1, 1}, {-1, 1}, {0.5, 2}};
  r.ranges[3].at_least_float32 = r.ranges[4].at_least_float32 = true;
  for (const Shape& x : kBatches) r.shapes.push_back({x, {3}, {3}, {3}, {3}});
  r.shapes.push_back({{0, 3, 2}, {3}, {3}, {3}, {3}});
  r.call = [](const Variables& v) {
    return Variables{F::fixed_batch_normalization(v[0], v[1], v[2], v[3], v[4], {.eps = kEps})};
  };
  r.reference = [](const Plains& in) {
    return Plains{normalized(in, {in[3].values, in[4].values})};
  };
  r.forward_launches = 1;
  return r;
}

}  // namespace

FunctionRecords normalization_records() {
  return {batch_normalization_record(), fused_record(), fixed_record()};
}

}  // namespace catena
