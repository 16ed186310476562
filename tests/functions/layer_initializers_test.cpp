// The options for start values of all layers: what they start, and what is there without them.
#include <limits>

#include "catena/functions/activation.h"
#include "catena/functions/attention.h"
#include "catena/functions/connection.h"
#include "catena/functions/loss.h"
#include "catena/functions/normalization.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using initializers::Constant;
using initializers::InitialValue;

// What an option starts: a parameter, or a part of one, made by calls for parts of this shape.
struct Started {
  Array array;
  Shape part;
};

using Parts = std::vector<Started>;
using Given = const InitialValue&;

struct Case {
  std::string option;      // of which layer
  double mean, deviation;  // without it
  std::function<Parts(Given)> make;
  std::string refused = "";  // what the error of another shape says, if it is not of this option
  std::string error() const {
    const std::string name = option.substr(0, option.find('.'));
    return refused.empty() ? name + ": " + option.substr(name.size() + 1) + " has shape (7,)"
                           : refused;
  }
};

constexpr int64_t kIn = 40, kOut = 30;

Started whole(const OwnedParameter& p) { return {p.data(), p.shape()}; }
Started blocks(const OwnedParameter& p, int64_t count) {
  Shape block = p.shape();
  block[0] /= count;
  return {p.data(), block};
}
Started gates(const OwnedParameter& p) { return blocks(p, 4); }
Array forget_block(const OwnedParameter& b) { return b.data()(Slice(2 * kOut, 3 * kOut)); }

double fan_in(int64_t n) { return std::sqrt(1 / double(n)); }

// Of layers whose parts are all (out, out), or (out), in blocks.
template <class Layer, class Options>
std::vector<Case> sequence_cases(const std::string& layer, int64_t count) {
  const auto made = [](const Options& options) { return Layer(kOut, kOut, options); };
  return {{layer + ".initialW", 0, fan_in(kOut),
           [=](Given v) {
             const Layer l = made({.bidirectional = true, .initialW = v});
             return Parts{blocks(l.parts[0].weight_ih, count), blocks(l.parts[1].weight_hh, count)};
           }},
          {layer + ".initial_bias", 0, 0, [=](Given v) {
             const Layer l = made({.bidirectional = true, .initial_bias = v});
             return Parts{blocks(l.parts[0].bias_ih, count), blocks(l.parts[1].bias_hh, count)};
           }}};
}

std::vector<Case> recurrent_cases() {
  return {
      {"LSTM.upward_init", 0, fan_in(kIn),
       [](Given v) { return Parts{gates(F::LSTM(kIn, kOut, {.upward_init = v}).upward.W)}; },
       "LSTM: upward_init has shape (7,), expected (out, in) = (30, 40)"},
      {"LSTM.lateral_init", 0, fan_in(kOut),
       [](Given v) { return Parts{gates(F::LSTM(kIn, kOut, {.lateral_init = v}).lateral.W)}; }},
      {"LSTM.bias_init", 0, 0,
       [](Given v) { return Parts{gates(F::LSTM(kIn, kOut, {.bias_init = v}).upward.b)}; }},
      {"LSTM.forget_bias_init", 0, 0,
       [](Given v) {
         const F::LSTM lstm(kIn, kOut, {.forget_bias_init = v});
         return Parts{{forget_block(lstm.upward.b), {kOut}}};
       },
       "LSTM: forget_bias_init has shape (7,), expected (out) = (30,)"},
      {"NStepLSTM.upward_init", 0, fan_in(kIn),
       [](Given v) {
         const F::NStepLSTM lstm(1, kIn, kOut, {.upward_init = v});
         return Parts{gates(lstm.layers[0].Wx)};
       }},
      {"NStepLSTM.lateral_init", 0, fan_in(kOut),
       [](Given v) {
         const F::NStepLSTM lstm(2, kIn, kOut, {.lateral_init = v});
         return Parts{gates(lstm.layers[0].Wh), gates(lstm.layers[1].Wh)};
       }},
      {"NStepLSTM.bias_init", 0, 0,
       [](Given v) {
         const F::NStepLSTM lstm(2, kIn, kOut, {.bias_init = v});
         return Parts{gates(lstm.layers[0].b), gates(lstm.layers[1].b)};
       }},
      {"NStepLSTM.forget_bias_init", 0, 0,
       [](Given v) {
         const F::NStepLSTM lstm(2, kIn, kOut, {.forget_bias_init = v});
         return Parts{{forget_block(lstm.layers[0].b), {kOut}},
                      {forget_block(lstm.layers[1].b), {kOut}}};
       }},
      {"StatefulGRU.init", 0, fan_in(kIn),
       [](Given v) {
         const F::StatefulGRU gru(kIn, kOut, {.init = v});
         return Parts{whole(gru.W_r.W), whole(gru.W_z.W), whole(gru.W.W)};
       },
       "StatefulGRU: init has shape (7,), expected (out, in) = (30, 40)"},
      {"StatefulGRU.inner_init", 0, fan_in(kOut),
       [](Given v) {
         const F::StatefulGRU gru(kIn, kOut, {.inner_init = v});
         return Parts{whole(gru.U_r.W), whole(gru.U_z.W), whole(gru.U.W)};
       }},
      {"StatefulGRU.bias_init", 0, 0,
       [](Given v) {
         const F::StatefulGRU gru(kIn, kOut, {.bias_init = v});
         return Parts{whole(gru.W_r.b), whole(gru.W_z.b), whole(gru.W.b)};
       }},
  };
}

// GoogLeNet's blocks with convolutions that all have 40 numbers for each of theirs.
std::vector<Case> block_cases() {
  return {
      {"Inception.conv_init", 0, fan_in(kIn),
       [](Given v) {
         const F::Inception block(kIn, 20, kIn, 8, kIn, 8, 20, {.conv_init = v});
         return Parts{whole(block.conv1.W), whole(block.proj3.W), whole(block.proj5.W),
                      whole(block.projp.W)};
       },
       "Convolution2D: initialW has shape (7,)"},
      {"Inception.conv_init, windows", 0, fan_in(9 * kIn),
       [](Given v) {
         const F::Inception block(kIn, 20, kIn, 8, kIn, 8, 20, {.conv_init = v});
         return Parts{whole(block.conv3.W)};
       },
       "Convolution2D: initialW has shape (7,)"},
      {"Inception.bias_init", 0, 0,
       [](Given v) {
         const F::Inception block(3, 2, 3, 4, 2, 3, 1, {.bias_init = v});
         return Parts{whole(block.conv1.b), whole(block.proj3.b), whole(block.conv3.b),
                      whole(block.proj5.b), whole(block.conv5.b), whole(block.projp.b)};
       },
       "Convolution2D: initial_bias has shape (7,)"},
      {"InceptionBN.conv_init", 0, fan_in(kIn),
       [](Given v) {
         const F::InceptionBN block(kIn, 20, kIn, 8, kIn, 8, "avg", 20, 1, {.conv_init = v});
         return Parts{whole(block.conv1->W), whole(block.proj3.W), whole(block.proj33.W),
                      whole(block.poolp->W)};
       },
       "Convolution2D: initialW has shape (7,)"},
      {"InceptionBN.conv_init, windows", 0, fan_in(9 * kIn),
       [](Given v) {
         const F::InceptionBN block(kIn, 20, kIn, kIn, kIn, kIn, "avg", 20, 1, {.conv_init = v});
         return Parts{whole(block.conv3.W), whole(block.conv33a.W), whole(block.conv33b.W)};
       },
       "Convolution2D: initialW has shape (7,)"},
      {"InceptionBN.initial_gamma", 1, 0,
       [](Given v) {
         const F::InceptionBN block(3, 2, 3, 4, 2, 3, "max", 1, 1, {.initial_gamma = v});
         return Parts{whole(block.conv1n->gamma),  whole(block.proj3n.gamma),
                      whole(block.conv3n.gamma),   whole(block.proj33n.gamma),
                      whole(block.conv33an.gamma), whole(block.conv33bn.gamma),
                      whole(block.poolpn->gamma)};
       },
       "BatchNormalization: initial_gamma has shape (7,)"},
      {"InceptionBN.initial_beta", 0, 0,
       [](Given v) {
         const F::InceptionBN block(3, 2, 3, 4, 2, 3, "max", 1, 1, {.initial_beta = v});
         return Parts{whole(block.conv1n->beta), whole(block.conv33bn.beta),
                      whole(block.poolpn->beta)};
       },
       "BatchNormalization: initial_beta has shape (7,)"},
  };
}

// Of products that all have 40 numbers for each of theirs.
std::vector<Case> attention_cases() {
  const std::string refused = "Linear: initialW has shape (7,)";
  const auto parts_of = [](const F::MultiHeadAttention& m) {
    return Parts{whole(m.in_proj_W), whole(m.out_proj.W)};
  };
  return {
      {"MultiHeadAttention.initialW", 0, fan_in(kIn),
       [=](Given v) { return parts_of(F::MultiHeadAttention(kIn, 4, {.initialW = v})); }, refused},
      {"MultiHeadAttention.initial_bias", 0, 0,
       [](Given v) {
         const F::MultiHeadAttention m(kIn, 4, {.initial_bias = v});
         return Parts{whole(*m.in_proj_b), whole(m.out_proj.b)};
       },
       "Linear: initial_bias has shape (7,)"},
      {"TransformerEncoderLayer.initialW", 0, fan_in(kIn),
       [=](Given v) {
         const F::TransformerEncoderLayer layer(kIn, 4, {.inner = kIn, .initialW = v});
         Parts parts = parts_of(layer.self_attn);
         for (const F::Linear* l : {&layer.linear1, &layer.linear2}) parts.push_back(whole(l->W));
         return parts;
       },
       refused},
      {"TransformerDecoderLayer.initialW", 0, fan_in(kIn),
       [=](Given v) {
         const F::TransformerDecoderLayer layer(kIn, 4, {.inner = kIn, .initialW = v});
         Parts parts = parts_of(layer.multihead_attn);
         for (const F::Linear* l : {&layer.linear1, &layer.linear2}) parts.push_back(whole(l->W));
         return parts;
       },
       refused},
      {"GatedMlp.initialW", 0, fan_in(kIn),
       [](Given v) {
         const F::GatedMlp mlp(kIn, kIn, {.initialW = v});
         return Parts{whole(mlp.gate_proj.W), whole(mlp.up_proj.W), whole(mlp.down_proj.W)};
       },
       refused},
  };
}

std::vector<Case> weight_cases() {
  return {
      {"Linear.initialW", 0, fan_in(kIn),
       [](Given v) { return Parts{whole(F::Linear(kIn, kOut, {.initialW = v}).W)}; }},
      {"Linear.initial_bias", 0, 0,
       [](Given v) { return Parts{whole(F::Linear(kIn, kOut, {.initial_bias = v}).b)}; }},
      {"Convolution2D.initialW", 0, fan_in(90),
       [](Given v) { return Parts{whole(F::Convolution2D(10, kOut, 3, {.initialW = v}).W)}; }},
      {"Convolution2D.initial_bias", 0, 0,
       [](Given v) { return Parts{whole(F::Convolution2D(2, kOut, 3, {.initial_bias = v}).b)}; }},
      {"ConvolutionND.initialW", 0, fan_in(50),
       [](Given v) {
         return Parts{whole(F::ConvolutionND(1, 10, kOut, 5, {.initialW = v}).W),
                      whole(F::Convolution1D(10, kOut, 5, {.initialW = v}).W)};
       }},
      {"ConvolutionND.initial_bias", 0, 0,
       [](Given v) { return Parts{whole(F::Convolution3D(2, kOut, 3, {.initial_bias = v}).b)}; }},
      {"Deconvolution2D.initialW", 0, fan_in(90),
       [](Given v) { return Parts{whole(F::Deconvolution2D(10, kOut, 3, {.initialW = v}).W)}; }},
      {"Deconvolution2D.initial_bias", 0, 0,
       [](Given v) { return Parts{whole(F::Deconvolution2D(2, kOut, 3, {.initial_bias = v}).b)}; }},
      {"Bilinear.initialW", 0, fan_in(120),
       [](Given v) { return Parts{whole(F::Bilinear(10, 12, kOut, {.initialW = v}).W)}; }},
      {"Bilinear.initial_bias.V1", 0, fan_in(kIn),
       [](Given v) {
         return Parts{whole(F::Bilinear(kIn, 5, kOut, {.initial_bias = {.V1 = v}}).V1)};
       }},
      {"Bilinear.initial_bias.V2", 0, fan_in(kIn),
       [](Given v) {
         return Parts{whole(F::Bilinear(5, kIn, kOut, {.initial_bias = {.V2 = v}}).V2)};
       }},
      {"Bilinear.initial_bias.b", 0, 0,
       [](Given v) { return Parts{whole(F::Bilinear(2, 3, kOut, {.initial_bias = {.b = v}}).b)}; }},
      {"EmbedID.initialW", 0, 1,
       [](Given v) { return Parts{whole(F::EmbedID(kIn, kOut, {.initialW = v}).W)}; }},
      {"Maxout.initialW", 0, fan_in(kIn),
       [](Given v) { return Parts{whole(F::Maxout(kIn, kOut, 2, {.initialW = v}).linear.W)}; },
       "Linear: initialW has shape (7,)"},
      {"Maxout.initial_bias", 0, 0,
       [](Given v) { return Parts{whole(F::Maxout(kIn, kOut, 2, {.initial_bias = v}).linear.b)}; },
       "Linear: initial_bias has shape (7,)"},
      {"NegativeSampling.initialW", 0, 0,
       [](Given v) {
         return Parts{whole(F::NegativeSampling(kIn, {3, 1, 2}, 2, {.initialW = v}).W)};
       }},
      {"BinaryHierarchicalSoftmax.initialW", 0, 1 / std::sqrt(3.0),
       [](Given v) {
         const F::BinaryTree tree{{1, 2}, {3, 4}};
         return Parts{whole(F::BinaryHierarchicalSoftmax(300, tree, {.initialW = v}).W)};
       }},
      {"PReLU.init", 0.25, 0, [](Given v) { return Parts{whole(F::PReLU({kOut}, {.init = v}).W)}; },
       "PReLU: init has shape (7,), expected shape = (30,)"},
  };
}

template <class Layer, class Options, class... Sizes>
std::vector<Case> scale_cases(const std::string& layer, Sizes... sizes) {
  return {{layer + ".initial_gamma", 1, 0,
           [=](Given v) {
             Options options;
             options.initial_gamma = v;
             return Parts{whole(Layer(sizes..., options).gamma)};
           }},
          {layer + ".initial_beta", 0, 0, [=](Given v) {
             Options options;
             options.initial_beta = v;
             return Parts{whole(Layer(sizes..., options).beta)};
           }}};
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::vector<Case>& some :
       {recurrent_cases(), block_cases(), weight_cases(), attention_cases(),
        sequence_cases<F::SequenceLSTM, F::SequenceLSTMOptions>("SequenceLSTM", 4),
        sequence_cases<F::SequenceGRU, F::SequenceGRUOptions>("SequenceGRU", 3),
        scale_cases<F::BatchNormalization, F::BatchNormalizationOptions>("BatchNormalization",
                                                                         kOut),
        scale_cases<F::GroupNormalization, F::GroupNormalizationOptions>("GroupNormalization", 2,
                                                                         kOut),
        scale_cases<F::InstanceNormalization, F::InstanceNormalizationOptions>(
            "InstanceNormalization", kOut),
        scale_cases<F::LayerNormalization, F::LayerNormalizationOptions>("LayerNormalization",
                                                                         kOut)})
    all.insert(all.end(), some.begin(), some.end());
  all.push_back({"RMSNormalization.initial_gamma", 1, 0, [](Given v) {
                   return Parts{whole(F::RMSNormalization(kOut, {.initial_gamma = v}).gamma)};
                 }});
  all.push_back({"BatchNormalization.initial_avg_var", 1, 0, [](Given v) {
                   const F::BatchNormalization bn(kOut, {.initial_avg_var = v});
                   return Parts{{bn.avg_var.data(), {kOut}}};
                 }});
  return all;
}

class LayerInitializers : public OnDevice {};

TEST_P(LayerInitializers, AConstantFillsWhatTheOptionStarts) {
  const DeviceScope scope(device());
  for (const Case& c : all_cases()) {
    for (const InitialValue& given : {InitialValue(Constant(0.5)), InitialValue(0.5)}) {
      for (const Started& started : c.make(given)) {
        EXPECT_EQ(started.array.device(), device()) << c.option;
        EXPECT_EQ(started.array.to_vector<double>(),
                  std::vector<double>(size_t(started.array.size()), 0.5))
            << c.option;
      }
    }
  }
}

// Each call of this one gives the same numbers, so that every part is known.
Array seeded(const Shape& shape, const ArrayOptions& options) {
  random::seed(5);
  return initializers::Normal(0.1)(shape, options);
}

TEST_P(LayerInitializers, ASeededOneMakesEachPart) {
  const DeviceScope scope(device());
  for (const Case& c : all_cases()) {
    for (const Started& started : c.make(seeded)) {
      const std::vector<double> part =
          seeded(started.part, {started.array.dtype(), device()}).to_vector<double>();
      std::vector<double> expected;
      while (int64_t(expected.size()) < started.array.size())
        expected.insert(expected.end(), part.begin(), part.end());
      EXPECT_EQ(started.array.to_vector<double>(), expected) << c.option;
    }
  }
}

TEST_P(LayerInitializers, WithoutTheOptionStartsAsDocumented) {
  const DeviceScope scope(device());
  random::seed(8);
  for (const Case& c : all_cases()) {
    for (const Started& started : c.make({})) {
      const std::vector<double> values = started.array.to_vector<double>();
      const double n = double(values.size());
      double sum = 0, squares = 0;
      for (const double v : values) sum += v;
      for (const double v : values) squares += (v - sum / n) * (v - sum / n);
      EXPECT_EQ(started.array.dtype(), dtype::float32) << c.option;
      // Five standard errors of each.
      EXPECT_NEAR(sum / n, c.mean, 5 * c.deviation / std::sqrt(n)) << c.option;
      EXPECT_NEAR(std::sqrt(squares / n), c.deviation, 5 * c.deviation / std::sqrt(2 * n))
          << c.option;
    }
  }
}

// Chainer's own options: a factor of the start values of W, and the number that b is filled with.
template <class Layer>
void expect_scaled(const std::function<Layer(double wscale, double bias)>& make, int64_t fan) {
  random::seed(8);
  const Layer layer = make(2, 0.5);
  const double n = double(layer.W.size());
  EXPECT_NEAR(catena::std(layer.W.data()).template item<double>(), 2 * fan_in(fan),
              10 * fan_in(fan) / std::sqrt(2 * n));
  EXPECT_EQ(layer.b.data().template to_vector<double>(), std::vector<double>(size_t(kOut), 0.5));
}

TEST_P(LayerInitializers, ScalesAndBiasesOfChainer) {
  const DeviceScope scope(device());
  expect_scaled<F::Linear>(
      [](double w, double b) { return F::Linear(kIn, kOut, {.wscale = w, .bias = b}); }, kIn);
  expect_scaled<F::Convolution2D>(
      [](double w, double b) { return F::Convolution2D(10, kOut, 3, {.wscale = w, .bias = b}); },
      90);
  expect_scaled<F::Convolution1D>(
      [](double w, double b) { return F::Convolution1D(10, kOut, 5, {.wscale = w, .bias = b}); },
      50);
  expect_scaled<F::Deconvolution2D>(
      [](double w, double b) { return F::Deconvolution2D(10, kOut, 3, {.wscale = w, .bias = b}); },
      90);
}

TEST_P(LayerInitializers, OtherShapesAreRefused) {
  const DeviceScope scope(device());
  const auto wrong = [](const Shape&, const ArrayOptions& options) { return ones({7}, options); };
  for (const Case& c : all_cases())
    expect_contains(error_of<ShapeError>([&] { c.make(wrong); }), {c.error()});
}

TEST_P(LayerInitializers, WhatIsNoStartIsRefused) {
  const DeviceScope scope(device());
  const auto nothing = [](const Shape&, const ArrayOptions&) { return Array(); };
  EXPECT_EQ(error_of<ValueError>([&] { F::Linear(2, 3, {.initialW = nothing}); }),
            "Linear: initialW has given an undefined array");
  EXPECT_EQ(error_of<ValueError>([&] { F::EmbedID(2, 3, {.initialW = Array()}); }),
            "EmbedID: initialW is an undefined array");
  EXPECT_EQ(error_of<ValueError>([&] { F::LSTM(2, 3, {.upward_init = Array()}); }),
            "LSTM: upward_init is an undefined array");
  const int64_t large = int64_t{1} << 32;
  expect_contains(error_of<ShapeError>([&] { F::Bilinear(large, large, 2); }),
                  {"Bilinear: shape (4294967296, 4294967296, 2)"});
  expect_contains(error_of<ShapeError>([&] {
                    F::Convolution2D(large, 1, {large, 4});
                  }),
                  {"Convolution2D: shape (1, 4294967296, 4294967296, 4)"});
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wscale : {-2.0, infinity, std::nan("")}) {
    expect_contains(error_of<ValueError>([&] { F::Linear(4, 3, {.wscale = wscale}); }),
                    {"Linear: expected a finite wscale of at least 0"});
  }
}

// Arrays of recurrent layers are those of all blocks, and each layer has its own.
TEST_P(LayerInitializers, RecurrentLayersCopyArrays) {
  const DeviceScope scope(device());
  const Array W = random_array({8, 3}, -1, 1, Dtype::kFloat64, device(), 1),
              b = random_array({8}, -1, 1, Dtype::kFloat64, device(), 2), f = ones({2});
  const F::LSTM lstm(3, 2, {.upward_init = W, .bias_init = b, .forget_bias_init = f});
  EXPECT_EQ(lstm.lateral.W.dtype(), dtype::float64);  // that of the array
  EXPECT_EQ(lstm.upward.W.data().to_vector<double>(), W.to_vector<double>());
  EXPECT_FALSE(lstm.upward.W.data().shares_memory_with(W));
  std::vector<double> expected = b.to_vector<double>();
  expected[4] = expected[5] = 1;
  EXPECT_EQ(lstm.upward.b.data().to_vector<double>(), expected);

  const Array square = random_array({8, 2}, -1, 1, Dtype::kFloat32, device(), 3);
  const F::NStepLSTM two(2, 2, 2, {.upward_init = square});
  EXPECT_FALSE(two.layers[0].Wx.data().shares_memory_with(two.layers[1].Wx.data()));
  EXPECT_EQ(two.layers[1].Wx.data().to_vector<double>(), square.to_vector<double>());
  expect_contains(error_of<ShapeError>([&] { F::NStepLSTM(2, 3, 2, {.upward_init = W}); }),
                  {"NStepLSTM: upward_init has shape (8, 3), expected (4 * out, in) = (8, 2)"});

  const Array start = random_array({2, 3}, -1, 1, Dtype::kFloat64, device(), 4);
  const F::StatefulGRU gru(3, 2, {.init = start});
  EXPECT_EQ(gru.U.W.dtype(), dtype::float64);
  EXPECT_EQ(gru.W_z.W.data().to_vector<double>(), start.to_vector<double>());
  EXPECT_FALSE(gru.W_z.W.data().shares_memory_with(gru.W_r.W.data()));
  EXPECT_FALSE(gru.W_z.W.data().shares_memory_with(start));
}

TEST_P(LayerInitializers, BlocksRefuseArrays) {
  expect_contains(error_of<ValueError>([] {
                    F::Inception(3, 2, 3, 4, 2, 3, 1, {.conv_init = ones({2, 3, 1, 1})});
                  }),
                  {"Inception: conv_init is an array", "give an initializer"});
  expect_contains(error_of<ValueError>([] {
                    F::InceptionBN(3, 0, 3, 4, 2, 3, "max", {}, 1, {.initial_beta = ones({4})});
                  }),
                  {"InceptionBN: initial_beta is an array"});
}

CATENA_ON_DEVICES(LayerInitializers);

}  // namespace
}  // namespace catena
