#include "backends/cuda/matmul/cublaslt.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/common/fastest.h"
#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "catena/core/log.h"
#include "core/disk_cache.h"
#include "core/environment.h"

namespace catena::gpu {
namespace {

// The choice among several ways to run something ------------------------------------------------

constexpr double kRound = 1;  // milliseconds
constexpr double kMostRepeats = 10;
constexpr int kRounds = 3;  // the best one counts: other work on the GPU only makes runs slower

struct TimingEvent {
  cudaEvent_t event = nullptr;
  TimingEvent() { CATENA_CUDA_CHECK(cudaEventCreate(&event)); }
  ~TimingEvent() { cudaEventDestroy(event); }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;
};

// Of one run; waits for the stream.
double milliseconds(cudaStream_t stream, const TimingEvent& start, const TimingEvent& stop,
                    const std::function<bool()>& run, int repeats) {
  CATENA_CUDA_CHECK(cudaEventRecord(start.event, stream));
  for (int i = 0; i < repeats; ++i) run();
  CATENA_CUDA_CHECK(cudaEventRecord(stop.event, stream));
  CATENA_CUDA_CHECK(cudaEventSynchronize(stop.event));
  float result = 0;
  CATENA_CUDA_CHECK(cudaEventElapsedTime(&result, start.event, stop.event));
  return double(result) / repeats;
}

// Milliseconds of each of `count` candidates, infinite where run() says that one failed. Waits for
// the stream.
std::vector<double> times_of(size_t count, cudaStream_t stream,
                             const std::function<bool(size_t)>& run) {
  const TimingEvent start, stop;
  std::vector<double> times(count, std::numeric_limits<double>::infinity());
  std::vector<int> repeats(count, 0);
  const auto time = [&](size_t i, int runs) {
    return milliseconds(
        stream, start, stop, [&] { return run(i); }, runs);
  };
  for (size_t i = 0; i < count; ++i)
    if (run(i))  // loads the kernel
      repeats[i] = static_cast<int>(std::clamp(kRound / time(i, 1), 1.0, kMostRepeats));
  // They take turns, so that a change of the GPU's clock meets all of them.
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < count; ++i)
      if (repeats[i] > 0) times[i] = std::min(times[i], time(i, repeats[i]));
  return times;
}

// The choice for a problem, as bytes. It comes from the cache folder on disk, or else from `make`,
// whose result is stored there, so that later runs and other ranks make the same choice and results
// are the same bits; one that is not accepted is made anew. If several processes ask, one calls
// `make` and the others wait. With a null `make` it only reads, and an unknown choice is "".
std::string remembered_pick(int device, std::string_view problem, const DiskCache::Make& make,
                            const DiskCache::Accept& accept) {
  static const auto* cache = new DiskCache(cache_folder());
  // Parts of one GPU have its model, but fewer multiprocessors.
  const DeviceInfo& gpu = device_info(device);
  const Hash128 key = hash128(message("pick ", gpu.model, " ", gpu.multiprocessors, " ", problem));
  std::string pick;
  if (!make) return cache->read(key, pick) ? pick : std::string();
  bool made = false;
  return cache->get(key, make, &made, accept);
}

// Products ---------------------------------------------------------------------------------------

constexpr size_t kMostWorkspace = size_t{32} << 20;
constexpr int kTunedCandidates = 8;
constexpr double kLeastTunedWork = double(int64_t{1} << 31);  // multiplications

[[noreturn, gnu::cold]] void fail_cublas(cublasStatus_t status, const char* call) {
  gpu::let_process_end(cudaSuccess);
  const cudaError_t error = cudaFree(nullptr);  // the library does not say that the GPU is lost
  cudaGetLastError();                           // it must not appear in the next, unrelated check
  fail<DeviceError>("cuBLASLt call failed: ", call, ": ", cublasLtGetStatusName(status), ": ",
                    cublasLtGetStatusString(status), gpu::describe_fault(error));
}
#define CATENA_CUBLAS_CHECK(call)                            \
  do {                                                       \
    const cublasStatus_t catena_status = (call);             \
    if (catena_status != CUBLAS_STATUS_SUCCESS) [[unlikely]] \
      fail_cublas(catena_status, #call);                     \
  } while (false)

// Everything that decides which algorithm computes a product.
struct Key {
  std::array<int64_t, 13> words;  // the last one is the device
  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
  size_t hash() const {
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (int64_t w : words) h = (std::rotl(h, 5) ^ uint64_t(w)) * 0x9FB21C651E98DF25ull;
    return size_t(h ^ (h >> 32));
  }
};

int64_t alignment_code(const void* pointer) {  // log2, at most 256 bytes
  return std::min(8, std::countr_zero(reinterpret_cast<uintptr_t>(pointer) | 256));
}

enum class Tuning : uint8_t { kNone, kLarge, kAll };

Tuning tuning_from_environment() {
  constexpr const char* kName = "CATENA_MATMUL_TUNE";
  if (first_set({kName}) == nullptr) return Tuning::kLarge;
  return switch_from_environment(kName, false) ? Tuning::kAll : Tuning::kNone;
}

bool is_tuned(const LibraryProduct& p) {
  static const Tuning tuning = tuning_from_environment();
  if (tuning == Tuning::kNone || config().deterministic) return false;
  return tuning == Tuning::kAll ||
         double(p.rows) * double(p.columns) * double(p.depth) * double(p.batch) >= kLeastTunedWork;
}

Key make_key(Dtype dtype, Precision precision, const LibraryProduct& p, int device) {
  int64_t flags = 0;
  auto push = [&flags](int64_t value, int bits) { flags = flags << bits | value; };
  push(p.wide, 1);
  push(int64_t(dtype), 4);
  push(int64_t(precision), 2);
  push(p.a.transposed, 1);
  push(p.b.transposed, 1);
  push(p.bias != nullptr, 1);
  push(is_tuned(p), 1);
  push(int64_t(p.activation), 2);
  push(p.accumulate, 1);
  push(alignment_code(p.a.data), 4);
  push(alignment_code(p.b.data), 4);
  push(alignment_code(p.c.data), 4);
  push(p.bias ? alignment_code(p.bias) : 0, 4);
  push(p.before ? alignment_code(p.before) : 0, 4);
  return {{p.rows, p.columns, p.depth, p.batch, p.a.leading, p.b.leading, p.c.leading,
           p.a.batch_step, p.b.batch_step, p.c.batch_step, p.before_leading, flags, device}};
}

// None for dtypes of which the library computes no products here.
std::optional<cudaDataType_t> data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return CUDA_R_16F;
    case Dtype::kBFloat16: return CUDA_R_16BF;
    case Dtype::kFloat32: return CUDA_R_32F;
    case Dtype::kFloat64: return CUDA_R_64F;
    default: return {};
  }
}

cublasComputeType_t compute_type(Dtype dtype, Precision precision) {
  if (dtype == Dtype::kFloat64) return CUBLAS_COMPUTE_64F;
  if (dtype == Dtype::kFloat32 && precision == Precision::kTf32)
    return CUBLAS_COMPUTE_32F_FAST_TF32;
  if (dtype == Dtype::kFloat32 && precision == Precision::kBf16)
    return CUBLAS_COMPUTE_32F_FAST_16BF;
  return CUBLAS_COMPUTE_32F;
}

cublasLtHandle_t handle_of(int device) {
  static auto* handles = new OncePerDevice<cublasLtHandle_t>;
  return handles->of(device, [] {
    cublasLtHandle_t made;
    CATENA_CUBLAS_CHECK(cublasLtCreate(&made));
    return new cublasLtHandle_t(made);
  });
}

// The algorithm of a problem, decided once for all threads.
struct Choice {
  bool found = false;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace = 0;
};

// A problem that is ready to run. It belongs to one thread, because addresses are part of the
// descriptor.
struct Plan {
  Key key;
  Choice choice;
  const void *bias = nullptr, *before = nullptr;
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c;
};

void set_layout(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, int64_t rows,
                int64_t columns, const LibraryMatrix& matrix, int64_t batch) {
  if (matrix.transposed) std::swap(rows, columns);
  CATENA_CUBLAS_CHECK(
      cublasLtMatrixLayoutInit(&layout, type, uint64_t(rows), uint64_t(columns), matrix.leading));
  if (batch == 1) return;
  const int32_t count = static_cast<int32_t>(batch);
  CATENA_CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                       &count, sizeof count));
  CATENA_CUBLAS_CHECK(
      cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                       &matrix.batch_step, sizeof matrix.batch_step));
}

template <class T>
void set_operation(Plan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  CATENA_CUBLAS_CHECK(
      cublasLtMatmulDescSetAttribute(&plan.operation, attribute, &value, sizeof value));
}

// The addresses of a product beside those of its matrices.
void set_addresses(Plan& plan, const LibraryProduct& p) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void*& known,
                       const void* address) {
    if (known != address) set_operation(plan, attribute, address);
    known = address;
  };
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, plan.bias, p.bias);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, plan.before, p.before);
}

cublasLtEpilogue_t epilogue_of(const LibraryProduct& p) {
  switch (p.activation) {
    case LibraryActivation::kNone:
      return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case LibraryActivation::kRelu:
      return p.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case LibraryActivation::kGeluTanh: break;
  }
  if (p.before) return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

void describe(Plan& plan, Dtype dtype, Precision precision, const LibraryProduct& p) {
  const cudaDataType_t type = data_type(dtype).value();
  const cudaDataType_t scale = dtype == Dtype::kFloat64 ? CUDA_R_64F : CUDA_R_32F;
  CATENA_CUBLAS_CHECK(
      cublasLtMatmulDescInit(&plan.operation, compute_type(dtype, precision), scale));
  const cublasOperation_t op_a = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set_operation(plan, CUBLASLT_MATMUL_DESC_TRANSA, op_a);
  set_operation(plan, CUBLASLT_MATMUL_DESC_TRANSB, op_b);
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (p.before) set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.before_leading);
  // Before the library proposes algorithms: it reads the alignment from the addresses.
  set_addresses(plan, p);
  set_layout(plan.a, type, p.rows, p.depth, p.a, p.batch);
  set_layout(plan.b, type, p.depth, p.columns, p.b, p.batch);
  set_layout(plan.c, p.wide ? CUDA_R_32F : type, p.rows, p.columns, p.c, p.batch);
}

std::vector<cublasLtMatmulHeuristicResult_t> ask_heuristic(Plan& plan, Dtype dtype,
                                                           const LibraryProduct& p, int device,
                                                           int wanted) {
  cublasLtMatmulPreferenceOpaque_t preference;
  CATENA_CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    CATENA_CUBLAS_CHECK(
        cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
  };
  auto alignment = [](const void* pointer) { return uint32_t{1} << alignment_code(pointer); };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  // Partial sums over the depth are added in float, not in the 16 bits of the result.
  if (is_narrow_float(dtype))
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.c.data));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(wanted));
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_of(device), &plan.operation, &plan.a, &plan.b, &plan.c,
                                     &plan.c, &preference, wanted, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) {
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) {
      fail_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    }
    count = 0;
  }
  results.resize(static_cast<size_t>(count));
  std::erase_if(results, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

cublasStatus_t run(Plan& plan, const Choice& choice, Dtype dtype, const LibraryProduct& p,
                   void* output, int device, cudaStream_t stream) {
  static const double one = 1, zero = 0;
  static const float one_f = 1, zero_f = 0;
  const bool is_double = dtype == Dtype::kFloat64;
  const void* alpha = is_double ? static_cast<const void*>(&one) : &one_f;
  const void* none = is_double ? static_cast<const void*>(&zero) : &zero_f;
  // The workspace is released at once: later work of this stream waits for this product anyway.
  StoragePtr workspace;
  if (choice.workspace) workspace = allocate_device(device, choice.workspace);
  return cublasLtMatmul(handle_of(device), &plan.operation, alpha, p.a.data, &plan.a, p.b.data,
                        &plan.b, p.accumulate ? alpha : none, output, &plan.c, output, &plan.c,
                        &choice.algorithm, workspace ? workspace->data : nullptr, choice.workspace,
                        stream);
}

// The bytes from the first element of the result to the end of the last one.
size_t output_bytes(Dtype dtype, const LibraryProduct& p) {
  const int64_t last = (p.batch - 1) * p.c.batch_step + (p.columns - 1) * p.c.leading + p.rows;
  return static_cast<size_t>(last) * itemsize(p.wide ? Dtype::kFloat32 : dtype);
}

// The index of the fastest candidate. The result is overwritten, and is scratch memory where the
// product is to be added to it.
size_t fastest_of(Plan& plan, const std::vector<Choice>& candidates, Dtype dtype,
                  const LibraryProduct& p, int device, cudaStream_t stream) {
  StoragePtr scratch;
  if (p.accumulate) {
    scratch = allocate_device(device, output_bytes(dtype, p));
    CATENA_CUDA_CHECK(cudaMemsetAsync(scratch->data, 0, scratch->bytes, stream));
  }
  void* const output = scratch ? scratch->data : p.c.data;
  const std::vector<double> times = times_of(candidates.size(), stream, [&](size_t i) {
    return run(plan, candidates[i], dtype, p, output, device, stream) == CUBLAS_STATUS_SUCCESS;
  });
  const size_t best = fastest(times);
  logging::debug("matmul ", p.rows, " x ", p.columns, " x ", p.depth, " (", name(dtype),
                 "): algorithm ", best, " of ", candidates.size(), ", ", 1e3 * times[best],
                 " us, the first ", 1e3 * times[0], " us");
  return best;
}

std::vector<Choice> candidates_of(Plan& plan, Dtype dtype, const LibraryProduct& p, int device,
                                  int wanted) {
  std::vector<Choice> result;
  for (const auto& found : ask_heuristic(plan, dtype, p, device, wanted)) {
    result.push_back({true, found.algo, found.workspaceSize});
  }
  return result;
}

// The problem without the device index, and the version of the library, which numbers the
// algorithms.
std::string problem_text(const Key& key) {
  std::string text = message("cublaslt ", cublasLtGetVersion(), ", parts in float,");
  for (size_t i = 0; i + 1 < key.words.size(); ++i) text += message(" ", key.words[i]);
  return text;
}

// A remembered algorithm, if the library still accepts it for this problem.
Choice read_pick(const std::string& bytes, Plan& plan, int device) {
  Choice choice;
  if (bytes.size() != sizeof choice.algorithm) return choice;
  std::memcpy(&choice.algorithm, bytes.data(), bytes.size());
  cublasLtMatmulHeuristicResult_t result;
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle_of(device), &plan.operation, &plan.a, &plan.b, &plan.c,
                              &plan.c, &choice.algorithm, &result);
  choice.found = status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kMostWorkspace;
  choice.workspace = result.workspaceSize;
  return choice;
}

// The fastest algorithm as bytes; none where there is no memory to find it.
std::string tuned_pick(Plan& plan, Dtype dtype, const LibraryProduct& p, int device,
                       cudaStream_t stream) {
  const std::vector<Choice> all = candidates_of(plan, dtype, p, device, kTunedCandidates);
  if (all.empty()) return {};
  try {
    const size_t best = all.size() > 1 ? fastest_of(plan, all, dtype, p, device, stream) : 0;
    const cublasLtMatmulAlgo_t& algorithm = all[best].algorithm;
    return std::string(reinterpret_cast<const char*>(&algorithm), sizeof algorithm);
  } catch (const OutOfMemoryError& error) {
    logging::debug("algorithms of a product are not timed: ", error.what());
    return {};
  }
}

Choice tuned_choice(Plan& plan, Dtype dtype, const LibraryProduct& p, int device,
                    cudaStream_t stream) {
  const std::string problem = problem_text(plan.key);
  const Choice known = read_pick(remembered_pick(device, problem, nullptr, nullptr), plan, device);
  // A capture cannot wait for timings.
  if (known.found || thread_capture()) return known;
  // Timings wait for the stream, whose earlier work may need another rank, which may need the lock
  // of the choice on disk. So that work ends before this thread holds it.
  CATENA_CUDA_CHECK(cudaStreamSynchronize(stream));
  const auto make = [&] { return tuned_pick(plan, dtype, p, device, stream); };
  const auto accept = [&](const std::string& bytes) {
    return read_pick(bytes, plan, device).found;
  };
  return read_pick(remembered_pick(device, problem, make, accept), plan, device);
}

Choice choose(Plan& plan, Dtype dtype, const LibraryProduct& p, int device, cudaStream_t stream) {
  RelaxedCapture relaxed;
  if (is_tuned(p)) {
    const Choice choice = tuned_choice(plan, dtype, p, device, stream);
    if (choice.found) return choice;
  }
  const std::vector<Choice> all = candidates_of(plan, dtype, p, device, 1);
  return all.empty() ? Choice{} : all[0];
}

Choice decide(Plan& plan, Dtype dtype, const LibraryProduct& p, int device, cudaStream_t stream) {
  static std::mutex mutex;
  static auto* choices = new std::map<Key, Choice>;
  {
    std::lock_guard lock(mutex);
    const auto known = choices->find(plan.key);
    if (known != choices->end()) return known->second;
  }
  const Choice choice = choose(plan, dtype, p, device, stream);
  std::lock_guard lock(mutex);
  return choices->emplace(plan.key, choice).first->second;  // or that of a faster thread
}

// The plans of one thread, in a hash table with open addressing.
class PlanTable {
 public:
  // The entry of the key, or the empty entry where it would be inserted.
  std::unique_ptr<Plan>& find(const Key& key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    return slot_of(key);
  }
  void added() { ++count_; }

 private:
  std::unique_ptr<Plan>& slot_of(const Key& key) {
    size_t i = key.hash() & (slots_.size() - 1);
    while (slots_[i] && !(slots_[i]->key == key)) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  void grow() {
    std::vector<std::unique_ptr<Plan>> old = std::move(slots_);
    slots_.clear();
    slots_.resize(old.empty() ? 64 : 2 * old.size());
    for (auto& plan : old) {
      if (plan) slot_of(plan->key) = std::move(plan);
    }
  }
  std::vector<std::unique_ptr<Plan>> slots_;
  size_t count_ = 0;
};

thread_local PlanTable t_plans;

}  // namespace

bool direct_matmul(Dtype dtype, Precision precision, const LibraryProduct& p, int device,
                   cudaStream_t stream) {
  const Key key = make_key(dtype, precision, p, device);
  std::unique_ptr<Plan>& slot = t_plans.find(key);
  if (!slot) [[unlikely]] {
    auto plan = std::make_unique<Plan>();
    plan->key = key;
    if (data_type(dtype)) {
      describe(*plan, dtype, precision, p);
      plan->choice = decide(*plan, dtype, p, device, stream);
    }
    slot = std::move(plan);
    t_plans.added();
  }
  if (!slot->choice.found) return false;
  set_addresses(*slot, p);
  CATENA_CUBLAS_CHECK(run(*slot, slot->choice, dtype, p, p.c.data, device, stream));
  return true;
}

}  // namespace catena::gpu
