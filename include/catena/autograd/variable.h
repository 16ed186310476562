// Variable: an array with its place in the recorded graph.
#pragma once

#include <concepts>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/core/intrusive.h"

namespace catena {

class FunctionNode;
struct MeanRecord;
struct ParameterState;

// A variable's vertex in the graph: what gradients flow to. Holds no data, so that functions keep
// alive only what they save.
struct VariableNode : RefCounted {
  IntrusivePtr<FunctionNode> creator;  // null for roots
  int output_index = 0;                // which output of the creator
  bool requires_grad = true;
  Dtype dtype{};
  Device device;
  Shape shape;
  Array grad;  // null until backward reaches it
  // The same, differentiable, while a pass with create_graph runs. At its end the body gets it: it
  // holds the recorded pass, which holds this vertex.
  IntrusivePtr<struct VariableBody> grad_variable;
  struct VariableBody* body = nullptr;  // of the handles; null when the last one is gone
  ParameterState* parameter = nullptr;  // set for parameters; owned by the Parameter handles
  IntrusivePtr<MeanRecord> mean;        // what it divided by, if it is a mean (mean.h)
  uint64_t visit = 0;                   // last backward pass that saw it
  int pending_uses = 0;                 // uses in that pass not yet done (parameters)
  bool is_weight = false;               // made of parameters alone; set by passes in parts
  bool grad_is_own = false;             // no other gradient shares its memory: own_grad
  // Backward functions may return views, or the very array that they received. A gradient that
  // somebody asks for is copied into separate, writable memory if it shares its memory.
  void own_grad();
  void forget_grad_variable();
  static void destroy(VariableNode* node);
};

// The array of a parameter, which may move while graphs refer to it.
struct ParameterData : RefCounted {
  Array array;
  uint64_t moved_writes = 0;  // added to the array's write count, so that moves do not count
  // Whether the values are elsewhere (Parameter::release_data): the array has the right shape,
  // dtype and device, and NaN for each element.
  bool is_absent = false;
  Array placeholder;  // that array, kept for the next time
  // How often the parameter has got other memory for good: not the re-seating by which its arena
  // lets values go and takes them back (Parameter::rebind_data).
  uint64_t moves = 0;
  // How often the values were written to. Moving them to other memory (Parameter::rebind) is none.
  uint64_t writes() const;
  void replace(const Array& other, bool same_values);
  // While any parameter is absent, calls of functions look for such operands.
  void set_absent(bool absent);
  static void destroy(ParameterData* data);
};

// What handles of one variable share.
struct VariableBody : RefCounted {
  Array data;
  IntrusivePtr<VariableNode> node;           // null for constants
  IntrusivePtr<VariableBody> grad_variable;  // after a pass with create_graph
  bool is_volatile = false;
  std::string name;
  static VariableBody* create();
  static void destroy(VariableBody* body);
};

// Whether a variable, and what is computed from it, is left out of the graph.
enum class Volatile : uint8_t { off, on };

// loss.backward({.retain_grad = true})
struct BackwardOptions {
  bool retain_grad = false;   // keep the gradients of intermediate variables
  bool create_graph = false;  // record the backward itself, for higher-order gradients
  // Leave the gradients of parameters to backward_weights (backward.h), and note here what it
  // needs. Not together with create_graph.
  class DeferredWeights* weights_later = nullptr;
  // Leave the gradients of parameters as they are, whatever flows to them, also in passes that
  // functions run inside. For a batch that does not count and whose loss may be NaN: zero times NaN
  // is NaN. Observers hear of the pass as of any other. Not together with weights_later.
  bool drop_parameter_gradients = false;
};

// Where a kernel may write a gradient itself: an array to be overwritten, or added to. Null: there
// is none.
struct GradientTarget {
  const Array* array = nullptr;
  bool accumulate = false;
  explicit operator bool() const { return array != nullptr; }
};

// A cheap handle; copies share the variable.
//
// Two ways lead from an array to a variable:
//   Variable x(array);    a root whose gradient is wanted
//   model(array)          a constant: data that no gradient flows to
// An array is a constant wherever a variable is expected: as an argument, in braces of Variables,
// as a returned value, in `Variable x = array`. Whoever wants its gradient writes Variable(array);
// what constructs in place does that too: emplace_back, std::optional, std::pair, maps, a range of
// iterators.
//
// A default-constructed or moved-from one is undefined:
// it may be assigned, compared and asked whether it is defined(); anything else is a ValueError
// that names the call.
//
// Functions applied to variables record themselves unless every input is volatile or constant, or a
// NoBackprop scope is open. Mixing volatile and recorded variables in one call is a GradientError.
class Variable {
 public:
  Variable() = default;  // null: "no gradient"
  // A root whose gradient is wanted (off), or one on which nothing is recorded (on). ValueError for
  // an undefined array.
  explicit Variable(const Array& data, Volatile is_volatile = Volatile::off);
  explicit Variable(const Selected& data, Volatile is_volatile = Volatile::off)
      : Variable(static_cast<const Array&>(data), is_volatile) {}
  explicit Variable(VariableBody* body) : body_(body) {}
  // An array where a variable is expected: a constant; undefined for an undefined array. A
  // template, so that the constructors above win wherever Variable(array) is written.
  template <std::derived_from<Array> A>
  Variable(const A& data) : Variable(data.defined() ? constant(data) : Variable()) {}
  // The same by name, for expressions that would make a root else. ValueError for an undefined
  // array.
  static Variable constant(const Array& data);

  // Whether the handle has a variable, and its array.
  bool defined() const { return bool(body_); }
  const Array& data() const { return known("Variable::data").data; }
  // Replaces the payload; the graph does not notice.
  void set_data(const Array& data) const;
  // Null until backward has reached the variable. It may be written to, and no other gradient is in
  // its memory; after a pass with create_graph it is that of grad_variable().
  Array grad() const;
  // Must have the data's dtype (DtypeError), device (DeviceError) and shape (ShapeError); a null
  // array clears it. Parameters copy into their gradient array; others keep this one, and a pass
  // that begins with it may hand it on: write into it after the gradients have been asked for.
  void set_grad(const Array& grad) const;
  // The gradient as a differentiable variable, after backward with create_graph; else null.
  Variable grad_variable() const;
  // Null for roots.
  FunctionNode* creator() const {
    const VariableBody& body = known("Variable::creator");
    return body.node ? body.node->creator.get() : nullptr;
  }
  bool is_volatile() const { return known("Variable::is_volatile").is_volatile; }
  // On: nothing is recorded on it from here. Off makes what was volatile a root whose gradient is
  // wanted, so that a part computed without a record (a frozen extractor) feeds one with a record.
  void set_volatile(Volatile value) const;
  bool requires_grad() const {
    const VariableBody& body = known("Variable::requires_grad");
    return body.node && body.node->requires_grad;
  }

  // Properties of data().
  Dtype dtype() const { return known("Variable::dtype").data.dtype(); }
  const Shape& shape() const { return known("Variable::shape").data.shape(); }
  int64_t shape(Axis axis) const { return known("Variable::shape").data.shape(axis); }
  int ndim() const { return known("Variable::ndim").data.ndim(); }
  int64_t size() const { return known("Variable::size").data.size(); }
  Device device() const { return known("Variable::device").data.device(); }
  // The only element of data() (ShapeError otherwise), as Array::item; waits for the device.
  Scalar item() const { return known("Variable::item").data.item(); }
  template <class T>
  T item() const {
    return known("Variable::item").data.template item<T>();
  }

  // The differentiable methods of Array; each is the function of catena/functions with the same
  // name (astype: cast, to: copy, operator(): get_item), with its errors. Views where arrays give
  // views.
  template <class... I>
  Variable operator()(I&&... indices) const {
    static_assert((std::is_constructible_v<Index, I&&> && ...),
                  "a variable takes integers, slices, newaxis and ellipsis as indices; select by "
                  "arrays of positions or masks on its data()");
    return at({Index(std::forward<I>(indices))...});
  }
  Variable operator[](const Index& index) const { return at({index}); }
  Variable at(std::initializer_list<Index> indices) const {
    return at(std::span(indices.begin(), indices.size()));
  }
  Variable at(std::span<const Index> indices) const;
  // One -1 is inferred.
  Variable reshape(const Shape& shape) const;
  template <std::integral... I>
  requires(sizeof...(I) > 0) Variable reshape(I... extents)
  const { return reshape(Shape{static_cast<int64_t>(extents)...}); }
  Variable flatten() const { return reshape({-1}); }
  Variable ravel() const { return reshape({-1}); }
  Variable transpose(const Axes& axes = {}) const;  // empty: reversed
  Variable T() const { return transpose(); }
  Variable swapaxes(Axis axis1, Axis axis2) const;
  Variable squeeze(const AxisList& axes = none) const;  // none: all of extent 1
  Variable expand_dims(Axis axis) const;
  Variable broadcast_to(const Shape& shape) const;
  Variable astype(Dtype dtype) const;
  // On another device; the gradient comes back to where this variable is.
  Variable to(Device device) const;
  Variable sum(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Variable mean(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Variable max(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Variable min(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Variable clip(const Operand& low, const Operand& high) const;

  // "(2, 5), float32"; the dtype alone for 0-d: the caption in drawings of the graph.
  std::string label() const;
  const std::string& name() const { return known("Variable::name").name; }
  void set_name(std::string name) const { known("Variable::set_name").name = std::move(name); }

  // Runs the graph backward from here. From a root: returns at once. A volatile variable, and one
  // of which nothing was recorded (under NoBackprop, or a function of constants alone), is a
  // GradientError: there is nothing to go back through. A single-element variable
  // without gradient starts from one; larger ones need set_grad first (GradientError). Gradients of
  // roots are assigned, those of parameters accumulate until zero_grads. Everything runs on the
  // current streams, in descending order of creation. From several results at once:
  // catena::backward (backward.h).
  void backward(const BackwardOptions& options = {}) const;
  // Chainer's backward(retain_grad).
  template <std::same_as<bool> Bool>
  void backward(Bool retain_grad) const {
    backward(BackwardOptions{retain_grad});
  }
  // Cuts the history: afterwards the variables reachable backward from here are roots.
  void unchain_backward() const;

  // What handles share; null when undefined.
  VariableBody* body() const { return body_.get(); }
  // The vertex in the graph; made on demand for constants.
  VariableNode* node() const;
  friend bool same_variable(const Variable& a, const Variable& b) { return a.body_ == b.body_; }

 protected:
  // The body; ValueError naming `who` for an undefined handle.
  VariableBody& known(const char* who) const {
    if (!body_) [[unlikely]]
      fail_undefined(who);
    return *body_;
  }
  [[noreturn, gnu::cold]] static void fail_undefined(const char* who);

  IntrusivePtr<VariableBody> body_;  // null when undefined
};

// Prints "Variable(2.5, dtype=float32)": the value of data() as its repr() shows it. Waits for the
// device.
std::ostream& operator<<(std::ostream& os, const Variable& variable);

// Arguments and results of functions.
using Variables = std::vector<Variable>;
using Arrays = std::vector<Array>;

}  // namespace catena
