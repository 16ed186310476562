// Host glue of the attention slots.
#include "backends/cuda/attention/attention.h"

#include <algorithm>
#include <limits>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/config.h"
#include "catena/kernels/attention.h"

namespace catena::gpu {
namespace {

constexpr int kFirstCapability = 8;              // with the products that the kernels use
constexpr int64_t kMostRows = int64_t(1) << 30;  // a row and a tile fit int32

int64_t chunk_of(const Array& a) { return 16 / a.itemsize(); }
int64_t padded_columns(const Array& a) {
  const int64_t chunk = chunk_of(a);
  return (a.shape()[3] + chunk - 1) / chunk * chunk;
}

// Whether rows are read and written in units of 16 bytes.
bool is_aligned(const Array& a) {
  if (a.shape()[3] != padded_columns(a) || !aligned16(a.raw_data())) return false;
  for (size_t i = 0; i < 3; ++i)
    if (a.strides()[i] % 16 != 0 && a.shape()[i] > 1) return false;
  return a.strides()[3] == a.itemsize();
}

Array padded_like(const Array& a) {
  Shape shape = a.shape();
  shape[3] = padded_columns(a);
  return Array::uninitialized(shape, a.dtype(), a.device());
}
Array without_padding(const Array& padded, const Array& a) {
  return padded.at({ellipsis, Slice(0, a.shape()[3])});
}

Heads heads_of(const Array& a) {
  const Strides& s = a.strides();
  const int64_t size = a.itemsize();
  return {a.raw_data(), s[0] / size, s[1] / size, s[2] / size};
}

// An operand as kernels read it: itself, or an aligned copy with zeros behind its columns.
class ReadableHeads {
 public:
  explicit ReadableHeads(const Array& a) : array_(a) {
    if (is_aligned(a)) return;
    array_ = padded_like(a);
    if (array_.shape() != a.shape()) array_.fill(0);
    without_padding(array_, a).assign(a);
  }
  Heads heads() const { return heads_of(array_); }
  int columns() const { return int(array_.shape()[3]); }

 private:
  Array array_;
};

// A result as kernels write it: itself, or memory from which give() copies it.
class WritableHeads {
 public:
  explicit WritableHeads(const Array& a) : result_(a), array_(is_aligned(a) ? a : padded_like(a)) {}
  Heads heads() const { return heads_of(array_); }
  void give() const {
    if (array_.raw_data() != result_.raw_data()) result_.assign(without_padding(array_, result_));
  }

 private:
  const Array& result_;
  Array array_;
};

ScoreOperand operand_of(const Array* a) {
  if (a == nullptr) return {};
  const Strides& s = a->strides();
  const int64_t size = a->itemsize();
  return {a->raw_data(), s[0] / size, s[1] / size, s[2] / size, s[3] / size};
}

bool has_whole_strides(const Array* a) {
  return a == nullptr ||
         std::ranges::all_of(a->strides(), [&](int64_t s) { return s % a->itemsize() == 0; });
}

const int32_t* numbers_of(const Array* a) { return a ? a->data<int32_t>() : nullptr; }

// Tables of the keys of each query, where they do not follow from numbers.
class RangeTables {
 public:
  RangeTables(const AttentionCall& call, const Launch& launch) : rules_(call.rules) {
    if (!rules_.key_lengths && !rules_.query_start && !rules_.query_documents) return;
    const Device device = call.q->device();
    const int64_t batch = call.q->shape()[0], queries = call.q->shape()[2];
    const int64_t bounds = (queries + kBoundQueries - 1) / kBoundQueries;
    of_query_ = Array::uninitialized({batch, queries, 2}, Dtype::kInt32, device);
    of_bound_ = Array::uninitialized({batch, bounds, 4}, Dtype::kInt32, device);
    RangeArgs args{};
    args.lengths = numbers_of(rules_.key_lengths);
    args.starts = numbers_of(rules_.query_start);
    args.query_documents = numbers_of(rules_.query_documents);
    args.key_documents = numbers_of(rules_.key_documents);
    args.offsets = rules_.query_documents ? int(rules_.query_documents->size()) : 0;
    args.batch = int(batch);
    args.queries = int(queries);
    args.keys = int(call.k->shape()[2]);
    args.window = rules_.window;
    args.causal = rules_.causal;
    args.of_query = static_cast<int2*>(of_query_.raw_data());
    args.of_bound = static_cast<int4*>(of_bound_.raw_data());
    launch_attention_ranges(args, launch);
    check_launch("attention_ranges");
  }
  KeyRanges ranges() const {
    KeyRanges ranges{};
    if (of_query_.defined()) {
      ranges.of_query = static_cast<const int2*>(of_query_.raw_data());
      ranges.of_bound = static_cast<const int4*>(of_bound_.raw_data());
    }
    ranges.lengths = numbers_of(rules_.key_lengths);
    ranges.window = rules_.window;
    ranges.causal = rules_.causal;
    return ranges;
  }

 private:
  const AttentionRules& rules_;
  Array of_query_, of_bound_;
};

bool takes(const AttentionCall& call, bool with_gradient) {
  const Shape &q = call.q->shape(), &k = call.k->shape();
  if (call.q->dtype() == Dtype::kFloat64 || k[2] == 0 || !has_whole_strides(call.bias))
    return false;
  const int64_t columns = std::max(padded_columns(*call.q), padded_columns(*call.v));
  const int64_t rows = std::max(q[2], k[2]);
  if (columns > kMostAttentionColumns || rows > kMostRows ||
      q[0] * q[1] * (rows / kBoundQueries + 1) > std::numeric_limits<int32_t>::max())
    return false;
  const int device = call.q->device().index();
  const DeviceInfo& info = device_info(device);
  return info.major >= kFirstCapability && attention_has_products(device) &&
         attention_shared_memory(float_code("attention", call.q->dtype()), int(columns),
                                 with_gradient) <= size_t(info.max_shared_memory);
}

// Operands and tables of a call, which live until its kernels are launched.
class Operands {
 public:
  Operands(const AttentionCall& call, const Launch& launch)
      : call_(call), q_(*call.q), k_(*call.k), v_(*call.v), tables_(call, launch) {}

  AttentionArgs arguments(const Heads& out) const {
    AttentionArgs args{};
    args.q = q_.heads();
    args.k = k_.heads();
    args.v = v_.heads();
    args.out = out;
    args.norms = call_.norms->data<float>();
    args.mask = operand_of(call_.mask);
    args.bias = operand_of(call_.bias);
    args.ranges = tables_.ranges();
    args.random = source_of(call_.bits);
    const Shape& q = call_.q->shape();
    args.batch = int(q[0]);
    args.heads = int(q[1]);
    args.groups = int(call_.k->shape()[1]);
    args.queries = int(q[2]);
    args.keys = int(call_.k->shape()[2]);
    args.depth = q_.columns();
    args.width = v_.columns();
    args.scale = float(call_.scale);
    args.softcap = float(call_.softcap);
    args.dropout = float(call_.dropout);
    args.kept = float(1 / (1 - call_.dropout));
    args.wide_bias = call_.bias && call_.bias->dtype() == Dtype::kFloat32;
    args.precise = config().matmul_precision == Precision::kFloat32;
    return args;
  }

 private:
  const AttentionCall& call_;
  ReadableHeads q_, k_, v_;
  RangeTables tables_;
};

bool attention(const AttentionCall& call) {
  if (!takes(call, false)) return false;
  const Launch launch = launch_for(*call.q);
  const Operands operands(call, launch);
  const WritableHeads out(*call.out);
  launch_attention(float_code("attention", call.q->dtype()), operands.arguments(out.heads()),
                   launch);
  check_launch("attention");
  out.give();
  return true;
}

// Gradients of a bias need a gradient for each score: the composed provider has them in memory.
bool attention_grad(const AttentionGradCall& call) {
  if (call.gbias || !takes(call.forward, true)) return false;
  const Launch launch = launch_for(*call.gq);
  const Operands operands(call.forward, launch);
  const ReadableHeads out(*call.forward.out), gout(*call.gout);
  const WritableHeads gq(*call.gq), gk(*call.gk), gv(*call.gv);
  const Array row = scratch_for(*call.gq, call.forward.norms->size() / 2);
  AttentionGradArgs args{};
  args.forward = operands.arguments(out.heads());
  args.gout = gout.heads();
  args.gq = gq.heads();
  args.gk = gk.heads();
  args.gv = gv.heads();
  args.glog_sum = call.glog_sum ? call.glog_sum->data<float>() : nullptr;
  args.row = row.data<float>();
  launch_attention_grad(float_code("attention_grad", call.gq->dtype()), args, launch);
  check_launch("attention_grad");
  gq.give();
  gk.give();
  gv.give();
  return true;
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, attention) {
  kernels::attention.provide(DeviceType::kCuda, "cuda", &gpu::attention);
  kernels::attention_grad.provide(DeviceType::kCuda, "cuda", &gpu::attention_grad);
}
