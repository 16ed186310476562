#include "backends/cuda/matmul/cublaslt.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

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

constexpr int kRepeats = 10;
constexpr int kRounds = 3;  // the best one counts: other work on the GPU only makes runs slower

struct TimingEvent {
  cudaEvent_t event = nullptr;
  TimingEvent() { CATENA_CUDA_CHECK(cudaEventCreate(&event)); }
  ~TimingEvent() { cudaEventDestroy(event); }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;
};

float milliseconds(cudaStream_t stream, const TimingEvent& start, const TimingEvent& stop,
                   const std::function<void()>& run) {
  CATENA_CUDA_CHECK(cudaEventRecord(start.event, stream));
  for (int i = 0; i < kRepeats; ++i) run();
  CATENA_CUDA_CHECK(cudaEventRecord(stop.event, stream));
  CATENA_CUDA_CHECK(cudaEventSynchronize(stop.event));
  float result = 0;
  CATENA_CUDA_CHECK(cudaEventElapsedTime(&result, start.event, stop.event));
  return result;
}

// Runs each of `count` candidates a few times on the stream and returns the fastest. Waits for the
// stream. `microseconds` (may be null) gets the time of one run of that candidate.
size_t fastest_candidate(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run,
                         double* microseconds) {
  const TimingEvent start, stop;
  size_t best = 0;
  float best_time = 0;
  for (size_t i = 0; i < count; ++i) {
    run(i);  // loads the kernel
    for (int round = 0; round < kRounds; ++round) {
      const float time = milliseconds(stream, start, stop, [&] { run(i); });
      if ((i == 0 && round == 0) || time < best_time) {
        best = i;
        best_time = time;
      }
    }
  }
  if (microseconds) *microseconds = double(best_time) * 1e3 / kRepeats;
  return best;
}

// The choice for a problem, as bytes. It comes from the cache folder on disk, or else from `make`,
// whose result is stored there, so that later runs and other ranks make the same choice and results
// are the same bits. If several processes ask, one calls `make` and the others wait. With a null
// `make` it only reads, and an unknown choice is "".
std::string remembered_pick(int device, std::string_view problem,
                            const std::function<std::string()>& make) {
  static const auto* cache = new DiskCache(cache_folder());
  const Hash128 key = hash128(message("pick ", device_info(device).model, " ", problem));
  std::string pick;
  if (!make) return cache->read(key, pick) ? pick : std::string();
  bool made = false;
  return cache->get(key, make, &made);
}

// Products ---------------------------------------------------------------------------------------

constexpr size_t kMostWorkspace = size_t{32} << 20;
constexpr int kTunedCandidates = 8;

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
  std::array<int64_t, 12> words;  // the last one is the device
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

bool tuning_wanted() {
  static const bool wanted = switch_from_environment("CATENA_MATMUL_TUNE", false);
  return wanted && !config().deterministic;
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
  push(tuning_wanted(), 1);
  push(p.relu, 1);
  push(p.accumulate, 1);
  push(alignment_code(p.a.data), 4);
  push(alignment_code(p.b.data), 4);
  push(alignment_code(p.c.data), 4);
  push(p.bias ? alignment_code(p.bias) : 0, 4);
  return {{p.rows, p.columns, p.depth, p.batch, p.a.leading, p.b.leading, p.c.leading,
           p.a.batch_step, p.b.batch_step, p.c.batch_step, flags, device}};
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

// A problem that is ready to run. It belongs to one thread, because the bias address is part of the
// descriptor.
struct Plan {
  Key key;
  Choice choice;
  const void* bias = nullptr;
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

void set_bias(Plan& plan, const void* bias) {
  if (plan.bias == bias) return;
  set_operation(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  plan.bias = bias;
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
  if (p.bias || p.relu) {
    const cublasLtEpilogue_t epilogue = !p.bias  ? CUBLASLT_EPILOGUE_RELU
                                        : p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                 : CUBLASLT_EPILOGUE_BIAS;
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (p.bias) set_bias(plan, p.bias);
  }
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

void run(Plan& plan, const Choice& choice, Dtype dtype, const LibraryProduct& p, void* output,
         int device, cudaStream_t stream) {
  static const double one = 1, zero = 0;
  static const float one_f = 1, zero_f = 0;
  const bool is_double = dtype == Dtype::kFloat64;
  const void* alpha = is_double ? static_cast<const void*>(&one) : &one_f;
  const void* none = is_double ? static_cast<const void*>(&zero) : &zero_f;
  // The workspace is released at once: later work of this stream waits for this product anyway.
  StoragePtr workspace;
  if (choice.workspace) workspace = allocate_device(device, choice.workspace);
  CATENA_CUBLAS_CHECK(cublasLtMatmul(
      handle_of(device), &plan.operation, alpha, p.a.data, &plan.a, p.b.data, &plan.b,
      p.accumulate ? alpha : none, output, &plan.c, output, &plan.c, &choice.algorithm,
      workspace ? workspace->data : nullptr, choice.workspace, stream));
}

// The bytes from the first element of the result to the end of the last one.
size_t output_bytes(Dtype dtype, const LibraryProduct& p) {
  const int64_t last = (p.batch - 1) * p.c.batch_step + (p.columns - 1) * p.c.leading + p.rows;
  return static_cast<size_t>(last) * itemsize(p.wide ? Dtype::kFloat32 : dtype);
}

// The index of the fastest candidate, timed with a scratch result.
size_t fastest(Plan& plan, const std::vector<Choice>& candidates, Dtype dtype,
               const LibraryProduct& p, int device, cudaStream_t stream) {
  StoragePtr scratch = allocate_device(device, output_bytes(dtype, p));
  CATENA_CUDA_CHECK(cudaMemsetAsync(scratch->data, 0, scratch->bytes, stream));
  double time = 0;
  const size_t best = fastest_candidate(
      candidates.size(), stream,
      [&](size_t i) { run(plan, candidates[i], dtype, p, scratch->data, device, stream); }, &time);
  logging::debug("matmul ", p.rows, " x ", p.columns, " x ", p.depth, " (", name(dtype),
                 "): algorithm ", best, " of ", candidates.size(), ", ", time, " us");
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

Choice choose(Plan& plan, Dtype dtype, const LibraryProduct& p, int device, cudaStream_t stream) {
  RelaxedCapture relaxed;
  if (tuning_wanted()) {
    auto tune = [&] {
      const std::vector<Choice> all = candidates_of(plan, dtype, p, device, kTunedCandidates);
      if (all.empty()) return std::string();
      const Choice& best = all[fastest(plan, all, dtype, p, device, stream)];
      return std::string(reinterpret_cast<const char*>(&best.algorithm), sizeof best.algorithm);
    };
    const std::string problem = problem_text(plan.key);
    // A capture cannot wait for timings, but it uses choices that were made before.
    const std::string pick = thread_capture() ? remembered_pick(device, problem, nullptr)
                                              : remembered_pick(device, problem, tune);
    const Choice choice = read_pick(pick, plan, device);
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

bool library_matmul(Dtype dtype, Precision precision, const LibraryProduct& p, int device,
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
  if (p.bias) set_bias(*slot, p.bias);
  run(*slot, slot->choice, dtype, p, p.c.data, device, stream);
  return true;
}

}  // namespace catena::gpu
