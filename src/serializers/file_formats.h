// Format of a file by its first bytes, for errors that name what was found.
#pragma once

#include <cstdint>
#include <string>

#include "array/io/file_io.h"

namespace catena::serializers {

// Formats of files by their first bytes. kSafetensors: a length that fits, then '{'.
enum class FileFormat { kEmpty, kSafetensors, kZip, kLegacyPytorch, kOther };
FileFormat format_of(const io::InputFile& file);

// "is empty", "begins like an HDF5 file": what is wrong with a file of another format.
std::string foreign_text(const io::InputFile& file);

// The largest header of a safetensors file, as in the original implementation.
inline constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;

}  // namespace catena::serializers
