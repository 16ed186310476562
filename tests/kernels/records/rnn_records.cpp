// Records of the slots of recurrent layers.
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/backward.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/kernels/rnn.h"
#include "kernels/lstm_reference.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;
using testing::LstmReference;

// Two layers ----------------------------------------------------------------------------------

constexpr LstmReference::Sizes kSizes{5, 3, 6, 20, 2};
const Shape kX{5, 3, 6}, kY{5, 3, 20}, kStates{2, 3, 20};
const Shape kWeights[] = {{80, 6}, {80, 20}, {80}, {80, 20}, {80, 20}, {80}};
// Seeds of the operands and of the gradients of the results.
constexpr uint64_t kH0 = 2, kC0 = 3, kWeight = 4, kGy = 20, kGh = 21, kGc = 22;

Array empty(Device device, const Shape& shape) {
  return Array::uninitialized(shape, Dtype::kFloat32, device);
}

std::vector<double> numbers(const Shape& shape, uint64_t seed, double scale = 1) {
  std::vector<double> values = plain_data(shape, seed).values;
  for (double& v : values) v *= scale;
  return values;
}

Results sequence(Device device) {
  const Variable x(data(device, kX)), h0(data(device, kStates, kH0)),
      c0(data(device, kStates, kC0));
  Variables weights;
  for (uint64_t i = 0; i < 6; ++i)
    weights.emplace_back(data(device, kWeights[i], kWeight + i) * 0.2f);
  const auto [hy, cy, ys] = F::n_step_lstm(2, 0, h0, c0, weights, x);
  hy.set_grad(data(device, kStates, kGh));
  cy.set_grad(data(device, kStates, kGc));
  ys.set_grad(data(device, kY, kGy));
  backward({hy, cy, ys}, {hy.grad(), cy.grad(), ys.grad()});
  Results results{ys.data(), hy.data(), cy.data(), x.grad(), h0.grad(), c0.grad()};
  for (const Variable& w : weights) results.push_back(w.grad());
  return results;
}

LstmReference reference_run() {
  std::vector<LstmReference::Layer> weights;
  for (uint64_t i = 0; i < 6; i += 3)
    weights.push_back({numbers(kWeights[i], kWeight + i, 0.2),
                       numbers(kWeights[i + 1], kWeight + i + 1, 0.2),
                       numbers(kWeights[i + 2], kWeight + i + 2, 0.2)});
  return {kSizes, numbers(kX, 1), numbers(kStates, kH0), numbers(kStates, kC0), weights};
}

Plains gradients_reference() {
  const auto g =
      reference_run().gradients(numbers(kY, kGy), numbers(kStates, kGh), numbers(kStates, kGc));
  Plains results{{kX, g.x}, {kStates, g.h0}, {kStates, g.c0}};
  for (size_t l = 0; l < 2; ++l) {
    results.push_back({kWeights[3 * l], g.weights[l].Wx});
    results.push_back({kWeights[3 * l + 1], g.weights[l].Wh});
    results.push_back({kWeights[3 * l + 2], g.weights[l].b});
  }
  return results;
}
Plains sequence_reference() {
  const LstmReference run = reference_run();
  Plains results{{kY, run.y()}, {kStates, run.hT()}, {kStates, run.cT()}};
  for (const Plain& g : gradients_reference()) results.push_back(g);
  return results;
}

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

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
// Element i of (3, 84) for element i of (3, 21), in block `gate`.
int64_t gate_of(int64_t i, int64_t gate) { return i / 21 * 84 + gate * 21 + i % 21; }

Plains cell_reference() {
  const Plain gates = plain_data(kGates), c_prev = plain_data(kCells, 2);
  const Plain activated = plain(
      kGates, [&](int64_t i) { return i % 84 < 21 ? std::tanh(gates(i)) : sigmoid(gates(i)); });
  const Plain c = plain(kCells, [&](int64_t i) {
    return activated(gate_of(i, 0)) * activated(gate_of(i, 1)) +
           c_prev(i) * activated(gate_of(i, 2));
  });
  return {activated, c,
          plain(kCells, [&](int64_t i) { return std::tanh(c(i)) * activated(gate_of(i, 3)); })};
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

// Of activated gates s.
Plains cell_gradients_of(const Plain& s) {
  const Plain c_prev = plain_data(kCells, 2), c = plain_data(kCells, 3);
  const Plain gh = plain_data(kCells, 4), gh_next = plain_data(kCells, 5),
              gc = plain_data(kCells, 6);
  const auto of_h = [&](int64_t i) { return gh(i) + gh_next(i); };
  const auto of_c = [&](int64_t i) {
    return gc(i) + of_h(i) * s(gate_of(i, 3)) * (1 - std::pow(std::tanh(c(i)), 2));
  };
  const Plain g_gates = plain(kGates, [&](int64_t k) {
    const int64_t i = k / 84 * 21 + k % 21;
    const double a = s(gate_of(i, 0)), in = s(gate_of(i, 1)), f = s(gate_of(i, 2)),
                 o = s(gate_of(i, 3));
    switch (k % 84 / 21) {
      case 0: return of_c(i) * in * (1 - a * a);
      case 1: return of_c(i) * a * in * (1 - in);
      case 2: return of_c(i) * c_prev(i) * f * (1 - f);
      default: return of_h(i) * std::tanh(c(i)) * o * (1 - o);
    }
  });
  return {g_gates, plain(kCells, [&](int64_t i) { return of_c(i) * s(gate_of(i, 2)); })};
}
Plains cell_grad_reference() {
  Plains results = cell_gradients_of(plain_data(kGates));
  for (const Plain& p : cell_gradients_of(cell_reference()[0])) results.push_back(p);
  return results;
}

}  // namespace

CATENA_SLOT_RECORDS(rnn) {
  return {{"lstm_cell", cell, cell_reference},
          {"lstm_cell_grad", cell_grad, cell_grad_reference},
          {"lstm", sequence, sequence_reference},
          {"lstm_grad", gradients, gradients_reference}};
}

}  // namespace catena
