#include "functions/function_record.h"

#include <algorithm>
#include <numeric>
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

double added_up(const Numbers& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const Numbers& x) { return added_up(x) / double(x.size()); }
double variance_of(const Numbers& x) {
  const double mean = mean_of(x);
  Numbers squares;
  for (const double v : x) squares.push_back((v - mean) * (v - mean));
  return mean_of(squares);
}
double largest_of(const Numbers& x) { return *std::max_element(x.begin(), x.end()); }

Plain mapped(const Plain& x, const std::function<double(double)>& f) {
  Plain y = x;
  for (double& v : y.values) v = f(v);
  return y;
}

Plain over_axes(const Plain& x, const Axes& axes, bool keepdims,
                const std::function<double(const Numbers&)>& f) {
  std::vector<bool> along(x.shape.size(), axes.empty());
  for (const int64_t axis : axes) along[place_of(axis, x.shape)] = true;
  Shape kept = x.shape, rest;
  for (size_t d = 0; d < kept.size(); ++d) {
    if (along[d])
      kept[d] = 1;
    else
      rest.push_back(kept[d]);
  }
  std::vector<Numbers> elements(size_t(element_count(kept)));
  for (size_t k = 0; k < x.values.size(); ++k) {
    Shape i = index_of(x.shape, int64_t(k));
    for (size_t d = 0; d < i.size(); ++d)
      if (along[d]) i[d] = 0;
    elements[size_t(offset(kept, i))].push_back(x.values[k]);
  }
  Plain y{keepdims ? kept : rest, {}};
  for (const Numbers& own : elements) y.values.push_back(f(own));
  return y;
}

Plain softmax_of(const Plain& x, int64_t axis) {
  const Plain exps = mapped(x, [](double v) { return std::exp(v); }),
              sums = over_axes(exps, {axis}, true, added_up);
  return plain(x.shape, [&](Shape i) {
    const double value = exps.at(i);
    i[place_of(axis, x.shape)] = 0;
    return value / sums.at(i);
  });
}

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

FunctionRecord elementwise_record(std::string function, const InputRange& range,
                                  std::function<Variable(const Variable&)> call,
                                  std::function<double(double)> reference) {
  FunctionRecord r = unary_record(std::move(function), "", {{2, 3, 4}, {}, {0, 3}}, std::move(call),
                                  [=](const Plain& x) { return mapped(x, reference); });
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
