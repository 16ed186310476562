#include "functions/function_record.h"

#include <utility>

#include "functions/spread.h"

namespace catena {

// The groups of records. See function_record.h.
#define CATENA_ITEM(name) CATENA_FUNCTION_RECORDS(name);
#include "lists/function_records.inc"
#undef CATENA_ITEM

void call_with(const WrongInputs& operands, const FunctionRecord& record, const Draw& draw) {
  Variables inputs;
  for (const WrongInput& o : operands) {
    inputs.push_back(Variable::constant(is_float(o.dtype)
                                            ? draw(o.shape, -1, 1, 0, o.dtype)
                                            : zeros(o.shape, {o.dtype, draw.device()})));
  }
  record.call(inputs);
}

ErrorRecord integers_refused(const std::string& label, const Shape& x) {
  return type_error(label, {{x, Dtype::kInt32}},
                    message("Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 ", x,
                            "\nExpected is a floating dtype: convert x with "
                            ".astype(dtype::float32)."));
}

FunctionRecord unary_record(std::string function, std::string variant, const Shapes& inputs,
                            std::function<Variable(const Variable&)> call) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  for (const Shape& shape : inputs) r.shapes.push_back({shape});
  r.call = unary(std::move(call));
  return r;
}

FunctionRecord elementwise_record(std::string function, const InputRange& range,
                                  std::function<Variable(const Variable&)> call) {
  FunctionRecord r =
      unary_record(std::move(function), "", {{2, 3, 4}, {}, {0, 3}}, std::move(call));
  r.ranges = {range};
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecords joined(const std::vector<FunctionRecords>& groups) {
  FunctionRecords all;
  for (const FunctionRecords& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

Arrays FunctionRecord::inputs(const Shapes& input_shapes, const Draw& draw, Dtype dtype) const {
  Arrays arrays;
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    const InputRange range = i < ranges.size() ? ranges[i] : InputRange();
    const bool widened = range.at_least_float32 && dtype != Dtype::kFloat64;
    const Dtype own = range.dtype.value_or(widened ? Dtype::kFloat32 : dtype);
    arrays.push_back(is_float(own) ? spread_array(input_shapes[i], range.low, range.high, own,
                                                  draw.device(), static_cast<int>(i))
                                   : draw(input_shapes[i], range.low, range.high, i + 1, own));
  }
  return arrays;
}

const FunctionRecords& all_function_records() {
  static const FunctionRecords all = [] {
    FunctionRecords records;
#define CATENA_ITEM(name) \
  for (FunctionRecord & record : name##_function_records()) records.push_back(std::move(record));
#include "lists/function_records.inc"
#undef CATENA_ITEM
    return records;
  }();
  return all;
}

}  // namespace catena
