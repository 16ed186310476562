#include "model_types.h"

#include "catena/core/error.h"

namespace modelzoo {

const std::vector<ModelType>& model_types() {
  static const std::string mean_picture = "ilsvrc_2012_mean.npy";
  static const std::vector<ModelType> types{
      {"alexnet", 227, "fc8", mean_picture, "bvlc_alexnet.caffemodel",
       "models/bvlc_alexnet/readme.md in the sources of Caffe"},
      {"caffenet", 227, "fc8", mean_picture, "bvlc_reference_caffenet.caffemodel",
       "models/bvlc_reference_caffenet/readme.md in the sources of Caffe"},
      {"googlenet", 224, "loss3/classifier", "104,117,123", "bvlc_googlenet.caffemodel",
       "models/bvlc_googlenet/readme.md in the sources of Caffe"},
      {"resnet", 224, "fc1000", "103.063,115.903,123.152", "ResNet-50-model.caffemodel",
       "the README of KaimingHe/deep-residual-networks"}};
  return types;
}

std::vector<std::string> names_of_model_types() {
  std::vector<std::string> names;
  for (const ModelType& type : model_types()) names.push_back(type.name);
  return names;
}

const ModelType& model_type(const std::string& name) {
  for (const ModelType& type : model_types())
    if (type.name == name) return type;
  catena::fail<catena::ValueError>("model_type: there is no type '", name, "'");
}

}  // namespace modelzoo
