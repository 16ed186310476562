// Programs as items of a bundle, and the list of all standard ones. See bundle_list.h.
#include "backends/cuda/jit/tool/bundle_list.h"

#include "catena/kernels/elementwise_ops.h"

namespace catena::jit {

namespace {

using List = std::vector<BundleItem>;

const char* const kReduceNames[] = {"sum", "prod", "max", "min", "all", "any", "sum of squares"};

// The dtypes of kernel texts.
std::vector<Dtype> dtypes() {
  std::vector<Dtype> list;
  for (int d = 0; d < kDtypeCount; ++d)
    if (has_type(Dtype(d))) list.push_back(Dtype(d));
  return list;
}

void add_table(List& list) {
  for (const ElementwiseOp op : elementwise_ops())
    for (const Dtype d : dtypes())
      if (computes_in(op, d)) list.push_back(map_item(op, d));
}

void add_casts(List& list) {
  using enum Dtype;
  for (const Dtype d : {kFloat16, kBFloat16, kFloat64, kInt32, kInt64, kUInt8, kBool}) {
    list.push_back(cast_item(kFloat32, d));
    list.push_back(cast_item(d, kFloat32));
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
    list.push_back(cast_item(from, to));
  }
}

void add_reductions(List& list) {
  using enum Dtype;
  using enum ReduceOp;
  for (const Dtype d : dtypes()) {
    const Dtype total = is_float(d) ? d : is_unsigned_int(d) ? kUInt64 : kInt64;
    list.push_back(reduce_item(kSum, d, total));
    list.push_back(reduce_item(kMax, d, d));
    list.push_back(reduce_item(kMin, d, d));
    list.push_back(arg_reduce_item(d));
    if (is_float(d)) {
      list.push_back(reduce_item(kProd, d, d));
      list.push_back(reduce_item(kSumOfSquares, d, d));
    }
  }
  for (const Dtype d : {kBool, kInt32, kInt64, kFloat32, kFloat64}) {
    list.push_back(reduce_item(kAll, d, kBool));
    list.push_back(reduce_item(kAny, d, kBool));
  }
  for (const Dtype d : {kInt32, kInt64}) list.push_back(reduce_item(kProd, d, kInt64));
  for (const Dtype d : {kBool, kUInt8, kInt32, kInt64, kFloat32})
    list.push_back(reduce_item(kSum, d, kFloat64));
  for (const Dtype d : {kFloat16, kBFloat16}) {
    list.push_back(reduce_item(kSum, d, kFloat32));
    list.push_back(reduce_item(kSumOfSquares, d, kFloat32));
  }
}

}  // namespace

BundleItem map_item(ElementwiseOp op, Dtype compute) {
  return {std::string(info(op).name) + " " + name(compute),
          map_source(same_dtype_spec(op, compute))};
}

BundleItem mixed_item(const MapSpec& spec) {
  const ElementwiseInfo& row = info(spec.op);
  std::string what = std::string(row.name) + " in " + name(spec.compute) + ":";
  for (int k = 1; k <= row.inputs; ++k) what += std::string(" ") + name(spec.memory[k]);
  return {what + " to " + name(spec.memory[0]), map_source(spec)};
}

BundleItem cast_item(Dtype from, Dtype to) {
  return {std::string("cast ") + name(from) + " to " + name(to),
          map_source({ops::positive, from, {to, from}})};
}

BundleItem reduce_item(ReduceOp op, Dtype from, Dtype to) {
  return {std::string(kReduceNames[int(op)]) + " " + name(from) + " to " + name(to),
          reduce_source(op, from, to)};
}

BundleItem arg_reduce_item(Dtype d) {
  return {std::string("arg_reduce ") + name(d), arg_reduce_source(d)};
}

BundleItem arange_item(Dtype d) { return {std::string("arange ") + name(d), arange_source(d)}; }

BundleItem concatenate_item(int word_bytes) {
  return {"concatenate " + std::to_string(word_bytes), concatenate_source(word_bytes)};
}

std::vector<BundleItem> full_programs() {
  List list = core_programs();
  add_table(list);
  add_casts(list);
  add_reductions(list);
  for (const Dtype d : dtypes()) list.push_back(arange_item(d));
  for (const int bytes : {1, 2, 4, 8, 16}) list.push_back(concatenate_item(bytes));
  return list;
}

}  // namespace catena::jit
