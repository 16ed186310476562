// The providers "cudnn" of the attention slots: calls of 16 bits with no other rule than causality.
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "backends/common/family.h"
#include "backends/cuda/companion.h"
#include "backends/cudnn/attention_plan.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/device.h"
#include "catena/core/error.h"
#include "catena/kernels/attention.h"

namespace catena::cudnn {
namespace {

constexpr int64_t kHeadUnit = 8;       // head sizes are multiples of it: 16 bytes
constexpr int64_t kMostColumns = 128;  // of the gradient's kernels
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Of fewer products the host's time for the call is longer than the kernel's: measured on an H200.
constexpr double kManyProducts = double(1 << 30);

// Whether cuDNN has kernels for these GPUs that are faster than ours: those of Hopper and later.
bool is_recent(Device device) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index()) ==
             cudaSuccess &&
         major >= 9;
}

bool is_aligned(const Array& a) {
  const int64_t unit = kHeadUnit * a.itemsize();
  if (a.shape()[3] % kHeadUnit != 0 || a.strides()[3] != a.itemsize() ||
      reinterpret_cast<uintptr_t>(a.raw_data()) % 16 != 0)
    return false;
  for (size_t i = 0; i < 3; ++i)  // neither broadcast nor reversed
    if (a.shape()[i] > 1 && (a.strides()[i] <= 0 || a.strides()[i] % unit != 0)) return false;
  return true;
}

bool has_only_causality(const AttentionCall& c) {
  const AttentionRules& r = c.rules;
  return !c.mask && !c.bias && r.window == 0 && !r.key_lengths && !r.query_start &&
         !r.query_documents && c.softcap == 0 && c.dropout == 0;
}

// Whether the call is large enough, or the settings ask for cuDNN.
bool pays(const AttentionCall& c, const SlotBase& slot) {
  const Shape &q = c.q->shape(), &k = c.k->shape();
  const double products = double(q[0]) * double(q[1]) * double(q[2]) * double(k[2]) * double(q[3]);
  return products >= kManyProducts ||
         config().providers.use(slot.name(), "cudnn") != ProviderUse::kOn;
}

bool takes(const AttentionCall& c, const SlotBase& slot) {
  const Dtype dtype = c.q->dtype();
  const Shape &q = c.q->shape(), &k = c.k->shape();
  return (dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16) && has_only_causality(c) &&
         c.scale > 0 && k[2] > 0 && (!c.rules.causal || q[2] == k[2]) && q[3] == c.v->shape()[3] &&
         q[3] <= kMostColumns && is_aligned(*c.q) && is_aligned(*c.k) && is_aligned(*c.v) &&
         is_aligned(*c.out) && pays(c, slot) && is_recent(c.q->device());
}

// Along axes of one element strides may be anything; engines read them.
HeadStrides strides_of(const Array& a) {
  const Shape& e = a.shape();
  const int64_t row = e[2] > 1 ? a.strides()[2] / a.itemsize() : e[3];
  const int64_t head = e[1] > 1 ? a.strides()[1] / a.itemsize() : e[2] * row;
  const int64_t batch = e[0] > 1 ? a.strides()[0] / a.itemsize() : e[1] * head;
  return {batch, head, row};
}

AttentionProblem problem_of(const AttentionCall& c) {
  const Shape &q = c.q->shape(), &k = c.k->shape();
  AttentionProblem p{};
  p.shape = {.dtype = c.q->dtype(),
             .batch = q[0],
             .heads = q[1],
             .groups = k[1],
             .queries = q[2],
             .keys = k[2],
             .depth = q[3],
             .width = c.v->shape()[3],
             .causal = c.rules.causal,
             .q = strides_of(*c.q),
             .k = strides_of(*c.k),
             .v = strides_of(*c.v),
             .out = strides_of(*c.out)};
  p.device = c.q->device().index();
  p.workspace_limit = workspace_limit();
  return p;
}

// Gradients become NaN where a tile goes past the last key and all scores of a query are below -88
// (github.com/NVIDIA/cudnn-frontend/issues/628). Kernels that know the lengths of the sequences
// leave such keys alone. Causal queries never attend to them, but older kernels read them.
bool needs_lengths(const AttentionShape& s) {
  constexpr int64_t kKeyTile = 128;
  constexpr size_t kFirstWithCausalTails = 91501, kFirstWithTails = 92600;
  const size_t version = cudnnGetVersion();
  return s.keys % kKeyTile != 0 && version < (s.causal ? kFirstWithCausalTails : kFirstWithTails);
}

// The plan of a call, or null.
std::shared_ptr<const Plan> usable_plan(const AttentionProblem& p, Device device, Handle*& handle) {
  gpu::companion_stream(device);
  handle = &handle_of(device);
  std::shared_ptr<const Plan> plan = plan_of(p, *handle);
  return plan->usable() ? plan : nullptr;
}

// Norms are a number and the rest of its logarithm: cuDNN gives them as one.
bool forward(const AttentionCall& c) {
  if (!takes(c, kernels::attention)) return false;
  const Device device = c.q->device();
  Handle* handle = nullptr;
  const auto plan = usable_plan(problem_of(c), device, handle);
  if (!plan) return false;
  const Array log_sums = (*c.norms)(0);
  const auto scale = static_cast<float>(c.scale);
  const Binding bindings[] = {{kQuery, c.q->raw_data()},      {kKey, c.k->raw_data()},
                              {kValue, c.v->raw_data()},      {kOut, c.out->raw_data()},
                              {kLogSum, log_sums.raw_data()}, {kScale, &scale},
                              {kForbidden, &kNothing}};
  const std::span<const Binding> used(bindings, c.rules.causal ? 7 : 6);
  if (!run_plan(*plan, used, device, *handle)) return false;
  (*c.norms)(1).fill(0);
  return true;
}

// Arrays beside the plan's workspace, of float32 but for the lengths. Those that a plan does not
// need are undefined.
struct GradientScratch {
  Array log_sums, row_sums, query_sums;
  Array query_lengths, key_lengths;  // int32
};

// None where there is no memory for them.
std::optional<GradientScratch> scratch_of(const AttentionCall& c, const AttentionShape& s) {
  const Device device = c.q->device();
  try {
    GradientScratch scratch;
    scratch.log_sums = (*c.norms)(0) + (*c.norms)(1);
    scratch.row_sums = Array::uninitialized(scratch.log_sums.shape(), Dtype::kFloat32, device);
    if (!s.ordered)
      scratch.query_sums = Array::uninitialized(c.q->shape(), Dtype::kFloat32, device);
    if (!s.bounded) return scratch;
    const ArrayOptions of_lengths(Dtype::kInt32, device);
    scratch.query_lengths = full(s.batch, s.queries, of_lengths);
    scratch.key_lengths =
        s.keys == s.queries ? scratch.query_lengths : full(s.batch, s.keys, of_lengths);
    return scratch;
  } catch (const OutOfMemoryError&) {
    return {};
  }
}

AttentionProblem problem_of(const AttentionGradCall& c) {
  AttentionProblem p = problem_of(c.forward);
  p.gradient = true;
  p.shape.gout = strides_of(*c.gout);
  p.shape.gq = strides_of(*c.gq);
  p.shape.gk = strides_of(*c.gk);
  p.shape.gv = strides_of(*c.gv);
  p.shape.bounded = needs_lengths(p.shape);
  p.shape.ordered = config().deterministic;
  return p;
}

bool run_gradient(const AttentionGradCall& c) {
  const AttentionCall& f = c.forward;
  const Device device = f.q->device();
  const AttentionProblem p = problem_of(c);
  Handle* handle = nullptr;
  const auto plan = usable_plan(p, device, handle);
  if (!plan) return false;
  const std::optional<GradientScratch> scratch = scratch_of(f, p.shape);
  if (!scratch) return false;
  const auto scale = static_cast<float>(f.scale);
  const float one = 1;
  std::vector<Binding> bindings = {{kQuery, f.q->raw_data()},
                                   {kKey, f.k->raw_data()},
                                   {kValue, f.v->raw_data()},
                                   {kOut, f.out->raw_data()},
                                   {kLogSum, scratch->log_sums.raw_data()},
                                   {kScale, &scale},
                                   {kOne, &one},
                                   {kGradOut, c.gout->raw_data()},
                                   {kGradQuery, c.gq->raw_data()},
                                   {kGradKey, c.gk->raw_data()},
                                   {kGradValue, c.gv->raw_data()},
                                   {kRowSum, scratch->row_sums.raw_data()}};
  const auto bind = [&](AttentionTensor id, const Array& a) {
    if (a.defined()) bindings.push_back({id, a.raw_data()});
  };
  bind(kGradQuerySum, scratch->query_sums);
  bind(kQueryLengths, scratch->query_lengths);
  bind(kKeyLengths, scratch->key_lengths);
  if (p.shape.causal || p.shape.bounded) bindings.push_back({kForbidden, &kNothing});
  return run_plan(*plan, bindings, device, *handle);
}

// Gradients in a fixed order ----------------------------------------------------------------------

// How many entries of the batch, and groups of heads of each, one plan computes.
struct Part {
  int64_t entries, groups;
};

// The fewest parts of nearly equal size with at most `most` of n; 0: one alone is too large.
int64_t even_part(int64_t n, int64_t most) {
  if (most == 0) return 0;
  const int64_t parts = (n + most - 1) / most;
  return (n + parts - 1) / parts;
}

// Bytes of a plan's workspace for one group of heads: gradients of scores, and where several heads
// share keys, the gradients of keys and values of each.
int64_t group_bytes(const AttentionCall& c) {
  const Shape &q = c.q->shape(), &k = c.k->shape();
  const auto padded = [](int64_t n) { return (n + 63) / 64 * 64; };
  const int64_t heads = q[1] / k[1],
                of_keys = heads == 1 ? 0 : (q[3] + c.v->shape()[3]) * int64_t(sizeof(float));
  return heads * padded(k[2]) * (padded(q[2]) * c.q->itemsize() + of_keys);
}

// As much as fits into the workspace; no groups where not even one does.
Part part_of(const AttentionCall& c) {
  const int64_t batch = c.q->shape()[0], all = c.k->shape()[1];
  const int64_t room = workspace_limit() / 16 * 15;  // the rest is for what else a plan needs
  const int64_t groups = room / group_bytes(c);
  if (groups >= all) return {even_part(batch, groups / all), all};
  return {1, even_part(all, groups)};
}

// A part of a call, with views of its arrays.
class PartialCall {
 public:
  // From these entries and groups on.
  PartialCall(const AttentionGradCall& c, const Part& part, int64_t entry, int64_t group)
      : forward_(c.forward), entries_(entry, entry + part.entries) {
    const int64_t heads = forward_.q->shape()[1] / forward_.k->shape()[1];
    const Slice groups(group, group + part.groups),
        of_heads(group * heads, (group + part.groups) * heads);
    const auto view = [&](const Array& a, const Slice& s) { return a.at({entries_, s}); };
    q_ = view(*forward_.q, of_heads), out_ = view(*forward_.out, of_heads);
    k_ = view(*forward_.k, groups), v_ = view(*forward_.v, groups);
    norms_ = forward_.norms->at({Slice(), entries_, of_heads});
    gout_ = view(*c.gout, of_heads), gq_ = view(*c.gq, of_heads);
    gk_ = view(*c.gk, groups), gv_ = view(*c.gv, groups);
    forward_.q = &q_, forward_.k = &k_, forward_.v = &v_;
    forward_.out = &out_, forward_.norms = &norms_;
  }
  PartialCall(const PartialCall&) = delete;
  PartialCall& operator=(const PartialCall&) = delete;

  bool run() const {
    return run_gradient({.forward = forward_, .gout = &gout_, .gq = &gq_, .gk = &gk_, .gv = &gv_});
  }

 private:
  AttentionCall forward_;
  Slice entries_;
  Array q_, k_, v_, out_, norms_, gout_, gq_, gk_, gv_;
};

bool run_in_parts(const AttentionGradCall& c) {
  const AttentionCall& f = c.forward;
  const int64_t batch = f.q->shape()[0], groups = f.k->shape()[1];
  const Part part = part_of(f);
  if (part.groups == 0) return false;
  if (part.entries == batch && part.groups == groups) return run_gradient(c);
  for (int64_t entry = 0; entry < batch; entry += part.entries)
    for (int64_t group = 0; group < groups; group += part.groups)
      if (!PartialCall(c, part, entry, group).run()) return false;
  return true;
}

bool gradient(const AttentionGradCall& c) {
  if (c.gbias || c.glog_sum || !takes(c.forward, kernels::attention_grad) || !is_aligned(*c.gout) ||
      !is_aligned(*c.gq) || !is_aligned(*c.gk) || !is_aligned(*c.gv))
    return false;
  return config().deterministic ? run_in_parts(c) : run_gradient(c);
}

}  // namespace
}  // namespace catena::cudnn

CATENA_FAMILY(cudnn, attention) {
  kernels::attention.provide(DeviceType::kCuda, "cudnn", &cudnn::forward, 10);
  kernels::attention_grad.provide(DeviceType::kCuda, "cudnn", &cudnn::gradient, 10);
}
