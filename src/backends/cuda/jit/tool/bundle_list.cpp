// The programs of the kernel bundle. See bundle_list.h.
#include "backends/cuda/jit/tool/bundle_list.h"

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

using List = std::vector<BundleItem>;

void add_table(List& list) {
  for (int op = 0; op < kElementwiseOpCount; ++op) {
    const OpRow& row = op_row(ElementwiseOp(op));
    for (int d = 0; d < kDtypeCount; ++d) {
      if (!row_computes_in(row, Dtype(d))) continue;
      list.push_back({std::string(row.name) + " " + dtype_name(Dtype(d)),
                      map_source(same_dtype_spec(ElementwiseOp(op), Dtype(d)))});
    }
  }
}

void add_cast(List& list, Dtype from, Dtype to) {
  list.push_back({std::string("cast ") + dtype_name(from) + " to " + dtype_name(to),
                  map_source({ElementwiseOp::kpositive, from, {to, from}})});
}
void add_casts(List& list) {
  using enum Dtype;
  for (const Dtype d : {kFloat16, kBFloat16, kFloat64, kInt32, kInt64, kUInt8, kBool}) {
    add_cast(list, kFloat32, d);
    add_cast(list, d, kFloat32);
  }
  for (const auto& [from, to] : {std::pair{kInt32, kInt64},
                                 {kInt64, kInt32},
                                 {kBool, kInt64},
                                 {kBool, kInt32},
                                 {kInt32, kFloat64},
                                 {kInt64, kFloat64},
                                 {kFloat64, kInt64},
                                 {kBool, kFloat64},
                                 {kUInt8, kInt32},
                                 {kUInt8, kFloat64},
                                 {kInt64, kBool}}) {
    add_cast(list, from, to);
  }
}

void add_reduction(List& list, ReduceOp op, const char* name, Dtype from, Dtype to) {
  list.push_back({std::string(name) + " " + dtype_name(from) + " to " + dtype_name(to),
                  reduce_source(op, from, to)});
}
void add_reductions(List& list) {
  using enum Dtype;
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype d = Dtype(i);
    const Dtype total = is_float(d) ? d : is_unsigned_int(d) ? kUInt64 : kInt64;
    add_reduction(list, ReduceOp::kSum, "sum", d, total);
    add_reduction(list, ReduceOp::kMax, "max", d, d);
    add_reduction(list, ReduceOp::kMin, "min", d, d);
    list.push_back({std::string("arg_reduce ") + dtype_name(d), arg_reduce_source(d)});
    if (is_float(d)) {
      add_reduction(list, ReduceOp::kProd, "prod", d, d);
      add_reduction(list, ReduceOp::kSumOfSquares, "sum of squares", d, d);
    }
  }
  for (const Dtype d : {kBool, kInt32, kInt64, kFloat32, kFloat64}) {
    add_reduction(list, ReduceOp::kAll, "all", d, kBool);
    add_reduction(list, ReduceOp::kAny, "any", d, kBool);
  }
  for (const Dtype d : {kInt32, kInt64}) add_reduction(list, ReduceOp::kProd, "prod", d, kInt64);
  for (const Dtype d : {kBool, kUInt8, kInt32, kInt64, kFloat32})
    add_reduction(list, ReduceOp::kSum, "sum", d, kFloat64);
  for (const Dtype d : {kFloat16, kBFloat16}) {
    add_reduction(list, ReduceOp::kSum, "sum", d, kFloat32);
    add_reduction(list, ReduceOp::kSumOfSquares, "sum of squares", d, kFloat32);
  }
}

}  // namespace

std::vector<BundleItem> bundle_list() {
  List list;
  add_table(list);
  add_casts(list);
  add_reductions(list);
  for (int d = 0; d < kDtypeCount; ++d)
    list.push_back({std::string("arange ") + dtype_name(Dtype(d)), arange_source(Dtype(d))});
  for (const int bytes : {1, 2, 4, 8, 16})
    list.push_back({"concatenate " + std::to_string(bytes), concatenate_source(bytes)});
  return list;
}

}  // namespace catena::jit
