#include "networks.h"

#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math/elementwise.h"
#include "googlenet.h"
#include "nin_and_alex.h"
#include "resnet50.h"
#include "vit.h"

namespace imagenet {

namespace F = catena::functions;

const std::map<std::string, Arch>& architectures() {
  static const std::map<std::string, Arch> all{{"nin", Arch::kNin},
                                               {"alex", Arch::kAlex},
                                               {"alexbn", Arch::kAlexBN},
                                               {"googlenet", Arch::kGoogLeNet},
                                               {"googlenetbn", Arch::kGoogLeNetBN},
                                               {"resnet50", Arch::kResNet50},
                                               {"vit", Arch::kVit}};
  return all;
}

int64_t insize_of(Arch arch) {
  switch (arch) {
    case Arch::kNin:
    case Arch::kAlex:
    case Arch::kAlexBN: return kAlexInsize;
    case Arch::kGoogLeNet:
    case Arch::kGoogLeNetBN: return kGoogLeNetInsize;
    case Arch::kResNet50: return kResNetInsize;
    case Arch::kVit: return kVitInsize;
  }
  catena::fail<catena::ValueError>("insize_of: there is no such architecture");
}

std::unique_ptr<Network> make_network(Arch arch) {
  switch (arch) {
    case Arch::kNin: return make_nin();
    case Arch::kAlex: return make_alex(Normalization::kLocalResponse);
    case Arch::kAlexBN: return make_alex(Normalization::kBatch);
    case Arch::kGoogLeNet: return make_googlenet();
    case Arch::kGoogLeNetBN: return make_googlenetbn();
    case Arch::kResNet50: return make_resnet50();
    case Arch::kVit: return make_vit();
  }
  catena::fail<catena::ValueError>("make_network: there is no such architecture");
}

Variables score_of(Network& network, const Array& x, const Array& t) {
  constexpr double kWeightOfSides = 0.3;
  const Heads heads = network(Variable::constant(x));
  Variable loss = F::softmax_cross_entropy(heads.main, t);
  for (const Variable& side : heads.sides)
    loss = loss + F::softmax_cross_entropy(side, t) * kWeightOfSides;
  return {loss, F::accuracy(heads.main, t, -1)};
}

}  // namespace imagenet
