// Reading and writing kernel bundles. See bundle.h. Layout: Header, entries sorted by key, cubins.
#include "backends/cuda/jit/compile/bundle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "catena/core/error.h"

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
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
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
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(reinterpret_cast<const char*>(entries.data()),
             static_cast<std::streamsize>(entries.size() * sizeof(Entry)));
  const char zeros[16] = {};
  file.write(zeros,
             static_cast<std::streamsize>(first - sizeof(Header) - entries.size() * sizeof(Entry)));
  for (const auto& [key, cubin] : cubins) {
    file.write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
    file.write(zeros, static_cast<std::streamsize>((16 - cubin.size() % 16) % 16));
  }
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    fail<IoError>("kernel bundle: cannot write ", path, ": ", std::strerror(errno));
  }
}

}  // namespace catena::jit
