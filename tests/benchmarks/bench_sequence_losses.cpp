// Connectionist temporal classification, negative sampling and hierarchical softmax, forward and
// backward, beside a copy of the bytes that they must move at least.
//
//   bench_sequence_losses [device]
#include <cstdio>
#include <map>
#include <vector>

#include "catena/array/random.h"
#include "catena/functions/loss/connectionist_temporal_classification.h"
#include "catena/functions/loss/hierarchical_softmax.h"
#include "catena/functions/loss/negative_sampling.h"
#include "timing.h"

namespace {

namespace F = catena::functions;
using catena::Array;
using catena::Device;
using catena::Dtype;
using catena::Variable;

// Seconds that a copy of so many bytes, counted read and written, takes.
double copy_time(Device device, double bytes) {
  const Array from = catena::zeros({int64_t(bytes / 2)}, {Dtype::kUInt8, device});
  return bench::call_time(device, [&] { from.copy(); });
}

template <class Forward>
void row(const char* what, Device device, double bytes, const Forward& forward) {
  const double once = bench::call_time(device, forward);
  const double both = bench::call_time(device, [&] { forward().backward(); });
  std::printf("| %s | %.3f ms | %.3f ms | %.3f ms (copy) |\n", what, once * 1e3, both * 1e3,
              copy_time(device, bytes) * 1e3);
}

// x read forward and backward, the gradient written.
void ctc(Device device, int64_t steps, int64_t batch, int64_t classes, int64_t labels) {
  const Variable x(catena::random::normal({steps, batch, classes}, 0, 1, Dtype::kFloat32));
  const Array t = catena::random::integers({batch, labels}, 1, classes, Dtype::kInt32);
  char what[80];
  std::snprintf(what, sizeof(what), "CTC, %d steps, batch %d, %d classes, %d labels", int(steps),
                int(batch), int(classes), int(labels));
  row(what, device, 3 * double(x.size()) * 4, [&] {
    x.set_grad(Array());
    return F::connectionist_temporal_classification(x, t, 0);
  });
}

// Rows of W read twice, their gradients written; the table of gradients is cleared.
void sampled(Device device, int64_t words, int64_t size, int64_t batch) {
  constexpr int64_t kSamples = 5;
  std::vector<double> counts;
  std::map<int32_t, double> by_id;
  for (int64_t i = 0; i < words; ++i) {
    counts.push_back(1e6 / double(i + 1));
    by_id[int32_t(i)] = counts.back();
  }
  const Variable x(catena::random::normal({batch, size}, 0, 1, Dtype::kFloat32));
  const F::NegativeSampling negative(size, counts, kSamples);
  const F::BinaryHierarchicalSoftmax hierarchy(
      size, F::BinaryHierarchicalSoftmax::create_huffman_tree(by_id));
  const Array t = negative.sampler.sample({batch});
  const double table = 4 * double(words * size), rows = 4 * double(batch * size);
  const auto step = [&](const auto& layer) {
    return [&] {
      x.set_grad(Array());
      layer.W.zero_grad();
      return layer(x, t);
    };
  };
  row("negative sampling, 5 of 100,000 words", device, table + 3 * rows * (kSamples + 1),
      step(negative));
  row("hierarchical softmax, 100,000 words", device, table + 3 * rows * 12, step(hierarchy));
}

}  // namespace

int main(int argc, char** argv) {
  const Device device(argc > 1 ? argv[1] : "cuda:0");
  const catena::DeviceScope scope(device);
  std::printf("| case | forward | forward and backward | limit |\n|---|---|---|---|\n");
  ctc(device, 150, 64, 40, 30);
  ctc(device, 500, 32, 80, 100);
  ctc(device, 300, 16, 5000, 50);
  sampled(device, 100000, 100, 1000);
}
