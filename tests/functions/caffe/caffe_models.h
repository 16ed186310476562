// Models for the tests of F::CaffeFunction: written as texts, encoded by Google's protobuf.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "catena/functions/caffe/caffe_function.h"
#include "functions/functions_test_util.h"
#include "temp_folder.h"

namespace catena::caffe_models {

// A Python that has protobuf, or "".
inline const std::string& protobuf_python() {
  static const std::string found = [] {
    const std::string check = std::string(" ") + CATENA_CAFFE_ENCODER + " --check 2>/dev/null";
    for (const std::string program : {"/usr/bin/python3", "python3"})
      if (std::system((program + check).c_str()) == 0) return program;
    return std::string();
  }();
  return found;
}
#define CATENA_NEEDS_PROTOBUF()                                              \
  if (caffe_models::protobuf_python().empty())                               \
  GTEST_SKIP() << "********** python3-protobuf is missing: models of Caffe " \
                  "are NOT read as Google's protobuf writes them **********"

// The models of one test program, encoded in one go when the first one is asked for.
class Models {
 public:
  static Models& all() {
    static Models models;
    return models;
  }
  // Texts of the protocol buffers' own format, registered before main().
  int add(const std::string& name, const std::string& text) {
    texts_[name] = text;
    return 0;
  }
  std::string path(const std::string& name) {
    if (!encoded_) encode();
    return folder_ / (name + ".caffemodel");
  }

 private:
  void encode() {
    encoded_ = true;
    for (const auto& [name, text] : texts_) write_file(folder_ / (name + ".prototxt"), text);
    const std::string command =
        protobuf_python() + " " + CATENA_CAFFE_ENCODER + " '" + folder_.path() + "'";
    if (std::system(command.c_str()) != 0) std::abort();
  }
  std::map<std::string, std::string> texts_;
  TempFolder folder_;
  bool encoded_ = false;
};

// Numbers of both signs that differ from seed to seed, in float32.
inline Array numbers(const Shape& shape, double seed) {
  std::vector<float> values(size_t(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(std::sin(0.7 * double(i) + seed) * 0.5);
  return array(values, shape);
}

inline std::string text_of(const char* field, const std::vector<double>& values) {
  std::string text;
  for (const double v : values) {
    char one[64];
    std::snprintf(one, sizeof(one), "%s: %.9g ", field, v);
    text += one;
  }
  return text;
}
// blobs { ... } with a shape, and as older files have it, with four extents.
inline std::string blob(const Array& a) {
  return "blobs { shape { " + text_of("dim", {a.shape().begin(), a.shape().end()}) + "} " +
         text_of("data", a.to_vector<double>()) + "} ";
}
inline std::string old_blob(const Shape& four, const Array& a) {
  return message("blobs { num: ", four[0], " channels: ", four[1], " height: ", four[2],
                 " width: ", four[3], " ", text_of("data", a.to_vector<double>()), "} ");
}
// A layer of either format from "data" to "y"; the type of the older one is a number.
inline std::string layer(const std::string& type, const std::string& rest) {
  return "layer { name: 'f' type: '" + type + "' bottom: 'data' top: 'y' " + rest + "} ";
}
inline std::string old_layer(int type, const std::string& rest) {
  return message("layers { name: 'f' type: ", type, " bottom: 'data' top: 'y' ", rest, "} ");
}

// y of data.
inline Variable run(const F::CaffeFunction& f, const Variable& data, bool train = false) {
  return f({{"data", data}}, {"y"}, {}, train)[0];
}
inline void expect_equal(const Array& actual, const Array& expected, double error = 1e-5) {
  EXPECT_EQ(testing::difference(actual.to_cpu(), expected.to_cpu(), error, error), "");
}

}  // namespace catena::caffe_models
