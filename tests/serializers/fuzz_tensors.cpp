// Fuzz target for the readers of safetensors and .pt files: any input must end in arrays or an
// IoError.
//
// The target fuzz_tensors_libfuzzer builds it with clang as a libFuzzer program (CATENA_LIBFUZZER);
// otherwise see fuzzing.h.
#include <cstdlib>

#include "catena/serializers/pytorch.h"
#include "catena/serializers/safetensors.h"
#include "fuzzing.h"
#include "serializers/tensor_bytes.h"

namespace {

// What a reader gives is used, so that memory which is not there is noticed.
template <class File>
void read(const std::string& path) {
  catena::fuzzing::attempt([&] {
    const File file(path);
    for (const catena::serializers::TensorInfo& tensor : file.tensors()) {
      if (tensor.bytes > 100000) continue;
      catena::fuzzing::attempt([&] { file[tensor.name].template to_vector<double>(); });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace catena;
  static const fuzzing::MemoryFile file;
  static const bool quiet = ::setenv("CATENA_LOG", "error", 1) == 0;
  if (!quiet) return 0;
  file.set(data, size);
  read<serializers::SafetensorsFile>(file.path());
  read<serializers::PytorchFile>(file.path());
  fuzzing::attempt([&] { serializers::open_tensor_file(file.path()); });
  // The pickle alone: few damaged archives get there.
  const std::string pickle(reinterpret_cast<const char*>(data), size);
  const auto floats = tensor_bytes::bytes_of<float>({1, 2, 3, 4, 5, 6});
  for (const bool script : {false, true}) {
    tensor_bytes::Members members{{"a/data.pkl", pickle}, {"a/data/0", floats}};
    if (script) members.emplace_back("a/constants.pkl", "");
    const std::string archive = tensor_bytes::zip(members);
    file.set(reinterpret_cast<const uint8_t*>(archive.data()), archive.size());
    read<serializers::PytorchFile>(file.path());
  }
  return 0;
}

#ifndef CATENA_LIBFUZZER
namespace {

std::vector<std::string> seeds() {
  using namespace tensor_bytes;
  using namespace tensor_bytes::pickle;
  const std::string floats = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const std::string x = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
  const std::string half = tensor(storage("HalfStorage", "0", 12), 2, {2, 3}, {1, 2});
  const std::string parameter =
      global("torch._utils", "_rebuild_parameter") + tuple({x, "\x89", "}"}) + "R";
  const std::string untyped =
      global("torch._utils", "_rebuild_tensor_v3") +
      tuple({tuple({text("storage"), global("torch.storage", "UntypedStorage"), text("0"),
                    text("cpu"), integer(24)}) +
                 "Q",
             integer(0), integers({3}), integers({1}), "\x88", "}", global("torch", "uint16")}) +
      "R";
  const std::string module = global("__torch__", "Net") + ")\x81" + dict({{"w", x}}) + "b";
  const std::string nested = "}q\1(" + text("a") + dict({{"x", x}, {"y", half}}) + text("b") +
                             tuple({parameter, "]q\2(K\1K\2e", "h\2"}) + text("c") + untyped +
                             "u}" + text("_metadata") + "}sb";
  return {safetensors(R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,3],)"
                      R"("data_offsets":[0,24]},"y":{"dtype":"BOOL","shape":[0],)"
                      R"("data_offsets":[24,24]}})",
                      floats),
          safetensors("{}", ""),
          small_torch_file(),
          torch_file(nested, {{"0", floats}}, {{"net/byteorder", "big"}}),
          whole(nested),
          whole(module),
          whole(dict({{"x", x}}))};
}

}  // namespace

int main(int argc, char** argv) {
  return catena::fuzzing::main_of(argc, argv, seeds(), &LLVMFuzzerTestOneInput);
}
#endif
