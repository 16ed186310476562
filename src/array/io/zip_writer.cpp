// Writes zip archives, member by member, with 64-bit sizes where they are needed.
#include <zlib.h>

#include <algorithm>

#include "array/io/zip.h"
#include "catena/core/error.h"

namespace catena::io {
namespace {

constexpr uint16_t kFirstDay = 0x21;  // 1980-01-01, the earliest possible date
constexpr uint16_t kUtf8Names = 0x800;

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t checksum(std::span<const std::span<const char>> parts) {
  uLong crc = crc32_z(0, nullptr, 0);
  for (const auto& part : parts) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return static_cast<uint32_t>(crc);
}

// A raw deflate stream of all parts.
std::string deflate_all(std::span<const std::span<const char>> parts) {
  z_stream stream{};
  CATENA_CHECK(IoError,
               deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK,
               "save_npz: zlib could not start (out of memory)");
  std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  std::string out;
  std::vector<char> buffer(size_t{1} << 18);
  const auto drain = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (const auto& part : parts) {
    for (size_t at = 0; at < part.size();) {
      const size_t chunk = std::min(part.size() - at, size_t{1} << 30);  // avail_in has 32 bits
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data() + at));
      stream.avail_in = static_cast<uInt>(chunk);
      drain(Z_NO_FLUSH);
      at += chunk;
    }
  }
  drain(Z_FINISH);
  return out;
}

uint16_t flags_of(const std::string& name) {
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return (c & 0x80) == 0; });
  return ascii ? 0 : kUtf8Names;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::span<const std::span<const char>> parts,
                    bool deflate) {
  CATENA_CHECK(ValueError, name.size() <= kMax16, "save_npz: a name of ", name.size(),
               " bytes, at most ", int{kMax16}, " fit");
  Member member{name, deflate ? kDeflated : kStored, checksum(parts), 0, 0, file_.position()};
  for (const auto& part : parts) member.size += part.size();
  if (deflate) {
    const std::string packed = deflate_all(parts);
    member.stored = packed.size();
    write_local_header(member);
    file_.write(packed.data(), packed.size());
  } else {
    member.stored = member.size;
    write_local_header(member);
    for (const auto& part : parts) file_.write(part.data(), part.size());
  }
  members_.push_back(std::move(member));
}

void ZipWriter::write_local_header(const Member& member) {
  const bool large = member.size >= zip64_from_ || member.stored >= zip64_from_;
  std::string header;
  put(header, 0x04034b50, 4);
  put(header, large ? 45 : 20, 2);
  put(header, flags_of(member.name), 2);
  put(header, member.method, 2);
  put(header, 0, 2);
  put(header, kFirstDay, 2);
  put(header, member.crc, 4);
  put(header, large ? kMax32 : member.stored, 4);
  put(header, large ? kMax32 : member.size, 4);
  put(header, member.name.size(), 2);
  put(header, large ? 20 : 0, 2);
  header += member.name;
  if (large) {
    put(header, 1, 2);
    put(header, 16, 2);
    put(header, member.size, 8);
    put(header, member.stored, 8);
  }
  file_.write(header.data(), header.size());
}

std::string ZipWriter::directory_record(const Member& member) const {
  const bool large =
      member.size >= zip64_from_ || member.stored >= zip64_from_ || member.offset >= zip64_from_;
  std::string record;
  put(record, 0x02014b50, 4);
  put(record, large ? 45 : 20, 2);
  put(record, large ? 45 : 20, 2);
  put(record, flags_of(member.name), 2);
  put(record, member.method, 2);
  put(record, 0, 2);
  put(record, kFirstDay, 2);
  put(record, member.crc, 4);
  put(record, large ? kMax32 : member.stored, 4);
  put(record, large ? kMax32 : member.size, 4);
  put(record, member.name.size(), 2);
  put(record, large ? 28 : 0, 2);
  put(record, 0, 2);  // comment
  put(record, 0, 2);  // disk
  put(record, 0, 2);  // internal attributes
  put(record, 0, 4);  // external attributes
  put(record, large ? kMax32 : member.offset, 4);
  record += member.name;
  if (large) {
    put(record, 1, 2);
    put(record, 24, 2);
    put(record, member.size, 8);
    put(record, member.stored, 8);
    put(record, member.offset, 8);
  }
  return record;
}

void ZipWriter::finish() {
  const uint64_t offset = file_.position();
  std::string end;
  for (const Member& member : members_) end += directory_record(member);
  const uint64_t bytes = end.size(), count = members_.size();
  const bool large = offset >= zip64_from_ || bytes >= zip64_from_ || count >= kMax16;
  if (large) {
    put(end, 0x06064b50, 4);
    put(end, 44, 8);  // what follows of this record
    put(end, 45, 2);
    put(end, 45, 2);
    put(end, 0, 4);
    put(end, 0, 4);
    put(end, count, 8);
    put(end, count, 8);
    put(end, bytes, 8);
    put(end, offset, 8);
    put(end, 0x07064b50, 4);  // where the record above is
    put(end, 0, 4);
    put(end, offset + bytes, 8);
    put(end, 1, 4);
  }
  put(end, 0x06054b50, 4);
  put(end, 0, 2);
  put(end, 0, 2);
  put(end, large ? kMax16 : count, 2);
  put(end, large ? kMax16 : count, 2);
  put(end, large ? kMax32 : bytes, 4);
  put(end, large ? kMax32 : offset, 4);
  put(end, 0, 2);
  file_.write(end.data(), end.size());
}

}  // namespace catena::io
