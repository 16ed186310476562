// The size of the vectors of the level being compiled; internal linkage (see loop.h).
#pragma once

namespace catena::host {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

}  // namespace
}  // namespace catena::host
