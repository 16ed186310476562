// Picking the fastest of several ways to run something on a GPU, and remembering the pick.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <string_view>

namespace catena::gpu {

// Runs each of `count` candidates a few times on the stream and returns the fastest. Waits for the
// stream. `microseconds` (may be null) gets the time of one run of it.
size_t fastest_candidate(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run,
                         double* microseconds);

// The pick for a problem, as bytes: from the cache folder on disk, else made by `make` and stored
// there, so that later runs and other ranks pick the same and results stay the same bits. Of
// several processes one makes it and the others wait. A null `make` only looks, and an unknown pick
// is "".
std::string remembered_pick(int device, std::string_view problem,
                            const std::function<std::string()>& make);

}  // namespace catena::gpu
