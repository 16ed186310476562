// A network of Caffe, ready to run: what the import makes of a file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catena/functions/caffe/caffe_function.h"

namespace catena::functions::caffe {

// What one application of a layer gets.
struct LayerCall {
  const Variables& bottoms;
  const Parameterized* function;  // its entry in the bag, null for layers without one
  bool train;
};
// Computes the tops. Empty for layers that are not supported.
using Step = std::function<Variables(const LayerCall&)>;

// A layer with numbers for names: of its blobs, and of its entry in the bag, -1 for none.
struct NetLayer {
  std::vector<int> bottoms, tops;
  int function = -1;
  Step step;
};

struct Net {
  std::vector<std::string> blobs;
  std::vector<NetLayer> layers;
  std::vector<CaffeLayer> described;  // the same
};

// The network in a file; `fs` gets its functions. Throws what CaffeFunction says.
Net import_net(const std::string& path, FunctionBag& fs);

}  // namespace catena::functions::caffe
