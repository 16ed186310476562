// Networks for pictures of 1000 classes: the five of Chainer's example, with its layers, ResNet-50
// and ViT-B/16.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"

namespace imagenet {

using catena::Array;
using catena::Variable;
using catena::Variables;

// kNin: M. Lin, Q. Chen and S. Yan, Network in network, 2013. kAlex: A. Krizhevsky, I. Sutskever
// and G. Hinton, ImageNet classification with deep convolutional neural networks, 2012, on one
// device. kAlexBN: the same with batch normalization. kGoogLeNet: C. Szegedy et al., Going deeper
// with convolutions, 2015. kGoogLeNetBN: S. Ioffe and C. Szegedy, Batch normalization, 2015.
// kResNet50: K. He et al., Deep residual learning, 2016, with the stride in the convolutions of
// 3 x 3. kVit: A. Dosovitskiy et al., An image is worth 16x16 words, 2021, of the size "base".
enum class Arch : uint8_t { kNin, kAlex, kAlexBN, kGoogLeNet, kGoogLeNetBN, kResNet50, kVit };
// By the names of the command line.
const std::map<std::string, Arch>& architectures();

constexpr int64_t kClasses = 1000;

// Scores of the classes, (n, kClasses) each: of the network, and of heads beside it that bring
// gradients to its middle.
struct Heads {
  Variable main;
  Variables sides;
};

class Network : public catena::FunctionSet {
 public:
  // x: (n, 3, insize, insize). GoogLeNet has side heads in train state, GoogLeNetBN in both states,
  // the others have none. Dropout and batch normalization go by the state, too.
  virtual Heads operator()(const Variable& x) = 0;
  // Height and width of the pictures.
  int64_t insize() const { return insize_; }

 protected:
  explicit Network(int64_t insize) : insize_(insize) {}

 private:
  int64_t insize_;
};

int64_t insize_of(Arch arch);
// With random weights, on the current device.
std::unique_ptr<Network> make_network(Arch arch);

// {loss, accuracy} for labels t, int32 (n): the cross entropy, and 0.3 times that of each side
// head. Label -1 does not count.
Variables score_of(Network& network, const Array& x, const Array& t);

}  // namespace imagenet
