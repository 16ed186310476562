// The right column of docs/guide/from-pytorch.md, computed. compare.py computes the left one.
#pragma once

#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/named_arrays.h"
#include "catena/autograd/variable.h"

namespace catena::guide {

inline void append(Arrays& list, const Array& a) { list.push_back(a); }
inline void append(Arrays& list, const Variable& v) { list.push_back(v.data()); }
inline void append(Arrays& list, const Variables& many) {
  for (const Variable& v : many) append(list, v);
}
inline void append(Arrays& list, const Shape& shape) {
  list.push_back(array(std::vector<int64_t>(shape.begin(), shape.end())));
}
template <class T>
requires(std::is_arithmetic_v<T>) void append(Arrays& list, T number) {
  list.push_back(full({}, double(number)));
}
// What a row gives, as arrays.
template <class... T>
Arrays results(const T&... some) {
  Arrays list;
  (append(list, some), ...);
  return list;
}

// Collects what codes give, with the arrays that they name.
class Page {
 public:
  // Codes from here on have new operands.
  void begin() { ++set_; }
  // An operand, which Python gets under this name. Floats become float32, int32 int64.
  Array operand(const std::string& name, const Array& values);
  // One of the next row alone.
  Array row_operand(const std::string& name, const Array& values);
  // What `catena` gives, and how near PyTorch's result must be. `pytorch` is an expression, or
  // statements after which `result` is evaluated.
  void add(const std::string& pytorch, const std::string& result, const std::string& catena,
           const Arrays& got, double tolerance = 1e-5);
  void save(const std::string& path) const;

 private:
  Array keep(const std::string& owner, const std::string& name, const Array& values);

  int set_ = 0;
  size_t rows_ = 0;
  std::string texts_;
  NamedArrays arrays_;
};

void add_tensors(Page& page);
void add_gradients(Page& page);
void add_layers(Page& page);
void add_models(Page& page);
void add_activations(Page& page);
void add_attention(Page& page);
void add_losses(Page& page);
void add_arrays(Page& page);
void add_training(Page& page);

// An expression of each system.
#define CATENA_ROW(pytorch, ...) page.add(pytorch, "", #__VA_ARGS__, results(__VA_ARGS__));
// Statements of each, and an expression for their result.
#define CATENA_STEPS(pytorch, result, shown, ...)                        \
  {                                                                      \
    __VA_ARGS__;                                                         \
    page.add(pytorch, result, #__VA_ARGS__ "; " #shown, results(shown)); \
  }
// The same where the result is random, within a share of 0.03.
#define CATENA_DRAWS(pytorch, result, shown, ...)                              \
  {                                                                            \
    __VA_ARGS__;                                                               \
    page.add(pytorch, result, #__VA_ARGS__ "; " #shown, results(shown), 0.03); \
  }

}  // namespace catena::guide
