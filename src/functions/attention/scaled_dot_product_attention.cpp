// Checks of attention's operands and options.
#include "catena/functions/attention/scaled_dot_product_attention.h"

#include <cmath>

#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/functions/array/cast.h"
#include "functions/attention/attention_operands.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

using Operand = AttentionOperand;

constexpr double kMostSoftcap = 1e30;  // a float32 holds it and its reciprocal
constexpr int64_t kMostWindow = int64_t(1)
                                << 40;  // more than any axis, and sums of it do not overflow

// Numbers -----------------------------------------------------------------------------------------

void check_numbers(const AttentionOptions& o) {
  CATENA_CHECK(ValueError, !o.window || *o.window >= 1, kAttention,
               ": expected a window of at least 1 key, that of the query itself, got ",
               o.window.value_or(0));
  CATENA_CHECK(ValueError, !o.softcap || (*o.softcap > 0 && *o.softcap <= kMostSoftcap), kAttention,
               ": expected a softcap of (0, 1e30], got ", o.softcap.value_or(0));
  CATENA_CHECK(ValueError, o.dropout >= 0 && o.dropout < 1, kAttention,
               ": expected a dropout of [0, 1), got ", o.dropout);
  CATENA_CHECK(ValueError, !o.scale || std::isfinite(*o.scale), kAttention,
               ": expected a finite scale, got ", o.scale.value_or(0));
}

// Operands ----------------------------------------------------------------------------------------

void check_integers(const Array& numbers, const char* name) {
  CATENA_CHECK(DtypeError, numbers.dtype() == Dtype::kInt32 || numbers.dtype() == Dtype::kInt64,
               kAttention, ": expected ", name, " of int32 or int64, got ", numbers.dtype());
}

// A mask or bias.
void check_scores(const Array& a, const char* name, const Shape& scores) {
  bool fits = a.ndim() <= 4;
  for (int i = 1; fits && i <= a.ndim(); ++i) {
    const int64_t own = a.shape()[size_t(a.ndim() - i)];
    fits = own == 1 || own == scores[size_t(4 - i)];
  }
  CATENA_CHECK(
      ShapeError, fits, kAttention, ": ", name, " has shape ", a.shape(),
      ", which does not broadcast to that of the scores, (batch, heads, queries, keys) = ", scores);
}

// Before they are added up.
void check_mask_and_bias(const Variable& q, const Variable& k, const AttentionOptions& o) {
  const Variable* bias = o.bias.get(kAttention);
  if (bias != nullptr)
    CATENA_CHECK(DtypeError,
                 bias->dtype() == q.dtype() || bias->dtype() == compute_dtype(q.dtype()),
                 kAttention, ": expected a bias of ", q.dtype(), " or ", compute_dtype(q.dtype()),
                 ", got ", bias->dtype(), is_float(bias->dtype()) ? "" : "; is it a mask?");
  if (q.ndim() != 4 || k.ndim() != 4) return;  // which is an error of its own
  const Shape scores{q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
  if (o.mask && o.mask->defined()) check_scores(*o.mask, "mask", scores);
  if (bias != nullptr) check_scores(bias->data(), "bias", scores);
}

// The operands as variables, in the order of AttentionOperand.
class Listed {
 public:
  Listed(const VariableOperand& q, const VariableOperand& k, const VariableOperand& v,
         const AttentionOptions& o) {
    add(Operand::kQ, q.variable(kAttention));
    add(Operand::kK, k.variable(kAttention));
    add(Operand::kV, v.variable(kAttention));
    if (const Variable* bias = o.bias.get(kAttention)) add(Operand::kBias, *bias);
    if (o.mask) add_mask(*o.mask, q.variable(kAttention).dtype());
    add_numbers(Operand::kKeyLengths, o.key_lengths, "key_lengths");
    add_numbers(Operand::kQueryStart, o.query_start, "query_start");
    add_numbers(Operand::kDocuments, o.documents, "documents");
    CATENA_CHECK(ValueError, o.documents || !o.key_documents, kAttention,
                 ": key_documents without documents; give the offsets of the queries, too");
    add_numbers(Operand::kKeyDocuments, o.key_documents ? o.key_documents : o.documents,
                "key_documents");
  }

  std::span<const Variable* const> pointers() {
    pointers_.clear();
    for (const Variable& v : variables_) pointers_.push_back(&v);
    return pointers_;
  }
  const AttentionPlaces& places() const { return places_; }

 private:
  void add(Operand operand, const Variable& v) {
    places_.of[size_t(operand)] = int(variables_.size());
    variables_.push_back(v);
  }
  void add_constant(Operand operand, const Array& a) { add(operand, Variable::constant(a)); }

  // Floats are a bias without a gradient, or are added to the one that there is.
  void add_mask(const Array& mask, Dtype dtype) {
    CATENA_CHECK(ValueError, mask.defined(), kAttention, ": mask is an undefined array");
    if (mask.dtype() == Dtype::kBool) return add_constant(Operand::kMask, mask);
    CATENA_CHECK(DtypeError, is_float(mask.dtype()), kAttention,
                 ": expected a mask of bool, true where a query may attend to a key, or of floats, "
                 "which are added to the scores; got ",
                 mask.dtype(), "; mask.astype(dtype::bool_) makes one of numbers");
    const Variable own = Variable::constant(mask.astype(compute_dtype(dtype), false));
    const int bias = places_[Operand::kBias];
    if (bias < 0)
      add(Operand::kBias, own);
    else
      variables_[size_t(bias)] = cast(variables_[size_t(bias)], own.dtype()) + own;
  }

  void add_numbers(Operand operand, const std::optional<Array>& given, const char* name) {
    if (!given) return;
    CATENA_CHECK(ValueError, given->defined(), kAttention, ": ", name, " is an undefined array");
    check_integers(*given, name);
    add_constant(operand, Labels::as_int32(*given));
  }

  Variables variables_;
  std::vector<const Variable*> pointers_;
  AttentionPlaces places_{{-1, -1, -1, -1, -1, -1, -1, -1, -1}};
};

std::string heads_advice(const Shape& q, const Shape& k) {
  return message(
      "Expected are q (batch, heads, queries, depth), k (batch, groups, keys, depth) and "
      "v (batch, groups, keys, width), heads a multiple of groups",
      q.ndim() == 4 && k.ndim() == 4 && q[2] == k[1] && q[1] == k[2] && q[1] != k[1]
          ? "; arrays with positions before heads become that by transpose({0, 2, 1, "
            "3}), which copies nothing."
          : ".");
}

void check_heads(const FunctionCall& call) {
  const Array &q = call[0].data(), &k = call[1].data(), &v = call[2].data();
  const TypeOf queries(q, "q"), keys(k, "k"), values(v, "v");
  const Checks all(call.named(), queries, keys, values);
  all.require_float(queries);
  all.advised([&] { return dtype_advice(q, k); }).require(keys.dtype() == queries.dtype());
  all.advised([&] { return dtype_advice(q, v); }).require(values.dtype() == queries.dtype());
  const auto checks = all.advised([&] { return heads_advice(q.shape(), k.shape()); });
  checks.require(queries.ndim() == 4, keys.ndim() == 4, values.ndim() == 4,
                 keys.shape(0) == queries.shape(0), keys.shape(3) == queries.shape(3),
                 queries.shape(3) > 0, values.shape(0) == keys.shape(0),
                 values.shape(1) == keys.shape(1), values.shape(2) == keys.shape(2),
                 values.shape(3) > 0, keys.shape(1) > 0, queries.shape(1) % keys.shape(1) == 0);
}

// Numbers of a vector on any device.
std::vector<int64_t> on_host(const Array& numbers, const char* name) {
  CATENA_CHECK(ValueError, numbers.defined(), kAttention, ": ", name, " is an undefined array");
  check_integers(numbers, name);
  CATENA_CHECK(ShapeError, numbers.ndim() == 1, kAttention, ": expected ", name,
               " as a vector, got shape ", numbers.shape());
  return numbers.to_cpu().astype(Dtype::kInt64, false).to_vector<int64_t>();
}

void check_batch(const Array& numbers, const char* name, int64_t batch) {
  CATENA_CHECK(ShapeError, numbers.shape() == Shape{batch}, kAttention, ": expected ", name,
               " of shape (", batch, ",), a number for each batch entry, got ", numbers.shape());
}

// ValueError that names the first offset that is wrong.
void check_offsets(const Array& documents, const char* name, int64_t extent) {
  const std::vector<int64_t> offsets = on_host(documents, name);
  const int64_t first = offsets.empty() ? 0 : offsets.front(),
                last = offsets.empty() ? 0 : offsets.back();
  CATENA_CHECK(ValueError, !offsets.empty() && first == 0 && last == extent, kAttention, ": ", name,
               " begin at 0 and end with the axis, of ", extent,
               " positions; the offsets are from ", first, " to ", last);
  for (size_t n = 1; n < offsets.size(); ++n)
    CATENA_CHECK(ValueError, offsets[n - 1] <= offsets[n], kAttention, ": offsets of ", name,
                 " do not fall; offset ", n - 1, " is ", offsets[n - 1], ", offset ", n, " is ",
                 offsets[n]);
}

void check_documents(const AttentionArrays& a, const AttentionOptions& o, const Shape& scores) {
  const Array &own = a[Operand::kDocuments], &others = a[Operand::kKeyDocuments];
  CATENA_CHECK(ShapeError, own.ndim() == 1 && own.size() >= 2 && own.shape() == others.shape(),
               kAttention,
               ": expected documents as offsets (documents + 1,), as many of the keys "
               "as of the queries, got ",
               own.shape(), " and ", others.shape());
  CATENA_CHECK(ValueError, scores[0] == 1, kAttention,
               ": documents are side by side in one batch entry, q has ", scores[0],
               "; reshape (batch, positions) to (1, batch * positions) first");
  CATENA_CHECK(
      ValueError, !a[Operand::kQueryStart].defined(), kAttention,
      ": documents and query_start exclude each other: positions are counted in documents");
  CATENA_CHECK(ValueError, o.key_documents || scores[2] == scores[3], kAttention, ": there are ",
               scores[2], " queries and ", scores[3],
               " keys: give the offsets of the keys as key_documents");
  if (!own.device().is_cpu()) return;
  check_offsets(*o.documents, "documents", scores[2]);
  if (o.key_documents) check_offsets(*o.key_documents, "key_documents", scores[3]);
}

void check_options(const AttentionArrays& a, const AttentionOptions& o) {
  const Shape scores = a.scores();
  const auto given = [&](Operand operand) { return a[operand].defined(); };
  if (given(Operand::kQueryStart)) check_batch(a[Operand::kQueryStart], "query_start", scores[0]);
  if (given(Operand::kDocuments)) check_documents(a, o, scores);
  if (!given(Operand::kKeyLengths)) return;
  check_batch(a[Operand::kKeyLengths], "key_lengths", scores[0]);
  if (o.key_lengths->device().is_cpu()) check_attention_lengths(*o.key_lengths, scores[3]);
}

AttentionNumbers numbers_of(const AttentionOptions& o, const AttentionArrays& a) {
  const Shape scores = a.scores();
  AttentionNumbers n{.causal = o.causal,
                     .scale = o.scale.value_or(1 / std::sqrt(double(a[Operand::kQ].shape()[3]))),
                     .softcap = o.softcap.value_or(0),
                     .dropout = o.dropout,
                     .window = std::min(o.window.value_or(0), kMostWindow),
                     .bits = {}};
  const Device device = a[Operand::kQ].device();
  if (o.dropout > 0)
    n.bits = random::default_state(device).reserve(uint64_t(element_count(scores)), device);
  return n;
}

Variables attend(const VariableOperand& q, const VariableOperand& k, const VariableOperand& v,
                 const AttentionOptions& options, bool with_statistics) {
  check_numbers(options);
  check_mask_and_bias(q.variable(kAttention), k.variable(kAttention), options);
  Listed operands(q, k, v, options);
  FunctionCall call(kAttention, Autocast::kLow, operands.pointers());
  check_heads(call);
  call.require_one_device();
  AttentionArrays arrays;
  for (size_t i = 0; i < kAttentionOperands; ++i)
    if (const int place = operands.places().of[i]; place >= 0)
      arrays[Operand(i)] = call[size_t(place)].data();
  check_options(arrays, options);
  return run_attention(call, operands.places(), arrays, numbers_of(options, arrays),
                       with_statistics);
}

}  // namespace

Variable scaled_dot_product_attention(const VariableOperand& q, const VariableOperand& k,
                                      const VariableOperand& v, const AttentionOptions& options) {
  return attend(q, k, v, options, false)[0];
}

AttentionResult attention_with_statistics(const VariableOperand& q, const VariableOperand& k,
                                          const VariableOperand& v,
                                          const AttentionOptions& options) {
  const Variables results = attend(q, k, v, options, true);
  return {results[0], results[1]};
}

void check_attention_lengths(const Array& key_lengths, int64_t keys) {
  const std::vector<int64_t> lengths = on_host(key_lengths, "key_lengths");
  for (size_t b = 0; b < lengths.size(); ++b)
    CATENA_CHECK(ValueError, lengths[b] >= 0 && lengths[b] <= keys, kAttention, ": key_lengths[", b,
                 "] is ", lengths[b], ", outside of [0, ", keys, "], the keys");
}

void check_attention_documents(const Array& documents, int64_t extent) {
  check_offsets(documents, "documents", extent);
}

}  // namespace catena::functions
