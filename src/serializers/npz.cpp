#include "catena/serializers/npz.h"

#include "catena/array/io.h"

namespace catena::serializers {

NamedArrays to_arrays(const Parameterized& model) {
  NamedArrays arrays;
  for (const auto& [path, parameter] : model.named_parameters())
    arrays.emplace_back(path, parameter.data());
  CATENA_CHECK(ValueError, !arrays.empty(),
               "save: the model has no parameters; list its layers with CATENA_FUNCTIONS, or add "
               "them to the FunctionBag");
  warn_about_forgotten_parameters("save");
  return arrays;
}

void from_arrays(const std::map<std::string, Array>& arrays, Parameterized& model,
                 const std::string& source, bool strict) {
  const auto named = model.named_parameters();
  std::string problems;
  std::map<std::string, Array> unknown = arrays;
  std::vector<std::pair<Parameter, Array>> pairs;
  for (const auto& [path, parameter] : named) {
    const auto found = arrays.find(path);
    unknown.erase(path);
    if (found == arrays.end()) {
      problems += message("\n  missing: ", path, " ", parameter.shape());
    } else if (found->second.shape() != parameter.shape() || !is_float(found->second.dtype())) {
      problems += message("\n  ", path, ": expected ", parameter.shape(), " ", parameter.dtype(),
                          ", got ", found->second.shape(), " ", found->second.dtype());
    } else {
      pairs.emplace_back(parameter, found->second);
    }
  }
  for (const auto& [name, array] : unknown)
    problems += message("\n  unknown: ", name, " ", array.shape());
  CATENA_CHECK(IoError, !strict || problems.empty(), "load: ", source,
               " does not fit the model:", problems);
  for (const auto& [parameter, array] : pairs) parameter.data().assign(array);
}

void save(const std::string& path, const Parameterized& model, bool compressed) {
  save_npz(path, to_arrays(model), compressed);
}

void load(const std::string& path, Parameterized& model, bool strict) {
  from_arrays(load_npz(path), model, path, strict);
}

namespace {

void require_setup(const char* what, const std::string& path, const Optimizer& optimizer) {
  CATENA_CHECK(ValueError, optimizer.is_set_up(), what, " '", path,
               "': the optimizer has no parameters yet, so there are no states to ", what,
               "; call its setup(model) first");
}

}  // namespace

void save(const std::string& path, Optimizer& optimizer, bool compressed) {
  require_setup("save", path, optimizer);
  save_npz(path, optimizer.state(), compressed);
}

void load(const std::string& path, Optimizer& optimizer) {
  require_setup("load", path, optimizer);
  const std::map<std::string, Array> arrays = load_npz(path);
  try {
    optimizer.load_state(arrays);
  } catch (const IoError& e) {
    fail<IoError>(path, ": ", e.what());
  }
}

}  // namespace catena::serializers
