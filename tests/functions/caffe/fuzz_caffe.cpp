// Fuzz target for the reader of Caffe's models: any input must end in a model or an IoError.
//
// The target fuzz_caffe_libfuzzer builds it with clang as a libFuzzer program (CATENA_LIBFUZZER);
// otherwise see fuzzing.h.
#include <cstdlib>

#include "catena/functions/caffe/caffe_function.h"
#include "functions/caffe/wire.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const catena::fuzzing::MemoryFile file;
  static const bool quiet = ::setenv("CATENA_LOG", "error", 1) == 0;
  if (!quiet) return 0;
  file.set(data, size);
  catena::fuzzing::attempt([&] {
    const catena::functions::CaffeFunction f(file.path());
    for (const catena::Parameter& p : f.parameters())
      if (p.size() < 100000) p.data().to_vector<float>();
  });
  return 0;
}

#ifndef CATENA_LIBFUZZER
namespace {

using catena::caffe_models::Wire;

// Layers of every kind of options, in one file.
std::string many_layers() {
  using namespace catena::caffe_models;
  const Wire window = Wire().integer(1, 1).integer(2, 3).integer(3, 2).integer(9, 1).integer(13, 1);
  const Wire kernel =
      Wire().integer(1, 2).integer(2, 0).integer(11, 1).integer(12, 2).integer(5, 2);
  const std::vector<float> four(4, 0.5f);
  Wire file;
  const auto add = [&](const char* type, uint32_t field, const Wire& options) -> void {
    Wire layer = wire_layer(std::string("a/") + type, type, "data", "data");
    layer.message(field, options).message(7, wire_blob({2, 1, 1, 2}, four));
    file.message(100, layer);
  };
  add("Convolution", 106, kernel);
  add("Deconvolution", 106, kernel);
  add("Pooling", 121, window);
  add("LRN", 118, Wire().integer(1, 3).number(2, 0.1f).number(5, 2));
  add("Eltwise", 110, Wire().integer(1, 1).number(2, 0.5f));
  add("Concat", 104, Wire().integer(2, 1));
  add("Slice", 126, Wire().integer(3, 1));
  add("Scale", 142, Wire().integer(1, 1).integer(2, 1));
  add("Dropout", 108, Wire().number(1, 0.25f));
  add("Softmax", 125, Wire().integer(2, 1));
  add("Python", 130, Wire().bytes(1, "unknown"));
  return file.text();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace catena;
  return fuzzing::main_of(
      argc, argv, {caffe_models::small_model(), caffe_models::small_v1_model(), many_layers()},
      &LLVMFuzzerTestOneInput);
}
#endif
