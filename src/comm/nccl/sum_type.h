// The elements that kernels of ours add: in float32, in packs of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace catena::comm::nccl {

constexpr size_t kPackBytes = 16;
inline bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kPackBytes == 0;
}

enum class SumType : uint8_t { kFloat32, kFloat16, kBFloat16 };

}  // namespace catena::comm::nccl
