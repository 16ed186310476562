// The table of the layers' types.
#include <algorithm>

#include "functions/caffe/import/builder.h"

namespace catena::functions::caffe {

// Numbers of bottoms and tops; any number of at least this.
struct Arity {
  size_t least, most;
};
constexpr size_t kAny = 1 << 20;

struct LayerType {
  const char* name;
  int v1;                    // number of the type in V1LayerParameter, -1: not there
  uint32_t field, v1_field;  // of the options in both formats, 0: none that matter
  Step (*make)(Builder&);
  Arity bottoms = {1, 1}, tops = {1, 1};
};

namespace {

constexpr LayerType kTypes[] = {
    {"BatchNorm", -1, 139, 0, &make_batch_norm},
    {"Concat", 3, 104, 9, &make_concat, {1, kAny}},
    {"Convolution", 4, 106, 10, &make_convolution},
    {"Deconvolution", 39, 106, 10, &make_deconvolution},
    {"Dropout", 6, 108, 12, &make_dropout},
    {"Eltwise", 25, 110, 24, &make_eltwise, {1, kAny}},
    {"InnerProduct", 14, 117, 17, &make_inner_product},
    {"LRN", 15, 118, 18, &make_lrn},
    {"Pooling", 17, 121, 19, &make_pooling},
    {"ReLU", 18, 123, 30, &make_relu},
    {"Scale", -1, 142, 0, &make_scale, {1, 2}},
    {"Sigmoid", 19, 0, 0, &make_sigmoid},
    {"Slice", 33, 126, 31, &make_slice, {1, 1}, {1, kAny}},
    {"Softmax", 20, 125, 39, &make_softmax},
    {"SoftmaxWithLoss", 21, 125, 39, &make_softmax_with_loss, {2, 2}, {0, 2}},
    {"Split", 22, 0, 0, &make_split, {1, 1}, {0, kAny}},
    {"TanH", 23, 0, 0, &make_tanh},
};

// Other types of the older format, so that warnings have their names.
constexpr LayerType kUnsupported[] = {
    {"Accuracy", 1, 0, 0, nullptr},
    {"BNLL", 2, 0, 0, nullptr},
    {"Data", 5, 0, 0, nullptr},
    {"EuclideanLoss", 7, 0, 0, nullptr},
    {"Flatten", 8, 0, 0, nullptr},
    {"HDF5Data", 9, 0, 0, nullptr},
    {"HDF5Output", 10, 0, 0, nullptr},
    {"Im2col", 11, 0, 0, nullptr},
    {"ImageData", 12, 0, 0, nullptr},
    {"InfogainLoss", 13, 0, 0, nullptr},
    {"Power", 26, 0, 0, nullptr},
    {"SigmoidCrossEntropyLoss", 27, 0, 0, nullptr},
    {"HingeLoss", 28, 0, 0, nullptr},
    {"MemoryData", 29, 0, 0, nullptr},
    {"ArgMax", 30, 0, 0, nullptr},
    {"Threshold", 31, 0, 0, nullptr},
    {"DummyData", 32, 0, 0, nullptr},
    {"MVN", 34, 0, 0, nullptr},
    {"AbsVal", 35, 0, 0, nullptr},
    {"Silence", 36, 0, 0, nullptr},
    {"ContrastiveLoss", 37, 0, 0, nullptr},
    {"Exp", 38, 0, 0, nullptr},
    {"WindowData", 24, 0, 0, nullptr},
    {"MultinomialLogisticLoss", 16, 0, 0, nullptr},
};

template <class Matches>
const LayerType* find_type(Matches matches) {
  for (const LayerType& type : kTypes)
    if (matches(type)) return &type;
  for (const LayerType& type : kUnsupported)
    if (matches(type)) return &type;
  return nullptr;
}

void check_count(const LayerSource& source, const char* what, size_t count, const Arity& arity) {
  if (count >= arity.least && count <= arity.most) return;
  source.refuse("it has ", count, " ", what, ", expected ",
                count < arity.least ? "at least " : "at most ",
                count < arity.least ? arity.least : arity.most);
}

}  // namespace

const LayerType* layer_type(const std::string& name) {
  return find_type([&](const LayerType& type) { return name == type.name; });
}

const LayerType* layer_type_v1(int64_t v1) {
  return find_type([&](const LayerType& type) { return v1 == type.v1; });
}

const char* name_of(const LayerType& type) { return type.name; }
uint32_t options_of(const LayerType& type, bool v1) { return v1 ? type.v1_field : type.field; }

bool is_data(const std::string& type) { return type == "Input" || type.ends_with("Data"); }

BuiltLayer build_layer(const LayerSource& source, FunctionBag& fs) {
  const LayerType* type = layer_type(source.type);
  if (type == nullptr || type->make == nullptr) return {};
  check_count(source, "bottoms", source.bottoms.size(), type->bottoms);
  check_count(source, "tops", source.tops.size(), type->tops);
  Builder builder(source, fs);
  try {
    Step made = type->make(builder);
    return {std::move(made), builder.function()};
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const Error& e) {  // what a function says of sizes that make no sense
    source.refuse(e.what());
  }
}

}  // namespace catena::functions::caffe
