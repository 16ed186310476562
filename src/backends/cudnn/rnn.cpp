// The providers "cudnn" of the slots of LSTM sequences.
//
// cuDNN wants all weights in one block of its own order. One kernel fills it in the forward call,
// which keeps it for the backward call beside cuDNN's reserve space. The gradients of the weights
// come in such a block, and leave it by one kernel for each run of targets that are adjacent, as in
// the arena of a packed layer.
#include <vector>

#include "backends/common/family.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/descriptor.h"
#include "backends/cudnn/rnn_plan.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/rnn.h"

namespace catena::cudnn {
namespace {

bool lstm_grad(const LstmGradCall& c);

// What cuDNN keeps. Its backward pass writes into the reserve space, so it gets a copy: a backward
// call may be repeated.
struct RnnState final : KeptState {
  std::shared_ptr<const RnnPlan> plan;
  Array weights, reserve;
};

// cuDNN's sums over several streams may differ from run to run.
bool allowed() { return !config().deterministic; }

RnnProblem problem_of(const LstmCall& c) {
  const Shape& x = c.x->shape();
  RnnProblem p{};
  p.dtype = c.x->dtype();
  p.precision = p.dtype == Dtype::kFloat32 ? config().matmul_precision : Precision::kFloat32;
  p.device = c.x->device().index();
  p.steps = x[0], p.sequences = x[1], p.inputs = x[2];
  p.cells = c.y->shape()[2];
  p.layers = static_cast<int64_t>(c.weights.size());
  return p;
}

// Of fewer sequences in tf32 cuDNN's one launch is faster than the many of our products.
constexpr int64_t kManySequences = 40;

// Whether the built-in provider, which multiplies step by step, is faster, forward and backward
// (docs/benchmarks.md, LSTM over whole sequences). Exact float32 and float64 were not measured.
bool better_as_products(const RnnProblem& p) {
  const bool half = p.dtype == Dtype::kFloat16 || p.dtype == Dtype::kBFloat16;
  const bool fast = half || (p.precision == Precision::kTf32 && p.sequences >= kManySequences);
  return fast && config().providers.use(kernels::lstm.name(), "cudnn") == ProviderUse::kOn;
}

void* data_of(const Array* a) { return a ? a->raw_data() : nullptr; }
void* data_of(const StoragePtr& memory) { return memory ? memory->data : nullptr; }

Array bytes_on(Device device, size_t count) {
  return Array::uninitialized({static_cast<int64_t>(count)}, Dtype::kUInt8, device);
}

// Weights ---------------------------------------------------------------------------------------

const Array* array_of(const LstmWeights& w, RnnArray which) {
  return which == RnnArray::kWx ? w.Wx : which == RnnArray::kWh ? w.Wh : w.b;
}
const LstmTarget& target_of(const LstmWeightTargets& t, RnnArray which) {
  return which == RnnArray::kWx ? t.Wx : which == RnnArray::kWh ? t.Wh : t.b;
}

// Elements [first, first + count) of a contiguous array, as a vector.
Array part_of(const Array& a, int64_t first, int64_t count) {
  const int64_t offset = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data) +
                         first * a.itemsize();
  return Array::from_storage(a.storage(), offset, {count}, {a.itemsize()}, a.dtype());
}

Array weight_space(const RnnPlan& plan, const Array& like) {
  const auto count = static_cast<int64_t>(plan.weight_bytes) / like.itemsize();
  return Array::uninitialized({count}, like.dtype(), like.device());
}

Array packed_weights(const RnnPlan& plan, const std::vector<LstmWeights>& weights) {
  const Array& like = *weights[0].Wx;
  std::vector<Array> parts;
  int64_t end = 0;
  for (const RnnPiece& p : plan.pieces) {
    end = p.offset + p.count;
    if (p.array == RnnArray::kNone) {
      parts.push_back(zeros({p.count}, {like.dtype(), like.device()}));
      continue;
    }
    const Array& w = *array_of(weights[static_cast<size_t>(p.layer)], p.array);
    parts.push_back(part_of(w, p.first_gate * (p.count / p.gates), p.count));
  }
  const Array space = weight_space(plan, like);
  kernels::concatenate(like.device(), {parts, 0, part_of(space, 0, end)});
  return space;
}

// Targets that follow one another in memory, and the parts of the space that belong there.
struct Run {
  Array memory;
  bool accumulate;
  std::vector<Array> parts;

  bool goes_on_with(const LstmTarget& target) const {
    const Array& next = *target.array;
    return accumulate == target.accumulate && next.storage() == memory.storage() &&
           next.raw_data() ==
               static_cast<char*>(memory.raw_data()) + memory.size() * memory.itemsize();
  }
};

// The pieces of one array in the order of our gates.
void append_parts(const RnnPlan& plan, const Array& space, int64_t layer, RnnArray which,
                  std::vector<Array>& parts) {
  for (int gate = 0; gate < 4;) {
    for (const RnnPiece& p : plan.pieces) {
      if (p.layer != layer || p.array != which || p.first_gate != gate) continue;
      parts.push_back(part_of(space, p.offset, p.count));
      gate += p.gates;
      break;
    }
  }
}

std::vector<Run> runs_of(const RnnPlan& plan, const Array& space,
                         const std::vector<LstmWeightTargets>& targets) {
  std::vector<Run> runs;
  for (size_t layer = 0; layer < targets.size(); ++layer) {
    for (const RnnArray which : {RnnArray::kWx, RnnArray::kWh, RnnArray::kB}) {
      const LstmTarget& target = target_of(targets[layer], which);
      if (target.array == nullptr) continue;
      if (runs.empty() || !runs.back().goes_on_with(target)) {
        runs.push_back({part_of(*target.array, 0, target.array->size()), target.accumulate, {}});
      } else {
        Run& last = runs.back();
        last.memory = part_of(last.memory, 0, last.memory.size() + target.array->size());
      }
      append_parts(plan, space, static_cast<int64_t>(layer), which, runs.back().parts);
    }
  }
  return runs;
}

void give_weights(const RnnPlan& plan, const Array& space,
                  const std::vector<LstmWeightTargets>& targets) {
  for (const Run& run : runs_of(plan, space, targets)) {
    const Array to = run.accumulate ? empty_like(run.memory) : run.memory;
    kernels::concatenate(space.device(), {run.parts, 0, to});
    if (run.accumulate) add(run.memory, to, Out(run.memory));
  }
}

// Calls -----------------------------------------------------------------------------------------

// Sequences of different lengths are left to the products: a plan would be that of one list of
// lengths, which the next batch does not have.
bool lstm(const LstmCall& c) {
  if (!c.counts.empty()) return false;
  const RnnProblem problem = problem_of(c);
  if (!allowed() || !problem.fits_32_bits() || better_as_products(problem)) return false;
  const Device device = c.x->device();
  const cudaStream_t stream = gpu::companion_stream(device);
  Handle& handle = handle_of(device);
  const auto plan = rnn_plan_of(problem, handle);
  if (!plan) return false;
  const bool training = c.kept != nullptr;
  const size_t workspace = training ? plan->training_workspace : plan->inference_workspace;
  auto* state = new RnnState;
  const IntrusivePtr<const KeptState> owner(state);
  StoragePtr memory;
  try {
    memory = gpu::scratch_memory(device, workspace);
    if (training) state->reserve = bytes_on(device, plan->reserve_bytes);
    state->weights = packed_weights(*plan, c.weights);
  } catch (const OutOfMemoryError&) {
    return false;
  }
  state->plan = plan;
  try {
    std::lock_guard lock(handle.mutex);
    gpu::RelaxedMode relaxed;  // cuDNN loads its kernels at their first use
    CATENA_CUDNN_CHECK(cudnnSetStream(handle.native, stream));
    CATENA_CUDNN_CHECK(cudnnRNNForward(
        handle.native, plan->rnn, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
        nullptr, plan->x, c.x->raw_data(), plan->y, c.y->raw_data(), plan->states, data_of(c.h0),
        c.hT->raw_data(), plan->states, data_of(c.c0), c.cT->raw_data(), plan->weight_bytes,
        state->weights.raw_data(), workspace, data_of(memory), training ? plan->reserve_bytes : 0,
        training ? state->reserve.raw_data() : nullptr));
  } catch (const NotSupported&) {
    return false;
  }
  if (training) c.kept->keep<&lstm_grad>(owner);
  return true;
}

// The gradients of the weights must follow those of the data: they read what these leave in the
// reserve space.
void run_backward(const LstmGradCall& c, const RnnState& state, Handle& handle) {
  const RnnPlan& plan = *state.plan;
  const Device device = c.x->device();
  const Array gy = c.gy ? *c.gy : zeros_like(*c.y), gx = c.gx ? *c.gx : empty_like(*c.x);
  const Array reserve = state.reserve.copy();
  bool wants_weights = false;
  for (const LstmWeightTargets& t : c.targets)
    wants_weights = wants_weights || t.Wx.array || t.Wh.array || t.b.array;
  const Array space = wants_weights ? zeros_like(state.weights) : Array();  // cuDNN adds to it
  const StoragePtr memory = gpu::scratch_memory(device, plan.training_workspace);
  const cudaStream_t stream = gpu::companion_stream(device);
  {
    std::lock_guard lock(handle.mutex);
    gpu::RelaxedMode relaxed;
    CATENA_CUDNN_CHECK(cudnnSetStream(handle.native, stream));
    CATENA_CUDNN_CHECK(cudnnRNNBackwardData_v8(
        handle.native, plan.rnn, nullptr, plan.y, c.y->raw_data(), gy.raw_data(), plan.x,
        gx.raw_data(), plan.states, data_of(c.h0), data_of(c.ghT), data_of(c.gh0), plan.states,
        data_of(c.c0), data_of(c.gcT), data_of(c.gc0), plan.weight_bytes, state.weights.raw_data(),
        plan.training_workspace, data_of(memory), plan.reserve_bytes, reserve.raw_data()));
    if (wants_weights)
      CATENA_CUDNN_CHECK(cudnnRNNBackwardWeights_v8(
          handle.native, plan.rnn, CUDNN_WGRAD_MODE_ADD, nullptr, plan.x, c.x->raw_data(),
          plan.states, data_of(c.h0), plan.y, c.y->raw_data(), plan.weight_bytes, space.raw_data(),
          plan.training_workspace, data_of(memory), plan.reserve_bytes, reserve.raw_data()));
  }
  if (wants_weights) give_weights(plan, space, c.targets);
}

bool lstm_grad(const LstmGradCall& c) {
  const RnnState* state = c.kept ? c.kept->state<&lstm_grad, RnnState>() : nullptr;
  if (state == nullptr) return false;
  const Device device = c.x->device();
  gpu::companion_stream(device);
  try {
    run_backward(c, *state, handle_of(device));
  } catch (const NotSupported&) {
    char detail[512] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    fail<DeviceError>("cuDNN refused the backward pass of an LSTM that it had run: ", detail,
                      "; CATENA_PROVIDERS=cudnn:off computes without cuDNN");
  }
  return true;
}

}  // namespace
}  // namespace catena::cudnn

CATENA_FAMILY(cudnn, rnn) {
  kernels::lstm.provide(DeviceType::kCuda, "cudnn", &cudnn::lstm, 10);
  kernels::lstm_grad.provide(DeviceType::kCuda, "cudnn", &cudnn::lstm_grad, 10);
}
