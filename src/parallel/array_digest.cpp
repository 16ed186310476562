// A digest is the sum of the 64-bit words, modulo 2^64, of a piece of a block of memory. Integer
// sums do not depend on the order, so every device gives the same digest for the same bits; the
// pieces see values that changed places.
#include "array_digest.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/reduction.h"

namespace catena::parallel {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
  return hash ^ (hash >> 29);
}

namespace {

// The bytes of a contiguous array as words of 64 bits, or of the largest size that divides them.
Array words_of(const Array& a) {
  // A view may begin between words, where GPUs cannot read them.
  if (reinterpret_cast<uintptr_t>(a.raw_data()) % sizeof(uint64_t) != 0) return words_of(a.copy());
  const int64_t bytes = a.nbytes();
  const Dtype word = bytes % 8 == 0   ? Dtype::kUInt64
                     : bytes % 4 == 0 ? Dtype::kUInt32
                     : bytes % 2 == 0 ? Dtype::kUInt16
                                      : Dtype::kUInt8;
  const auto item = static_cast<int64_t>(itemsize(word));
  const auto offset =
      static_cast<char*>(a.raw_data()) - static_cast<const char*>(a.storage()->data);
  return Array::from_storage(a.storage(), offset, {bytes / item}, {item}, word);
}

uint64_t add_sums(uint64_t hash, const Array& words, int axis) {
  const Array sums = sum(words, {.axes = {axis}}).copy_to(cpu());
  for (const uint64_t s : sums.span<const uint64_t>()) hash = mix(hash, s);
  return hash;
}

}  // namespace

uint64_t digest_of(const Array& array) {
  if (array.size() == 0) return 0;
  const DeviceScope scope(array.device());
  const Array words = words_of(array.contiguous());
  // Few pieces, so that little is read from the device, which are not too long to be balanced.
  constexpr int64_t kFewest = 64, kMost = int64_t(1) << 16, kPieces = 256;
  const int64_t length = std::clamp(words.size() / kPieces, kFewest, kMost);
  const int64_t pieces = words.size() / length, whole = pieces * length;
  uint64_t hash = mix(0, static_cast<uint64_t>(array.nbytes()));
  if (pieces > 0) hash = add_sums(hash, words(Slice(0, whole)).reshape({pieces, length}), 1);
  if (whole < words.size()) hash = add_sums(hash, words(Slice(whole, none)), 0);
  return hash;
}

}  // namespace catena::parallel
