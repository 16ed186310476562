#include "functions/function_record.h"

#include <utility>

#include "functions/spread.h"

namespace catena {

// The groups of records. See function_record.h.
#define CATENA_ITEM(name) CATENA_FUNCTION_RECORDS(name);
#include "lists/function_records.inc"
#undef CATENA_ITEM

namespace {

int64_t offset(const Shape& shape, const Shape& index) {
  int64_t result = 0;
  for (size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + index[i];
  return result;
}

Shape index_of(const Shape& shape, int64_t position) {
  Shape index(shape.size(), 0);
  for (size_t i = shape.size(); i-- > 0; position /= shape[i]) index[i] = position % shape[i];
  return index;
}

}  // namespace

double Plain::at(const Shape& index) const { return values[size_t(offset(shape, index))]; }

Plain plain_of(const Array& array) {
  return {array.shape(), array.astype(Dtype::kFloat64).to_vector<double>()};
}

Plain plain(const Shape& shape, const std::function<double(const Shape&)>& element) {
  Plain result{shape, {}};
  for (int64_t i = 0; i < element_count(shape); ++i)
    result.values.push_back(element(index_of(shape, i)));
  return result;
}

ErrorRecord type_error(const std::string& label, std::function<void(const Draw&)> call,
                       const std::string& expectation) {
  return error<InvalidType>(std::move(call), "Invalid operation is performed in: " + label +
                                                 " (Forward)\n\n" + expectation);
}

FunctionRecord unary_record(std::string function, std::string variant, const Shapes& inputs,
                            std::function<Variable(const Variable&)> call,
                            UnaryReference reference) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  for (const Shape& shape : inputs) r.shapes.push_back({shape});
  r.call = unary(std::move(call));
  r.reference = [reference = std::move(reference)](const Plains& in) {
    return Plains{reference(in[0])};
  };
  return r;
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
