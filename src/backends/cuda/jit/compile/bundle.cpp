// Reading and writing kernel bundles. See bundle.h. Layout: Header, entries sorted by key, cubins.
#include "backends/cuda/jit/compile/bundle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "catena/core/error.h"
#include "core/new_file.h"

namespace catena::jit {

namespace {

constexpr char kMagic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'k', '1'};
struct Header {
  char magic[8];
  uint64_t count;
  uint64_t bytes;  // of the whole file
};

}  // namespace

Bundle::~Bundle() {
  if (data_) munmap(data_, bytes_);
}

const Bundle::Entry* Bundle::entries() const {
  return reinterpret_cast<const Entry*>(static_cast<const char*>(data_) + sizeof(Header));
}

std::unique_ptr<Bundle> Bundle::open(const std::string& path, std::string* why) {
  const auto refuse = [&](const std::string& reason) {
    if (why) *why = path + ": " + reason;
    return nullptr;
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refuse(std::strerror(errno));
  struct stat status {};
  fstat(file, &status);
  const size_t bytes = static_cast<size_t>(status.st_size);
  void* data =
      bytes < sizeof(Header) ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) return refuse("not a kernel bundle");
  std::unique_ptr<Bundle> bundle(new Bundle);
  bundle->data_ = data;
  bundle->bytes_ = bytes;
  const Header& header = *static_cast<const Header*>(data);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return refuse("not a kernel bundle");
  if (header.bytes != bytes || header.count > bytes / sizeof(Entry))
    return refuse("the bundle is cut short");
  bundle->count_ = header.count;
  return bundle;
}

std::optional<std::string_view> Bundle::find(const Hash128& key) const {
  const Entry* end = entries() + count_;
  const Entry* entry = std::lower_bound(entries(), end, key,
                                        [](const Entry& e, const Hash128& k) { return e.key < k; });
  if (entry == end || entry->key != key || entry->offset + entry->bytes > bytes_)
    return std::nullopt;
  return std::string_view(static_cast<const char*>(data_) + entry->offset, entry->bytes);
}

void write_bundle(const std::string& path, const std::map<Hash128, std::string>& cubins) {
  struct Entry {
    Hash128 key;
    uint64_t offset, bytes;
  };
  std::vector<Entry> entries;
  uint64_t offset = sizeof(Header) + cubins.size() * sizeof(Entry);
  offset = (offset + 15) / 16 * 16;
  const uint64_t first = offset;
  for (const auto& [key, cubin] : cubins) {
    entries.push_back({key, offset, cubin.size()});
    offset += (cubin.size() + 15) / 16 * 16;
  }
  Header header{{}, entries.size(), offset};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::string content(reinterpret_cast<const char*>(&header), sizeof(header));
  content.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Entry));
  content.resize(first);
  for (const auto& [key, cubin] : cubins) {
    content.append(cubin);
    content.resize((content.size() + 15) / 16 * 16);
  }
  NewFile file(path);
  int error = file.error();
  if (error == 0) error = file.write(content.data(), content.size());
  if (error == 0) error = file.close();
  if (error == 0) error = file.rename(path);
  CATENA_CHECK(IoError, error == 0, "kernel bundle: cannot write ", path, ": ",
               std::strerror(error));
}

}  // namespace catena::jit
