// Words in device memory that streams wait for and write, and that other GPUs of the host write:
// 0 or kWordSet.
#pragma once

#include <cuda.h>

#include "nccl_calls.h"

namespace catena::comm::nccl {

constexpr uint32_t kWordSet = 1;

// Whether the driver has what the functions below need.
bool stream_words_work();
// The work that follows in the stream begins when the word is set. Only the lowest bit counts, so
// that filling words with ones ends all waits.
void wait_for_word(cudaStream_t stream, const uint32_t* word);
// The same, and clears the word for the next time.
void take_word(cudaStream_t stream, uint32_t* word);
// After the work before it in the stream.
void write_word(cudaStream_t stream, uint32_t* word, uint32_t value);
// Sets `count` words again and again, for the GPU clears those that it has waited for: for a
// communicator that has failed. Takes up to `seconds`, any thread.
void set_words(uint32_t* words, size_t count, cudaStream_t stream, double seconds) noexcept;

}  // namespace catena::comm::nccl
