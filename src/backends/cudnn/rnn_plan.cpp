#include "backends/cudnn/rnn_plan.h"

#include <algorithm>
#include <mutex>

#include "backends/common/plan_cache.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/descriptor.h"
#include "catena/core/error.h"

namespace catena::cudnn {
namespace {

// Descriptors alone, and lists of a few pieces.
constexpr size_t kMostPlans = 1024;
constexpr int kGates = 4;
// Our block of the gate that cuDNN has at each place: i, f, a, o.
constexpr int kOurGate[kGates] = {1, 2, 0, 3};

// Whether cuDNN may use tensor cores, which round the factors of float32 products to TF32.
cudnnMathType_t math_of(const RnnProblem& p) {
  if (p.dtype == Dtype::kFloat16 || p.dtype == Dtype::kBFloat16) return CUDNN_TENSOR_OP_MATH;
  if (p.dtype == Dtype::kFloat32 && p.precision == Precision::kFloat32) return CUDNN_FMA_MATH;
  return CUDNN_DEFAULT_MATH;
}

// Joins pieces that are adjacent on both sides, and names the room between pieces.
std::vector<RnnPiece> joined(std::vector<RnnPiece> gates) {
  std::sort(gates.begin(), gates.end(),
            [](const RnnPiece& a, const RnnPiece& b) { return a.offset < b.offset; });
  std::vector<RnnPiece> pieces;
  int64_t end = 0;
  for (const RnnPiece& gate : gates) {
    if (gate.offset < end) throw NotSupported{true};
    if (gate.offset > end) pieces.push_back({0, RnnArray::kNone, 0, 0, end, gate.offset - end});
    end = gate.offset + gate.count;
    if (!pieces.empty()) {
      RnnPiece& last = pieces.back();
      if (last.layer == gate.layer && last.array == gate.array &&
          last.first_gate + last.gates == gate.first_gate) {
        ++last.gates;
        last.count += gate.count;
        continue;
      }
    }
    pieces.push_back(gate);
  }
  return pieces;
}

}  // namespace

bool RnnProblem::fits_32_bits() const {
  return std::max({steps, sequences, inputs, cells * kGates, layers}) <= INT32_MAX;
}

void RnnProblem::describe(PlanKey& key) const {
  constexpr PlanWord kFamily("lstm");
  key << kFamily << dtype << int(precision) << device << steps << sequences << inputs << cells
      << layers;
}

RnnPlan::RnnPlan(const RnnProblem& problem, cudnnHandle_t handle) {
  try {
    describe_data(problem);
    describe_network(problem, handle);
    find_pieces(problem, handle);
  } catch (...) {
    destroy();
    throw;
  }
}

RnnPlan::~RnnPlan() { destroy(); }

void RnnPlan::destroy() {
  if (rnn) cudnnDestroyRNNDescriptor(rnn);
  if (no_dropout_) cudnnDestroyDropoutDescriptor(no_dropout_);
  if (x) cudnnDestroyRNNDataDescriptor(x);
  if (y) cudnnDestroyRNNDataDescriptor(y);
  if (states) cudnnDestroyTensorDescriptor(states);
}

void RnnPlan::describe_data(const RnnProblem& p) {
  const cudnnDataType_t type = data_type(p.dtype);
  const int steps = int(p.steps), sequences = int(p.sequences), cells = int(p.cells);
  const std::vector<int> lengths(static_cast<size_t>(sequences), steps);
  const auto describe = [&](cudnnRNNDataDescriptor_t& data, int64_t columns) {
    CATENA_CUDNN_CHECK(cudnnCreateRNNDataDescriptor(&data));
    CATENA_CUDNN_CHECK(cudnnSetRNNDataDescriptor(data, type,
                                                 CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, steps,
                                                 sequences, int(columns), lengths.data(), nullptr));
  };
  describe(x, p.inputs);
  describe(y, p.cells);
  const int extents[] = {int(p.layers), sequences, cells},
            strides[] = {sequences * cells, cells, 1};
  CATENA_CUDNN_CHECK(cudnnCreateTensorDescriptor(&states));
  CATENA_CUDNN_CHECK(cudnnSetTensorNdDescriptor(states, type, 3, extents, strides));
}

void RnnPlan::describe_network(const RnnProblem& p, cudnnHandle_t handle) {
  const cudnnDataType_t type = data_type(p.dtype);
  const cudnnDataType_t math = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
  CATENA_CUDNN_CHECK(cudnnCreateDropoutDescriptor(&no_dropout_));
  CATENA_CUDNN_CHECK(cudnnSetDropoutDescriptor(no_dropout_, handle, 0.0f, nullptr, 0, 0));
  CATENA_CUDNN_CHECK(cudnnCreateRNNDescriptor(&rnn));
  CATENA_CUDNN_CHECK(cudnnSetRNNDescriptor_v8(
      rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_SINGLE_INP_BIAS, CUDNN_UNIDIRECTIONAL,
      CUDNN_LINEAR_INPUT, type, math, math_of(p), int32_t(p.inputs), int32_t(p.cells),
      int32_t(p.cells), int32_t(p.layers), no_dropout_, CUDNN_RNN_PADDED_IO_ENABLED));
  CATENA_CUDNN_CHECK(cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes));
  CATENA_CUDNN_CHECK(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_INFERENCE, x,
                                               &inference_workspace, nullptr));
  CATENA_CUDNN_CHECK(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x,
                                               &training_workspace, &reserve_bytes));
}

// Asks for the address of each gate's part of each array.
void RnnPlan::find_pieces(const RnnProblem& p, cudnnHandle_t handle) {
  const Device device(DeviceType::kCuda, p.device);
  const StoragePtr memory = gpu::scratch_memory(device, weight_bytes);
  const char* const begin = static_cast<const char*>(memory->data);
  struct Tensor {
    Tensor() { CATENA_CUDNN_CHECK(cudnnCreateTensorDescriptor(&native)); }
    ~Tensor() { cudnnDestroyTensorDescriptor(native); }
    cudnnTensorDescriptor_t native = nullptr;
  } matrix, vector;
  std::vector<RnnPiece> gates;
  const auto item = static_cast<int64_t>(itemsize(p.dtype));
  const auto add = [&](int64_t layer, RnnArray array, int gate, const void* at, int64_t count) {
    if (at == nullptr) throw NotSupported{true};
    const int64_t bytes = static_cast<const char*>(at) - begin;
    if (bytes % item != 0) throw NotSupported{true};
    gates.push_back({layer, array, kOurGate[gate], 1, bytes / item, count});
  };
  for (int64_t layer = 0; layer < p.layers; ++layer) {
    for (int id = 0; id < 2 * kGates; ++id) {  // those of x, then those of h
      void *weights = nullptr, *bias = nullptr;
      CATENA_CUDNN_CHECK(cudnnGetRNNWeightParams(handle, rnn, int32_t(layer), weight_bytes,
                                                 memory->data, id, matrix.native, &weights,
                                                 vector.native, &bias));
      const bool of_x = id < kGates;
      const int64_t columns = of_x && layer == 0 ? p.inputs : p.cells;
      add(layer, of_x ? RnnArray::kWx : RnnArray::kWh, id % kGates, weights, p.cells * columns);
      if (of_x) add(layer, RnnArray::kB, id, bias, p.cells);
    }
  }
  pieces = joined(std::move(gates));
}

std::shared_ptr<const RnnPlan> rnn_plan_of(const RnnProblem& problem, Handle& handle) {
  struct Entry {
    std::unique_ptr<const RnnPlan> plan;  // null: not supported
  };
  static std::mutex mutex;
  static auto* plans = new PlanCache<const Entry>(kMostPlans);
  PlanKey key;
  problem.describe(key);
  const auto plan_in = [](const std::shared_ptr<const Entry>& entry) {
    return std::shared_ptr<const RnnPlan>(entry, entry->plan.get());
  };
  {
    std::lock_guard lock(mutex);
    if (auto known = plans->find(key)) return plan_in(known);
  }
  auto made = std::make_shared<Entry>();
  try {
    std::lock_guard lock(handle.mutex);
    gpu::RelaxedMode relaxed;
    made->plan = std::make_unique<RnnPlan>(problem, handle.native);
  } catch (const NotSupported& refusal) {  // the next provider takes the call
    if (!refusal.lasting) return nullptr;
  }
  std::lock_guard lock(mutex);
  return plan_in(plans->keep(key, std::move(made)));
}

}  // namespace catena::cudnn
