#include "training/checkpoint_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "catena/autograd/placement.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/training/checkpoint_folder.h"

namespace catena::training {
namespace {

using serializers::Checkpoint;
using serializers::SliceIndex;
using serializers::SliceReader;
using serializers::TensorPart;
using serializers::TensorParts;
using serializers::TensorSlice;

using SavedForms = std::map<std::string, Checkpoint::SavedForm>;

// Entries -----------------------------------------------------------------------------------------

std::string full_name(const std::string& entry, const std::string& name) {
  std::string full = name.empty() ? entry : entry + "/" + name;
  serializers::require_index_name(full);
  return full;
}

TensorParts spread_parts(const Checkpoint::Entry& entry) {
  TensorParts parts = entry.spread.parts();
  for (TensorPart& part : parts) part.slice.name = full_name(entry.name, part.slice.name);
  return parts;
}

void add_values(const std::string& entry, const NamedArrays& values, TensorParts& parts) {
  for (const auto& [name, array] : values) {
    parts.push_back(serializers::part_of(full_name(entry, name), array));
    parts.back().slice.is_value = true;
    parts.back().slice.is_equal = false;
  }
}

// Values by their names below the entry's.
std::map<std::string, Array> values_of(const std::string& entry, const SliceReader& reader) {
  std::map<std::string, Array> values;
  for (const auto& [name, records] : reader.index().tensors) {
    if (!records.front().slice.is_value) continue;
    if (name == entry)
      values[""] = reader.read_whole(name);
    else if (name.starts_with(entry + "/"))
      values[name.substr(entry.size() + 1)] = reader.read_whole(name);
  }
  return values;
}

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TensorParts parts_to_save(const Checkpoint& state, bool is_first) {
  TensorParts parts;
  for (const Checkpoint::Entry& entry : state.entries()) {
    if (entry.spread.parts) {
      for (TensorPart& part : spread_parts(entry)) parts.push_back(std::move(part));
      if (entry.spread.values) add_values(entry.name, entry.spread.values(), parts);
    } else if (is_first) {
      add_values(entry.name, entry.save(), parts);
    }
  }
  return parts;
}

SliceCounts slices_over(const Checkpoint& state) {
  SliceCounts counts;
  const auto count = [](const auto& named, int64_t& most) {
    for (const auto& [path, array] : named)
      if (const Placement* placement = array.placement()) most = std::max(most, placement->boxes());
  };
  for (const Checkpoint::Entry& entry : state.entries()) {
    if (entry.spread.model == nullptr) continue;
    count(entry.spread.model->named_parameters(), counts.parameters);
    count(entry.spread.model->named_persistents(), counts.persistents);
  }
  return counts;
}

std::vector<TensorSlice> slices_of(const TensorParts& parts) {
  std::vector<TensorSlice> slices;
  for (const TensorPart& part : parts) slices.push_back(part.slice);
  return slices;
}

std::vector<std::string> entries_of(const Checkpoint& state) {
  std::vector<std::string> names;
  for (const Checkpoint::Entry& entry : state.entries()) names.push_back(entry.name);
  return names;
}

// Loading -----------------------------------------------------------------------------------------

PartsToLoad::PartsToLoad(const Checkpoint& state) {
  for (const Checkpoint::Entry& entry : state.entries())
    entries_.push_back({&entry, entry.spread.parts ? spread_parts(entry) : TensorParts()});
}

std::vector<std::string> PartsToLoad::names() const {
  std::vector<std::string> names;
  for (const Part& entry : entries_)
    for (const TensorPart& part : entry.parts) names.push_back(part.slice.name);
  return names;
}

namespace {

// Of the values of an entry, by their names below it.
SavedForms forms_of(const std::string& entry, const SliceIndex& index) {
  SavedForms forms;
  for (const auto& [name, records] : index.tensors) {
    const TensorSlice& saved = records.front().slice;
    if (!saved.is_value || (name != entry && !name.starts_with(entry + "/"))) continue;
    forms.emplace(name == entry ? "" : name.substr(entry.size() + 1),
                  Checkpoint::SavedForm{saved.dtype, saved.shape});
  }
  return forms;
}

// A line that says why the values of an entry do not fit; empty if they do.
std::string problem_of_values(const Checkpoint::Entry& entry, const SliceIndex& index) {
  const Checkpoint::Check& check = entry.spread.parts ? entry.spread.check_values : entry.check;
  if (!check) return "";
  try {
    check(forms_of(entry.name, index));
  } catch (const Error& error) {
    const std::string text = error.what(), named = message("entry '", entry.name, "'");
    return "\n  " + (text.starts_with(named) ? text : named + ": " + text);
  }
  return "";
}

}  // namespace

std::string PartsToLoad::problems(const SliceIndex& index) const {
  std::string problems;
  for (const Part& entry : entries_) {
    if (!is_among(entry.entry->name, index.entries)) {
      problems += message("\n  missing: ", entry.entry->name);
      continue;
    }
    problems += problem_of_values(*entry.entry, index);
    for (const TensorPart& part : entry.parts) {
      const TensorSlice& own = part.slice;
      const auto found = index.tensors.find(own.name);
      if (found == index.tensors.end()) {
        problems += message("\n  missing: ", own.name, " ", own.shape, " ", own.dtype);
        continue;
      }
      const TensorSlice& saved = found->second.front().slice;
      if (saved.shape != own.shape || saved.dtype != own.dtype)
        problems += message("\n  ", own.name, ": expected ", own.shape, " ", own.dtype, ", got ",
                            saved.shape, " ", saved.dtype);
    }
  }
  return problems;
}

void PartsToLoad::load(const SliceReader& reader) const {
  for (const Part& one : entries_) {
    const Checkpoint::Entry& entry = *one.entry;
    for (const TensorPart& part : one.parts) part.assign(reader.read(part.slice));
    const auto values = values_of(entry.name, reader);
    if (!entry.spread.parts)
      entry.load(values);
    else if (entry.spread.load_values)
      entry.spread.load_values(values);
  }
}

std::string unknown_in(const SliceIndex& index, const std::vector<std::string>& entries,
                       const std::vector<std::string>& names) {
  std::string problems;
  for (const std::string& entry : index.entries)
    if (!is_among(entry, entries)) problems += message("\n  unknown: ", entry);
  const std::set<std::string> known(names.begin(), names.end());
  for (const auto& [name, records] : index.tensors) {
    const TensorSlice& saved = records.front().slice;
    if (saved.is_value || known.contains(name)) continue;
    if (is_among(name.substr(0, name.find('/')), entries))
      problems += message("\n  unknown: ", name, " ", saved.shape);
  }
  return problems;
}

// Pipelines ---------------------------------------------------------------------------------------

namespace {

using parallel::pipeline::Pipeline;
// The path under which files have a weight: that of the first of tied copies.
std::string saved_path(const std::string& path, const Parameter& parameter) {
  const Placement* placement = parameter.placement();
  return placement == nullptr || placement->tied_to.empty() ? path : placement->tied_to;
}

template <class Handle>
bool is_here(const Handle& handle) {
  return handle.placement() == nullptr || !handle.placement()->is_elsewhere();
}

TensorParts model_parts(const Pipeline& pipeline) {
  TensorParts parts;
  std::set<const ParameterState*> seen;
  for (const auto& [path, parameter] : pipeline.model().named_parameters())
    if (is_here(parameter) && seen.insert(parameter.state()).second)
      parts.push_back(serializers::part_of(saved_path(path, parameter), parameter));
  for (const auto& [path, persistent] : pipeline.model().named_persistents())
    if (is_here(persistent)) parts.push_back(serializers::part_of(path, persistent));
  return parts;
}

TensorParts optimizer_parts(Pipeline& pipeline) {
  TensorParts parts;
  for (Optimizer* optimizer : pipeline.optimizers())
    for (TensorPart& part : Checkpoint::spread_of(*optimizer, saved_path).parts())
      parts.push_back(std::move(part));
  return parts;
}

}  // namespace

void add_pipeline(Checkpoint& checkpoint, Pipeline& pipeline) {
  checkpoint.add("model", Checkpoint::Spread{.parts = [&pipeline] { return model_parts(pipeline); },
                                             .values = {},
                                             .load_values = {},
                                             .model = &pipeline.model()});
  checkpoint.add("optimizer",
                 Checkpoint::Spread{.parts = [&pipeline] { return optimizer_parts(pipeline); },
                                    .values =
                                        [&pipeline] {
                                          const auto own = pipeline.optimizers();
                                          return own.empty()
                                                     ? NamedArrays()
                                                     : Checkpoint::spread_of(*own[0]).values();
                                        },
                                    .load_values =
                                        [&pipeline](const std::map<std::string, Array>& values) {
                                          for (Optimizer* each : pipeline.optimizers())
                                            Checkpoint::spread_of(*each).load_values(values);
                                        },
                                    .check_values =
                                        [&pipeline](const SavedForms& saved) {
                                          for (Optimizer* each : pipeline.optimizers())
                                            Checkpoint::spread_of(*each).check_values(saved);
                                        }});
  checkpoint.add(
      "pipeline",
      [&pipeline] {
        return PipelineState{pipeline.steps(), pipeline.seed()};
      },
      [&pipeline](const PipelineState& state) {
        pipeline.set_steps(state.steps);
        pipeline.set_seed(state.seed);
      });
}

}  // namespace catena::training
