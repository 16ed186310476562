// Linear maps: a function and its gradients of any order from one pair, forward and adjoint.
#pragma once

#include <string>
#include <utility>

#include "catena/autograd/function_call.h"
#include "catena/autograd/mean.h"

namespace catena {

// A map A is a struct with a name and the pair, y = A x and gx = A^T gy, as values, which may be
// views, or into memory, or both:
//
//   struct Reverse {
//     static constexpr const char* kName = "Reverse";
//     Array forward(const Array& x) const { return x(Slice(none, none, -1)); }
//     Array adjoint(const Array& gy) const { return gy(Slice(none, none, -1)); }
//   };
//   Variable reverse(const Variable& x) {
//     FunctionCall call(Reverse::kName, Autocast::kNone, x);
//     return linear_map(call, Reverse());
//   }
//
// Into memory, which has the shape, dtype and device of the result and any memory order, the
// contents are overwritten or added to:
//
//     void forward(const Array& x, const Array& y, bool accumulate) const;
//     void adjoint(const Array& gy, const Array& gx, bool accumulate) const;
//
// A forward that is only written into memory comes with
//
//     Array empty(const Array& x) const;   // where y goes: shape, dtype and memory order
//
// A map whose adjoint into memory also writes float32 sums of 16-bit gradients says so:
//
//     static constexpr bool kSumsWiden = true;
//
// The map is copied into the graph; it keeps no array of the call unless it holds it itself. Its
// gradient is the adjoint, that of the adjoint is forward, so that all orders are there.
namespace detail {

// target = value, or target += value.
void assign_or_add(const Array& target, const Array& value, bool accumulate);
// Uninitialized, of a vertex's shape, dtype and device.
Array array_like(const VariableNode& vertex);
// x in another floating dtype, by a linear map.
Variable cast(const Variable& x, Dtype dtype);
// The same where somebody has the values in that dtype already.
Variable cast(const Variable& x, Dtype dtype, const Array& values);

template <class Map>
concept ForwardValue = requires(const Map& m, const Array& a) {
  Array(m.forward(a));
};
template <class Map>
concept ForwardInto = requires(const Map& m, const Array& a) {
  m.forward(a, a, true);
};
template <class Map>
concept AdjointValue = requires(const Map& m, const Array& a) {
  Array(m.adjoint(a));
};
template <class Map>
concept SumsWiden = requires {
  requires Map::kSumsWiden;
};
template <class Map>
concept AdjointInto = requires(const Map& m, const Array& a) {
  m.adjoint(a, a, true);
};

// A map, or its adjoint, by what is written of it.
template <class Map, bool kAdjoint>
struct Applied {
  static constexpr bool kValue = kAdjoint ? AdjointValue<Map> : ForwardValue<Map>;
  static constexpr bool kInto = kAdjoint ? AdjointInto<Map> : ForwardInto<Map>;
  static_assert(kValue || kInto, "a linear map has forward and adjoint");

  static Array value(const Map& map, const Array& x) {
    if constexpr (kAdjoint)
      return map.adjoint(x);
    else
      return map.forward(x);
  }
  static void into(const Map& map, const Array& x, const Array& y, bool accumulate) {
    if constexpr (!kInto)
      assign_or_add(y, value(map, x), accumulate);
    else if constexpr (kAdjoint)
      map.adjoint(x, y, accumulate);
    else
      map.forward(x, y, accumulate);
  }
  // A value like the vertex.
  static Array like(const Map& map, const Array& x, const VariableNode& vertex) {
    if constexpr (kValue) {
      return value(map, x);
    } else {
      const Array y = array_like(vertex);
      into(map, x, y, false);
      return y;
    }
  }
};

template <class Map, bool kAdjoint>
Variable record_linear(FunctionCall& call, const Map& map, const Array& y);

}  // namespace detail

// The gradient of input i is map(g), or its adjoint: written where the gradient is, with what is
// there, if a destination is known; recorded under create_graph. For nodes of several inputs or
// outputs whose parts are linear maps.
template <bool kAdjoint, class Map>
void give_linear(BackwardContext& context, int i, const VariableNode& input, const Map& map,
                 const Variable& g) {
  using Applied = detail::Applied<Map, kAdjoint>;
  if (!context.needs(i)) return;
  if (context.create_graph()) {
    FunctionCall call(Map::kName, Autocast::kNone, g);
    const Array y = Applied::like(map, g.data(), input);
    return context.set_grad(i, detail::record_linear<Map, kAdjoint>(call, map, y));
  }
  constexpr bool kWide = kAdjoint && detail::SumsWiden<Map>;
  if (const BackwardContext::Destination to =
          kWide ? context.wide_destination(i) : context.destination(i)) {
    Applied::into(map, g.data(), *to.array, to.accumulate);
    return context.written(i);
  }
  context.set_grad(i, Variable::constant(Applied::like(map, g.data(), input)));
}

// One application of a map, or of its adjoint.
template <class Map, bool kAdjoint>
class LinearMapNode final : public FunctionNode {
 public:
  explicit LinearMapNode(const Map& map) : map_(map) {}
  std::string label() const override {
    return kAdjoint ? std::string(Map::kName) + "Grad" : std::string(Map::kName);
  }
  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    if (g.defined()) give_linear<!kAdjoint>(context, 0, *inputs()[0], map_, g);
  }

 private:
  Map map_;
};

template <class Map, bool kAdjoint>
Variable detail::record_linear(FunctionCall& call, const Map& map, const Array& y) {
  const Variable result =
      call.record(y, [&] { return make_node<LinearMapNode<Map, kAdjoint>>(map); });
  detail::hand_on_mean(call[0], result);
  return result;
}

// map(call[0]), recorded; ends the call.
template <class Map>
Variable linear_map(FunctionCall& call, const Map& map) {
  const Array& x = call[0].data();
  if constexpr (detail::ForwardValue<Map>) {
    return detail::record_linear<Map, false>(call, map, map.forward(x));
  } else {
    const Array y = map.empty(x);
    map.forward(x, y, false);
    return detail::record_linear<Map, false>(call, map, y);
  }
}

}  // namespace catena
