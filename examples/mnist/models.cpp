#include "models.h"

#include "catena/autograd/autocast.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "catena/functions/pooling/max_pooling_2d.h"

namespace mnist {

Variable Mlp::operator()(const Variable& x) {
  return l3(dropout(F::relu(l2(dropout(F::relu(l1(x)))))));
}

Variable LeNet::operator()(const Variable& x) {
  Variable h = F::max_pooling_2d(F::relu(conv1(F::reshape(x, {-1, 1, 28, 28}))), 2);
  h = F::max_pooling_2d(F::relu(conv2(h)), 2);
  return l2(dropout(F::relu(l1(h))));
}

Variable ResidualBlock::operator()(const Variable& x) {
  const Variable h = conv2(bn1.relu(conv1(x)));
  return bn2.add_relu(h, shortcut.empty() ? x : shortcut[0](x));
}

Variable ResNet::operator()(const Variable& x) {
  Variable h = stem(F::reshape(x, {-1, 1, 28, 28}));
  h = bn.relu(h.dtype() == Dtype::kFloat32 ? h : F::channels_last(h));
  for (ResidualBlock& block : blocks) h = block(h);
  return classes(F::mean(h, {2, 3}));
}

Variable Network::operator()(const Variable& x) {
  const catena::AutocastScope autocast(low_);
  const Variable input = x.astype(dtype_);
  const Variable y = std::visit([&](auto& model) { return model(input); }, model_);
  return y.astype(Dtype::kFloat32);
}

}  // namespace mnist
