// See stream_words.h.
#include "stream_words.h"

#include <chrono>
#include <thread>

namespace catena::comm::nccl {

namespace {

struct StreamWords {
  decltype(&cuStreamWaitValue32) wait = nullptr;
  decltype(&cuStreamWriteValue32) write = nullptr;
};

template <class F>
void find_entry(F& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) ==
          cudaSuccess &&
      found == cudaDriverEntryPointSuccess)
    function = reinterpret_cast<F>(address);
}

const StreamWords& stream_words() {
  static const StreamWords found = [] {
    StreamWords words;
    find_entry(words.wait, "cuStreamWaitValue32");
    find_entry(words.write, "cuStreamWriteValue32");
    cudaGetLastError();
    return words;
  }();
  return found;
}

void check_driver(CUresult code, const char* call) {
  CATENA_CHECK(DeviceError, code == CUDA_SUCCESS, "nccl: ", call, " failed with error ", int(code));
}

CUdeviceptr address(const uint32_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

}  // namespace

bool stream_words_work() { return stream_words().wait && stream_words().write; }

void wait_for_word(cudaStream_t stream, const uint32_t* word) {
  check_driver(stream_words().wait(stream, address(word), kWordSet, CU_STREAM_WAIT_VALUE_AND),
               "cuStreamWaitValue32");
}

void take_word(cudaStream_t stream, uint32_t* word) {
  wait_for_word(stream, word);
  write_word(stream, word, 0);
}

void write_word(cudaStream_t stream, uint32_t* word, uint32_t value) {
  check_driver(stream_words().write(stream, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT),
               "cuStreamWriteValue32");
}

void set_words(uint32_t* words, size_t count, cudaStream_t stream, double seconds) noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (cudaMemsetAsync(words, kWordSet, count * sizeof(uint32_t), stream) != cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess)
      return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace catena::comm::nccl
