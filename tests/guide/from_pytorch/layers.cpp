// The section Modules: layers, and functions of images.
#include "catena/array/creation.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/patches.h"
#include "catena/array/random.h"
#include "catena/functions/functions.h"
#include "guide/from_pytorch/page.h"

namespace catena::guide {
namespace {

namespace F = catena::functions;

// The layer's parameters get random numbers, which Python gets as a list p in the order in which
// the layer declares them.
void draw_parameters(Page& page, Parameterized& layer) {
  int k = 0;
  layer.visit_parameters([&](const std::string&, auto& p) {
    const std::string name = "p" + std::to_string(k++);
    p.data().assign(page.row_operand(name, random::normal(p.shape(), 0, 0.5)));
  });
}

// A layer of each system with equal parameters, called with x.
#define CATENA_LAYER(pytorch, ...)                                                           \
  {                                                                                          \
    auto layer = __VA_ARGS__;                                                                \
    draw_parameters(page, layer);                                                            \
    page.add("m = with_parameters(" pytorch ", p)", "m(x)", #__VA_ARGS__, results(layer(x)), \
             1e-4);                                                                          \
  }

void add_dense_layers(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({5, 4}));
  {
    F::Linear l{4, 3, {.nobias = true}};
    draw_parameters(page, l);
    page.add("m = with_parameters(nn.Linear(4, 3, bias=False), p)", "m(x)",
             "F::Linear l{4, 3, {.nobias = true}}", results(l(x)));
  }
  page.begin();
  const Array ids = page.operand("ids", random::randint(0, 1000, {2, 5}) * array({1, 1, 0, 1, 1}));
  const Array W = page.operand("W", random::normal({1000, 100}));
  CATENA_ROW("F.embedding(ids, W)", F::embed_id(ids, W)) {
    const Array& x = ids;
    page.row_operand("x", x);
    CATENA_LAYER("nn.Embedding(1000, 100)", F::EmbedID(1000, 100))
  }
  CATENA_STEPS(
      "m = with_parameters(nn.Embedding(1000, 100, padding_idx=0), p); m.weight.data[0] = 0",
      "m(ids)", layer(ids), auto layer = F::EmbedID(1000, 100, {.ignore_label = 0});
      draw_parameters(page, layer))
}

void add_image_layers(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({2, 3, 8, 8}));
  const int64_t h = 11, w = 14;
  page.operand("size", array({h, w}));
  {
    const Array waves = catena::sin(arange(1930, dtype::float32)),
                weight = page.operand("weight", waves(Slice(0, 1920)).reshape({10, 192})),
                bias = page.operand("bias", waves(Slice(1920, 1930)));
    F::Linear layer(192, 10, {.initialW = weight, .initial_bias = bias, .flatten = true});
    page.add("m = nn.Linear(192, 10); m.weight.data, m.bias.data = weight, bias", "m(x.flatten(1))",
             "F::Linear(192, 10, {.flatten = true})", results(layer(x)), 1e-4);
  }
  CATENA_LAYER("nn.Conv2d(3, 16, 3, padding=1)", F::Convolution2D(3, 16, 3, {.pad = 1}))
  CATENA_LAYER("nn.AvgPool2d(2)", F::AveragePooling2D(2))
  CATENA_ROW("F.max_pool2d(x, 3, stride=2, padding=1)",
             F::max_pooling_2d(x, 3, {.stride = 2, .pad = 1, .cover_all = false}))
  CATENA_ROW("F.avg_pool2d(x, 3, stride=2, padding=1)",
             F::average_pooling_2d(x, 3, {.stride = 2, .pad = 1}))
  CATENA_ROW("F.adaptive_max_pool2d(x, (5, 7))", F::adaptive_max_pooling_2d(x, {5, 7}))
  CATENA_ROW("F.adaptive_avg_pool2d(x, (5, 7))", F::adaptive_average_pooling_2d(x, {5, 7}))
  CATENA_ROW("x.mean((2, 3), keepdim=True)", F::global_average_pooling_2d(x))
  CATENA_ROW("F.interpolate(x, (h, w), mode=\"bilinear\", align_corners=False)",
             F::resize_images(x, {h, w}, {.align_corners = false}))
  CATENA_ROW("F.interpolate(x, scale_factor=2)", F::upsampling_nearest(x, 2))
  CATENA_ROW("F.interpolate(x, (h, w))",
             F::resize_images(x, {h, w}, {.mode = F::ResizeMode::kNearest}))
  CATENA_ROW("F.unfold(x, 3, padding=1).reshape(2, 3, 3, 3, 8, 8)", im2col(x, 3, 3, 1, 1, 1, 1))
  CATENA_ROW("F.fold(F.unfold(x, 3, padding=1), (8, 8), 3, padding=1)",
             col2im(im2col(x, 3, 3, 1, 1, 1, 1), 1, 1, 1, 1, 8, 8))
  CATENA_ROW("[4 * s for s in x.to(memory_format=torch.channels_last).stride()]",
             Shape(F::channels_last(x).strides()))
  CATENA_ROW("nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=2)(x)",
             F::local_response_normalization(x, 5, 2, 1e-4 / 5, 0.75))
}

void add_other_convolutions(Page& page) {
  page.begin();
  Array x = page.operand("x", random::normal({2, 3, 9}));
  CATENA_LAYER("nn.Conv1d(3, 16, 5)", F::Convolution1D(3, 16, 5))
  page.begin();
  x = page.operand("x", random::normal({2, 3, 5, 4, 6}));
  CATENA_LAYER("nn.Conv3d(3, 16, 3)", F::Convolution3D(3, 16, 3))
  page.begin();
  x = page.operand("x", random::normal({2, 16, 4, 5}));
  CATENA_LAYER("nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1)",
               F::Deconvolution2D(16, 3, 4, {.stride = 2, .pad = 1}))
  const int64_t h = 9, w = 11;
  CATENA_LAYER("nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1, output_padding=1)",
               F::Deconvolution2D(16, 3, 4, {.stride = 2, .pad = 1, .outsize = {{h, w}}}))
}

// The same in test state, and how each is called.
#define CATENA_BLOCK(pytorch, call, result, ...)                                            \
  {                                                                                         \
    auto m = __VA_ARGS__;                                                                   \
    draw_parameters(page, m);                                                               \
    m.eval();                                                                               \
    page.add("m = with_parameters(" pytorch ", p).eval()", call, #__VA_ARGS__ "; " #result, \
             results(result), 1e-4);                                                        \
  }

void add_transformers(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({2, 5, 16})),
              memory = page.operand("memory", random::normal({2, 7, 16}));
  CATENA_BLOCK("nn.MultiheadAttention(16, 4, batch_first=True)", "m(x, x, x)[0]", m(x),
               F::MultiHeadAttention(16, 4))
  CATENA_BLOCK("nn.MultiheadAttention(16, 4, batch_first=True)", "m(x, memory, memory)[0]",
               m(x, memory), F::MultiHeadAttention(16, 4))
  const Array padding = page.operand("padding", random::uniform({2, 5}) < 0.4);
  const Array keep = logical_not(padding).reshape({2, 1, 1, 5});
  CATENA_BLOCK("nn.MultiheadAttention(16, 4, batch_first=True)",
               "m(x, x, x, key_padding_mask=padding)[0]", m(x, {.mask = keep}),
               F::MultiHeadAttention(16, 4))
  CATENA_BLOCK("nn.TransformerEncoderLayer(16, 4, batch_first=True)", "m(x)", m(x),
               F::TransformerEncoderLayer(16, 4))
  CATENA_BLOCK(
      "nn.TransformerEncoderLayer(16, 4, activation=\"gelu\", norm_first=True, batch_first=True)",
      "m(x)", m(x),
      F::TransformerEncoderLayer(16, 4,
                                 {.activation = F::TransformerActivation::kGelu, .pre_norm = true}))
  CATENA_BLOCK("nn.TransformerDecoderLayer(16, 4, batch_first=True)",
               "m(x, memory, tgt_mask=nn.Transformer.generate_square_subsequent_mask(5), "
               "tgt_is_causal=True)",
               m(x, memory), F::TransformerDecoderLayer(16, 4))
}

void add_normalization(Page& page) {
  page.begin();
  Array x = page.operand("x", random::normal({4, 16, 3, 3}));
  CATENA_LAYER("nn.BatchNorm2d(16)", F::BatchNormalization(16))
  CATENA_LAYER("nn.GroupNorm(4, 16)", F::GroupNormalization(4, 16))
  CATENA_LAYER("nn.InstanceNorm2d(16, affine=True)", F::InstanceNormalization(16))
  CATENA_STEPS("m = nn.BatchNorm2d(16, eps=1e-5, momentum=0.1)\nm(x)\nm.eval()",
               "[m.running_mean, m.running_var, m(x)]",
               (Variables{layer.avg_mean.data(), layer.avg_var.data(), layer(x)}),
               F::BatchNormalization layer(16, {.decay = 0.9, .eps = 1e-5});
               layer(x); layer.eval())
  page.begin();
  x = page.operand("x", random::normal({5, 16}));
  CATENA_LAYER("nn.BatchNorm1d(16)", F::BatchNormalization(16))
  page.begin();
  x = page.operand("x", random::normal({5, 64}));
  CATENA_LAYER("nn.LayerNorm(64)", F::LayerNormalization(64))
  CATENA_LAYER("nn.LayerNorm(64, elementwise_affine=False)",
               F::LayerNormalization(64, {.use_gamma = false, .use_beta = false}))
  CATENA_LAYER("nn.RMSNorm(64)", F::RMSNormalization(64))
  page.begin();
  x = page.operand("x", random::normal({5, 4, 16}));
  CATENA_LAYER("nn.LayerNorm([4, 16])", F::LayerNormalization({4, 16}))
  page.begin();
  x = page.operand("x", random::normal({5, 16}));
  CATENA_LAYER("nn.PReLU(16)", F::PReLU({16}))
}

void add_recurrent_layers(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({5, 3, 10}));
  const Array h0 = page.operand("h", random::normal({2, 3, 20}));
  const Array c0 = page.operand("c", random::normal({2, 3, 20}));
  CATENA_STEPS(
      "lstm = lstm_with(nn.LSTM(10, 20, num_layers=2, dropout=0.5), p).eval()\n"
      "y, (h, c) = lstm(x, (h, c))",
      "[y, h, c]", (Variables{y, h, c}),
      F::NStepLSTM lstm = F::NStepLSTM(2, 10, 20, {.dropout = 0.5});
      draw_parameters(page, lstm); lstm.eval(); const auto [h, c, y] = lstm(h0, c0, x))
  F::NStepLSTM lstm(2, 10, 20);
  draw_parameters(page, lstm);
  CATENA_STEPS("lstm = lstm_with(nn.LSTM(10, 20, 2), p); y, _ = lstm(x)", "y", y,
               const Variable y = lstm(x).ys)
  draw_parameters(page, lstm);
  CATENA_STEPS(
      "lstm = lstm_with(nn.LSTM(10, 20, 2), p); weight_ih_l0, weight_hh_l0 = lstm.weight_ih_l0, "
      "lstm.weight_hh_l0\nbias_ih_l0, bias_hh_l0 = lstm.bias_ih_l0, lstm.bias_hh_l0",
      "[by_catena(weight_ih_l0), by_catena(weight_hh_l0), by_catena(bias_ih_l0 + bias_hh_l0)]",
      (Variables{lstm.layers[0].Wx, lstm.layers[0].Wh, lstm.layers[0].b}), )
  const Array n = page.operand("n", array(std::vector<int64_t>{2, 5, 3}));
  CATENA_STEPS(
      "rnn = with_parameters(nn.LSTM(10, 20, num_layers=2, bidirectional=True), p)\n"
      "y, (h, c) = rnn(pack_padded_sequence(x, n, enforce_sorted=False))\n"
      "y, _ = pad_packed_sequence(y)",
      "[y, h, c]", (Variables{y, h, c}),
      F::SequenceLSTM rnn = F::SequenceLSTM(10, 20, {.layers = 2, .bidirectional = true});
      draw_parameters(page, rnn); const auto [h, c, y] = rnn(x, n))
  CATENA_STEPS("rnn = with_parameters(nn.GRU(10, 20, batch_first=True), p); y, h = rnn(x)",
               "[y, h]", (Variables{y, h}),
               F::SequenceGRU rnn = F::SequenceGRU(10, 20, {.batch_first = true});
               draw_parameters(page, rnn); const auto [h, y] = rnn(x))
  page.begin();
  const Array step = page.operand("x", random::normal({3, 10}));
  page.operand("h", zeros({3, 20}));
  page.operand("c", zeros({3, 20}));
  CATENA_STEPS(
      "cell = cell_with(nn.LSTMCell(10, 20), p)\nfor k in range(2): h, c = cell(x, (h, c))", "h", h,
      auto lstm = F::LSTM(10, 20);
      draw_parameters(page, lstm); lstm.reset_state(); Variable h = lstm(step); h = lstm(step))
}

void add_bilinear(Page& page) {
  page.begin();
  const Array e1 = page.operand("e1", random::normal({5, 20})),
              e2 = page.operand("e2", random::normal({5, 30}));
  F::Bilinear layer = F::Bilinear(20, 30, 40);
  draw_parameters(page, layer);
  page.add(
      "W, V1, V2, b = p; m = nn.Bilinear(20, 30, 40); m.weight.data = W.permute(2, 0, 1); "
      "m.bias.data = b",
      "m(e1, e2) + e1 @ V1 + e2 @ V2", "F::Bilinear(20, 30, 40)", results(layer(e1, e2)), 1e-3);
  F::Bilinear plain = F::Bilinear(20, 30, 40, {.nobias = true});
  draw_parameters(page, plain);
  page.add("m = nn.Bilinear(20, 30, 40, bias=False); m.weight.data = p[0].permute(2, 0, 1)",
           "m(e1, e2)", "F::Bilinear(20, 30, 40, {.nobias = true})", results(plain(e1, e2)), 1e-3);
}

}  // namespace

void add_layers(Page& page) {
  add_dense_layers(page);
  add_image_layers(page);
  add_other_convolutions(page);
  add_transformers(page);
  add_normalization(page);
  add_recurrent_layers(page);
  add_bilinear(page);
}

}  // namespace catena::guide
