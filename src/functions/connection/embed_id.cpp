// embed_id and the layer EmbedID: rows taken by id, whose gradients go straight to their place.
#include "catena/functions/connection/embed_id.h"

#include <limits>

#include "catena/array/math.h"
#include "functions/common/indexed_map.h"
#include "functions/common/lookup.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

// As the kernels take them: int32 or int64, contiguous. No table has the numbers that int64 does
// not hold.
Array kernel_ids(const Array& x) {
  if (x.dtype() == Dtype::kInt32 || x.dtype() == Dtype::kInt64) return x.contiguous();
  if (x.dtype() != Dtype::kUInt64) return x.astype(Dtype::kInt64).contiguous();
  const int64_t most = std::numeric_limits<int64_t>::max();
  return catena::minimum(x, most).astype(Dtype::kInt64).contiguous();
}

std::string id_advice(const Array& x, const Array& W) {
  if (is_float(x.dtype()) && is_int(W.dtype()))
    return "The arguments look swapped: it is embed_id(ids, W).";
  if (W.ndim() != 2) return "The table W is expected as (ids, size), a matrix.";
  return "Expected are ids, integers: convert x with .astype(dtype::int32).";
}

void check_embed_id(const FunctionCall& call) {
  const Array &x = call[0].data(), &W = call[1].data();
  const TypeOf ids(x, "x"), table(W, "W");
  const Checks checks(call.named(), ids, table);
  const auto advised = checks.advised([&] { return id_advice(x, W); });
  if (!is_int(x.dtype())) advised.require(ids.dtype() == Dtype::kInt32);
  checks.require_float(table);
  advised.require(table.ndim() == 2);
}

template <class T>
void check_values(const std::string& who, const Array& x, int64_t rows, const IdRule& rule) {
  const T* ids = x.data<T>();
  for (int64_t i = 0; i < x.size(); ++i) {
    if ((ids[i] >= 0 && ids[i] < rows) || ids[i] == rule.ignored) [[likely]]
      continue;
    fail<ValueError>(
        who, ": id ", ids[i], " at position ", i, " is outside [0, ", rows, ")",
        rule.ignored ? message(" and not the ignored label ", *rule.ignored) : std::string());
  }
}
template <class Label>
void check_values(const Label& who, const Array& ids, int64_t rows, const IdRule& rule) {
  if (ids.dtype() == Dtype::kInt32)
    check_values<int32_t>(who(), ids, rows, rule);
  else
    check_values<int64_t>(who(), ids, rows, rule);
}

// Of x and W.
Variable apply_embed_id(FunctionCall& call, const std::optional<int64_t>& ignore_label) {
  check_embed_id(call);
  call.require_one_device();
  const Variable &x = call[0], &W = call[1];
  const Lookup lookup{kernel_ids(x.data()), {true, ignore_label}};
  if (x.device().is_cpu()) check_values(call.named(), lookup.ids, W.shape()[0], lookup.rule);
  return indexed_map(call, lookup, 1, 0, lookup.ids);
}

Array initial_table(int64_t in, int64_t out, const EmbedIDOptions& options) {
  CATENA_CHECK(ValueError, in > 0 && out > 0, "EmbedID: expected sizes of at least 1, got ", in,
               " and ", out);
  return initial_weight("EmbedID", {in, out}, "(in, out)", options.initialW, options.dtype, 1);
}

}  // namespace

Variable embed_id(const VariableOperand& x, const VariableOperand& W,
                  std::optional<int64_t> ignore_label) {
  FunctionCall call("EmbedID", Autocast::kLow, x, W);
  return apply_embed_id(call, ignore_label);
}

void check_ids(const Array& x, int64_t ids, std::optional<int64_t> ignore_label) {
  CATENA_CHECK(DtypeError, is_int(x.dtype()), "check_ids: expected integers, got ", x.dtype());
  check_values([] { return "EmbedID"; }, kernel_ids(x.to_cpu()), ids, {true, ignore_label});
}

EmbedID::EmbedID(int64_t in_size, int64_t out_size, const EmbedIDOptions& options)
    : W(initial_table(in_size, out_size, options)), ignore_label_(options.ignore_label) {}

Variable EmbedID::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(), "EmbedID: this layer has no table; it was moved from");
  FunctionCall call("EmbedID", Autocast::kLow, x, W.variable());
  return apply_embed_id(call, ignore_label_);
}

}  // namespace catena::functions
