// Picks the fastest of several ways to run something on a GPU, and remembers the choice.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <string_view>

namespace catena::gpu {

// Runs each of `count` candidates a few times on the stream and returns the fastest. Waits for the
// stream. `microseconds` (may be null) gets the time of one run of that candidate.
size_t fastest_candidate(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run,
                         double* microseconds);

// The choice for a problem, as bytes. It comes from the cache folder on disk, or else from `make`,
// whose result is stored there, so that later runs and other ranks make the same choice and results
// are the same bits. If several processes ask, one calls `make` and the others wait. With a null
// `make` it only reads, and an unknown choice is "".
std::string remembered_pick(int device, std::string_view problem,
                            const std::function<std::string()>& make);

}  // namespace catena::gpu
