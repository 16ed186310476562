#include "wire/output_frames.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/text.h"

namespace catena::launch {
namespace {

// mark (5) job (8) rank (6) stream (1) length (3) payload, blanks, line end
constexpr std::string_view kMark =
    "\x1e"
    "ctn1";
constexpr std::size_t kHeader = 5 + 8 + 6 + 1 + 3;
constexpr std::size_t kRoom = kFrameSize - kHeader - 1;
constexpr char kEscape = 0x10;

// Open MPI 5 collects its input into lines, so a line end inside a block would let other ranks in.
bool must_escape(char byte) {
  return byte == '\n' || byte == '\r' || byte == '\0' || byte == kEscape || byte == kMark[0];
}

// Takes as many bytes as fit into one block.
std::string take_payload(std::string_view& bytes) {
  std::string payload;
  while (!bytes.empty() && payload.size() + 2 <= kRoom) {
    const char byte = bytes.front();
    if (must_escape(byte)) {
      payload += kEscape;
      payload += static_cast<char>(byte ^ 0x40);
    } else {
      payload += byte;
    }
    bytes.remove_prefix(1);
  }
  return payload;
}

std::string unescape(std::string_view payload) {
  std::string bytes;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] == kEscape && i + 1 < payload.size())
      bytes += static_cast<char>(payload[++i] ^ 0x40);
    else
      bytes += payload[i];
  }
  return bytes;
}

struct Header {
  int rank;
  Stream stream;
  std::size_t length;
};

std::optional<Header> parse_header(std::string_view block) {
  const auto rank = parse_number(block.substr(13, 6));
  const char stream = block[19];
  const auto length = parse_number(block.substr(20, 3));
  const bool known = stream == 'o' || stream == 'e' || stream == 'r';
  if (!rank || !length || !known || static_cast<std::size_t>(*length) > kRoom ||
      block.back() != '\n')
    return std::nullopt;
  return Header{*rank, static_cast<Stream>(stream), static_cast<std::size_t>(*length)};
}

}  // namespace

std::string encode_frames(std::string_view job, int rank, Stream stream, std::string_view bytes) {
  std::string frames;
  while (!bytes.empty()) {
    const std::string payload = take_payload(bytes);
    char header[32];
    std::snprintf(header, sizeof(header), "%06d%c%03zu", rank, static_cast<char>(stream),
                  payload.size());
    const std::size_t begin = frames.size();
    frames.append(kMark).append(job).append(header).append(payload);
    frames.resize(begin + kFrameSize - 1, ' ');
    frames += '\n';
  }
  return frames;
}

FrameDecoder::FrameDecoder(std::string_view job, OnFrame on_frame, OnOther on_other)
    : mark_(std::string(kMark) + std::string(job)),
      on_frame_(std::move(on_frame)),
      on_other_(std::move(on_other)) {}

// Handles the start of `pending_`; false when more input is needed.
bool FrameDecoder::take_frame() {
  if (pending_.empty()) return false;
  const std::size_t at = pending_.find(kMark[0]);
  if (at != 0) {
    const std::string other = pending_.substr(0, at);
    pending_.erase(0, other.size());
    on_other_(other);
    return true;
  }
  const std::size_t compared = std::min(mark_.size(), pending_.size());
  const bool ours = pending_.compare(0, compared, mark_, 0, compared) == 0;
  if (ours && pending_.size() < kFrameSize) return false;
  const std::string_view block = std::string_view(pending_).substr(0, kFrameSize);
  const auto header = ours ? parse_header(block) : std::nullopt;
  if (!header) {  // only looked like a block
    pending_.erase(0, 1);
    on_other_(kMark.substr(0, 1));
    return true;
  }
  const std::string bytes = unescape(block.substr(kHeader, header->length));
  pending_.erase(0, kFrameSize);
  on_frame_(header->rank, header->stream, bytes);
  return true;
}

void FrameDecoder::feed(std::string_view bytes) {
  pending_ += bytes;
  while (take_frame()) {
  }
}

void FrameDecoder::finish() {
  if (!pending_.empty()) on_other_(pending_);
  pending_.clear();
}

}  // namespace catena::launch
