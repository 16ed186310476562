// Type checks of functions. Conditions on the types of the inputs are expressions that are built
// first and evaluated by expect(), in order, up to the first one that fails:
//
//   void check_type_forward(const TypeInfoTuple& in) const override {
//     type_check::expect(in.size() == 2);
//     const auto [x, W] = in.unpack<2>();
//     type_check::expect(x.dtype().kind() == 'f', x.ndim() == 2, x.shape(1) == W.shape(0) * 4);
//   }
//
// A failed expectation throws InvalidType:
//   Invalid operation is performed in: Linear (Forward)
//
//   Expect: in_types[0].shape[1] == in_types[1].shape[0] * 4
//   Actual: 3 != 4
//
// What conditions can say is in type_expression.h. What they cannot: look at x.shape().eval() and
// throw InvalidType("Shape is expected to be ...", "Shape is ...").
#pragma once

#include <array>

#include "catena/autograd/type_expression.h"
#include "catena/core/intrusive.h"

namespace catena {

// The type of an array, whatever its device. Without an array: shape () and no dtype.
class TypeInfo {
 public:
  TypeInfo() = default;
  TypeInfo(Shape shape, std::optional<Dtype> dtype) : shape_(std::move(shape)), dtype_(dtype) {}
  explicit TypeInfo(const Array& array);  // undefined: without an array
  const Shape& shape() const { return shape_; }
  int ndim() const { return shape_.ndim(); }
  int64_t size() const { return element_count(shape_); }
  std::optional<Dtype> dtype() const { return dtype_; }
  friend bool operator==(const TypeInfo& a, const TypeInfo& b) = default;

 private:
  Shape shape_;
  std::optional<Dtype> dtype_;
};
std::string to_string(const TypeInfo& type);  // "float32 (2, 3)"

namespace type_check {
namespace detail {

// What a TypeInfoTuple and the expressions made from it share.
struct Types : RefCounted {
  std::string name;
  boost::container::small_vector<TypeInfo, 4> types;
  int64_t type_count() const { return static_cast<int64_t>(types.size()); }
  static void destroy(const Types* types) { delete types; }
};
using TypesPtr = IntrusivePtr<const Types>;

// "in_types"
class AllTypes : public Lazy<AllTypes> {
 public:
  explicit AllTypes(TypesPtr types) : types_(std::move(types)) {}
  const Types& get() const { return *types_; }
  void print(std::string& text) const { text += types_->name; }
  int priority() const { return kAtom; }

 private:
  TypesPtr types_;
};

}  // namespace detail

// The type of one array, "in_types[0]": shape(), shape(axis), ndim(), size(), dtype() and
// dtype().kind() are expressions; eval() gives the TypeInfo.
class InputType : public Lazy<InputType> {
 public:
  InputType(detail::TypesPtr types, size_t i) : types_(std::move(types)), i_(i) {}
  const TypeInfo& get() const { return types_->types[i_]; }
  void print(std::string& text) const;
  int priority() const { return detail::kAtom; }

 private:
  detail::TypesPtr types_;
  size_t i_;
};

// Evaluates comparisons in order; the first that does not hold throws InvalidType, and those after
// it are not evaluated.
template <class... Comparisons>
void expect(const Comparisons&... comparisons) {
  static_assert((std::derived_from<Comparisons, detail::Condition> && ...),
                "catena: expect takes comparisons, such as in[0].ndim() == 2, not values");
  (comparisons.require(), ...);
}

}  // namespace type_check

// The types of all inputs of a function, "in_types".
class TypeInfoTuple {
 public:
  TypeInfoTuple(const std::vector<Array>& arrays, const std::string& name = "in_types");
  const std::string& name() const { return types_->name; }
  // How many, as an expression: "in_types.size".
  auto size() const { return type_check::detail::AllTypes(types_).size(); }
  // Not lazy: InvalidType at once when there are not as many.
  type_check::InputType operator[](int i) const;
  // All of them: const auto [x, y] = in.unpack<2>(). Expects size() == N.
  template <size_t N>
  std::array<type_check::InputType, N> unpack() const {
    type_check::expect(size() == N);
    return [this]<size_t... I>(std::index_sequence<I...>) {
      return std::array<type_check::InputType, N>{type_check::InputType(types_, I)...};
    }
    (std::make_index_sequence<N>());
  }

 private:
  type_check::detail::TypesPtr types_;
};

namespace type_check {
// The types of `data`, called name[0], name[1], ... Undefined arrays are a ValueError unless
// accept_none: then their type is TypeInfo(), whose dtype is written None.
TypeInfoTuple get_types(const std::vector<Array>& data, const std::string& name, bool accept_none);
}  // namespace type_check

}  // namespace catena
