// FunctionSet: a model as a set of named functions with parameters, nestable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/parameter.h"
#include "catena/autograd/persistent.h"

namespace catena {

// Handles in the order of the model, and arrays that are not trained with their paths.
using Parameters = std::vector<Parameter>;
using Persistents = std::vector<Persistent>;
using NamedPersistents = std::vector<std::pair<std::string, Persistent>>;

// Anything that has parameters, persistent arrays or a train/test state: layers such as F::Linear,
// and sets of them.
class Parameterized {
 public:
  virtual ~Parameterized();

  // Calls f("W", parameter) and f("l1/W", parameter) in order of declaration.
  using Visitor = std::function<void(const std::string& path, Parameter& parameter)>;
  virtual void visit_parameters(const Visitor& visitor, const std::string& prefix = "") = 0;
  // Calls f("l1", function) for each member that has parameters itself, f("convs/0", function) for
  // those of a vector. Nothing by default; CATENA_FUNCTIONS overrides it.
  using FunctionVisitor = std::function<void(const std::string& name, Parameterized& function)>;
  virtual void visit_functions(const FunctionVisitor& visitor);
  // Calls f("avg_mean", persistent) and f("bn1/avg_mean", persistent) in order of
  // declaration. Those of visit_functions by default; CATENA_FUNCTIONS overrides it.
  using PersistentVisitor = std::function<void(const std::string& path, Persistent& persistent)>;
  virtual void visit_persistents(const PersistentVisitor& visitor, const std::string& prefix = "");
  // Calls f(state) for each variable that a recurrent layer keeps from one call to the next. Those
  // of visit_functions by default.
  using StateVisitor = std::function<void(Variable& state)>;
  virtual void visit_states(const StateVisitor& visitor);

  // (path, parameter) in order of declaration; a tied parameter (OwnedParameter::tie_to) under each
  // of its paths.
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  // Functions in ascending order of path, member by member, the parameters of one function in order
  // of declaration, as Chainer's FunctionSet.parameters; a tied parameter once, by the path that is
  // declared first.
  Parameters parameters() const;
  // The gradient arrays in the same order.
  Arrays gradients() const;
  // The paths in the same order: {"W", "b"} of a layer, {"l1/W", "l1/b"} of a set.
  std::vector<std::string> parameter_names() const;
  // Both (Chainer's collect_parameters).
  std::pair<Parameters, Arrays> collect_parameters() const;
  // Copies arrays into the parameters, and into their gradients, in the same order and from any
  // device. ValueError when the counts differ; ShapeError or DtypeError naming the parameter.
  // Nothing is written then.
  void set_parameters(const Arrays& values);
  void set_gradients(const Arrays& gradients);

  // Arrays that are not trained, in the orders of named_parameters(), parameters() and
  // parameter_names().
  NamedPersistents named_persistents() const;
  Persistents persistents() const;
  std::vector<std::string> persistent_names() const;

  // Copies values in place, from any device, in the order of parameters(). ValueError when the
  // counts differ; ShapeError or DtypeError naming the parameter. Nothing is written then.
  void copy_parameters_from(const Parameters& source);
  // The same, and the persistent arrays too, in the order of persistents(): afterwards both compute
  // the same in test state. Nothing is written when counts, shapes or dtypes of these differ.
  void copy_parameters_from(const Parameterized& source);
  void zero_grads();

  // Train or test state, which layers such as F::Dropout read where a call does not override it:
  // F::dropout(h, 0.5, training()) in a model of one's own. Models begin in train state. train()
  // and eval() switch this and every function below it that visit_functions names, and return the
  // same object; parts may be switched by themselves afterwards (model.bn1.eval()). Copies and
  // assignments take the state with them, files do not have it, and a captured cuda::Graph stays
  // as it was captured. Not synchronised: switch while no other thread runs the model. To test
  // beside training, run a copy, or override by call.
  Parameterized& train(YesNo on = true);
  Parameterized& eval() { return train(false); }
  bool training() const { return training_; }

  // Moves every parameter, gradient (also inside an optimizer's arena, which moves with it) and
  // persistent array, and returns the same object: optimizer.setup(model.to_gpu()).
  Parameterized& to(Device device);
  // To the current GPU (GPU 0 while a CPU is current), or to the given one.
  Parameterized& to_gpu() { return to(current_gpu()); }
  Parameterized& to_gpu(int index) { return to(cuda_device(index)); }
  // What is on a GPU goes to cpu:0, what is on a CPU device stays, as Array::to_cpu; with an index
  // all go to that CPU device.
  Parameterized& to_cpu();
  Parameterized& to_cpu(int index) { return to(cpu(index)); }
  // Where parameters and persistent arrays are; DeviceError when they are on several devices.
  Device device() const;
  int64_t parameter_count() const;  // elements, those of tied parameters once

 protected:
  Parameterized() = default;
  // What is tied in the other is tied in the copy.
  Parameterized(const Parameterized& other);
  Parameterized(Parameterized&&) noexcept = default;
  Parameterized& operator=(const Parameterized&) = default;
  Parameterized& operator=(Parameterized&&) noexcept = default;

 private:
  friend class TestScope;
  friend class FunctionBag;
  using TrainingStates = std::map<std::string, bool>;  // by path; "" is this one
  TrainingStates training_states() const;
  // Functions that `states` does not have get its state of "".
  void set_training_states(const TrainingStates& states);
  using AnyVisitor = std::function<void(const std::string& path, Parameterized& function)>;
  void visit_all(const AnyVisitor& visitor, const std::string& path);

  bool training_ = true;
};

// Base of models written as structs: declare the members and list them once with CATENA_FUNCTIONS.
// Copying a model copies its parameters and persistent arrays into new ones, tied as in the model;
// moving keeps them, assigning writes into the existing ones.
class FunctionSet : public Parameterized {
 public:
  // The member of that name, set["l1"], also of a nested set, set["block/l1"], or of a vector,
  // set["convs/0"]. IndexError listing the names when there is none.
  Parameterized& operator[](const std::string& name);
  const Parameterized& operator[](const std::string& name) const;
  // ValueError when the member is of another type: set.get<F::Linear>("l1").
  template <class T>
  T& get(const std::string& name) {
    T* typed = dynamic_cast<T*>(&(*this)[name]);
    CATENA_CHECK(ValueError, typed != nullptr, "FunctionSet: '", name,
                 "' is of another type than asked for");
    return *typed;
  }

 protected:
  FunctionSet() = default;
  FunctionSet(const FunctionSet&) = default;
  FunctionSet(FunctionSet&&) noexcept = default;
  FunctionSet& operator=(const FunctionSet&) = default;
  FunctionSet& operator=(FunctionSet&&) noexcept = default;
};

namespace detail {

// What a visitor sees of a member; of a vector's members "name/0", "name/1".
inline void visit_member(const Parameterized::Visitor& v, const std::string& path,
                         Parameter& member) {
  v(path, member);
}
inline void visit_member(const Parameterized::Visitor&, const std::string&, Persistent&) {}
inline void visit_member(const Parameterized::Visitor& v, const std::string& path,
                         Parameterized& member) {
  member.visit_parameters(v, path + "/");
}
inline void visit_member(const Parameterized::PersistentVisitor&, const std::string&, Parameter&) {}
inline void visit_member(const Parameterized::PersistentVisitor& v, const std::string& path,
                         Persistent& member) {
  v(path, member);
}
inline void visit_member(const Parameterized::PersistentVisitor& v, const std::string& path,
                         Parameterized& member) {
  member.visit_persistents(v, path + "/");
}
inline void visit_member(const Parameterized::FunctionVisitor&, const std::string&, Parameter&) {}
inline void visit_member(const Parameterized::FunctionVisitor&, const std::string&, Persistent&) {}
inline void visit_member(const Parameterized::FunctionVisitor& v, const std::string& path,
                         Parameterized& member) {
  v(path, member);
}
// A member that some sets do not have keeps its name.
template <class V, class T>
void visit_member(const V& v, const std::string& path, std::optional<T>& member) {
  if (member) visit_member(v, path, *member);
}
template <class V, class T>
void visit_member(const V& v, const std::string& path, std::vector<T>& members) {
  for (size_t i = 0; i < members.size(); ++i)
    visit_member(v, path + "/" + std::to_string(i), members[i]);
}

// Splits "l1, l2" as the preprocessor spelled it.
std::vector<std::string> split_names(std::string_view names);

template <class V, class... Members>
void visit_members(const V& v, const std::string& prefix, std::string_view names,
                   Members&... members) {
  const std::vector<std::string> list = split_names(names);
  size_t i = 0;
  (visit_member(v, prefix + list[i++], members), ...);
}

}  // namespace detail

// Lists the members that have parameters or a state: layers, nested sets, a layer's own parameters
// and persistent arrays, std::vectors and std::optionals of any of them.
#define CATENA_FUNCTIONS(...)                                                              \
  void visit_parameters(const ::catena::Parameterized::Visitor& visitor,                   \
                        const std::string& prefix = "") override {                         \
    ::catena::detail::visit_members(visitor, prefix, #__VA_ARGS__, __VA_ARGS__);           \
  }                                                                                        \
  void visit_persistents(const ::catena::Parameterized::PersistentVisitor& visitor,        \
                         const std::string& prefix = "") override {                        \
    ::catena::detail::visit_members(visitor, prefix, #__VA_ARGS__, __VA_ARGS__);           \
  }                                                                                        \
  void visit_functions(const ::catena::Parameterized::FunctionVisitor& visitor) override { \
    ::catena::detail::visit_members(visitor, "", #__VA_ARGS__, __VA_ARGS__);               \
  }
// The same for a layer's own OwnedParameter and OwnedPersistent members.
#define CATENA_PARAMETERS(...) CATENA_FUNCTIONS(__VA_ARGS__)

// A set that is filled at run time: set.add("l1", F::Linear(4, 3)); set.get<F::Linear>("l1").
// Functions are in the bag's train or test state from when they are added.
class FunctionBag : public Parameterized {
 public:
  FunctionBag() = default;
  FunctionBag(const FunctionBag& other);
  FunctionBag(FunctionBag&&) noexcept = default;
  FunctionBag& operator=(const FunctionBag& other);
  FunctionBag& operator=(FunctionBag&&) noexcept = default;

  // A name given twice is a ValueError.
  template <class T>
  T& add(const std::string& name, T function) {
    auto entry = std::make_unique<Entry<T>>(std::move(function));
    T& result = entry->value;
    insert(name, std::move(entry));
    return result;
  }
  // IndexError listing the names when there is no such entry.
  Parameterized& operator[](const std::string& name) const;
  // ValueError when the entry is of another type.
  template <class T>
  T& get(const std::string& name) const {
    T* typed = dynamic_cast<T*>(&(*this)[name]);
    CATENA_CHECK(ValueError, typed != nullptr, "FunctionBag: '", name,
                 "' is of another type than asked for");
    return *typed;
  }
  bool contains(const std::string& name) const;
  size_t size() const { return entries_.size(); }
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

 private:
  struct EntryBase {
    virtual ~EntryBase() = default;
    virtual Parameterized& get() = 0;
    virtual std::unique_ptr<EntryBase> clone() const = 0;
  };
  template <class T>
  struct Entry : EntryBase {
    explicit Entry(T v) : value(std::move(v)) {}
    Parameterized& get() override { return value; }
    std::unique_ptr<EntryBase> clone() const override { return std::make_unique<Entry>(value); }
    T value;
  };
  void insert(const std::string& name, std::unique_ptr<EntryBase> entry);
  std::vector<std::pair<std::string, std::unique_ptr<EntryBase>>> entries_;
};

}  // namespace catena
