#include "catena/serializers/npz.h"

#include <set>

#include "catena/array/io.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena::serializers {

NamedArrays to_arrays(const Parameterized& model) {
  NamedArrays arrays;
  std::set<const ParameterState*> seen;  // a tied parameter once, by the first of its names
  for (const auto& [path, parameter] : model.named_parameters())
    if (seen.insert(parameter.state()).second) arrays.emplace_back(path, parameter.data());
  for (const auto& [path, persistent] : model.named_persistents())
    arrays.emplace_back(path, persistent.data());
  CATENA_CHECK(ValueError, !arrays.empty(),
               "save: the model has no parameters; list its layers with CATENA_FUNCTIONS, or add "
               "them to the FunctionBag");
  std::set<std::string> names;
  for (const auto& [path, array] : arrays)
    CATENA_CHECK(ValueError, names.insert(path).second, "save: the model has '", path, "' twice");
  warn_about_forgotten_parameters("save");
  return arrays;
}

namespace {

// How many finite values a narrower dtype turns into infinities.
int64_t overflows(const Array& saved, Dtype dtype) {
  if (!is_float(saved.dtype()) || can_cast_safely(saved.dtype(), dtype)) return 0;
  const Array host = saved.to_cpu();
  return sum(logical_and(isfinite(host), isinf(host.astype(dtype)))).item<int64_t>();
}

// A checkpoint has the model's arrays below a name: "model/l1/W".
std::string advice_on_checkpoints(const std::map<std::string, Array>& arrays,
                                  const Parameterized& model) {
  const auto parameters = model.named_parameters();
  if (parameters.empty()) return "";
  const std::string end = "/" + parameters.front().first;
  for (const auto& [name, array] : arrays) {
    if (!name.ends_with(end)) continue;
    return message("\nThe file has '", name,
                   "': it may be a checkpoint, which serializers::Checkpoint loads");
  }
  return "";
}

// The name by which each parameter is taken: of tied ones the first that there is.
std::map<const ParameterState*, std::string> names_in(const std::map<std::string, Array>& arrays,
                                                      const Parameterized& model) {
  std::map<const ParameterState*, std::string> names;
  for (const auto& [path, parameter] : model.named_parameters()) {
    std::string& name = names.try_emplace(parameter.state(), path).first->second;
    if (!arrays.contains(name) && arrays.contains(path)) name = path;
  }
  return names;
}

}  // namespace

void from_arrays(const std::map<std::string, Array>& arrays, Parameterized& model,
                 const std::string& source, bool strict) {
  std::string problems;
  std::map<std::string, Array> unknown = arrays;
  std::vector<std::pair<Array, Array>> pairs;
  bool older = true;  // nothing but persistent arrays is missing
  const auto take = [&](const std::string& path, const Array& own) {
    const auto found = arrays.find(path);
    unknown.erase(path);
    if (found == arrays.end()) {
      problems += message("\n  missing: ", path, " ", own.shape());
      return;
    }
    const Array& saved = found->second;
    const bool converts = is_float(saved.dtype()) && is_float(own.dtype());
    const bool fits = saved.shape() == own.shape() && (saved.dtype() == own.dtype() || converts);
    if (const int64_t lost = fits ? overflows(saved, own.dtype()) : 0) {
      problems += message("\n  ", path, ": ", lost, " finite values of ", saved.dtype(),
                          " are infinite in ", own.dtype(), "; load it into a model of ",
                          saved.dtype(), " or bfloat16");
      older = false;
      return;
    }
    if (fits) {
      pairs.emplace_back(own, saved);
      return;
    }
    problems += message("\n  ", path, ": expected ", own.shape(), " ", own.dtype(), ", got ",
                        saved.shape(), " ", saved.dtype());
    older = false;
  };
  const auto names = names_in(arrays, model);
  for (const auto& [path, parameter] : model.named_parameters()) {
    const std::string& name = names.at(parameter.state());
    if (name == path) {
      take(path, parameter.data());
    } else if (const auto again = arrays.find(path); again != arrays.end()) {
      unknown.erase(path);
      if (array_equal(again->second, arrays.at(name), true)) continue;
      problems +=
          message("\n  ", path, ": other values than '", name, "', to which the model ties it");
      older = false;
    }
  }
  older = older && problems.empty();
  for (const auto& [path, persistent] : model.named_persistents()) take(path, persistent.data());
  older = older && unknown.empty();
  for (const auto& [name, array] : unknown)
    problems += message("\n  unknown: ", name, " ", array.shape());
  CATENA_CHECK(
      IoError, problems.empty() || (!strict && !pairs.empty()), "load: ", source,
      strict ? " does not fit the model:" : " has nothing that fits the model:", problems,
      older ? "\nThe parameters are all there. If the file is older than these persistent arrays, "
              "serializers::load of a model file with strict = false keeps the model's own"
            : "",
      pairs.empty() ? advice_on_checkpoints(arrays, model) : "");
  for (const auto& [own, saved] : pairs) own.assign(saved);
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
