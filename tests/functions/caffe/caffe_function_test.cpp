// CaffeFunction as a function and as a model: which layers a call runs, training, names, copies,
// files, devices.
#include "catena/autograd/backward.h"
#include "catena/core/graph.h"
#include "catena/core/memory.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/optimizers/sgd.h"
#include "catena/serializers/npz.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "functions/caffe/caffe_models.h"
#include "functions/caffe/wire.h"

namespace catena {
namespace {

using namespace caffe_models;

// Layers in place, one of data, a loss, and names with slashes, of which one is the beginning of
// another. `more` goes before the loss.
std::string net_text(const std::string& more) {
  return "name: 'net' "
         "layer { name: 'source' type: 'Data' top: 'data' top: 'label' } "
         "layer { name: 'block' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { "
         "num_output: 3 kernel_size: 3 pad: 1 } " +
         blob(numbers({3, 2, 3, 3}, 1)) + blob(numbers({3}, 2)) +
         "} layer { name: 'relu' type: 'ReLU' bottom: 'c' top: 'c' } "
         "layer { name: 'block/1x1' type: 'Convolution' bottom: 'c' top: 'c' convolution_param { "
         "num_output: 2 kernel_size: 1 bias_term: false } " +
         blob(numbers({2, 3, 1, 1}, 3)) +
         "} layer { name: 'drop' type: 'Dropout' bottom: 'c' top: 'd' } "
         "layer { name: 'fc' type: 'InnerProduct' bottom: 'd' top: 'fc' inner_product_param { "
         "num_output: 4 } " +
         blob(numbers({4, 32}, 4)) + blob(numbers({4}, 5)) + "} " + more +
         "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }";
}
// Without and with a layer that is not supported.
const int g_nets =
    Models::all().add("Net", net_text("")) +
    Models::all().add("Odd",
                      net_text("layer { name: 'odd' type: 'Python' bottom: 'c' top: 'o' } "
                               "layer { name: 'after' type: 'ReLU' bottom: 'o' top: 'p' } "));

class CaffeFunction : public OnDevice {
 protected:
  void SetUp() override { CATENA_NEEDS_PROTOBUF(); }
  F::CaffeFunction net(const char* name = "Net") const {
    F::CaffeFunction f(Models::all().path(name));
    f.to(device());
    return f;
  }
  // The one with a layer that is not supported, and the warnings that it gives.
  std::pair<F::CaffeFunction, std::string> odd_net() const {
    ::testing::internal::CaptureStderr();
    F::CaffeFunction f = net("Odd");
    return {std::move(f), ::testing::internal::GetCapturedStderr()};
  }
  Array data() const { return numbers({2, 2, 4, 4}, 0.3).to(device()); }
};

// The scores, without dropout.
Array scores(const F::CaffeFunction& f, const Array& data) {
  return f({{"data", data}}, {"fc"}, {}, false)[0].data();
}

TEST_P(CaffeFunction, ListsWhatTheFileHas) {
  const F::CaffeFunction f = odd_net().first;
  EXPECT_EQ(f.forwards(), (std::vector<std::string>{"block", "relu", "block/1x1", "drop", "fc",
                                                    "after", "loss"}));
  ASSERT_EQ(f.layers().size(), 9u);
  EXPECT_EQ(f.layers()[6].type, "Python");
  EXPECT_FALSE(f.layers()[6].is_supported);
  EXPECT_EQ(f.layers()[8].bottoms, (std::vector<std::string>{"fc", "label"}));
  EXPECT_EQ(f.parameter_names(),
            (std::vector<std::string>{"block/W", "block/b", "block/1x1/W", "fc/W", "fc/b"}));
}

TEST_P(CaffeFunction, WarnsOfLayersButThoseOfData) {
  const std::string text = odd_net().second;
  expect_contains(text, {"layer 'odd' is left out, for its type is not supported: Python"});
  EXPECT_EQ(text.find("source"), std::string::npos) << text;
}

TEST_P(CaffeFunction, RunsLayersInOrder) {
  F::CaffeFunction f = net();
  const auto& first = f.fs.get<F::Convolution2D>("block");
  const auto& second = f.fs.get<F::Convolution2D>("block/1x1");
  const auto& fc = f.fs.get<F::Linear>("fc");
  const Variable c = second(F::relu(first(data())));
  const Variables y = f({{"data", data()}}, {"fc", "c", "data"}, {}, false);
  EXPECT_EQ(testing::difference(y[0].data(), fc(c).data()), "");
  EXPECT_EQ(testing::difference(y[1].data(), c.data()), "");
  EXPECT_EQ(testing::difference(y[2].data(), data()), "");
  // A blob that is given needs no layer; a layer that is disabled leaves its blob as it is.
  EXPECT_EQ(testing::difference(f({{"d", c.data()}}, {"fc"})[0].data(), fc(c).data()), "");
  const Variable without = f({{"data", data()}}, {"c"}, {"relu", "block/1x1"})[0];
  EXPECT_EQ(testing::difference(without.data(), first(data()).data()), "");
}

TEST_P(CaffeFunction, SaysWhyABlobIsNotThere) {
  const F::CaffeFunction f = odd_net().first;
  const auto text = [&](const std::vector<std::string>& outputs,
                        const std::vector<std::string>& disable = {}) {
    return error_of<IndexError>([&] { f({{"data", data()}}, outputs, disable); });
  };
  EXPECT_EQ(text({"fc8"}),
            "CaffeFunction: the blob 'fc8' is not in the model; known are: data, c, d, fc");
  EXPECT_EQ(text({"fc", "loss"}),
            "CaffeFunction: the blob 'loss' is not computed by the layer 'loss', for the blob "
            "'label' is missing; known are: data, c, d, fc");
  EXPECT_EQ(text({"o"}),
            "CaffeFunction: the blob 'o' is not computed by the layer 'odd', whose type is not "
            "supported: Python; known are: data, c, d, fc");
  EXPECT_EQ(text({"d"}, {"drop"}),
            "CaffeFunction: the blob 'd' is not computed by the layer 'drop', which is disabled; "
            "known are: data, c");
  EXPECT_EQ(text({"d"}, {"dropout"}),
            "CaffeFunction: there is no layer named 'dropout' to disable");
}

// Blobs go after their last use: a chain needs the memory of two, not of all.
TEST_P(CaffeFunction, LetsBlobsGo) {
  Wire file;
  for (int i = 0; i < 8; ++i)
    file.message(100, wire_layer(message("r", i), "Sigmoid", i == 0 ? "data" : message("b", i - 1),
                                 message("b", i)));
  const TempFolder folder;
  write_file(folder / "chain", file.text());
  const F::CaffeFunction f(folder / "chain");
  const int64_t bytes = 1 << 20;
  const Variable x(ones({bytes / 4}, {Dtype::kFloat32, device()}), Volatile::on);
  free_all_blocks(device());
  set_memory_limit(device(), memory_statistics(device()).in_use + 3 * size_t(bytes));
  EXPECT_NO_THROW(f({{"data", x}}, {"b7"}));
  set_memory_limit(device(), 0);
}

TEST_P(CaffeFunction, IsTrained) {
  F::CaffeFunction f = net();
  optimizers::SGD optimizer(0.1);
  optimizer.setup(f);
  const Array t = array<int32_t>({2, 0}).to(device());
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i) {
    const Variable loss = f({{"data", data()}, {"label", t}}, {"loss"}, {}, false)[0];
    optimizer.zero_grads();
    loss.backward();
    optimizer.update();
    losses.push_back(loss.item<float>());
  }
  EXPECT_LT(losses.back(), losses.front() / 2);
}

TEST_P(CaffeFunction, GradientsAreThoseOfItsFunctions) {
  F::CaffeFunction f = net();
  const auto& first = f.fs.get<F::Convolution2D>("block");
  const Variable x(data());
  const Variable y = f({{"data", x}}, {"fc"}, {}, false)[0];
  const Array gy = numbers({2, 4}, 7).to(device());
  y.set_grad(gy);
  y.backward();
  const Array gx = x.grad(), gW = first.W.grad().copy();
  f.zero_grads();
  const Variable again(data());
  const Variable by_hand =
      f.fs.get<F::Linear>("fc")(f.fs.get<F::Convolution2D>("block/1x1")(F::relu(first(again))));
  by_hand.set_grad(gy);
  by_hand.backward();
  EXPECT_EQ(testing::difference(gx, again.grad()), "");
  EXPECT_EQ(testing::difference(gW, first.W.grad()), "");
}

// Names with slashes are names: of the bag, of paths in models, and in files.
TEST_P(CaffeFunction, NamesWithSlashesDoNotCollide) {
  struct Whole : FunctionSet {
    explicit Whole(const F::CaffeFunction& f) : caffe(f) {}
    F::CaffeFunction caffe;
    CATENA_FUNCTIONS(caffe)
  } model(net());
  EXPECT_EQ(&model["caffe/block/1x1"], &model.caffe.fs["block/1x1"]);
  EXPECT_EQ(&model["caffe/block"], &model.caffe.fs["block"]);
  const TempFolder folder;
  serializers::save(folder / "m.npz", model);
  const Array expected = scores(model.caffe, data());
  for (const Parameter& p : model.parameters()) p.data().fill(0);
  serializers::load(folder / "m.npz", model);
  EXPECT_EQ(testing::difference(scores(model.caffe, data()), expected), "");
}

TEST_P(CaffeFunction, CopiesAreIndependent) {
  F::CaffeFunction f = net();
  const F::CaffeFunction copy = f;
  const Array expected = scores(copy, data());
  for (const Parameter& p : f.parameters()) p.data().fill(0);
  EXPECT_EQ(testing::difference(scores(copy, data()), expected), "");
  F::CaffeFunction moved = std::move(f);
  EXPECT_EQ(scores(moved, data()).shape(), (Shape{2, 4}));
  EXPECT_THROW(f.layers(), ValueError);
}

TEST_P(CaffeFunction, RefusesWhatDoesNotFit) {
  const F::CaffeFunction f = net();
  const std::string text = error_of<InvalidType>([&] {
    f({{"data", zeros({2, 3, 4, 4}, {Dtype::kFloat32, device()})}}, {"fc"});
  });
  expect_contains(text, {"Convolution2D"});
  EXPECT_THROW(f({{"data", Variable()}}, {"fc"}), ValueError);
}

// AlexNet's layers and sizes, with fewer channels; the grouped ones, LRN and the order of pooling
// are its own.
std::string alex_net() {
  Wire file;
  std::string blob = "data";
  const auto add = [&](const std::string& name, const char* type, const std::string& top,
                       uint32_t field, const Wire& options, const Shape& W = {}) {
    Wire layer = wire_layer(name, type, blob, top);
    layer.message(field, options);
    if (!W.empty()) {
      std::vector<float> values = numbers(W, double(W[0])).to_vector<float>();
      for (float& v : values) v *= float(4 / std::sqrt(double(values.size() / size_t(W[0]))));
      layer.message(7, wire_blob({W.begin(), W.end()}, values))
          .message(7, wire_blob({W[0]}, std::vector<float>(size_t(W[0]), 0.1f)));
    }
    file.message(100, layer);
    blob = top;
  };
  const auto convolution = [&](const std::string& name, const Shape& W, int64_t stride, int64_t pad,
                               int64_t groups) {
    add(name, "Convolution", name, 106,
        Wire().integer(1, W[0]).integer(3, pad).integer(4, W[2]).integer(5, groups).integer(6,
                                                                                            stride),
        W);
    add("relu" + name, "ReLU", name, 123, {});
  };
  const auto pooling = [&](const std::string& name) {
    add(name, "Pooling", name, 121, Wire().integer(2, 3).integer(3, 2));
  };
  const auto norm = [&](const std::string& name) {
    add(name, "LRN", name, 118, Wire().integer(1, 5).number(2, 1e-4f).number(3, 0.75f));
  };
  const auto product = [&](const std::string& name, int64_t out, int64_t in) {
    add(name, "InnerProduct", name, 117, Wire().integer(1, out), {out, in});
  };
  convolution("conv1", {16, 3, 11, 11}, 4, 0, 1);
  pooling("pool1");
  norm("norm1");
  convolution("conv2", {32, 8, 5, 5}, 1, 2, 2);
  pooling("pool2");
  norm("norm2");
  convolution("conv3", {24, 32, 3, 3}, 1, 1, 1);
  convolution("conv4", {24, 12, 3, 3}, 1, 1, 2);
  convolution("conv5", {16, 12, 3, 3}, 1, 1, 2);
  pooling("pool5");
  product("fc6", 64, 16 * 6 * 6);
  add("drop6", "Dropout", "fc6", 108, {});
  product("fc8", 1000, 64);
  return file.text();
}

TEST(CaffeTutorial, TUT_34_AlexNetIsAFunctionOfItsImages) {
  const TempFolder folder;
  write_file(folder / "alex.caffemodel", alex_net());
  const F::CaffeFunction func(folder / "alex.caffemodel");
  const Variable x(numbers({10, 3, 227, 227}, 0.3));
  const Variables results = func({{"data", x}}, {"fc8"});
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].shape(), (Shape{10, 1000}));
  EXPECT_EQ(func({{"data", x}}, {"pool5"})[0].shape(), (Shape{10, 16, 6, 6}));
  results[0].set_grad(ones_like(results[0].data()));
  results[0].backward();
  ASSERT_EQ(x.grad().shape(), x.shape());
  EXPECT_GT(abs(x.grad()).max().item<float>(), 0);
  for (const auto& [path, p] : func.named_parameters())
    EXPECT_GT(abs(p.grad()).max().item<float>(), 0) << path;
}

TEST(CaffeFunctionOnGpu, IsMovedAndCaptured) {
  CATENA_NEEDS_GPU();
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("Net"));
  const Array x = numbers({2, 2, 4, 4}, 0.3);
  const Array expected = f({{"data", x}}, {"fc"}, {}, false)[0].data();
  f.to_gpu(0);
  EXPECT_EQ(f.device(), cuda_device(0));
  const Variable on_gpu(x.to(cuda_device(0)), Volatile::on);
  // Kernels are loaded by the first call.
  Array y = f({{"data", on_gpu}}, {"fc"}, {}, false)[0].data();
  cuda::Graph graph = cuda::Graph::capture(cuda_device(0), [&] {
    y = f({{"data", on_gpu}}, {"fc"}, {}, false)[0].data();
  });
  graph.launch();
  EXPECT_EQ(testing::difference(y.to_cpu(), expected, 1e-3, 1e-3), "");
  f.to_cpu();
  EXPECT_EQ(testing::difference(f({{"data", x}}, {"fc"}, {}, false)[0].data(), expected), "");
}

CATENA_ON_DEVICES(CaffeFunction);

}  // namespace
}  // namespace catena
