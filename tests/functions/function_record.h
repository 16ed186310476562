// What the suite of the functions (function_records_test.cpp) knows of each: how to call it and
// what it says about wrong inputs. What it computes is in the function oracle
// (tests/oracle/functions). The records of a group are in <group>/<group>_records.cpp.
#pragma once

#include <functional>
#include <optional>

#include "functions/functions_test_util.h"

namespace catena {

using Shapes = std::vector<Shape>;

// Draws arrays on the device of the test; equal seeds give equal values everywhere.
class Draw {
 public:
  explicit Draw(Device device) : device_(device) {}
  Device device() const { return device_; }
  Array operator()(const Shape& shape, double low = -1, double high = 1, uint64_t seed = 0,
                   Dtype dtype = Dtype::kFloat64) const {
    return random_array(shape, low, high, dtype, device_, seed);
  }
  Array labels(const std::vector<int32_t>& values, const Shape& shape) const {
    return array(values, shape).to(device_);
  }

 private:
  Device device_;
};

// How an input is drawn. One of an integer dtype is a constant of the call.
struct InputRange {
  double low = -1, high = 1;
  std::optional<Dtype> dtype = {};  // else that of the test
  bool at_least_float32 = false;    // where the test's has 16 bits
};

// A wrong call, and the whole text of its error.
struct FunctionRecord;
struct ErrorRecord {
  std::function<std::string(const FunctionRecord&, const Draw&)> message_of_call;
  std::string text;
};
template <class Exception, class Call>
ErrorRecord error_of_call(Call call, std::string text) {
  return {[call](const FunctionRecord& record, const Draw& draw) -> std::string {
            try {
              call(record, draw);
            } catch (const Exception& e) {
              return e.what();
            } catch (const std::exception& e) {
              return std::string("an exception of another type: ") + e.what();
            }
            return "no exception";
          },
          std::move(text)};
}
template <class Exception>
ErrorRecord error(std::function<void(const Draw&)> call, std::string text) {
  return error_of_call<Exception>([call](const FunctionRecord&, const Draw& draw) { call(draw); },
                                  std::move(text));
}

// An input of a wrong call: {2, 3} or {{2, 3}, Dtype::kInt32}; integers are 0.
struct WrongInput {
  Shape shape;
  Dtype dtype = Dtype::kFloat64;
  WrongInput() = default;
  WrongInput(std::initializer_list<int64_t> extents) : shape(extents) {}
  WrongInput(Shape extents, Dtype its_dtype) : shape(std::move(extents)), dtype(its_dtype) {}
};
using WrongInputs = std::vector<WrongInput>;
// Calls the function of a record with such inputs.
void call_with(const WrongInputs& operands, const FunctionRecord& record, const Draw& draw);
template <class Exception>
ErrorRecord error(const WrongInputs& operands, std::string text) {
  return error_of_call<Exception>(
      [=](const FunctionRecord& record, const Draw& draw) { call_with(operands, record, draw); },
      std::move(text));
}

// An InvalidType of a function with this label.
template <class Call>
ErrorRecord type_error(const std::string& label, const Call& call, const std::string& expectation) {
  return error<InvalidType>(
      call, "Invalid operation is performed in: " + label + " (Forward)\n\n" + expectation);
}
inline ErrorRecord type_error(const std::string& label, const WrongInputs& operands,
                              const std::string& expectation) {
  return type_error<WrongInputs>(label, operands, expectation);
}
// That of one input x of int32, for which the record's function takes floats.
ErrorRecord integers_refused(const std::string& label, const Shape& x);

struct FunctionRecord {
  std::string function;            // its name in catena::functions
  std::string variant = "";        // which arguments
  std::vector<InputRange> ranges;  // one for each input
  std::vector<Shapes> shapes;      // the inputs' shapes; everything is checked with each
  std::function<Variables(const Variables& inputs)> call;
  // Slots that a call with the first shapes asks, and its first-order backward. What the provider
  // of a slot does on its part, such as copies or several launches, does not count here: for GPUs
  // it is in cuda_kernels.inc.
  std::optional<int> forward_launches = {}, backward_launches = {};
  // Largest error of values and gradients in float32, against float64; 500 times that in float16,
  // 4000 in bfloat16.
  double error = 2e-5;
  std::optional<Dtype> result_dtype = {};  // else that of the inputs
  bool differentiable = true, twice_differentiable = true;
  // Random bits belong to elements in memory order: dense inputs in another than C order get
  // others.
  bool follows_memory_order = false;
  std::vector<ErrorRecord> errors = {};

  std::string name() const { return variant.empty() ? function : function + ", " + variant; }
  // Inputs of these shapes.
  Arrays inputs(const Shapes& input_shapes, const Draw& draw, Dtype dtype = Dtype::kFloat64) const;
};
using FunctionRecords = std::vector<FunctionRecord>;

// Defines records, in any <group>/*_records.cpp; the build finds them
// (src/cmake/catena_lists.cmake):
//   CATENA_FUNCTION_RECORDS(pooling) { return {...}; }
#define CATENA_FUNCTION_RECORDS(name) FunctionRecords name##_function_records()
// All of them.
const FunctionRecords& all_function_records();

// The call of a function of one input and one result.
inline std::function<Variables(const Variables&)> unary(
    std::function<Variable(const Variable&)> f) {
  return [f](const Variables& v) { return Variables{f(v[0])}; };
}
inline std::function<Variables(const Variables&)> binary(
    std::function<Variable(const Variable&, const Variable&)> f) {
  return [f](const Variables& v) { return Variables{f(v[0], v[1])}; };
}
// Records of several groups, one behind the other.
FunctionRecords joined(const std::vector<FunctionRecords>& groups);
// The record of one, each of `inputs` a shape to call it with.
FunctionRecord unary_record(std::string function, std::string variant, const Shapes& inputs,
                            std::function<Variable(const Variable&)> call);
// A function of each element, which asks one slot each way.
FunctionRecord elementwise_record(std::string function, const InputRange& range,
                                  std::function<Variable(const Variable&)> call);

}  // namespace catena
