// Records of the slots of recurrent layers.
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/backward.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/kernels/rnn.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

// Two layers ----------------------------------------------------------------------------------

const Shape kX{5, 3, 6}, kY{5, 3, 20}, kStates{2, 3, 20};
const Shape kWeights[] = {{80, 6}, {80, 20}, {80}, {80, 20}, {80, 20}, {80}};
// Seeds of the operands and of the gradients of the results.
constexpr uint64_t kH0 = 2, kC0 = 3, kWeight = 4, kGy = 20, kGh = 21, kGc = 22;

Array empty(Device device, const Shape& shape) {
  return Array::uninitialized(shape, Dtype::kFloat32, device);
}

Results sequence(Device device, const std::vector<int32_t>& lengths) {
  const Variable x(data(device, kX)), h0(data(device, kStates, kH0)),
      c0(data(device, kStates, kC0));
  Variables weights;
  for (uint64_t i = 0; i < 6; ++i)
    weights.emplace_back(data(device, kWeights[i], kWeight + i) * 0.2f);
  const auto [hy, cy, packed] =
      F::n_step_lstm(2, 0, h0, c0, weights, F::PackedSequences(x, array(lengths)));
  const Variable ys = packed.padded();
  hy.set_grad(data(device, kStates, kGh));
  cy.set_grad(data(device, kStates, kGc));
  ys.set_grad(data(device, kY, kGy));
  backward({hy, cy, ys}, {hy.grad(), cy.grad(), ys.grad()});
  Results results{ys.data(), hy.data(), cy.data(), x.grad(), h0.grad(), c0.grad()};
  for (const Variable& w : weights) results.push_back(w.grad());
  return results;
}
Results equal_lengths(Device device) { return sequence(device, {5, 5, 5}); }

// The gradients alone, by a call without what a forward call keeps.
Results gradients(Device device) {
  const Array x = data(device, kX), h0 = data(device, kStates, kH0),
              c0 = data(device, kStates, kC0);
  const Array y = empty(device, kY), hT = empty(device, kStates), cT = empty(device, kStates);
  const Array gy = data(device, kY, kGy), gh = data(device, kStates, kGh),
              gc = data(device, kStates, kGc);
  Results weights, results{empty(device, kX), empty(device, kStates), empty(device, kStates)};
  for (uint64_t i = 0; i < 6; ++i) {
    weights.push_back(data(device, kWeights[i], kWeight + i) * 0.2f);
    results.push_back(empty(device, kWeights[i]));
  }
  std::vector<LstmWeights> layers;
  std::vector<LstmWeightTargets> targets;
  for (size_t i = 0; i < 6; i += 3) {
    layers.push_back({&weights[i], &weights[i + 1], &weights[i + 2]});
    targets.push_back({{&results[3 + i]}, {&results[4 + i]}, {&results[5 + i]}});
  }
  kernels::lstm(device, {&x, &h0, &c0, layers, &y, &hT, &cT});
  kernels::lstm_grad(device, {&x, &h0, &c0, layers, &y, &gy, &gh, &gc, &results[0], &results[1],
                              &results[2], targets});
  // Sequences of which some end before others.
  const Results ended = sequence(device, {2, 5, 3});
  results.insert(results.end(), ended.begin(), ended.end());
  return results;
}

// One step --------------------------------------------------------------------------------------

const Shape kCells{3, 21}, kGates{3, 84};

Results cell(Device device) {
  const Array gates = data(device, kGates), c_prev = data(device, kCells, 2);
  const Array activated = empty(device, kGates), c = empty(device, kCells),
              h = empty(device, kCells);
  kernels::lstm_cell(device, {&gates, &c_prev, &activated, &c, &h});
  return {activated, c, h};
}

// The activated gates are any numbers here; then they are gates.
Results cell_grad(Device device) {
  const Array activated = data(device, kGates), c_prev = data(device, kCells, 2),
              c = data(device, kCells, 3), gh = data(device, kCells, 4),
              gh_next = data(device, kCells, 5), gc = data(device, kCells, 6);
  const Array g_gates = empty(device, kGates), of_gates = empty(device, kGates),
              gc_prev = empty(device, kCells);
  kernels::lstm_cell_grad(device,
                          {&activated, &c_prev, &c, &gh, &gh_next, &gc, &of_gates, &gc_prev, true});
  kernels::lstm_cell_grad(device, {&activated, &c_prev, &c, &gh, &gh_next, &gc, &g_gates, &gc});
  return {g_gates, gc, of_gates, gc_prev};
}

}  // namespace

CATENA_SLOT_RECORDS(rnn) {
  return {{"lstm_cell", cell},
          {"lstm_cell_grad", cell_grad},
          {"lstm", equal_lengths},
          {"lstm_grad", gradients}};
}

}  // namespace catena
