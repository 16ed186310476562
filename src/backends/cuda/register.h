// What the plug-in's entry point calls: each part registers its backend or its slots.
#pragma once

namespace catena::gpu {

void register_cuda_backend();
void register_matmul_kernels();
void register_optimizer_kernels();
void register_softmax_kernels();
void register_loss_kernels();
void register_indexing_kernels();
void register_select_kernels();
void register_random_kernels();
void register_sort_kernels();
void register_scan_kernels();
void register_counting_kernels();
void register_patch_kernels();
void register_normalization_kernels();

}  // namespace catena::gpu
