// Cases of the functions that transformers are made of.
#include "function_cases.h"

namespace bench {
namespace {

// As many numbers in rows of each length. With a residual x and that are read, the sum and y
// written; with backward also the sum and both gradients read, and gx written.
template <class Layer>
void add_row_normalization(const Bench& bench, const char* name, Dtype dtype, Plans& plans) {
  const auto add = [&](const Shape& shape, bool residual) {
    const std::string title = message(name, residual ? " with residual, " : ", ", shape[0], "x",
                                      shape[1], ", ", catena::name(dtype));
    plans.push_back({title, [=] {
                       const Variable x(normal(shape, dtype)), other(normal(shape, dtype));
                       const auto layer = shared(Layer(shape[1]));
                       const auto call = [=] {
                         return residual ? Results((*layer)(x, other)) : Results((*layer)(x));
                       };
                       const auto clear = [clear_x = clearing(x, layer),
                                           clear_other = clearing(other)] {
                         clear_x();
                         clear_other();
                       };
                       return Case{title, call, clear, (residual ? 4 : 2) * bytes_of(x),
                                   (residual ? 8 : 5) * bytes_of(x)};
                     }});
  };
  const int64_t numbers = int64_t(1) << bench.size(26, 21);
  for (const int64_t size : {256, 768, 1024, 4096, 16384, 65536, 262144})
    for (const bool residual : {false, true}) add({numbers / size, size}, residual);
}

// Heads are side by side at each position, as projections make them. Operations are those of two
// products forward and five backward, of causal attention half of them.
void add_attention(const Bench& bench, Dtype dtype, Plans& plans) {
  const auto add = [&](const Shape& heads, bool causal) {
    const std::string title = message("attention, ", heads[0], "x", heads[1], "x", heads[2], "x",
                                      heads[3], causal ? ", causal, " : ", ", catena::name(dtype));
    plans.push_back(
        {title, [=] {
           const auto drawn = [&] {
             return Variable(
                 normal({heads[0], heads[2], heads[1], heads[3]}, dtype).transpose({0, 2, 1, 3}));
           };
           const Variable q = drawn(), k = drawn(), v = drawn();
           const auto attend = [=] {
             return F::scaled_dot_product_attention(q, k, v, {.causal = causal});
           };
           const auto clear = [=] {
             for (const Variable& x : {q, k, v}) x.set_grad(Array());
           };
           const double scores = double(heads[0] * heads[1] * heads[2] * heads[2]),
                        product = scores * double(heads[3]) * (causal ? 1 : 2);
           return Case{.name = title,
                       .forward = attend,
                       .clear = clear,
                       .operations = 2 * product,
                       .operations_of_both = 7 * product};
         }});
  };
  add({bench.size(32, 4), bench.size(12, 4), bench.size(1024, 256), 64}, true);
  add({bench.size(4, 2), bench.size(16, 4), bench.size(4096, 1024), bench.size(128, 64)}, true);
  if (bench.device.is_cuda()) add({2, 16, 8192, 128}, true);
  add({bench.size(256, 8), bench.size(12, 3), 197, 64}, false);
}

// The two products of GPT-2's blocks, beside the functions that they are made of.
void add_feed_forward(const Bench& bench, Dtype dtype, Plans& plans) {
  struct Layers : catena::FunctionSet {
    F::Linear first, second;
    CATENA_FUNCTIONS(first, second)
    Layers(int64_t size, Dtype dtype)
        : first(size, 4 * size, {.dtype = dtype}), second(4 * size, size, {.dtype = dtype}) {}
  };
  const int64_t rows = bench.size(32768, 1024), size = bench.size(768, 256);
  for (const bool fused : {true, false}) {
    const std::string title = message("feed-forward", fused ? "" : ", its parts", ", ", rows, "x",
                                      size, ", ", catena::name(dtype));
    plans.push_back({title, [=] {
                       const Variable x(normal({rows, size}, dtype));
                       const auto layers = shared(Layers(size, dtype));
                       const auto call = [=] {
                         const F::Linear &a = layers->first, &b = layers->second;
                         if (!fused) return b(F::gelu_tanh(a(x)));
                         return F::feed_forward(
                             x, a.W, a.b, b.W, b.b,
                             {.activation = F::TransformerActivation::kGeluTanh});
                       };
                       return Case{title, call, clearing(x, layers)};
                     }});
  }
}

}  // namespace

void add_transformer_functions(const Bench& bench, Dtype dtype, Plans& plans) {
  add_row_normalization<F::LayerNormalization>(bench, "layer normalization", dtype, plans);
  add_row_normalization<F::RMSNormalization>(bench, "rms normalization", dtype, plans);
  add_attention(bench, dtype, plans);
  add_feed_forward(bench, dtype, plans);
}

}  // namespace bench
