// LSTM over sequences in plain loops in double, forward and backward.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace catena::testing {

// Numbers in C order; names and shapes as in catena/kernels/rnn.h.
class LstmReference {
 public:
  using Numbers = std::vector<double>;
  struct Layer {
    Numbers Wx, Wh, b;
  };
  struct Sizes {
    int64_t steps, sequences, inputs, cells, layers;
  };

  // h0 and c0 are empty for 0.
  LstmReference(const Sizes& sizes, const Numbers& x, const Numbers& h0, const Numbers& c0,
                std::vector<Layer> weights)
      : z_(sizes), weights_(std::move(weights)), x_{x} {
    for (int64_t l = 0; l < z_.layers; ++l) run_layer(l, of_layer(h0, l), of_layer(c0, l));
  }

  const Numbers& y() const { return x_.back(); }
  Numbers hT() const { return last_of(h_); }
  Numbers cT() const { return last_of(c_); }

  // Those of x, h0, c0 and the weights, given those of y, hT and cT.
  struct Gradients {
    Numbers x, h0, c0;
    std::vector<Layer> weights;
  };
  Gradients gradients(const Numbers& gy, const Numbers& ghT, const Numbers& gcT) const {
    Gradients g;
    g.h0 = g.c0 = Numbers(size_t(z_.layers * states()), 0.0);
    g.weights.resize(size_t(z_.layers));
    g.x = gy;
    for (int64_t l = z_.layers - 1; l >= 0; --l) back(l, of_layer(ghT, l), of_layer(gcT, l), g);
    return g;
  }

 private:
  int64_t states() const { return z_.sequences * z_.cells; }
  int64_t inputs(int64_t l) const { return l == 0 ? z_.inputs : z_.cells; }
  Numbers of_layer(const Numbers& all, int64_t l) const {
    if (all.empty()) return Numbers(size_t(states()), 0.0);
    return {all.begin() + l * states(), all.begin() + (l + 1) * states()};
  }
  // Of each layer the numbers behind the last step; h_ and c_ have T + 1 steps.
  Numbers last_of(const std::vector<Numbers>& all) const {
    Numbers result;
    for (const Numbers& layer : all)
      result.insert(result.end(), layer.end() - states(), layer.end());
    return result;
  }
  static double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

  // The sum that gate g of cell j of sequence n gets at step t.
  double gate(int64_t l, int64_t t, int64_t n, int64_t g, int64_t j) const {
    const Layer& w = weights_[size_t(l)];
    const int64_t row = g * z_.cells + j, in = inputs(l);
    double total = w.b[size_t(row)];
    for (int64_t k = 0; k < in; ++k)
      total += w.Wx[size_t(row * in + k)] * x_[size_t(l)][size_t((t * z_.sequences + n) * in + k)];
    for (int64_t k = 0; k < z_.cells; ++k)
      total +=
          w.Wh[size_t(row * z_.cells + k)] * h_[size_t(l)][size_t(t * states() + n * z_.cells + k)];
    return total;
  }

  void run_layer(int64_t l, const Numbers& h0, const Numbers& c0) {
    h_.push_back(h0), c_.push_back(c0), gates_.emplace_back();
    Numbers &h = h_.back(), &c = c_.back(), &kept = gates_.back();
    for (int64_t t = 0; t < z_.steps; ++t) {
      Numbers h_now, c_now;
      for (int64_t n = 0; n < z_.sequences; ++n) {
        for (int64_t j = 0; j < z_.cells; ++j) {
          const double a = std::tanh(gate(l, t, n, 0, j)), i = sigmoid(gate(l, t, n, 1, j));
          const double f = sigmoid(gate(l, t, n, 2, j)), o = sigmoid(gate(l, t, n, 3, j));
          c_now.push_back(a * i + c[size_t(t * states() + n * z_.cells + j)] * f);
          h_now.push_back(std::tanh(c_now.back()) * o);
          kept.insert(kept.end(), {a, i, f, o});
        }
      }
      h.insert(h.end(), h_now.begin(), h_now.end());
      c.insert(c.end(), c_now.begin(), c_now.end());
    }
    x_.emplace_back(h.begin() + states(), h.end());
  }

  // g.x is that of the layer's result before, and of its input afterwards.
  void back(int64_t l, Numbers gh, Numbers gc, Gradients& g) const {
    const Layer& w = weights_[size_t(l)];
    const int64_t in = inputs(l), H = z_.cells;
    Layer& gw = g.weights[size_t(l)];
    gw = {Numbers(w.Wx.size(), 0.0), Numbers(w.Wh.size(), 0.0), Numbers(w.b.size(), 0.0)};
    Numbers gx(size_t(z_.steps * z_.sequences * in), 0.0);
    for (int64_t t = z_.steps - 1; t >= 0; --t) {
      Numbers gh_prev(size_t(states()), 0.0);
      for (int64_t n = 0; n < z_.sequences; ++n) {
        for (int64_t j = 0; j < H; ++j) {
          const int64_t cell = n * H + j, at = t * states() + cell;
          const double* s = &gates_[size_t(l)][size_t(4 * at)];
          const double c_prev = c_[size_t(l)][size_t(at)];
          const double tanh_c = std::tanh(c_[size_t(l)][size_t(at + states())]);
          const double of_h = gh[size_t(cell)] + g.x[size_t(at)];
          const double of_c = gc[size_t(cell)] + of_h * s[3] * (1 - tanh_c * tanh_c);
          const double of_gates[] = {
              of_c * s[1] * (1 - s[0] * s[0]), of_c * s[0] * s[1] * (1 - s[1]),
              of_c * c_prev * s[2] * (1 - s[2]), of_h * tanh_c * s[3] * (1 - s[3])};
          gc[size_t(cell)] = of_c * s[2];
          for (int64_t q = 0; q < 4; ++q) {
            const int64_t row = q * H + j;
            gw.b[size_t(row)] += of_gates[q];
            for (int64_t k = 0; k < in; ++k) {
              const auto from = size_t((t * z_.sequences + n) * in + k), to = size_t(row * in + k);
              gw.Wx[to] += of_gates[q] * x_[size_t(l)][from];
              gx[from] += of_gates[q] * w.Wx[to];
            }
            for (int64_t k = 0; k < H; ++k) {
              const auto to = size_t(row * H + k);
              gw.Wh[to] += of_gates[q] * h_[size_t(l)][size_t(t * states() + n * H + k)];
              gh_prev[size_t(n * H + k)] += of_gates[q] * w.Wh[to];
            }
          }
        }
      }
      gh = gh_prev;
    }
    for (int64_t k = 0; k < states(); ++k) {
      g.h0[size_t(l * states() + k)] = gh[size_t(k)];
      g.c0[size_t(l * states() + k)] = gc[size_t(k)];
    }
    g.x = gx;
  }

  Sizes z_;
  std::vector<Layer> weights_;
  std::vector<Numbers> x_;      // inputs of each layer, and the result
  std::vector<Numbers> h_, c_;  // of each layer, T + 1 steps
  std::vector<Numbers> gates_;  // of each layer, four numbers a cell
};

}  // namespace catena::testing
