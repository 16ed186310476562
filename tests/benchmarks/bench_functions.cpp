// Functions that networks are made of, in training mode: forward, and forward with the gradients of
// everything that has one. Beside those that memory bounds is a copy of the bytes that they must
// move, and their rate in per cent of the copy's; beside attention, the rate of its products.
// function_peers.py puts PyTorch's times beside all.
//
//   bench_functions [device] [texts that the names of the cases contain...]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "function_cases.h"
#include "timing.h"

namespace bench {

bool Bench::wants(const std::string& name) const {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const std::string& text) { return name.find(text) != std::string::npos; });
}

double Bench::time(const std::function<void()>& call) const {
  if (device.is_cpu()) return shortest_time(call);
  const double once = device_time({2, 1, 1}, device, call).median;
  return device_time({1, 7, int(std::clamp(20e-3 / once, 1.0, 10.0))}, device, call).median;
}

double Bench::copy_time(double bytes) const {
  const Array from = catena::zeros({int64_t(bytes / 2)}, {Dtype::kUInt8, device}),
              to = catena::zeros_like(from);
  return time([&] { to.assign(from); });
}

namespace {

std::string limit(const Bench& bench, double seconds, double bytes, double operations) {
  char text[64] = "";
  if (bytes > 0) {
    const double copy = bench.copy_time(bytes);
    std::snprintf(text, sizeof text, "%.4f ms (copy), %.0f %%", copy * 1e3, 100 * copy / seconds);
  } else if (operations > 0) {
    std::snprintf(text, sizeof text, "%.3g TFLOP/s", operations / seconds * 1e-12);
  }
  return text;
}

void row(const Bench& bench, const Case& c) {
  catena::Arrays gradients;
  for (const Variable& y : c.forward().all) gradients.push_back(catena::ones_like(y.data()));
  const double forward = bench.time([&] { c.forward(); });
  const double both = bench.time([&] {
    c.clear();
    catena::backward(c.forward().all, gradients);
  });
  std::printf("| %s | %.4f ms | %s | %.4f ms | %s |\n", c.name.c_str(), forward * 1e3,
              limit(bench, forward, c.bytes, c.operations).c_str(), both * 1e3,
              limit(bench, both, c.bytes_of_both, c.operations_of_both).c_str());
  std::fflush(stdout);
}

Array images(const Shape& shape, Dtype dtype, bool last) {
  const Array made = normal(shape, dtype);
  return last ? F::channels_last(made) : made;
}
const char* order_name(bool last) { return last ? "channels last" : "channels first"; }

// y is as large as x: x read and y written; with backward also gy, and what is saved, read, and gx
// written.
void add_elementwise(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t count = bench.size(int64_t(1) << 26, int64_t(1) << 20);
  const auto add = [&](const char* name, double moved, auto call) {
    const std::string title = message(name, ", ", count, " numbers, ", catena::name(dtype));
    plans.push_back({title, [=] {
                       const Variable x(normal({count}, dtype));
                       return Case{title, [=] { return call(x); }, clearing(x), 2 * bytes_of(x),
                                   moved * bytes_of(x)};
                     }});
  };
  add("dropout", 4, [](const Variable& x) { return F::dropout(x, 0.5); });
  add("gelu (tanh)", 5, [](const Variable& x) { return F::gelu_tanh(x); });
  add("gelu", 5, [](const Variable& x) { return F::gelu(x); });
}

void add_prelu(const Bench& bench, Dtype dtype, bool last, Plans& plans) {
  const Shape shape{bench.size(64, 2), 256, 56, 56};
  const std::string title =
      message("PReLU, ", shape[0], "x256x56x56, ", order_name(last), ", ", catena::name(dtype));
  plans.push_back({title, [=] {
                     const Variable x(images(shape, dtype, last));
                     const auto layer = shared(F::PReLU({256}, {.dtype = dtype}));
                     return Case{title, [=] { return (*layer)(x); }, clearing(x, layer),
                                 2 * bytes_of(x), 5 * bytes_of(x)};
                   }});
}

// The gradient reads which element was the largest, a byte at least for each result.
void add_maxout(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t rows = bench.size(16384, 512);
  const std::string title = message("maxout, ", rows, "x4096 by 4, ", catena::name(dtype));
  plans.push_back({title, [=] {
                     const Variable x(normal({rows, 4096}, dtype));
                     return Case{title, [=] { return F::maxout(x, 4); }, clearing(x),
                                 1.25 * bytes_of(x), 2.5 * bytes_of(x)};
                   }});
}

void add_embedding(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t ids = bench.size(50304, 20000), size = bench.size(768, 256),
                count = bench.size(32768, 2048);
  const std::string title =
      message("embedding, ", count, " of ", ids, "x", size, ", ", catena::name(dtype));
  plans.push_back({title, [=] {
                     const auto layer = shared(F::EmbedID(ids, size, {.dtype = dtype}));
                     const Array t = catena::random::integers({count}, 0, ids, Dtype::kInt64);
                     const double rows = double(count * size * catena::itemsize(dtype)),
                                  table = double(ids * size * catena::itemsize(dtype));
                     return Case{title, [=] { return (*layer)(t); }, [=] { layer->zero_grads(); },
                                 2 * rows, 3 * rows + table};
                   }});
}

void add_cross_entropy(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t rows = bench.size(8192, 256), classes = bench.size(50304, 10000);
  const std::string title =
      message("softmax cross entropy, ", rows, "x", classes, ", ", catena::name(dtype));
  plans.push_back({title, [=] {
                     const Variable x(normal({rows, classes}, dtype));
                     const Array t = catena::random::integers({rows}, 0, classes, Dtype::kInt64);
                     return Case{title, [=] { return F::softmax_cross_entropy(x, t); }, clearing(x),
                                 bytes_of(x), 3 * bytes_of(x)};
                   }});
}

// The scores are a view that nobody else holds, as if a layer had made them.
void add_cross_entropy_in_place(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t rows = bench.size(8192, 256), classes = bench.size(50304, 10000);
  const std::string title = message("softmax cross entropy, ", rows, "x", classes,
                                    ", gradient in place, ", catena::name(dtype));
  plans.push_back(
      {title, [=] {
         const Variable x = F::reshape(Variable(normal({rows * classes}, dtype)), {rows, classes});
         const Array t = catena::random::integers({rows}, 0, classes, Dtype::kInt64);
         const auto loss = [=] {
           return F::softmax_cross_entropy(x, t, {.gradient_in_place = true});
         };
         return Case{title, loss, clearing(x), 2 * bytes_of(x), 2 * bytes_of(x)};
       }});
}

// Of images, for local response normalization the channels that are near.
void add_normalization(const Bench& bench, Dtype dtype, Plans& plans) {
  const Shape shape{bench.size(64, 2), 256, 56, 56};
  const auto add = [&](const char* name, bool last, auto make) {
    const std::string title = message(name, ", ", shape[0], "x256x56x56",
                                      last ? ", channels last, " : ", ", catena::name(dtype));
    plans.push_back({title, [=] {
                       const Variable x(images(shape, dtype, last));
                       const auto layer = shared(make());
                       return Case{title, [=] { return (*layer)(x); }, clearing(x, layer),
                                   2 * bytes_of(x), 5 * bytes_of(x)};
                     }});
  };
  struct LocalResponse {
    Variable operator()(const Variable& x) const { return F::local_response_normalization(x); }
    void zero_grads() const {}
  };
  for (const bool last : {false, true}) {
    add("group normalization (32)", last, [] { return F::GroupNormalization(32, 256); });
    add("instance normalization", last, [] { return F::InstanceNormalization(256); });
    add("local response normalization", last, [] { return LocalResponse(); });
  }
}

// For max pooling also the byte of each place.
void add_pooling(const Bench& bench, Dtype dtype, bool last, Plans& plans) {
  const auto add = [&](const char* name, const Shape& shape, double place_bytes, auto call) {
    const std::string title = message(name, ", ", shape[0], "x", shape[1], "x", shape[2], "x",
                                      shape[3], ", ", order_name(last), ", ", catena::name(dtype));
    plans.push_back({title, [=] {
                       const Variable x(images(shape, dtype, last)), y = call(x);
                       const double bytes =
                           bytes_of(x) + bytes_of(y) + place_bytes * double(y.size());
                       return Case{title, [=] { return call(x); }, clearing(x), bytes, 2 * bytes};
                     }});
  };
  const Shape shape{bench.size(64, 4), 64, 112, 112};
  add("max pooling 3x3/2", shape, 1, [](const Variable& x) {
    return F::max_pooling_2d(x, 3, {.stride = 2, .pad = 1, .cover_all = false});
  });
  add("average pooling 3x3/2", shape, 0,
      [](const Variable& x) { return F::average_pooling_2d(x, 3, {.stride = 2, .pad = 1}); });
  add("average pooling 2x2/2", shape, 0,
      [](const Variable& x) { return F::average_pooling_2d(x, 2); });
  add("average pooling 3x3/1", shape, 0,
      [](const Variable& x) { return F::average_pooling_2d(x, 3, {.stride = 1, .pad = 1}); });
  for (const Shape& of_global : {shape, Shape{bench.size(64, 8), 2048, 7, 7}})
    add("global average pooling", of_global, 0,
        [](const Variable& x) { return F::global_average_pooling_2d(x); });
  add("adaptive average pooling to 7x7", shape, 0,
      [](const Variable& x) { return F::adaptive_average_pooling_2d(x, 7); });
  add("bilinear resizing to 224x224", shape, 0,
      [](const Variable& x) { return F::resize_images(x, 224); });
  add("nearest upsampling by 2", shape, 0,
      [](const Variable& x) { return F::upsampling_nearest(x, 2); });
}

// x read forward and backward, the gradient written.
void add_ctc(int64_t steps, int64_t batch, int64_t classes, int64_t labels, Plans& plans) {
  const std::string title = message("CTC, ", steps, " steps, batch ", batch, ", ", classes,
                                    " classes, ", labels, " labels, float32");
  plans.push_back(
      {title, [=] {
         const Variable x(normal({steps, batch, classes}, Dtype::kFloat32));
         const Array t = catena::random::integers({batch, labels}, 1, classes, Dtype::kInt32);
         const auto loss = [=] { return F::connectionist_temporal_classification(x, t, 0); };
         return Case{title, loss, clearing(x), bytes_of(x), 3 * bytes_of(x)};
       }});
}

// Rows of W read, with backward twice, and their gradients written; the table of gradients is
// cleared.
void add_sampled_losses(Plans& plans) {
  constexpr int64_t kWords = 100000, kSize = 100, kBatch = 1000, kSamples = 5;
  std::vector<double> counts;
  std::map<int32_t, double> by_id;
  for (int32_t i = 0; i < kWords; ++i) counts.push_back(by_id[i] = 1e6 / double(i + 1));
  const auto add = [&](const char* name, double rows, auto make) {
    const std::string title = message(name, kWords, " words, float32");
    plans.push_back({title, [=] {
                       const auto layer = shared(make());
                       const Variable x(normal({kBatch, kSize}, Dtype::kFloat32));
                       const Array t = F::WalkerAlias(counts).sample({kBatch});
                       const double each = rows * bytes_of(x);
                       return Case{title, [=] { return (*layer)(x, t); }, clearing(x, layer), each,
                                   3 * each + bytes_of(layer->W)};
                     }});
  };
  add("negative sampling, 5 of ", kSamples + 1,
      [=] { return F::NegativeSampling(kSize, counts, kSamples); });
  add("hierarchical softmax, ", 12, [=] {
    return F::BinaryHierarchicalSoftmax(kSize,
                                        F::BinaryHierarchicalSoftmax::create_huffman_tree(by_id));
  });
}

// c and four gates read, c and h written; backward reads them and gh, and writes five gradients.
void add_lstm_cell(const Bench& bench, Dtype dtype, Plans& plans) {
  const int64_t batch = bench.size(4096, 128), cells = 650;
  const std::string title = message("LSTM cell, ", batch, "x", cells, ", ", catena::name(dtype));
  plans.push_back(
      {title, [=] {
         const Variable c(normal({batch, cells}, dtype)), x(normal({batch, 4 * cells}, dtype));
         const auto clear = [=] {
           c.set_grad(Array());
           x.set_grad(Array());
         };
         return Case{title, [=] { return F::lstm(c, x).h; }, clear, 7 * bytes_of(c),
                     19 * bytes_of(c)};
       }});
}

// One step of the layer, from states that are given, whose gradients are wanted too.
void add_lstm_layer(const Bench&, Dtype dtype, Plans& plans) {
  const int64_t batch = 20, cells = 650;
  const std::string title =
      message("LSTM layer, a step, batch ", batch, ", ", cells, " cells, ", catena::name(dtype));
  plans.push_back({title, [=] {
                     const Variable x(normal({batch, cells}, dtype)),
                         c(normal({batch, cells}, dtype)), h(normal({batch, cells}, dtype));
                     const auto layer = shared(F::LSTM(cells, cells, {.dtype = dtype}));
                     const auto forward = [=] {
                       layer->set_state(c, h);
                       return (*layer)(x);
                     };
                     const auto clear = [=] {
                       for (const Variable& v : {x, c, h}) v.set_grad(Array());
                       layer->zero_grads();
                     };
                     return Case{title, forward, clear};
                   }});
}

// Without biases. Of the depthwise one memory is the bound: x read and y written; with backward
// also x and gy for W's gradient, gy again and gx.
void add_convolutions(const Bench& bench, Dtype dtype, catena::Precision precision, bool last,
                      Plans& plans) {
  const std::string how =
      message(order_name(last), ", ", precision == catena::Precision::kTf32 ? "tf32" : name(dtype));
  const auto add = [&](const std::string& title, const Shape& shape, double moved, auto make) {
    plans.push_back({title, [=] {
                       catena::config().matmul_precision = precision;
                       const Variable x(images(shape, dtype, last));
                       const auto layer = shared(make());
                       if (last) F::channels_last(*layer);
                       return Case{title, [=] { return (*layer)(x); }, clearing(x, layer),
                                   moved > 0 ? 2 * bytes_of(x) : 0, moved * bytes_of(x)};
                     }});
  };
  const int64_t channels = bench.size(256, 64), batch = bench.size(64, 4);
  add(message("depthwise convolution 3x3, ", batch, "x", channels, "x56x56, ", how),
      {batch, channels, 56, 56}, 6, [=] {
        return F::Convolution2D(channels, channels, 3,
                                {.pad = 1, .groups = channels, .nobias = true, .dtype = dtype});
      });
  const int64_t in = bench.size(128, 32), out = in / 2;
  add(message("transposed convolution 4x4/2, ", batch, "x", in, "x32x32, ", how),
      {batch, in, 32, 32}, 0, [=] {
        return F::Deconvolution2D(in, out, 4,
                                  {.stride = 2, .pad = 1, .nobias = true, .dtype = dtype});
      });
}

Plans plans_of(const Bench& bench) {
  Plans plans;
  using enum catena::Precision;
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    add_elementwise(bench, dtype, plans);
    for (const bool last : {false, true}) add_prelu(bench, dtype, last, plans);
    add_maxout(bench, dtype, plans);
    add_embedding(bench, dtype, plans);
    add_cross_entropy(bench, dtype, plans);
    add_cross_entropy_in_place(bench, dtype, plans);
    add_normalization(bench, dtype, plans);
    for (const bool last : {false, true}) add_pooling(bench, dtype, last, plans);
    add_lstm_cell(bench, dtype, plans);
    add_transformer_functions(bench, dtype, plans);
  }
  add_ctc(150, 64, 40, 30, plans);
  add_ctc(500, 32, 80, 100, plans);
  add_ctc(300, 16, 5000, 50, plans);
  add_sampled_losses(plans);
  add_lstm_layer(bench, Dtype::kFloat32, plans);
  add_convolutions(bench, Dtype::kFloat32, kFloat32, false, plans);
  add_convolutions(bench, Dtype::kFloat32, kFloat32, true, plans);
  if (!bench.device.is_cuda()) return plans;
  add_lstm_layer(bench, Dtype::kBFloat16, plans);
  for (const bool last : {false, true}) {
    add_convolutions(bench, Dtype::kFloat32, kTf32, last, plans);
    add_convolutions(bench, Dtype::kBFloat16, kFloat32, last, plans);
  }
  return plans;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const Bench bench{.device = catena::Device(argc > 1 ? argv[1] : "cuda:0"),
                    .wanted = {argv + std::min(argc, 2), argv + argc}};
  const catena::DeviceScope scope(bench.device);
  std::printf("| case | forward | limit | forward and backward | limit |\n|---|---|---|---|---|\n");
  int status = 0;
  for (const Plan& plan : plans_of(bench)) {
    if (!bench.wants(plan.name)) continue;
    try {
      row(bench, plan.make());
    } catch (const std::exception& e) {  // the others are still worth their time
      std::fprintf(stderr, "%s: %s\n", plan.name.c_str(), e.what());
      status = 1;
    }
  }
  return status;
}
