// The header of a safetensors file: JSON text and what it describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catena/serializers/tensor_file.h"

namespace catena::serializers {

// What a header says. Offsets of tensors count from the end of the header.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  Metadata metadata;
};
// Reads and checks a header that `data_bytes` bytes of elements follow. IoErrors begin with
// "reading 'path'".
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text,
                                           uint64_t data_bytes);
// The JSON text of a header; `tensors` have offsets. ValueError for texts that are not UTF-8.
std::string make_safetensors_header(const std::string& path, const SafetensorsHeader& header);

}  // namespace catena::serializers
