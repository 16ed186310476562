// The safetensors format: a JSON header that names dtype, shape and place of each tensor, then the
// elements. Described in the README of the safetensors project (Hugging Face).
//
//   serializers::save_safetensors("net.safetensors", model);
//   const serializers::SafetensorsFile file("net.safetensors");
//   const Array w = file["l1/W"];
#pragma once

#include <memory>
#include <string>

#include "catena/serializers/name_map.h"
#include "catena/serializers/tensor_file.h"

namespace catena::serializers {

// An open safetensors file. The constructor reads and checks the header: its size (at most 100 MB),
// its tensors and texts (at most a million, with names of at most 64 KiB), its JSON (errors have
// the offset), names that come twice, shapes against sizes, and that the tensors fill the rest of
// the file without gap or overlap. Dtypes: all of catena's; tensors of others (F8_E4M3, C64, F4,
// ...) are listed and cannot be read.
class SafetensorsFile final : public TensorFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile() override;

 private:
  struct Input;
  Array read_elements(size_t index, Dtype dtype) const override;
  std::unique_ptr<Input> input_;
};

// All tensors, in the order of the header. SafetensorsFile has the metadata as well.
NamedArrays load_safetensors(const std::string& path, Device device = cpu(0));

// Writes arrays of any device and layout; waits for them. Elements are aligned to their size: wider
// dtypes come first, arrays of equal width keep their order. The file is written under a temporary
// name and renamed, see write_file_atomically(). Python's `transformers` wants the metadata
// {{"format", "pt"}}. ValueError for a name that comes twice, is "__metadata__" or is not UTF-8,
// and for an array that is not defined; IoError with the path and the system's reason.
void save_safetensors(const std::string& path, const NamedArrays& arrays,
                      const Metadata& metadata = {});
// A model's parameters and persistent arrays under their names, or what `names` makes of them:
// save_safetensors(path, model, NameMap::to_pytorch()). ValueError as serializers::save.
void save_safetensors(const std::string& path, const Parameterized& model,
                      const NameMap& names = {}, const Metadata& metadata = {});

}  // namespace catena::serializers
