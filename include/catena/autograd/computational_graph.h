// The recorded graph behind variables as data, and as a drawing.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/variable.h"

namespace catena {

// What build_computational_graph has found: vertices and the edges between them. A copy, which does
// not keep the recorded graph alive; later changes of that graph do not show in it.
class ComputationalGraph {
 public:
  // kSplit: where a variable branches to the functions that it goes into (remove_split = false).
  enum class Kind { kVariable, kFunction, kSplit };
  // A vertex. Captions are those of drawings: of a variable "(2, 3), float32", before that the path
  // of a parameter or the name of the variable ("l1/W: (3, 2), float32"); of a function its
  // FunctionNode::label().
  struct Node {
    Kind kind;
    std::string label;
  };
  // From the first position in nodes() to the second.
  using Edge = std::pair<size_t, size_t>;

  // A graph of these vertices; ValueError for an edge between others.
  ComputationalGraph(std::vector<Node> nodes, std::vector<Edge> edges);

  // In the order of the program: functions as they were called, each behind its inputs and before
  // its outputs. Equal programs have equal graphs.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Each once, in the order of the functions: first from its inputs, then to its outputs.
  const std::vector<Edge>& edges() const { return edges_; }

  // "dot": text in Graphviz's language, with variables as ovals, functions as boxes and splits as
  // hexagons; a vertex is named by its position. "svg": a drawing that the program `dot` makes of
  // it, which takes minutes for some thousand vertices; IoError if `dot` is not installed (package
  // graphviz) or fails. Another format is a ValueError.
  std::string dump(const std::string& format = "dot") const;

 private:
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

// The variables and functions that are reachable backward from the outputs, up to where
// unchain_backward has cut. An output of which nothing was recorded is a vertex without edges.
// ValueError for an undefined output.
//
//   std::ofstream("graph.dot") << build_computational_graph({loss}).dump();
//
// With remove_split = false the drawing is that of Chainer 1.x, where a variable goes through a
// "Split" into a copy of itself for each use. This takes time and memory in proportion to the size
// of the graph, and no stack.
ComputationalGraph build_computational_graph(const Variables& outputs, YesNo remove_split = true);
ComputationalGraph build_computational_graph(const Variable& output, YesNo remove_split = true);

}  // namespace catena
