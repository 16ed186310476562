#include "catena/functions/connection/inception.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"

namespace catena::functions {
namespace {

constexpr int64_t kPoolWindow = 3;
constexpr const char* kWithNormalization = "InceptionBN";

// What all layers of a block start from. ValueError for an array.
const InitialValue& for_all(const char* layer, const char* option, const InitialValue& given) {
  CATENA_CHECK(ValueError, !given.array(), layer, ": ", option,
               " is an array, but the layers have different shapes; give an initializer, or assign "
               "to the parameters of a layer");
  return given;
}

Convolution2DOptions with_bias(const InceptionOptions& o, int64_t pad = 0) {
  return {.pad = pad,
          .initialW = for_all("Inception", "conv_init", o.conv_init),
          .initial_bias = for_all("Inception", "bias_init", o.bias_init),
          .dtype = o.dtype};
}

Convolution2DOptions without_bias(const InceptionBNOptions& o, int64_t pad, int64_t stride = 1) {
  return {.stride = stride,
          .pad = pad,
          .nobias = true,
          .initialW = for_all(kWithNormalization, "conv_init", o.conv_init),
          .dtype = o.dtype};
}

BatchNormalizationOptions normalization(const InceptionBNOptions& o) {
  return {.dtype = o.dtype,
          .initial_gamma = for_all(kWithNormalization, "initial_gamma", o.initial_gamma),
          .initial_beta = for_all(kWithNormalization, "initial_beta", o.initial_beta)};
}

// Whether the pooling takes averages; refuses what does not go together.
bool takes_average(const std::string& pooltype, int64_t out1,
                   const std::optional<int64_t>& proj_pool, int64_t stride) {
  CATENA_CHECK(ValueError, pooltype == "max" || pooltype == "avg",
               "InceptionBN: expected the pooltype \"max\" or \"avg\", got \"", pooltype, "\"");
  CATENA_CHECK(ValueError, out1 >= 0, "InceptionBN: expected out1 of at least 0, got ", out1);
  CATENA_CHECK(ValueError, out1 == 0 || (stride == 1 && proj_pool), "InceptionBN: out1 is ", out1,
               ", which wants stride 1 and proj_pool; got stride ", stride,
               proj_pool ? "" : " and no proj_pool", "; out1 0 leaves that path out");
  return pooltype == "avg";
}

}  // namespace

Inception::Inception(int64_t in_channels, int64_t out1, int64_t proj3, int64_t out3, int64_t proj5,
                     int64_t out5, int64_t proj_pool, const InceptionOptions& options)
    : conv1(in_channels, out1, 1, with_bias(options)),
      proj3(in_channels, proj3, 1, with_bias(options)),
      conv3(proj3, out3, 3, with_bias(options, 1)),
      proj5(in_channels, proj5, 1, with_bias(options)),
      conv5(proj5, out5, 5, with_bias(options, 2)),
      projp(in_channels, proj_pool, 1, with_bias(options)) {}

Variable Inception::operator()(const VariableOperand& operand) const {
  const Variable& x = operand.variable("Inception");
  const Variable pooled =
      max_pooling_2d(x, kPoolWindow, {.stride = Extent2D(1), .pad = kPoolWindow / 2});
  return relu(concat({conv1(x), conv3(relu(proj3(x))), conv5(relu(proj5(x))), projp(pooled)}));
}

InceptionBN::InceptionBN(int64_t in_channels, int64_t out1, int64_t proj3, int64_t out3,
                         int64_t proj33, int64_t out33, const std::string& pooltype,
                         std::optional<int64_t> proj_pool, int64_t stride,
                         const InceptionBNOptions& options)
    : proj3(in_channels, proj3, 1, without_bias(options, 0)),
      conv3(proj3, out3, 3, without_bias(options, 1, stride)),
      proj33(in_channels, proj33, 1, without_bias(options, 0)),
      conv33a(proj33, out33, 3, without_bias(options, 1)),
      conv33b(out33, out33, 3, without_bias(options, 1, stride)),
      proj3n(proj3, normalization(options)),
      conv3n(out3, normalization(options)),
      proj33n(proj33, normalization(options)),
      conv33an(out33, normalization(options)),
      conv33bn(out33, normalization(options)),
      stride_(stride),
      takes_average_(takes_average(pooltype, out1, proj_pool, stride)) {
  if (out1 > 0) {
    conv1.emplace(in_channels, out1, 1, without_bias(options, 0, stride));
    conv1n.emplace(out1, normalization(options));
  }
  if (proj_pool) {
    poolp.emplace(in_channels, *proj_pool, 1, without_bias(options, 0));
    poolpn.emplace(*proj_pool, normalization(options));
  }
}

Variable InceptionBN::pooled(const Variable& x) const {
  const Extent2D stride = stride_;
  if (takes_average_)
    return average_pooling_2d(x, kPoolWindow, {.stride = stride, .pad = kPoolWindow / 2});
  return max_pooling_2d(x, kPoolWindow, {.stride = stride, .pad = kPoolWindow / 2});
}

Variable InceptionBN::operator()(const VariableOperand& operand, std::optional<YesNo> train) const {
  const Variable& x = operand.variable("InceptionBN");
  Variables paths;
  if (conv1) paths.push_back(conv1n->relu((*conv1)(x), train));
  paths.push_back(conv3n.relu(conv3(proj3n.relu(proj3(x), train)), train));
  const Variable inner = conv33an.relu(conv33a(proj33n.relu(proj33(x), train)), train);
  paths.push_back(conv33bn.relu(conv33b(inner), train));
  const Variable pool = pooled(x);
  paths.push_back(poolp ? poolpn->relu((*poolp)(pool), train) : pool);
  return concat(paths);
}

}  // namespace catena::functions
