#include "catena/autograd/function_set.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_set>

#include "autograd/tied_copies.h"
#include "catena/autograd/test_scope.h"
#include "catena/core/entry_scope.h"
#include "catena/core/log.h"

namespace catena {

Parameterized::Parameterized(const Parameterized& other) : training_(other.training_) {
  detail::begin_copy(*this, other);
}
Parameterized::~Parameterized() { detail::end_copy(*this); }

std::vector<std::pair<std::string, Parameter>> Parameterized::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> result;
  const_cast<Parameterized*>(this)->visit_parameters(
      [&](const std::string& path, Parameter& p) {
        if (!p.defined()) return;  // an absent bias
        p.state()->listed.store(true, std::memory_order_relaxed);
        note_path(*p.state(), path);
        result.emplace_back(path, p);
      },
      "");
  return result;
}

namespace {

using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

// The function that a parameter belongs to: {"block", "l1"} of "block/l1/W".
std::vector<std::string_view> owner_of(std::string_view path) {
  std::vector<std::string_view> names;
  for (size_t slash; (slash = path.find('/')) != path.npos; path.remove_prefix(slash + 1))
    names.push_back(path.substr(0, slash));
  return names;
}

// By the names of functions, so that "l10" and "l1/W" do not mix; what one function has stays as it
// was declared.
template <class Named>
Named sorted(Named named) {
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return owner_of(a.first) < owner_of(b.first);
  });
  return named;
}

// Each by the first of its paths.
NamedParameters once(NamedParameters named) {
  std::unordered_set<const ParameterState*> seen;
  std::erase_if(named, [&](const auto& each) { return !seen.insert(each.second.state()).second; });
  return named;
}

}  // namespace

Parameters Parameterized::parameters() const {
  Parameters result;
  for (auto& [path, p] : sorted(once(named_parameters()))) result.push_back(std::move(p));
  return result;
}

std::vector<std::string> Parameterized::parameter_names() const {
  std::vector<std::string> result;
  for (auto& [path, p] : sorted(once(named_parameters()))) result.push_back(std::move(path));
  return result;
}

NamedPersistents Parameterized::named_persistents() const {
  NamedPersistents result;
  const_cast<Parameterized*>(this)->visit_persistents([&](const std::string& path, Persistent& p) {
    if (!p.defined()) return;
    p.note_path(path);
    result.emplace_back(path, p);
  });
  return result;
}

Persistents Parameterized::persistents() const {
  Persistents result;
  for (auto& [path, p] : sorted(named_persistents())) result.push_back(std::move(p));
  return result;
}

std::vector<std::string> Parameterized::persistent_names() const {
  std::vector<std::string> result;
  for (auto& [path, p] : sorted(named_persistents())) result.push_back(std::move(path));
  return result;
}

void Parameterized::visit_functions(const FunctionVisitor&) {}

void Parameterized::visit_states(const StateVisitor& visitor) {
  visit_functions(
      [&](const std::string&, Parameterized& function) { function.visit_states(visitor); });
}

void Parameterized::visit_persistents(const PersistentVisitor& visitor, const std::string& prefix) {
  visit_functions([&](const std::string& name, Parameterized& function) {
    function.visit_persistents(visitor, prefix + name + "/");
  });
}

Arrays Parameterized::gradients() const {
  Arrays result;
  for (const Parameter& p : parameters()) result.push_back(p.grad());
  return result;
}

std::pair<Parameters, Arrays> Parameterized::collect_parameters() const {
  return {parameters(), gradients()};
}

void Parameterized::copy_parameters_from(const Parameters& source) {
  const Parameters own = parameters();
  CATENA_CHECK(ValueError, own.size() == source.size(), "copy_parameters_from: the model has ",
               own.size(), " parameters, the source ", source.size());
  for (size_t i = 0; i < own.size(); ++i) {
    CATENA_CHECK(ValueError, source[i].defined(), "copy_parameters_from: parameter ", i,
                 " of the source is undefined");
    CATENA_CHECK(ShapeError, own[i].shape() == source[i].shape(),
                 "copy_parameters_from: parameter ", i, " ('", path_of(*own[i].state()),
                 "') has shape ", own[i].shape(), ", that of the source ", source[i].shape());
    CATENA_CHECK(DtypeError, own[i].dtype() == source[i].dtype(),
                 "copy_parameters_from: parameter ", i, " ('", path_of(*own[i].state()),
                 "') has dtype ", own[i].dtype(), ", that of the source ", source[i].dtype());
  }
  for (size_t i = 0; i < own.size(); ++i) own[i].copy_from(source[i].data());
}

void Parameterized::copy_parameters_from(const Parameterized& source) {
  const NamedPersistents own = sorted(named_persistents());
  const Persistents given = source.persistents();
  CATENA_CHECK(ValueError, own.size() == given.size(), "copy_parameters_from: the model has ",
               own.size(), " persistent arrays, the source ", given.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const auto& [path, p] = own[i];
    CATENA_CHECK(ShapeError, p.shape() == given[i].shape(), "copy_parameters_from: '", path,
                 "' has shape ", p.shape(), ", that of the source ", given[i].shape());
    CATENA_CHECK(DtypeError, p.dtype() == given[i].dtype(), "copy_parameters_from: '", path,
                 "' holds ", p.dtype(), ", that of the source ", given[i].dtype());
  }
  copy_parameters_from(source.parameters());
  for (size_t i = 0; i < own.size(); ++i) own[i].second.copy_from(given[i].data());
}

namespace {

void check_arrays(const NamedParameters& own, const Arrays& given) {
  CATENA_CHECK(ValueError, own.size() == given.size(), "expected ", own.size(),
               " arrays, one for each parameter, got ", given.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const auto& [path, p] = own[i];
    CATENA_CHECK(ValueError, given[i].defined(), "the array for '", path, "' is undefined");
    CATENA_CHECK(ShapeError, given[i].shape() == p.shape(), "'", path, "' has shape ", p.shape(),
                 ", the array for it ", given[i].shape());
    CATENA_CHECK(DtypeError, given[i].dtype() == p.dtype(), "'", path, "' holds ", p.dtype(),
                 ", the array for it ", given[i].dtype());
  }
}

}  // namespace

void Parameterized::set_parameters(const Arrays& values) {
  const EntryScope call("set_parameters");
  const NamedParameters own = sorted(once(named_parameters()));
  check_arrays(own, values);
  for (size_t i = 0; i < own.size(); ++i) own[i].second.copy_from(values[i]);
}

void Parameterized::set_gradients(const Arrays& gradients) {
  const EntryScope call("set_gradients");
  const NamedParameters own = sorted(once(named_parameters()));
  check_arrays(own, gradients);
  for (size_t i = 0; i < own.size(); ++i) own[i].second.set_grad(gradients[i]);
}

void Parameterized::zero_grads() {
  for (const auto& [path, p] : named_parameters()) p.zero_grad();
}

Parameterized& Parameterized::to(Device device) {
  for (const auto& [path, p] : named_parameters()) p.to(device);
  for (const auto& [path, p] : named_persistents()) p.to(device);
  return *this;
}

Parameterized& Parameterized::to_cpu() {
  for (const auto& [path, p] : named_parameters()) {
    if (!p.device().is_cpu()) p.to(cpu(0));
  }
  for (const auto& [path, p] : named_persistents()) {
    if (!p.device().is_cpu()) p.to(cpu(0));
  }
  return *this;
}

Device Parameterized::device() const {
  std::string first;
  std::optional<Device> found;
  const auto look = [&](const std::string& path, Device device) {
    if (!found) {
      first = path;
      found = device;
    }
    CATENA_CHECK(DeviceError, device == *found, "device: the parameters are on several devices: '",
                 first, "' on ", *found, ", '", path, "' on ", device);
  };
  for (const auto& [path, p] : named_parameters()) look(path, p.device());
  for (const auto& [path, p] : named_persistents()) look(path, p.device());
  return found.value_or(cpu(0));
}

int64_t Parameterized::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& p : parameters()) count += p.size();
  return count;
}

// Train and test ----------------------------------------------------------------------------------

Parameterized& Parameterized::train(YesNo on) {
  training_ = on;
  visit_functions([&](const std::string&, Parameterized& function) { function.train(on); });
  return *this;
}

void Parameterized::visit_all(const AnyVisitor& visitor, const std::string& path) {
  visitor(path, *this);
  visit_functions([&](const std::string& name, Parameterized& function) {
    function.visit_all(visitor, path + "/" + name);
  });
}

Parameterized::TrainingStates Parameterized::training_states() const {
  TrainingStates states;
  const_cast<Parameterized*>(this)->visit_all(
      [&](const std::string& path, Parameterized& function) { states[path] = function.training_; },
      "");
  return states;
}

void Parameterized::set_training_states(const TrainingStates& states) {
  const bool own = states.at("");
  visit_all(
      [&](const std::string& path, Parameterized& function) {
        const auto found = states.find(path);
        function.training_ = found == states.end() ? own : found->second;
      },
      "");
}

TestScope::~TestScope() {
  try {
    model_.set_training_states(before_);
  } catch (const std::exception& e) {
    logging::warning("TestScope: the model is left in test state: ", e.what());
  }
}

namespace detail {

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> result;
  while (true) {
    const size_t comma = names.find(',');
    std::string_view one = names.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '_'))
      one.remove_suffix(1);  // member_ is shown as "member"
    result.emplace_back(one);
    if (comma == std::string_view::npos) return result;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace detail

namespace {

// The function called `name` in a set, or null; `known` receives the names of those passed.
Parameterized* find_function(Parameterized& set, std::string_view name, std::string& known) {
  Parameterized* found = nullptr;
  set.visit_functions([&](const std::string& key, Parameterized& function) {
    known += (known.empty() ? "" : ", ") + key;
    if (found != nullptr || !name.starts_with(key)) return;
    std::string inner;
    if (name.size() == key.size())
      found = &function;
    else if (name[key.size()] == '/')
      found = find_function(function, name.substr(key.size() + 1), inner);
  });
  return found;
}

}  // namespace

Parameterized& FunctionSet::operator[](const std::string& name) {
  std::string known;
  Parameterized* found = find_function(*this, name, known);
  CATENA_CHECK(IndexError, found != nullptr, "FunctionSet: no function named '", name,
               "'; there are: ", known);
  return *found;
}
const Parameterized& FunctionSet::operator[](const std::string& name) const {
  return (*const_cast<FunctionSet*>(this))[name];
}

FunctionBag::FunctionBag(const FunctionBag& other) : Parameterized(other) {
  for (const auto& [name, entry] : other.entries_) entries_.emplace_back(name, entry->clone());
}

FunctionBag& FunctionBag::operator=(const FunctionBag& other) {
  if (this == &other) return *this;
  if (entries_.empty()) {
    *this = FunctionBag(other);
  } else {
    copy_parameters_from(other);
    set_training_states(other.training_states());
  }
  return *this;
}

Parameterized& FunctionBag::operator[](const std::string& name) const {
  std::string known;
  for (const auto& [key, entry] : entries_) {
    if (key == name) return entry->get();
    known += (known.empty() ? "" : ", ") + key;
  }
  fail<IndexError>("FunctionBag: no function named '", name, "'; there are: ", known);
}

bool FunctionBag::contains(const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const auto& e) { return e.first == name; });
}

void FunctionBag::insert(const std::string& name, std::unique_ptr<EntryBase> entry) {
  CATENA_CHECK(ValueError, !contains(name), "FunctionBag: '", name, "' is there already");
  if (!training() || !entry->get().training()) entry->get().train(training());
  entries_.emplace_back(name, std::move(entry));
}

void FunctionBag::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (auto& [name, entry] : entries_) entry->get().visit_parameters(visitor, prefix + name + "/");
}

void FunctionBag::visit_functions(const FunctionVisitor& visitor) {
  for (auto& [name, entry] : entries_) visitor(name, entry->get());
}

}  // namespace catena
