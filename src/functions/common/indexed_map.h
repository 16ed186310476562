// Linear maps of one operand of a call that another operand chooses: positions, labels or ids.
#pragma once

#include "catena/autograd/linear_map.h"

namespace catena::functions {

// The map of operand `of`. With `watched` >= 0 the array of that operand itself serves the kernels,
// so that the graph watches over it.
template <class Map>
class IndexedMapNode final : public FunctionNode {
 public:
  IndexedMapNode(const Map& map, int of, int watched) : map_(map), of_(of), watched_(watched) {}
  std::string label() const override { return Map::kName; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined() || !context.needs(of_)) return;
    if (watched_ >= 0) context.input(watched_);  // GradientError if it was overwritten
    give_linear<true>(context, of_, *inputs()[size_t(of_)], map_, gy);
  }

 private:
  Map map_;
  int of_, watched_;
};

// map(call[of]), recorded; ends the call. `positions` are what the map keeps of operand `by`: that
// operand's array, or another one.
template <class Map>
Variable indexed_map(FunctionCall& call, const Map& map, int of, int by, const Array& positions) {
  return call.record(map.forward(call[size_t(of)].data()), [&] {
    const Variable& given = call[size_t(by)];
    const bool watched = positions.same_body(given.data());
    auto node = make_node<IndexedMapNode<Map>>(map, of, watched ? by : -1);
    if (watched) node->save_input(by, given);
    return node;
  });
}

}  // namespace catena::functions
