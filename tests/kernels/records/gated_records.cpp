// Records of the slots of gated activations.
#include "catena/array/creation.h"
#include "catena/kernels/gated.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

constexpr GateFunction kFunctions[] = {GateFunction::kSilu, GateFunction::kGelu,
                                       GateFunction::kGeluTanh};

// Rows of packs, at the distance of two rows, as halves of one array have them; and rows of an odd
// length.
Results forward(Device device, int64_t columns) {
  const Array both = data(device, {3, 2 * columns}), x = data(device, {3, columns}, 2);
  Results results;
  for (const GateFunction f : kFunctions) {
    const Array y = zeros_like(x);
    kernels::gated(device, {f, 3, columns, {&both, 2 * columns}, {&x, columns}, {&y, columns}});
    results.push_back(y);
  }
  return results;
}

Results gradients(Device device, int64_t columns) {
  const Array both = data(device, {3, 2 * columns}), x = data(device, {3, columns}, 2),
              gy = data(device, {3, columns}, 3);
  Results results;
  for (const GateFunction f : kFunctions) {
    const Array g_gate = zeros_like(both), gx = zeros_like(x), alone = zeros_like(x);
    const GatedRows gate{&both, 2 * columns}, other{&x, columns}, of_y{&gy, columns};
    kernels::gated_grad(device,
                        {f, 3, columns, gate, other, of_y, {&g_gate, 2 * columns}, {&gx, columns}});
    kernels::gated_grad(device, {f, 3, columns, gate, other, of_y, {&alone, columns}, {}});
    results.insert(results.end(), {g_gate, gx, alone});
  }
  return results;
}

Results joined(Results a, const Results& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

CATENA_SLOT_RECORDS(gated) {
  return {{"gated", [](Device d) { return joined(forward(d, 16), forward(d, 21)); }},
          {"gated_grad", [](Device d) { return joined(gradients(d, 16), gradients(d, 21)); }}};
}

}  // namespace catena
