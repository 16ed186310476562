#include "serializers/file_formats.h"

#include <algorithm>
#include <cstring>

namespace catena::serializers {
namespace {

// The first bytes of formats that weights come in.
struct Beginning {
  std::string_view bytes;
  const char* what;
};
constexpr Beginning kBeginnings[] = {
    {"PK\x03\x04", "a zip archive, such as .pt or .npz"},
    {"\x93NUMPY", "an .npy file, which catena::load reads"},
    {"\x89HDF\r\n", "an HDF5 file"},
    {"\x1f\x8b", "a gzip file; decompress it first"},
    {"\xfd"
     "7zXZ",
     "an xz file; decompress it first"},
    {"\x28\xb5\x2f\xfd", "a zstd file; decompress it first"},
    {"GGUF", "a GGUF file"},
    {"version https://git-lfs", "a pointer of Git LFS instead of the file: run `git lfs pull`"},
    {"<!DOCTYPE", "a web page: the download failed"},
    {"<html", "a web page: the download failed"},
    {"\x80", "a Python pickle"},
};

// torch.save's magic number of before 1.6, as pickled (protocol 2 and newer have the same bytes but
// for the first two).
constexpr std::string_view kLegacyMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);

std::string first_bytes(const io::InputFile& file) {
  std::string bytes(static_cast<size_t>(std::min<uint64_t>(file.size(), 64)), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

FileFormat format_of(const io::InputFile& file) {
  const std::string bytes = first_bytes(file);
  if (bytes.empty()) return FileFormat::kEmpty;
  if (bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06")) return FileFormat::kZip;
  if (bytes[0] == '\x80' && bytes.find(kLegacyMagic) < 16) return FileFormat::kLegacyPytorch;
  uint64_t length = 0;
  if (bytes.size() >= 9) std::memcpy(&length, bytes.data(), sizeof length);
  if (length > 0 && length <= kLongestSafetensorsHeader && bytes[8] == '{')
    return FileFormat::kSafetensors;
  return FileFormat::kOther;
}

std::string foreign_text(const io::InputFile& file) {
  const std::string bytes = first_bytes(file);
  if (bytes.empty()) return "it is empty";
  for (const Beginning& beginning : kBeginnings)
    if (bytes.starts_with(beginning.bytes)) return std::string("it begins like ") + beginning.what;
  if (format_of(file) == FileFormat::kSafetensors) return "it begins like a safetensors file";
  std::string shown;
  for (const char c : std::string_view(bytes).substr(0, 8)) {
    const char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    shown += std::string(shown.empty() ? "" : " ") + digits[byte >> 4] + digits[byte & 15];
  }
  return "it begins with the bytes " + shown;
}

}  // namespace catena::serializers
