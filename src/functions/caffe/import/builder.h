// Helpers of the makers of layers: reading options, adding functions to the bag.
#pragma once

#include <utility>

#include "catena/functions/extent_2d.h"
#include "functions/caffe/import/layer_source.h"

namespace catena::functions::caffe {

// Makes one layer. Its maker reads the options, checks what it needs, and returns the step.
class Builder {
 public:
  Builder(const LayerSource& source, FunctionBag& fs) : source(source), fs_(fs) {}

  // Adds the layer's function under its name.
  template <class F>
  void add(F function) {
    if (fs_.contains(source.name)) source.refuse("another layer with weights has this name");
    function_ = int(fs_.size());
    fs_.add(source.name, std::move(function));
  }
  int function() const { return function_; }

  const LayerSource& source;

 private:
  FunctionBag& fs_;
  int function_ = -1;
};

// A step of one bottom and one top.
template <class F>
Step step(F f) {
  return [f](const LayerCall& call) { return Variables{f(call.bottoms[0])}; };
}
// Applies the layer's function, which is an F.
template <class F>
Step apply() {
  return [](const LayerCall& call) {
    return Variables{dynamic_cast<const F&>(*call.function)(call.bottoms[0])};
  };
}

// An extent of two axes as Caffe has it: one number for both or one for each, or two fields.
struct ExtentOption {
  std::vector<int64_t> numbers;
  int64_t height = 0, width = 0;

  // The fields win where one of them is given; `otherwise` where nothing is.
  Extent2D value(const LayerSource& source, const char* name, const Extent2D& otherwise) const {
    Extent2D result = otherwise;
    if (height > 0 || width > 0)
      result = {height, width};
    else if (numbers.size() > 2)
      source.refuse(name, " is given for ", numbers.size(), " axes, expected are images of two");
    else if (!numbers.empty())
      result = {numbers.front(), numbers.back()};
    for (const int64_t n : {result.height, result.width})
      if (n < 0 || n > UINT32_MAX) source.refuse(name, " is ", n, ", expected one of 32 bits");
    return result;
  }
};

// Makers, in the files of their kinds.
Step make_batch_norm(Builder& b);
Step make_concat(Builder& b);
Step make_convolution(Builder& b);
Step make_deconvolution(Builder& b);
Step make_dropout(Builder& b);
Step make_eltwise(Builder& b);
Step make_inner_product(Builder& b);
Step make_lrn(Builder& b);
Step make_pooling(Builder& b);
Step make_relu(Builder& b);
Step make_scale(Builder& b);
Step make_sigmoid(Builder& b);
Step make_slice(Builder& b);
Step make_softmax(Builder& b);
Step make_softmax_with_loss(Builder& b);
Step make_split(Builder& b);
Step make_tanh(Builder& b);

}  // namespace catena::functions::caffe
