// Names of one library as those of another, and weights from elsewhere in a model.
#include "catena/serializers/name_map.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/connection/sequence_layers.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/serializers/safetensors.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

namespace F = catena::functions;
using Values = std::vector<double>;

TEST(NameMap, RulesApplyInOrder) {
  const NameMap names = NameMap()
                            .exact("head.weight", "module.weight")
                            .prefix("module.", "")
                            .skip(".*\\.mask")
                            .regex("h\\.(\\d+)\\.", "blocks.$1.")
                            .pytorch();
  EXPECT_EQ(names("head.weight"), "module.weight") << "no rule follows";
  EXPECT_EQ(names("module.h.11.fc.weight"), "blocks/11/fc/W");
  EXPECT_EQ(names("module.h.11.fc.bias"), "blocks/11/fc/b");
  EXPECT_EQ(names("h.0.mask"), std::nullopt);
  EXPECT_EQ(names("h.0.mask2"), "blocks/0/mask2");
  EXPECT_EQ(names("module.head.weight"), "head/W") << "exact names are those of its place";
  EXPECT_EQ(NameMap()("a.b"), "a.b");
  EXPECT_EQ(NameMap().prefix("a.", "b.")("xa.c"), "xa.c");
}

TEST(NameMap, LayersOfPytorch) {
  const NameMap from = NameMap::from_pytorch(), to = NameMap::to_pytorch();
  const std::set<std::string> model{"bn/gamma", "bn/beta", "fc/W"};
  EXPECT_EQ(from("bn.weight", model), "bn/gamma");
  EXPECT_EQ(from("bn.bias", model), "bn/beta");
  EXPECT_EQ(from("bn.weight"), "bn/W");
  EXPECT_EQ(from("fc.weight", model), "fc/W");
  EXPECT_EQ(from("weight"), "W");
  EXPECT_EQ(from("layer.weight_ih_l0"), "layer/weight_ih_l0");
  EXPECT_EQ(from("a.weight", {"a/weight"}), "a/weight");
  for (const auto& [torch, ours] : {std::pair{"a.b.weight", "a/b/W"},
                                    {"a.bias", "a/b"},
                                    {"bn.running_mean", "bn/avg_mean"},
                                    {"a.in_proj_weight", "a/in_proj_W"},
                                    {"a.in_proj_bias", "a/in_proj_b"},
                                    {"bn.running_var", "bn/avg_var"},
                                    {"bn.num_batches_tracked", "bn/N"},
                                    {"x.y", "x/y"}}) {
    EXPECT_EQ(from(torch), ours);
    EXPECT_EQ(to(ours), torch);
  }
  EXPECT_EQ(to("bn/gamma"), "bn.weight");
  EXPECT_EQ(to("bn/beta"), "bn.bias");
}

// nn.LSTM and nn.GRU of PyTorch 2 with these weights, over sequences of 2, 3 and 1 steps.
struct Recurrent {
  Values h, y;  // at the ends, and the sums of each step's numbers
};
const Recurrent kLstm{
    {-0.200031024, 0.130878743,  -0.415988925, 0.349130111,  -0.356667400, 0.308803792,
     0.075319406,  0.066122312,  0.287850669,  0.147557314,  0.045962285,  0.018191105,
     0.049948379,  -0.045349097, 0.058690140,  -0.063828867, 0.028747283,  -0.029022558,
     -0.100803748, -0.257465175, -0.118867287, -0.280870797, -0.056697895, -0.194396934},
    {-0.356182284, -0.399329240, -0.251370104, -0.244729109, -0.345554702, 0, 0, -0.258964028, 0}};
const Recurrent kGru{
    {0.199055841,  0.503906584,  0.286723722, 0.912217209,  -0.165911462, 0.860482054,
     -0.136275422, 0.816187738,  0.823904760, 0.578090663,  -0.056978882, 0.863200459,
     0.142126924,  -0.044659685, 0.218734827, 0.113681765,  0.130903040,  -0.119871474,
     -0.148063820, -0.814234007, 0.095709871, -0.953277052, -0.045021637, -0.637051412},
    {-1.000105371, -0.750599414, -0.671041483, -0.593119898, -0.481625713, 0, 0, -0.328954562, 0}};

// A state_dict of a module rnn: sin(0.7 i) for element i of all parameters in order.
NamedArrays recurrent_weights(int64_t gates) {
  NamedArrays weights;
  int64_t next = 0;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const int64_t count = element_count(shape);
    weights.emplace_back(
        "rnn." + name,
        catena::sin(0.7 * arange(next, next + count, dtype::float64)).reshape(shape));
    next += count;
  };
  for (const char* end : {"_l0", "_l0_reverse", "_l1", "_l1_reverse"}) {
    const int64_t in = std::string(end)[2] == '0' ? 2 : 4;
    add(std::string("weight_ih") + end, {2 * gates, in});
    add(std::string("weight_hh") + end, {2 * gates, 2});
    add(std::string("bias_ih") + end, {2 * gates});
    add(std::string("bias_hh") + end, {2 * gates});
  }
  return weights;
}

template <class Layer, class Options>
void expect_pytorch(int64_t gates, const Recurrent& expected) {
  struct Model : FunctionSet {
    Layer rnn{2, 2, Options{.layers = 2, .bidirectional = true, .dtype = dtype::float64}};
    CATENA_FUNCTIONS(rnn)
  } model;
  const NamedArrays weights = recurrent_weights(gates);
  load_into(model, weights, NameMap::from_pytorch());
  const Array x = catena::cos(1.3 * arange(18, dtype::float64)).reshape({3, 3, 2});
  const auto result = model.rnn(x, array({2, 3, 1}));
  const auto expect_near = [](const Array& got, const Values& numbers) {
    const Values values = got.to_vector<double>();
    ASSERT_EQ(values.size(), numbers.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], numbers[i], 1e-9) << i;
  };
  expect_near(result.hy.data(), expected.h);
  expect_near(sum(result.ys.data(), 2), expected.y);
  const NameMap to = NameMap::to_pytorch();
  for (const auto& [name, p] : model.named_parameters())
    EXPECT_EQ(to(name)->substr(0, 11), "rnn." + std::string(name, 4, 7)) << name;
}

TEST(NameMap, RecurrentLayersOfPytorch) {
  expect_pytorch<F::SequenceLSTM, F::SequenceLSTMOptions>(4, kLstm);
  expect_pytorch<F::SequenceGRU, F::SequenceGRUOptions>(3, kGru);
}

TEST(NameMap, FromText) {
  const TempFolder folder;
  const std::string path = folder / "names.txt";
  write_file(path,
             "# a comment\n\nexact head.weight out/W\nprefix module.\nprefix net. main.\n"
             "skip .*mask\nregex \\.conv(\\d) .$1\npytorch\n");
  const NameMap names = NameMap::read(path);
  EXPECT_EQ(names("head.weight"), "out/W");
  EXPECT_EQ(names("module.net.conv3.weight"), "main/3/W");
  EXPECT_EQ(names("module.mask"), std::nullopt);
  EXPECT_EQ(NameMap::parse("to-pytorch", "x")("a/W"), "a.weight");
  for (const char* line :
       {"exact a", "exact a b c", "prefix", "regex", "skip a b", "pytorch x", "rename a b"})
    expect_contains(
        error_of<ValueError>([&] { NameMap::parse(std::string("pytorch\n") + line, "n.txt"); }),
        {"n.txt, line 2", line, "expected 'exact FROM TO'"});
  expect_contains(error_of<ValueError>([&] { NameMap::parse("skip (", "n.txt"); }),
                  {"'(' is not a regular expression"});
  expect_contains(error_of<IoError>([&] { NameMap::read(folder / "absent"); }), {"absent"});
}

TEST(NameMap, KeepsWhatAPatternIsAllOf) {
  const NameMap names = NameMap::parse("  # what the file lacks\nkeep l1/.*\n", "text");
  EXPECT_TRUE(names.keeps("l1/W"));
  EXPECT_FALSE(names.keeps("xl1/W"));
}

TEST(NameMap, Refuses) {
  const Array x = ones({1});
  expect_contains(error_of<ValueError>([&] {
                    NameMap().regex("\\d", "")(NamedArrays{{"a1", x}, {"a2", x}});
                  }),
                  {"'a1' and 'a2' both become 'a'"});
  expect_contains(error_of<ValueError>([&] { NameMap().skip("x")(std::string(3000, 'a')); }),
                  {"a name of 3000 bytes, at most 2000"});
  EXPECT_EQ(NameMap().skip("b")(NamedArrays{{"a", x}, {"b", x}}).size(), 1u);
}

struct Net : FunctionSet {
  F::Linear fc1{4, 3}, fc2{3, 2};
  F::BatchNormalization bn{3};
  CATENA_FUNCTIONS(fc1, bn, fc2)
};

NamedArrays state_dict() {
  return {{"fc1.weight", full({3, 4}, 1.0, dtype::float32)},
          {"fc1.bias", full({3}, 2.0, dtype::float32)},
          {"bn.weight", full({3}, 3.0, dtype::float32)},
          {"bn.bias", full({3}, 4.0, dtype::float32)},
          {"bn.running_mean", full({3}, 5.0, dtype::float64)},
          {"bn.running_var", full({3}, 6.0, dtype::float16)},
          {"bn.num_batches_tracked", full({}, 7, dtype::int64)},
          {"fc2.weight", full({2, 3}, 8.0, dtype::float32)},
          {"fc2.bias", full({2}, 9.0, dtype::float32)}};
}

TEST(LoadInto, StateDictsOfPytorch) {
  Net net;
  load_into(net, state_dict(), NameMap::from_pytorch());
  EXPECT_EQ(net.fc1.W.data().to_vector<double>(), Values(12, 1));
  EXPECT_EQ(net.bn.gamma.data().to_vector<double>(), Values(3, 3));
  EXPECT_EQ(net.bn.avg_mean.data().to_vector<double>(), Values(3, 5));
  EXPECT_EQ(net.bn.avg_var.data().to_vector<double>(), Values(3, 6));
  EXPECT_EQ(net.bn.N.data().item<int>(), 7);
  EXPECT_EQ(net.fc2.b.data().to_vector<double>(), Values(2, 9));
  EXPECT_EQ(net.bn.avg_mean.dtype(), dtype::float32);
}

// PyTorch's .pt files have both names of a tied weight, safetensors one of them.
TEST(LoadInto, TakesTiedParametersByAnyName) {
  struct Tied : FunctionSet {
    F::Linear fc1{2, 2, {.nobias = true}}, fc2{2, 2, {.nobias = true}};
    CATENA_FUNCTIONS(fc1, fc2)
    Tied() { fc2.W.tie_to(fc1.W); }
  } net;
  const auto load = [&](const NamedArrays& arrays) {
    load_into(net, arrays, NameMap::from_pytorch());
    return net.fc1.W.data().to_vector<double>();
  };
  const auto values = [](double value) { return full({2, 2}, value, dtype::float32); };
  EXPECT_EQ(load({{"fc1.weight", values(1)}, {"fc2.weight", values(1)}}), Values(4, 1));
  EXPECT_EQ(load({{"fc2.weight", values(2)}}), Values(4, 2));
  EXPECT_EQ(load({{"fc1.weight", values(3)}}), Values(4, 3));
  EXPECT_THROW(load({{"fc3.weight", values(3)}}), IoError);
}

TEST(LoadInto, NamesTheFirstMismatchAndListsBothSides) {
  const TempFolder folder;
  const std::string path = folder / "net.safetensors";
  Net net;
  const auto before = net.fc1.W.data().to_vector<double>();
  const auto told = [&](const NamedArrays& arrays, const NameMap& names) {
    save_safetensors(path, arrays);
    return error_of<IoError>([&] { load_into(net, SafetensorsFile(path), names); });
  };
  NamedArrays arrays = state_dict();
  arrays[7].second = ones({3, 2}, dtype::float32);
  arrays[6].second = ones({}, dtype::float32);
  arrays[8].first = "fc3.bias";
  const std::string text = told(arrays, NameMap::from_pytorch());
  expect_contains(
      text, {"load_into: '", "net.safetensors' does not fit the model; first mismatch: ",
             "'fc2/W' is (2, 3) float32 in the model, 'fc2.weight' (3, 2) float32 in '",
             "\n  the model", "\n  fc1/W (3, 4) float32      fc1.weight (3, 4) float32\n",
             "fc2.weight (3, 2) float32  <- shape\n", "fc2/b (2,) float32        -  <- missing\n",
             "bn.num_batches_tracked () float32  <- dtype\n",
             "\n  -                         fc3.bias (2,) float32  <- unknown"});
  EXPECT_EQ(net.fc1.W.data().to_vector<double>(), before);
  // Names as they are.
  expect_contains(told(state_dict(), {}),
                  {"'fc1/W' is (3, 4) float32 in the model, missing in '",
                   "The names are PyTorch's: give NameMap::from_pytorch()"});
  expect_contains(told({{"x", ones({1})}}, {}), {"by the rules of a NameMap"});
  expect_contains(
      error_of<ValueError>([&] {
        load_into(net, {{"a", ones({1})}, {"b", ones({1})}}, NameMap().regex("[ab]", "c"));
      }),
      {"'a' and 'b' both become 'c'"});
  // What the model lacks must be left out by a rule.
  NamedArrays more = state_dict();
  more.emplace_back("head.weight", ones({1}));
  expect_contains(told(more, NameMap::from_pytorch()),
                  {"first mismatch: 'head.weight' is (1,) float64 in '", "unknown to the model"});
  EXPECT_EQ(told(more, NameMap().skip("head\\..*").pytorch()), "no error");
  NamedArrays large = state_dict();
  large[0].second = full({3, 4}, 1e300, dtype::float64);
  expect_contains(told(large, NameMap::from_pytorch()),
                  {"fc1/W: 12 finite values of float64 are infinite in float32"});
  expect_contains(error_of<IoError>([&] { load_into(net, NamedArrays{}, {}, "a message"); }),
                  {"load_into: a message does not fit"});
}

// A new head on a network that is there.
TEST(LoadInto, KeepsWhatTheFileMayLack) {
  Net net;
  NamedArrays arrays = state_dict();
  arrays.resize(7);  // without fc2
  arrays.emplace_back("old.weight", ones({9}));
  const auto head = net.fc2.W.data().to_vector<double>();
  const NameMap names = NameMap().skip("old\\..*").keep("fc2/.*").pytorch();
  load_into(net, arrays, names);
  EXPECT_EQ(net.fc1.W.data().to_vector<double>(), Values(12, 1));
  EXPECT_EQ(net.fc2.W.data().to_vector<double>(), head);
  load_into(net, state_dict(), names);  // it is there: taken
  EXPECT_EQ(net.fc2.W.data().to_vector<double>(), Values(6, 8));
  arrays.erase(arrays.begin());
  expect_contains(error_of<IoError>([&] { load_into(net, arrays, names); }),
                  {"first mismatch: 'fc1/W' is (3, 4) float32 in the model, missing",
                   "fc2/W (2, 3) float32      -  (kept)\n"});
  EXPECT_TRUE(NameMap::parse("keep fc2/.*", "x").keeps("fc2/W"));
  EXPECT_FALSE(names.keeps("fc1/W"));
  EXPECT_FALSE(NameMap().keeps(""));
}

TEST(CompareTensors, LongTablesShowWhatDiffers) {
  NamedArrays left, right;
  for (int i = 0; i < 200; ++i) {
    left.emplace_back("x" + std::to_string(i), ones({2}));
    right.emplace_back("x" + std::to_string(i), ones({i < 100 ? 2 : 3}));
  }
  const auto comparison = compare_tensors(tensor_infos(left), tensor_infos(right));
  EXPECT_FALSE(comparison.fits);
  EXPECT_EQ(comparison.first_mismatch, "'x100' is (2,) float64 in left, (3,) float64 in right");
  EXPECT_EQ(std::count(comparison.table.begin(), comparison.table.end(), '\n'), 61);
  expect_contains(comparison.table,
                  {"x159 (2,) float64", "and 100 that fit, and 40 more that do not"});
  EXPECT_EQ(comparison.table.find("x99 "), comparison.table.npos);
  const auto same = compare_tensors(tensor_infos(left), tensor_infos(left));
  EXPECT_TRUE(same.fits);
  EXPECT_EQ(same.first_mismatch, "");
  expect_contains(same.table, {"and 200 that fit"});
  left.resize(60);
  const std::string whole = compare_tensors(tensor_infos(left), tensor_infos(left)).table;
  EXPECT_NE(whole.find("x59 "), whole.npos) << "as many as are shown";
}

TEST(CompareTensors, FloatsFitEachOtherOnRequest) {
  const auto left = tensor_infos({{"x", ones({2})}});
  const auto right = tensor_infos({{"x", ones({2}, dtype::float16)}});
  EXPECT_FALSE(compare_tensors(left, right).fits);
  EXPECT_TRUE(compare_tensors(left, right, {.converts_floats = true}).fits);
  EXPECT_FALSE(compare_tensors(left, tensor_infos({{"x", ones({2}, dtype::int8)}}),
                               {.converts_floats = true})
                   .fits);
}

}  // namespace
}  // namespace catena::serializers
