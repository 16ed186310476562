// FunctionNode: one recorded application of a differentiable function. Built-in functions derive
// from it; users write a Function (function.h) instead.
#pragma once

#include <boost/container/small_vector.hpp>
#include <initializer_list>
#include <span>
#include <string>

#include "catena/autograd/grad_mode.h"
#include "catena/autograd/variable.h"

namespace catena {

class BackwardContext;
class BackwardPass;

// Vertex of the graph between its input and output variables. Holds its inputs' vertices (not their
// data), weak references to its outputs' vertices, and exactly the arrays it saved.
class FunctionNode : public RefCounted {
 public:
  virtual ~FunctionNode() = default;
  // Caption in drawings and errors: "Linear", "relu".
  virtual std::string label() const = 0;
  // Puts gradients into the context: one set_grad (or destination) for each input that wants one.
  // Written on Variables, so that the same code is differentiable under create_graph.
  virtual void backward(BackwardContext& context) = 0;
  // Whether backward() is written on Variables (false: create_graph is an error).
  virtual bool is_differentiable() const { return true; }
  // Whether backward() computes only the gradients that BackwardContext::needs asks for, so that a
  // pass in parts may call it twice. False: one call makes all of them, for instance in one kernel.
  virtual bool splits() const { return true; }
  // Vertices of parameters that backward() reaches by a separate pass (recomputation). They are
  // final after this node, not before.
  using AlsoUses = std::span<const IntrusivePtr<VariableNode>>;
  virtual AlsoUses also_uses() const { return {}; }

  // Building -----------------------------------------------------------------------------------
  // Keeps input i's or output i's data for backward, with its write count. Of a parameter the
  // reference alone: its array may move until then.
  void save_input(int i, const Variable& input);
  void save_output(int i, const Array& output);
  // Connects inputs and outputs and returns the output variables. Called once, last, by
  // FunctionCall::record.
  using Inputs = std::span<const Variable* const>;
  Variable connect(Inputs inputs, const Array& output);
  Variables connect(Inputs inputs, const Arrays& outputs);

  // Graph access -------------------------------------------------------------------------------
  // The vertices of the inputs, in the order of the call.
  using InputList = boost::container::small_vector<IntrusivePtr<VariableNode>, 3>;
  const InputList& inputs() const { return inputs_; }
  std::span<VariableNode* const> outputs() const { return {outputs_.data(), outputs_.size()}; }
  uint64_t sequence() const { return sequence_; }
  // Drops the connection to inputs and outputs (unchain_backward).
  void unchain();

  static void destroy(FunctionNode* node);  // iterative: long chains need no stack

 private:
  friend class BackwardContext;
  friend struct VariableNode;
  friend class BackwardPass;
  struct Saved {
    Array data;                             // null for a parameter
    IntrusivePtr<ParameterData> parameter;  // else null
    uint64_t version;
    int index;
    bool is_output;
  };
  void add_input(const Variable& input);
  const Array& unchanged(const Saved& saved) const;
  void bring_back(const Saved& saved) const;
  void bring_parameters() const;
  Variable add_output(const Array& output);

  InputList inputs_;
  boost::container::small_vector<VariableNode*, 1> outputs_;  // null when the output is gone
  boost::container::small_vector<Saved, 2> saved_;
  uint64_t sequence_ = 0;
  uint64_t visit_ = 0;
};

// What a node sees during its backward.
class BackwardContext {
 public:
  // Which gradients a call of backward() is to make: in a pass in parts those of weights come
  // later.
  enum class Part : uint8_t { kAll, kInputs, kWeights };
  BackwardContext(FunctionNode& node, BackwardPass& pass, Part part, bool create_graph)
      : node_(node), pass_(pass), part_(part), create_graph_(create_graph) {}

  // Whether the backward pass is recorded.
  bool create_graph() const { return create_graph_; }
  // Gradient of output i; null when nothing flowed there.
  Variable grad_output(int i = 0) const;
  // Saved data as variables connected to the graph; GradientError when not saved or overwritten.
  Variable input(int i) const;
  Variable output(int i = 0) const;
  // Whether input i wants a gradient from this call.
  bool needs(int i) const {
    const VariableNode& v = *node_.inputs_[size_t(i)];
    return v.requires_grad && (part_ == Part::kAll || v.is_weight == (part_ == Part::kWeights));
  }
  // Adds g to the gradient of input i; a null variable means none flows.
  void set_grad(int i, const Variable& g);

  // Where a kernel may write the gradient of input i itself: an array of the input's shape. Null:
  // allocate and use set_grad. After writing call written(i). Never given under create_graph.
  using Destination = GradientTarget;
  // Of input i; and what to call when the gradient is there.
  Destination destination(int i);
  void written(int i);
  // The same for kernels that write sums of 16-bit numbers in float32. Where input i is the 16-bit
  // copy of a float32 parameter, the gradient of the parameter itself, of that dtype: the sums
  // reach it without being rounded or cast.
  Destination wide_destination(int i);

 private:
  VariableNode* copied_parameter(int i) const;

  FunctionNode& node_;
  BackwardPass& pass_;
  Part part_;
  bool create_graph_;
};

}  // namespace catena
