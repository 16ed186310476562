#include "catena/serializers/checkpoint.h"

#include <algorithm>
#include <set>

#include "catena/autograd/placement.h"
#include "optimizers/state_problems.h"

namespace catena::serializers {
namespace {

// Marks an entry without arrays, which a file could not distinguish from a missing one.
constexpr char kEmpty[] = ".empty";

// The array of an entry that is one array, or what is known of it.
template <class T>
const T& single(const std::string& name, const std::map<std::string, T>& arrays) {
  const auto found = arrays.find("");
  CATENA_CHECK(IoError, found != arrays.end() && arrays.size() == 1, "entry '", name,
               "' holds several arrays, expected one");
  return found->second;
}

Checkpoint::SavedForm form_of_array(const Array& array) { return {array.dtype(), array.shape()}; }

// Of an entry that is written into an array.
void check_array(const std::string& name, const Checkpoint::SavedForm& saved, const Array& array) {
  CATENA_CHECK(IoError, saved.shape == array.shape() && saved.dtype == array.dtype(), "entry '",
               name, "' is ", saved.dtype, " of shape ", saved.shape, ", expected ", array.dtype(),
               " of shape ", array.shape());
}

// The error of an entry that does not load, with the entry's name once: objects of that kind may
// begin their errors with it.
std::string text_of(const std::string& name, const std::exception& error) {
  const std::string text = error.what(), named = name + ": ";
  return text.starts_with(named) ? text : named + text;
}

}  // namespace

void Checkpoint::add_entry(Entry entry) {
  CATENA_CHECK(ValueError, !entry.name.empty() && entry.name.find('/') == std::string::npos,
               "Checkpoint: expected a name without '/', got '", entry.name, "'");
  const bool known = std::any_of(entries_.begin(), entries_.end(),
                                 [&](const Entry& e) { return e.name == entry.name; });
  CATENA_CHECK(ValueError, !known, "Checkpoint: '", entry.name, "' is there already");
  entries_.push_back(std::move(entry));
}

namespace {

// Each parameter by the first of its names.
TensorParts parts_of(const Parameterized& model) {
  TensorParts parts;
  std::set<const ParameterState*> seen;
  for (const auto& [path, parameter] : model.named_parameters())
    if (seen.insert(parameter.state()).second) parts.push_back(part_of(path, parameter));
  for (const auto& [path, persistent] : model.named_persistents())
    parts.push_back(part_of(path, persistent));
  CATENA_CHECK(ValueError, !parts.empty(),
               "save: the model has no parameters; list its layers with CATENA_FUNCTIONS, or add "
               "them to the FunctionBag");
  return parts;
}

TensorParts parts_of(Optimizer& optimizer, const Checkpoint::SavedPath& saved_path) {
  TensorParts parts;
  for (const optimizers::ShardedArray& state : optimizer.local_state()) {
    std::string name = state.name;
    if (saved_path)
      name = state.state + "/" + saved_path(name.substr(state.state.size() + 1), state.parameter);
    parts.push_back(part_of(name, state));
  }
  return parts;
}

// The rest: what is the same in all processes. Earlier folders have states of stages among it.
template <class T>
std::map<std::string, T> without_parts(Optimizer& optimizer, std::map<std::string, T> values) {
  for (const optimizers::ShardedArray& state : optimizer.local_state()) values.erase(state.name);
  return values;
}

// What fits one file: all elements are here.
NamedArrays whole_arrays(const Checkpoint::Spread& spread) {
  NamedArrays arrays = spread.values ? spread.values() : NamedArrays();
  std::set<std::string> names;
  for (const TensorPart& part : spread.parts()) {
    CATENA_CHECK(ValueError, part.local.shape() == part.slice.extent, "Checkpoint: of '",
                 part.slice.name,
                 "' this process has a part only; training::CheckpointFolder saves and loads what "
                 "is spread over ranks");
    if (names.insert(part.slice.name).second) arrays.emplace_back(part.slice.name, part.local);
  }
  return arrays;
}

void load_whole_arrays(const Checkpoint::Spread& spread,
                       const std::map<std::string, Array>& arrays) {
  std::map<std::string, Array> values = arrays;
  for (const TensorPart& part : spread.parts()) {
    const auto found = arrays.find(part.slice.name);
    CATENA_CHECK(IoError, found != arrays.end(), "missing: ", part.slice.name, " ",
                 part.slice.shape);
    const Array& saved = found->second;
    CATENA_CHECK(IoError,
                 saved.shape() == part.local.shape() && saved.dtype() == part.local.dtype(), "'",
                 part.slice.name, "' is ", saved.dtype(), " of shape ", saved.shape(),
                 ", expected ", part.local.dtype(), " of shape ", part.local.shape());
    part.local.assign(saved.to(part.local.device()));
    values.erase(part.slice.name);
  }
  if (spread.load_values) spread.load_values(values);
}

// Why these are not the numbers of the optimizer, as Optimizer::load_common_state says it.
void check_values_of(Optimizer& optimizer,
                     const std::map<std::string, Checkpoint::SavedForm>& saved) {
  optimizers::StateForms expected, given;
  for (const auto& [name, array] : optimizer.common_state())
    expected[name] = {array.dtype(), array.shape()};
  for (const auto& [name, form] : without_parts(optimizer, saved))
    given[name] = {form.dtype, form.shape};
  const std::string problems = optimizers::state_problems(expected, given);
  CATENA_CHECK(IoError, problems.empty(), "these are not the numbers of this optimizer:", problems);
}

}  // namespace

Checkpoint::Spread Checkpoint::spread_of(Optimizer& optimizer, const SavedPath& saved_path) {
  return {.parts = [&optimizer, saved_path] { return parts_of(optimizer, saved_path); },
          .values = [&optimizer] { return optimizer.common_state(); },
          .load_values =
              [&optimizer](const std::map<std::string, Array>& values) {
                optimizer.load_common_state(without_parts(optimizer, values));
              },
          .check_values =
              [&optimizer](const std::map<std::string, SavedForm>& saved) {
                check_values_of(optimizer, saved);
              }};
}

namespace {

// `what`: "a parameter" or "a persistent array".
template <class Handle>
void place_slice(const char* what, const Handle& handle, const Checkpoint::AxisSlice& slice) {
  const auto [axis, index, count] = slice;
  CATENA_CHECK(ValueError, handle.defined() && axis < handle.shape().size(),
               "Checkpoint::declare_slice: axis ", axis, " of ", what, " ",
               handle.defined() ? message("of shape ", handle.shape()) : "that is undefined",
               ", expected one of its axes");
  CATENA_CHECK(ValueError, index >= 0 && index < count, "Checkpoint::declare_slice: slice ", index,
               " of ", count, ", expected one of 0 to count - 1");
  const int64_t own = handle.shape()[axis];
  Placement placement = cut_along(handle.shape(), int(axis), index * own, count * own,
                                  {.index = int(index), .count = int(count)});
  if (const Placement* before = handle.placement()) {
    placement.tied_to = before->tied_to;
    for (const Placement::Over& over : before->over)
      if (over.kind == Placement::Kind::kHeld) placement.over.push_back(over);
  }
  handle.place(placement);
}

}  // namespace

void Checkpoint::declare_slice(const Parameter& parameter, const AxisSlice& slice) {
  place_slice("a parameter", parameter, slice);
}

void Checkpoint::declare_slice(const Persistent& persistent, const AxisSlice& slice) {
  place_slice("a persistent array", persistent, slice);
}

void Checkpoint::add(const std::string& name, Parameterized& model) {
  add_entry({name,
             [&model] { return serializers::to_arrays(model); },
             [&model](const std::map<std::string, Array>& arrays) {
               serializers::from_arrays(arrays, model, "the checkpoint");
             },
             {.parts = [&model] { return parts_of(model); }, .model = &model}});
}

void Checkpoint::add(const std::string& name, Optimizer& optimizer) {
  add_entry(
      {name, [&optimizer] { return optimizer.state(); },
       [&optimizer](const std::map<std::string, Array>& arrays) { optimizer.load_state(arrays); },
       spread_of(optimizer)});
}

void Checkpoint::add(const std::string& name, Spread spread) {
  CATENA_CHECK(ValueError, spread.parts != nullptr, "Checkpoint: '", name, "' has no parts");
  const auto save = [spread] { return whole_arrays(spread); };
  const auto load = [spread](const std::map<std::string, Array>& arrays) {
    load_whole_arrays(spread, arrays);
  };
  add_entry({name, save, load, std::move(spread)});
}

void Checkpoint::add(const std::string& name, RandomState& state) {
  add(
      name, [&state] { return state.state(); },
      [&state](const RandomState::State& loaded) { state.set_state(loaded); });
}

void Checkpoint::add(const std::string& name, std::string& text) {
  add_value(
      name,
      [&text] {
        return array_of(reinterpret_cast<const uint8_t*>(text.data()), {int64_t(text.size())});
      },
      [&text](const Array& saved) {
        text.assign(static_cast<const char*>(saved.raw_data()), size_t(saved.nbytes()));
      },
      [name](const SavedForm& saved) { check_value(name, saved, form_of<uint8_t>(), true); });
}

void Checkpoint::add(const std::string& name, Array& array) {
  add_entry({name,
             [&array] {
               return NamedArrays{{"", array}};
             },
             [name, &array](const std::map<std::string, Array>& arrays) {
               const Array& saved = single(name, arrays);
               check_array(name, form_of_array(saved), array);
               array.assign(saved.to(array.device()));
             },
             {},
             [name, &array](const std::map<std::string, SavedForm>& saved) {
               check_array(name, single(name, saved), array);
             }});
}

void Checkpoint::add(const std::string& name, std::map<std::string, Array>& arrays) {
  add_entry({name, [&arrays] { return NamedArrays(arrays.begin(), arrays.end()); },
             [&arrays](const std::map<std::string, Array>& saved) { arrays = saved; }});
}

void Checkpoint::add_value(const std::string& name, std::function<Array()> get,
                           std::function<void(const Array&)> set,
                           std::function<void(const SavedForm&)> check) {
  add_entry({name,
             [get] {
               return NamedArrays{{"", get()}};
             },
             [name, set, check](const std::map<std::string, Array>& arrays) {
               const Array& saved = single(name, arrays);
               check(form_of_array(saved));
               set(saved.contiguous());
             },
             {},
             [name, check](const std::map<std::string, SavedForm>& saved) {
               check(single(name, saved));
             }});
}

// Elements of the dtype, or, of what is not a number, its bytes as a 1-d array.
Array Checkpoint::saved_form(const void* values, const Shape& shape, const Form& form) {
  if (form.is_number) return array_from_bytes(values, shape, form.dtype, cpu(0));
  const auto bytes = element_count(shape) * static_cast<int64_t>(form.bytes);
  return array_from_bytes(values, {bytes}, Dtype::kUInt8, cpu(0));
}

void Checkpoint::check_value(const std::string& name, const SavedForm& saved, const Form& form,
                             bool several) {
  const auto bytes = static_cast<size_t>(element_count(saved.shape)) * itemsize(saved.dtype);
  const bool is_bytes = saved.dtype == Dtype::kUInt8 && saved.shape.size() == 1;  // old numbers too
  CATENA_CHECK(IoError, is_bytes || (form.is_number && saved.dtype == form.dtype), "entry '", name,
               "' is ", saved.dtype, " of shape ", saved.shape, ", expected ",
               form.is_number ? message(form.dtype, several ? " values" : "")
                              : std::string("bytes (uint8)"));
  CATENA_CHECK(IoError, several ? bytes % form.bytes == 0 : bytes == form.bytes, "entry '", name,
               "' has ", bytes, " bytes, expected ", several ? "a multiple of " : "", form.bytes);
}

NamedArrays Checkpoint::to_arrays() const {
  NamedArrays all;
  for (const Entry& entry : entries_) {
    const NamedArrays arrays = entry.save();
    if (arrays.empty())
      all.emplace_back(entry.name + "/" + kEmpty, Array::uninitialized({0}, Dtype::kUInt8, cpu(0)));
    for (const auto& [name, array] : arrays)
      all.emplace_back(name.empty() ? entry.name : entry.name + "/" + name, array);
  }
  return all;
}

void Checkpoint::save(const std::string& path) const { save_npz(path, to_arrays()); }

void Checkpoint::load(const std::string& path) const {
  load(path, [](const std::function<NamedArrays()>& read) { return read(); });
}

void Checkpoint::load(const std::string& path, const Share& share) const {
  from_arrays(share([&path] {
                const auto arrays = load_npz(path);
                return NamedArrays(arrays.begin(), arrays.end());
              }),
              path);
}

void Checkpoint::from_arrays(const NamedArrays& saved, const std::string& source) const {
  std::map<std::string, std::map<std::string, Array>> groups;
  for (const auto& [name, array] : saved) {
    const size_t slash = name.find('/');
    auto& group = groups[name.substr(0, slash)];
    const std::string below = slash == std::string::npos ? "" : name.substr(slash + 1);
    if (below != kEmpty) group[below] = array;
  }
  std::string problems;
  for (const Entry& entry : entries_) {
    if (!groups.count(entry.name)) problems += "\n  missing: " + entry.name;
  }
  for (const auto& [name, arrays] : groups) {
    const bool known = std::any_of(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.name == name; });
    if (!known) problems += "\n  unknown: " + name;
  }
  CATENA_CHECK(IoError, problems.empty(), source, ": not a checkpoint of this program:", problems);
  for (const Entry& entry : entries_) {
    try {
      entry.load(groups.at(entry.name));
    } catch (const IoError& e) {
      fail<IoError>(source, ", ", text_of(entry.name, e));
    } catch (const ValueError& e) {
      fail<ValueError>(source, ", ", text_of(entry.name, e));
    }
  }
}

}  // namespace catena::serializers
