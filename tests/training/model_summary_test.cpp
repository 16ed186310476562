// Summaries of models: rows, shapes, costs by hand, totals, what the call must not change.
#include "catena/training/model_summary.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "catena/array/logic.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/activation/lstm.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/functions/connection/stateful_gru.h"
#include "catena/functions/math.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization.h"
#include "error_text.h"

namespace catena::training {
namespace {

namespace F = catena::functions;

struct Block : FunctionSet {
  F::Convolution2D conv{2, 6, 3, {.stride = 2, .pad = 1, .groups = 2}};
  F::BatchNormalization bn{6};
  CATENA_FUNCTIONS(conv, bn)
  Variable operator()(const Variable& x) { return F::relu(bn(conv(x))); }
};

struct Net : FunctionSet {
  Block block;
  F::Dropout dropout{0.5};
  F::Linear last{6 * 4 * 4, 10}, spare{3, 2};
  CATENA_FUNCTIONS(block, dropout, last, spare)
  Variable operator()(const Variable& x) {
    const Variable h = F::reshape(dropout(block(x)), {-1, 6 * 4 * 4});
    return last(h) + last(h);
  }
};

TEST(Summary, CountsByHand) {
  Net net;
  const ModelSummary s = summary(net, zeros({5, 2, 8, 8}, dtype::float32));
  std::vector<std::string> types, paths;
  for (const LayerSummary& l : s.layers) {
    types.push_back(l.type);
    paths.push_back(l.path);
  }
  EXPECT_EQ(paths,
            (std::vector<std::string>{"block/conv", "block/bn", "", "", "", "last", "last", ""}));
  const LayerSummary &conv = s.layers[0], &reshape = s.layers[4], &last = s.layers[5];
  EXPECT_EQ(conv.type, "Convolution2D");
  EXPECT_EQ(conv.inputs, (std::vector<Shape>{{5, 2, 8, 8}}));
  EXPECT_EQ(conv.outputs, (std::vector<Shape>{{5, 6, 4, 4}}));
  EXPECT_EQ(conv.parameters, 6 * 1 * 3 * 3 + 6);
  EXPECT_EQ(conv.multiply_adds, 5 * 6 * 4 * 4 * (1 * 3 * 3));
  EXPECT_EQ(conv.activation_bytes, 5 * 6 * 4 * 4 * 4);
  EXPECT_EQ(reshape.activation_bytes, 0) << "a view";
  EXPECT_EQ(last.multiply_adds, 5 * 96 * 10);
  EXPECT_EQ(last.parameters, 970);
  EXPECT_EQ(s.layers[6].parameters, 0) << "counted once";
  EXPECT_EQ(s.layers[6].multiply_adds, last.multiply_adds);
  EXPECT_EQ(s.parameters, net.parameter_count());
  EXPECT_EQ(s.parameter_bytes, 4 * net.parameter_count());
  EXPECT_EQ(s.persistents, 2 * 6 + 1);
  EXPECT_EQ(s.multiply_adds, conv.multiply_adds + 2 * last.multiply_adds);
  EXPECT_EQ(s.activation_bytes, 4 * 5 * 96 * 4 + 3 * 5 * 10 * 4);
  EXPECT_EQ(s.unused, (std::vector<std::string>{"spare/W", "spare/b"}));
}

TEST(Summary, CountsProductsAndRecurrentLayers) {
  struct Products : FunctionSet {
    F::NStepLSTM lstm{2, 3, 4};
    CATENA_FUNCTIONS(lstm)
    void operator()(const Variable& xs, const Variable& a, const Variable& b) {
      lstm(xs);
      F::matmul(a, b, true, false);
      F::batch_matmul(xs, xs, false, true);
      F::matmul(a(0), a(0), true, false);
    }
  } model;
  const ModelSummary s =
      summary(model, zeros({7, 5, 3}, dtype::float32), Variable(zeros({6, 2}, dtype::float32)),
              Variable(zeros({6, 8}, dtype::float32)));
  EXPECT_EQ(s.multiply_adds,
            7 * 5 * (16 * 3 + 16 * 4 + 16 * 4 + 16 * 4) + 2 * 6 * 8 + 7 * 5 * 3 * 5 + 2);
}

TEST(Summary, CountsTiedParametersOnce) {
  struct Tied : FunctionSet {
    F::Linear a{4, 4, {.nobias = true}}, b{4, 4, {.nobias = true}};
    CATENA_FUNCTIONS(a, b)
    Tied() { b.W.tie_to(a.W); }
  } model;
  const ModelSummary summary = summarize(model, [&] {
    model.b(model.a(Variable::constant(ones({1, 4}, dtype::float32))));
  });
  EXPECT_EQ(summary.parameters, 16);
  EXPECT_EQ(summary.parameter_bytes, 64);
  EXPECT_EQ(summary.layers[0].parameters + summary.layers[1].parameters, 16);
}

TEST(Summary, CountsTransposedConvolutions) {
  F::Deconvolution2D layer(4, 6, {3, 2}, {.stride = 2, .groups = 2});
  const ModelSummary s = summary(layer, zeros({5, 4, 7, 8}, dtype::float32));
  EXPECT_EQ(s.multiply_adds, 5 * 4 * 7 * 8 * (6 / 2 * 3 * 2));
}

TEST(Summary, PrintsAnAlignedTable) {
  struct Small : FunctionSet {
    F::Linear l1{784, 1000}, l2{1000, 10};
    CATENA_FUNCTIONS(l1, l2)
    Variable operator()(const Variable& x) { return l2(F::relu(l1(x))); }
  } model;
  EXPECT_EQ(summary(model, zeros({64, 784}, dtype::float32)).to_string(),
            "layer  type    input       output      parameters  multiply-adds  activations\n"
            "l1     Linear  (64, 784)   (64, 1000)     785,000     50,176,000    250.0 KiB\n"
            "       relu    (64, 1000)  (64, 1000)                               250.0 KiB\n"
            "l2     Linear  (64, 1000)  (64, 10)        10,010        640,000      2.5 KiB\n"
            "total                                     795,010     50,816,000    502.5 KiB\n"
            "parameters: 3.0 MiB\n");
}

// The numbers under autocast are those of the same layers; copies in bfloat16 are calls as well.
TEST(Summary, SeesThroughAutocast) {
  Net net;
  const AutocastScope autocast(dtype::bfloat16);
  const ModelSummary s = summary(net, zeros({5, 2, 8, 8}, dtype::float32));
  EXPECT_EQ(s.multiply_adds, 5 * 6 * 4 * 4 * 9 + 2 * 5 * 96 * 10);
  std::vector<int64_t> parameters;
  for (const LayerSummary& l : s.layers)
    if (l.type == "Linear" && l.path == "last") parameters.push_back(l.parameters);
  EXPECT_EQ(parameters, (std::vector<int64_t>{970, 0}));
  EXPECT_EQ(s.unused, (std::vector<std::string>{"spare/W", "spare/b"}));
}

TEST(Summary, LeavesTheModelAsItWas) {
  Net net;
  random::seed(3);
  net.zero_grads();
  net.block.bn.avg_mean.count_samples(7);
  const auto state = random::default_state(cpu()).state();
  const Array x = ones({5, 2, 8, 8}, dtype::float32);
  {
    const NoBackprop nothing_recorded;
    summarize(net, [&] { EXPECT_NE(net(x).creator(), nullptr) << "recorded"; });
    EXPECT_FALSE(is_recording());
  }
  EXPECT_EQ(random::default_state(cpu()).state().offset, state.offset);
  EXPECT_TRUE(all(net.block.bn.avg_mean.data() == 0).item<bool>());
  EXPECT_EQ(net.block.bn.avg_mean.samples(), 7);
  EXPECT_TRUE(net.training());
  const auto fails = [&] {
    summarize(net, [&] {
      net(x);
      throw std::runtime_error("no more");
    });
  };
  EXPECT_EQ(error_of<std::runtime_error>(fails), "no more");
  EXPECT_TRUE(all(net.block.bn.avg_mean.data() == 0).item<bool>());
  expect_contains(error_of<InvalidType>([&] {
                    summary(net, zeros({5, 3, 8, 8}));
                  }),
                  {"Convolution2D 'block/conv'"});
}

struct Recurrent : FunctionSet {
  F::LSTM lstm{4, 3};
  F::StatefulGRU gru{3, 2};
  CATENA_FUNCTIONS(lstm, gru)
  Variable operator()(const Variable& x) { return gru(lstm(x)); }
};

TEST(Summary, LeavesStatesOfRecurrentLayers) {
  Recurrent net;
  summary(net, zeros({32, 4}, dtype::float32));
  EXPECT_FALSE(net.lstm.h.defined());
  EXPECT_FALSE(net.gru.h.defined());
  const Variable x = Variable::constant(ones({8, 4}, dtype::float32));
  const Variable first = net(x);
  const Array c = net.lstm.c.data();
  summary(net, zeros({32, 4}, dtype::float32));
  EXPECT_TRUE(all(equal(net.lstm.c.data(), c)).item<bool>());
  EXPECT_TRUE(all(equal(net.gru.h.data(), first.data())).item<bool>());
}

TEST(Summary, OfAModelWithoutParameters) {
  struct Nothing : FunctionSet {
    CATENA_FUNCTIONS(dropout)
    F::Dropout dropout{0.5};
    Variable operator()(const Variable& x) { return x; }
  } model;
  const ModelSummary s = summary(model, zeros({2}, dtype::float32));
  EXPECT_TRUE(s.layers.empty());
  EXPECT_EQ(s.to_string(),
            "layer  type  input  output  parameters  multiply-adds  activations\n"
            "total\n");
}

}  // namespace
}  // namespace catena::training
