// Summary of a model: a table of the calls of its layers with shapes, sizes and costs.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/core/shape.h"

namespace catena::training {

// One call of a layer or function that is not inside another one.
struct LayerSummary {
  std::string path;           // of the layer in the model, "block/l1"; "" without parameters
  std::string type;           // "Linear", "relu"
  std::vector<Shape> inputs;  // without parameters
  std::vector<Shape> outputs;
  int64_t parameters = 0;        // elements of those that no earlier call has used
  int64_t multiply_adds = 0;     // of products, convolutions and recurrent layers
  int64_t activation_bytes = 0;  // of outputs that are not views of inputs
};

// A forward call in the order of its calls, and its totals.
struct ModelSummary {
  std::vector<LayerSummary> layers;
  int64_t parameters = 0;  // of the model, each once
  int64_t parameter_bytes = 0;
  int64_t persistents = 0;  // elements of arrays that are not trained
  int64_t multiply_adds = 0;
  int64_t activation_bytes = 0;
  std::vector<std::string> unused;  // paths of parameters that the call did not use
  // "l1/W: 12 of 24 rows, tensor 1/2", of parameters that are cut over ranks (Placement::text).
  std::vector<std::string> slices;

  // The table, with aligned columns, the totals, the slices and the unused parameters; ends with a
  // newline.
  std::string to_string() const;
};
std::ostream& operator<<(std::ostream& os, const ModelSummary& summary);

// The summary of what `forward` calls on this thread, in the model's train or test state. It is
// recorded, also where the caller has a NoBackprop scope. Afterwards arrays that are not trained
// and the random states of the model's devices are as before; gradients are left alone. Exceptions
// of the call pass.
ModelSummary summarize(Parameterized& model, const std::function<void()>& forward);

// The summary of model(inputs...):
//
//   std::cout << training::summary(model, zeros({64, 784}, dtype::float32));
template <class Model, class... Inputs>
ModelSummary summary(Model& model, const Inputs&... inputs) {
  return summarize(model, [&] { model(inputs...); });
}

}  // namespace catena::training
