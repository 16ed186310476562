// The networks of the MNIST programs; models.cpp computes them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "options.h"

namespace mnist {

namespace F = catena::functions;
using catena::Dtype;
using catena::Variable;

// 784-N-N-10 with relu, and dropout behind it; N is 1000 by default.
struct Mlp : catena::FunctionSet {
  F::Linear l1, l2, l3;
  F::Dropout dropout;
  CATENA_FUNCTIONS(l1, l2, l3, dropout)
  explicit Mlp(const NetworkOptions& o)
      : l1(784, o.units, {.dtype = o.dtype}),
        l2(o.units, o.units, {.dtype = o.dtype}),
        l3(o.units, 10, {.dtype = o.dtype}),
        dropout(o.dropout) {}
  Variable operator()(const Variable& x);
};

// Two 5 x 5 convolutions, each with max pooling, and two linear layers, much as in LeNet-5 (Y.
// LeCun et al., Gradient-based learning applied to document recognition, 1998): 20 channels of 12 x
// 12, 50 of 4 x 4, then 500 numbers, with relu. 0.4 million weights.
struct LeNet : catena::FunctionSet {
  F::Convolution2D conv1, conv2;
  F::Linear l1, l2;
  F::Dropout dropout;
  CATENA_FUNCTIONS(conv1, conv2, l1, l2, dropout)
  explicit LeNet(const NetworkOptions& o)
      : conv1(1, 20, 5, {.dtype = o.dtype}),
        conv2(20, 50, 5, {.dtype = o.dtype}),
        l1(800, 500, {.dtype = o.dtype, .flatten = true}),
        l2(500, 10, {.dtype = o.dtype}),
        dropout(o.dropout) {}
  Variable operator()(const Variable& x);
};

// Two 3 x 3 convolutions beside a shortcut (K. He et al., Deep Residual Learning, CVPR 2016). Where
// the block changes the extents, a 1 x 1 convolution brings the shortcut to the same.
struct ResidualBlock : catena::FunctionSet {
  struct Projection : catena::FunctionSet {
    F::Convolution2D conv;
    F::BatchNormalization bn;
    CATENA_FUNCTIONS(conv, bn)
    Projection(int64_t in, int64_t out, int64_t stride, Dtype d)
        : conv(in, out, 1, {.stride = stride, .nobias = true, .dtype = d}), bn(out) {}
    Variable operator()(const Variable& x) { return bn(conv(x)); }
  };
  F::Convolution2D conv1, conv2;
  F::BatchNormalization bn1, bn2;
  std::vector<Projection> shortcut;  // one, or none: x itself
  CATENA_FUNCTIONS(conv1, bn1, conv2, bn2, shortcut)

  ResidualBlock(int64_t in, int64_t out, int64_t stride, Dtype d)
      : conv1(in, out, 3, {.stride = stride, .pad = 1, .nobias = true, .dtype = d}),
        conv2(out, out, 3, {.pad = 1, .nobias = true, .dtype = d}),
        bn1(out),
        bn2(out) {
    if (stride != 1 || in != out) shortcut.emplace_back(in, out, stride, d);
  }
  Variable operator()(const Variable& x);
};

// A residual network for images of 28 x 28: three stages of two blocks, with 32 channels at 28 x
// 28, 64 at 14 x 14 and 128 at 7 x 7, and the mean over each channel. 0.7 million weights. In
// bfloat16 the normalizations keep their numbers in float32, and the images have their channels
// last, on which 16-bit convolutions are fastest.
struct ResNet : catena::FunctionSet {
  F::Convolution2D stem;
  F::BatchNormalization bn{32};
  std::vector<ResidualBlock> blocks;
  F::Linear classes;
  CATENA_FUNCTIONS(stem, bn, blocks, classes)

  explicit ResNet(const NetworkOptions& o)
      : stem(1, 32, 3, {.pad = 1, .nobias = true, .dtype = o.dtype}),
        classes(128, 10, {.dtype = o.dtype}) {
    int64_t in = 32;
    for (const int64_t out : {32, 64, 128}) {
      blocks.emplace_back(in, out, out == in ? 1 : 2, o.dtype);
      blocks.emplace_back(out, out, 1, o.dtype);
      in = out;
    }
  }
  Variable operator()(const Variable& x);
};

// The network that --model names, as one type, so that programs are written once.
class Network : public catena::Parameterized {
 public:
  // With random weights of options.dtype, in which it computes. With `autocast` products and
  // convolutions of float32 weights compute in bfloat16.
  explicit Network(const NetworkOptions& options)
      : dtype_(options.dtype),
        low_(options.autocast ? catena::dtype::bfloat16 : catena::dtype::float32),
        model_(make(options)) {}
  // Scores in float32, which a loss needs.
  Variable operator()(const Variable& x);
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override {
    std::visit([&](auto& model) { model.visit_parameters(visitor, prefix); }, model_);
  }
  void visit_persistents(const PersistentVisitor& visitor,
                         const std::string& prefix = "") override {
    std::visit([&](auto& model) { model.visit_persistents(visitor, prefix); }, model_);
  }
  void visit_functions(const FunctionVisitor& visitor) override {
    std::visit([&](auto& model) { model.visit_functions(visitor); }, model_);
  }

 private:
  using Any = std::variant<Mlp, LeNet, ResNet>;
  static Any make(const NetworkOptions& options) {
    if (options.name == "lenet") return LeNet(options);
    if (options.name == "resnet") return ResNet(options);
    return Mlp(options);
  }

  Dtype dtype_, low_;
  Any model_;
};

}  // namespace mnist
