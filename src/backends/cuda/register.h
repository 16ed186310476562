// What the plug-in's entry point calls: each part registers its backend or its slots.
#pragma once

namespace catena::gpu {

void register_cuda_backend();

}  // namespace catena::gpu
