#include "functions/common/advice.h"

#include "catena/autograd/parameter.h"

namespace catena::functions {

std::string layer_label(const char* kind, const Variable& W) {
  const VariableNode* node = W.body()->node.get();
  if (node == nullptr || node->parameter == nullptr) return kind;
  return layer_label(kind, path_of(*node->parameter));
}

std::string layer_label(const char* kind, const std::string& path) {
  const size_t end = path.rfind('/');
  return end == std::string::npos ? kind : message(kind, " '", path.substr(0, end), "'");
}

namespace {

// "convert the input with .astype(dtype::float32)", and for floats also where others would come
// from.
std::string conversion(const char* what, Dtype from, Dtype to) {
  const std::string by_hand = message("convert ", what, " with .astype(dtype::", to, ")");
  if (!is_float(from)) return by_hand + ".";
  return message(by_hand, ", or make arrays of ", to, " by config().default_dtype = dtype::", to,
                 ".");
}

}  // namespace

std::string layer_dtype_advice(const Array& x, const Array& W) {
  if (x.dtype() == W.dtype()) return {};
  return message("The input is ", x.dtype(), ", the layer ", W.dtype(), ": ",
                 conversion("the input", x.dtype(), W.dtype()));
}

namespace {

// Of a layer that flattens, or would have to.
std::string flattening_advice(const Array& x, const Array& W, bool flatten) {
  const int64_t in = W.shape()[1];
  if (flatten) {
    const std::string takes = message("The layer takes (n, ", in, "), n samples of ", in,
                                      " numbers each; the input has shape ", x.shape());
    if (x.ndim() == 1 && x.size() == in) return takes + ": one sample is x.reshape({1, -1}).";
    return takes + ".";
  }
  const std::string takes =
      message("The layer takes (..., ", in, "), ", in,
              " numbers along the last axis; the input has shape ", x.shape(), ".");
  if (x.ndim() <= 2 || x.shape()[0] == 0 || x.size() != x.shape()[0] * in) return takes;
  return message(takes, " Behind its first axis it has ", in,
                 " numbers: a layer flattens them with LinearOptions{.flatten = true}, by hand it "
                 "is x.reshape({",
                 x.shape()[0], ", ", in, "}).");
}

}  // namespace

std::string layer_advice(const Array& x, const Array& W, bool flatten) {
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  if (W.ndim() != 2) return "The weights W are expected as (out, in), a matrix.";
  return flattening_advice(x, W, flatten);
}

std::string bias_advice(const Array& b, const Array& W) {
  if (b.dtype() != W.dtype())
    return message("The bias is ", b.dtype(), ", the weights ", W.dtype(), ": ",
                   conversion("the bias", b.dtype(), W.dtype()));
  return message("The bias has one number for each of the ", W.shape()[0], " outputs of W, shape ",
                 Shape{W.shape()[0]}, "; b has shape ", b.shape(), ".");
}

std::string dtype_advice(const Array& x0, const Array& x1) {
  if (x0.dtype() == x1.dtype() || !is_float(x0.dtype()) || !is_float(x1.dtype())) return {};
  const bool first_is_wide = x0.dtype() == Dtype::kFloat64;
  const Array &from = first_is_wide ? x0 : x1, &to = first_is_wide ? x1 : x0;
  return message(
      "The inputs are ", x0.dtype(), " and ", x1.dtype(), ": ",
      conversion(message("the ", from.dtype(), " one").c_str(), from.dtype(), to.dtype()));
}

namespace {

std::string label_hint(const char* usage, const Array& x, const Array& t) {
  if (is_int(x.dtype()) && is_float(t.dtype()))
    return message(" The arguments look swapped: it is ", usage, ".");
  if (t.shape() == x.shape() && x.ndim() >= 2)
    return " One-hot labels become numbers by argmax(t, 1).";
  if (t.dtype() != Dtype::kInt32 && t.dtype() != Dtype::kInt64)
    return " Convert the labels with .astype(dtype::int32).";
  if (x.ndim() >= 1 && t.ndim() == 2 && t.shape()[1] == 1 && t.shape()[0] == x.shape()[0])
    return " Drop the last axis of the labels with t.reshape({-1}).";
  return {};
}

}  // namespace

std::string label_advice(const char* usage, const Array& x, const Array& t) {
  if (!is_float(x.dtype()) || x.ndim() < 2)
    return "Expected are floating scores (n, classes) and class numbers (n) in int32 or int64." +
           label_hint(usage, x, t);
  Shape labels = x.shape();
  labels.erase(labels.begin() + 1);
  return message("Expected as labels are class numbers of 0 to ", x.shape()[1] - 1,
                 " in int32 or int64, of shape ", labels, ".", label_hint(usage, x, t));
}

}  // namespace catena::functions
