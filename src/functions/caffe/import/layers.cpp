// Makers of the layers without weights, but pooling and normalization.
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "functions/caffe/import/builder.h"

namespace catena::functions::caffe {
namespace {

// `axis`, or the number that older files have instead of it.
struct AxisOption {
  int64_t axis = 1, older = 1;
  Axis value() const { return int(axis == 1 ? older : axis); }
};

}  // namespace

Step make_concat(Builder& b) {
  AxisOption axis;
  b.source.each_option([&](Message& m) {
    m.read(1, axis.older);
    m.read(2, axis.axis);
  });
  return [axis = axis.value()](const LayerCall& call) {
    return Variables{concat(call.bottoms, axis)};
  };
}

Step make_slice(Builder& b) {
  AxisOption axis;
  std::vector<int64_t> points;
  b.source.each_option([&](Message& m) {
    m.read(1, axis.older);
    m.read(2, points);
    m.read(3, axis.axis);
  });
  const int64_t parts = int64_t(b.source.tops.size());
  if (!points.empty() && int64_t(points.size()) != parts - 1)
    b.source.refuse("it has ", points.size(), " slice points and ", parts, " tops");
  return [axis = axis.value(), positions = Axes(points.begin(), points.end()),
          parts](const LayerCall& call) {
    const Variable& x = call.bottoms[0];
    return positions.empty() ? split_axis(x, parts, axis) : split_axis(x, positions, axis);
  };
}

Step make_split(Builder& b) {
  return [tops = b.source.tops.size()](const LayerCall& call) {
    return Variables(tops, call.bottoms[0]);
  };
}

Step make_dropout(Builder& b) {
  double ratio = 0.5;
  b.source.each_option([&](Message& m) { m.read(1, ratio); });
  if (!(ratio >= 0 && ratio < 1))
    b.source.refuse("its dropout_ratio is ", ratio, ", expected is one of [0, 1)");
  return [ratio](const LayerCall& call) {
    return Variables{dropout(call.bottoms[0], ratio, call.train)};
  };
}

Step make_eltwise(Builder& b) {
  enum : int64_t { kProduct = 0, kSum = 1, kMaximum = 2 };
  int64_t operation = kSum;
  std::vector<float> factors;
  b.source.each_option([&](Message& m) {
    m.read(1, operation);
    if (m.field() != 2) return;
    const std::string_view values = m.floats(4);
    const size_t before = factors.size();
    factors.resize(before + values.size() / 4);
    std::copy(values.begin(), values.end(), reinterpret_cast<char*>(factors.data() + before));
  });
  if (operation < kProduct || operation > kMaximum)
    b.source.refuse("its operation ", operation, " is not known");
  const size_t bottoms = b.source.bottoms.size();
  if (!factors.empty() && (factors.size() != bottoms || operation != kSum))
    b.source.refuse("it has ", factors.size(), " factors for ", bottoms,
                    " bottoms; expected is one for each term of a sum");
  return [operation, factors](const LayerCall& call) {
    Variable result;
    for (size_t i = 0; i < call.bottoms.size(); ++i) {
      const Variable& x = call.bottoms[i];
      const bool scales = !factors.empty() && factors[i] != 1;
      const Variable term = scales ? x * factors[i] : x;
      result = i == 0                  ? term
               : operation == kSum     ? result + term
               : operation == kProduct ? result * term
                                       : maximum(result, term);
    }
    return Variables{result};
  };
}

Step make_relu(Builder& b) {
  double slope = 0;
  b.source.each_option([&](Message& m) { m.read(1, slope); });
  if (slope == 0) return step([](const Variable& x) { return relu(x); });
  return step([slope](const Variable& x) { return leaky_relu(x, slope); });
}

Step make_sigmoid(Builder&) {
  return step([](const Variable& x) { return sigmoid(x); });
}

Step make_tanh(Builder&) {
  return step([](const Variable& x) { return tanh(x); });
}

namespace {

int64_t softmax_axis(const LayerSource& source) {
  int64_t axis = 1;
  source.each_option([&](Message& m) { m.read(2, axis); });
  return axis;
}

// LossParameter, in a field of its own beside the options of the softmax.
SoftmaxCrossEntropyOptions loss_options(const LayerSource& source) {
  constexpr uint32_t kOptions = 125, kLoss = 101, kLossV1 = 42;
  const uint32_t field = source.options == kOptions ? kLoss : kLossV1;
  enum : int64_t { kFull, kValid, kBatchSize, kNone };
  SoftmaxCrossEntropyOptions o;
  bool ignores = false;
  int64_t divisor = kValid;
  for (const auto& [number, bytes] : source.messages) {
    if (number != field) continue;
    for (Message m(*source.file, bytes); m.next();) {
      if (m.field() == 1) o.ignore_label = int32_t(m.integer()), ignores = true;
      if (m.field() == 2) divisor = m.integer() != 0 ? kValid : kBatchSize;
      m.read(3, divisor);
    }
  }
  if (divisor == kFull && ignores) source.refuse("a mean over ignored labels as well");
  if (divisor < kFull || divisor > kNone) source.refuse("normalization ", divisor);
  o.normalize = divisor != kBatchSize;
  if (divisor == kNone) o.reduction = Reduction::kSum;
  return o;
}

}  // namespace

Step make_softmax(Builder& b) {
  return step([axis = int(softmax_axis(b.source))](const Variable& x) { return softmax(x, axis); });
}

Step make_softmax_with_loss(Builder& b) {
  if (softmax_axis(b.source) != 1) b.source.refuse("a loss along another axis than 1");
  return [tops = b.source.tops.size(), options = loss_options(b.source)](const LayerCall& call) {
    Variables results{softmax_cross_entropy(call.bottoms[0], call.bottoms[1], options)};
    if (tops > 1) results.push_back(softmax(call.bottoms[0]));
    return results;
  };
}

}  // namespace catena::functions::caffe
