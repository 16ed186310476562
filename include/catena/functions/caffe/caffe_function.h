// Models that were trained with Caffe (Y. Jia et al., Caffe: Convolutional Architecture for Fast
// Feature Embedding, 2014), as functions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"

namespace catena::functions {

// What the library has of such models inside.
namespace caffe {
struct Net;
}

// A layer of an imported model, as the file has it.
struct CaffeLayer {
  std::string name;                        // "inception_3a/1x1"
  std::string type;                        // "Convolution", of both formats
  std::vector<std::string> bottoms, tops;  // names of the blobs that it reads and writes
  bool is_supported = false;               // false: no call runs it
};

// A network read from a .caffemodel, a binary NetParameter, of either format (`layer`, or `layers`
// as Caffe wrote until 2014):
//
//   F::CaffeFunction func("bvlc_googlenet.caffemodel");
//   func.to_gpu();
//   const Variable y = func({{"data", x}}, {"loss3/classifier"}, {}, false)[0];
//
// Layers: BatchNorm, Concat, Convolution, Deconvolution, Dropout, Eltwise, InnerProduct, LRN across
// channels, Pooling, ReLU, Scale, Sigmoid, Slice, Softmax, SoftmaxWithLoss, Split, TanH. Layers of
// data are left out, layers of other types with a warning. Sizes of pooling are
// rounded up as in Caffe, also of average pooling, which Chainer rounded down.
//
// It is a model like any other: parameters are trained, moved, saved and copied under Caffe's names
// ("inception_3a/1x1/W"). They are float32, on the CPU at first. What the file has of gradients and
// of momentum is left out.
class CaffeFunction : public Parameterized {
 public:
  // IoError, with the offset in the file, for one that cannot be read, is damaged or is not a
  // model, for layers whose weights are missing or do not fit, and for options that are not
  // supported: stochastic pooling, LRN within channels, InnerProduct and SoftmaxWithLoss along
  // another axis than 1.
  explicit CaffeFunction(const std::string& path);

  // The blobs `outputs`, computed from the blobs `inputs`, in order of the file. A layer runs if it
  // is supported, not named in `disable`, its bottoms are known, and an output depends on it; what
  // a later layer writes replaces a blob of that name. Blobs are let go after their last use.
  // `train` switches Dropout, and BatchNorm unless its use_global_stats is set; without it
  // training() does. IndexError, with the blobs that are known, for an output that is not computed;
  // errors of the functions for inputs that do not fit.
  Variables operator()(const std::map<std::string, Variable>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::vector<std::string>& disable = {},
                       std::optional<YesNo> train = {}) const;

  // All layers, in order of the file, and the names of those that calls may run.
  const std::vector<CaffeLayer>& layers() const;
  std::vector<std::string> forwards() const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

  // The layers with parameters or running statistics, under their names, which are taken as they
  // are: func.fs.get<F::Convolution2D>("inception_3a/1x1"). Convolution2D, Deconvolution2D, Linear,
  // BatchNormalization; a Scale layer has W and, with a bias, b.
  FunctionBag fs;

 private:
  std::shared_ptr<const caffe::Net> net_;
};

}  // namespace catena::functions
