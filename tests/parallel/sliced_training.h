// Training in slices, whose results must not depend on the number of ranks.
#pragma once

#include <bit>
#include <cstring>

#include "catena/array/random.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "deterministic_scope.h"
#include "parallel/network.h"

namespace catena::testing {

// The bytes of an array.
inline std::string bits_of(const Array& a) {
  const Array host = a.to_cpu().contiguous();
  return {static_cast<const char*>(host.raw_data()), static_cast<size_t>(host.nbytes())};
}
// Of all parameters, and of all persistent arrays, by name.
using Bits = std::map<std::string, std::string>;
inline Bits bits_of(const Parameterized& model) {
  Bits bits;
  for (const auto& [path, p] : model.named_parameters()) bits[path] = bits_of(p.data());
  return bits;
}
inline Bits bits_of_persistents(const Parameterized& model) {
  Bits bits;
  for (const auto& [path, p] : model.named_persistents()) bits[path] = bits_of(p.data());
  return bits;
}

// Wide enough for several threads and for sums of several blocks.
struct WideNet : FunctionSet {
  F::Linear l1, l2;
  F::Dropout dropout;
  explicit WideNet(Dtype dtype = dtype::float32, double ratio = 0)
      : l1(layer(48, 700, dtype, 1)), l2(layer(700, 5, dtype, 2)), dropout(ratio) {}
  CATENA_FUNCTIONS(l1, l2, dropout)
  Variable operator()(const Variable& x) { return l2(dropout(F::tanh(l1(x)))); }
};

// Images of 12 x 12.
struct ConvolutionNet : FunctionSet {
  F::Convolution2D c1, c2;
  F::BatchNormalization b1{8}, b2{16};
  F::Dropout dropout{0.3};
  F::Linear l;
  ConvolutionNet()
      : c1(3, 8, 3, options({8, 3, 3, 3}, 1)),
        c2(8, 16, 3, options({16, 8, 3, 3}, 2)),
        l(layer(16 * 12 * 12, 5, dtype::float32, 3)) {}
  CATENA_FUNCTIONS(c1, c2, b1, b2, dropout, l)
  Variable operator()(const Variable& x) {
    const Variable images = x.reshape({x.shape()[0], 3, 12, 12});
    const Variable h = dropout(b2.relu(c2(b1.relu(c1(images)))));
    return l(h.reshape({x.shape()[0], 16 * 12 * 12}));
  }

 private:
  static F::Convolution2DOptions options(const Shape& shape, double phase) {
    F::Convolution2DOptions o;
    o.pad = 1;
    o.initialW = wave(shape, phase, dtype::float32, 0.4);
    return o;
  }
};

inline int64_t inputs_of(const WideNet&) { return 48; }
inline int64_t inputs_of(const ConvolutionNet&) { return 3 * 12 * 12; }

// The batch of a step, on cpu:0, with 5 classes.
inline Batch wide_batch(int64_t step, int64_t n, int64_t inputs, Dtype dtype) {
  std::vector<int32_t> labels(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) labels[size_t(i)] = static_cast<int32_t>((i * i + step) % 5);
  return {wave({n, inputs}, double(step) + 0.25, dtype), array(labels, {n}, cpu(0))};
}

// What is trained, and how.
struct SlicedRun {
  int slices = 8;
  int64_t batch = 40;
  int steps = 10;
  parallel::Sharding sharding = parallel::Sharding::kNone;
  double clip = 0;
  bool gather_ahead = false;
  int64_t bucket_bytes = int64_t(32) << 20;
  std::string rule = "Adam";
};

// One rank's training.
template <class Model>
void train_slices(Communicator& comm, Model& model, const SlicedRun& run,
                  Dtype dtype = dtype::float32) {
  model.to(comm.device());
  // Rank 0's counts. Ranks that share a GPU share its generator.
  const int own_seed = comm.device().is_cuda() ? 0 : comm.rank();
  random::default_state(comm.device()).seed(5 + uint64_t(own_seed));
  auto optimizer = parallel::create_multi_node_optimizer(make_rule(run.rule), comm,
                                                         {.first_bytes = run.bucket_bytes,
                                                          .bucket_bytes = run.bucket_bytes,
                                                          .last_bytes = run.bucket_bytes,
                                                          .sharding = run.sharding,
                                                          .slices = run.slices,
                                                          .gather_ahead = run.gather_ahead});
  if (run.clip > 0) optimizer->add_hook("clip", optimizers::gradient_clipping(run.clip));
  optimizer.setup(model);
  const auto [begin, end] = parallel::slice_bounds(run.batch, comm.rank(), comm.size());
  for (int step = 0; step < run.steps; ++step) {
    const Batch own =
        part(wide_batch(step, run.batch, inputs_of(model), dtype), begin, end, comm.device());
    optimizer.zero_grads();
    for (const auto& slice : optimizer.slices(end - begin, run.batch)) {
      const Variable y = model(Variable::constant(slice(own.x)));
      F::softmax_cross_entropy(y, slice(own.t)).backward();
    }
    optimizer.update();
  }
  optimizer.average_persistents();
  optimizer.check_state();
}

}  // namespace catena::testing
