#include "training/checkpoint_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/linear.h"
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

// Tensor-parallel layers --------------------------------------------------------------------------

using RankSlice = Checkpoint::AxisSlice;

// Which slices of whole tensors this process has.
struct RankSlices {
  std::map<const ParameterState*, RankSlice> parameters;
  std::vector<std::pair<Persistent, RankSlice>> persistents;

  // Null: the tensor is whole.
  const RankSlice* of(const TensorPart& part) const {
    if (part.persistent.defined()) return of(part.persistent);
    if (!part.parameter.defined()) return nullptr;
    const auto found = parameters.find(part.parameter.state());
    return found == parameters.end() ? nullptr : &found->second;
  }
  // As it was declared last.
  const RankSlice* of(const Persistent& persistent) const {
    const auto found =
        std::find_if(persistents.rbegin(), persistents.rend(),
                     [&](const auto& declared) { return declared.first == persistent; });
    return found == persistents.rend() ? nullptr : &found->second;
  }
};

template <class Layer>
void note_slice(const Layer& layer, const Parameter& parameter, size_t axis, RankSlices& slices) {
  if (parameter.defined())
    slices.parameters[parameter.state()] = {axis, layer.comm().rank(), layer.comm().size()};
}

void add_rank_slices(Parameterized& part, RankSlices& slices) {
  if (const auto* column = dynamic_cast<parallel::ColumnParallelLinear*>(&part)) {
    note_slice(*column, column->W, 0, slices);
    note_slice(*column, column->b, 0, slices);
  } else if (const auto* row = dynamic_cast<parallel::RowParallelLinear*>(&part)) {
    note_slice(*row, row->W, 1, slices);
  } else if (const auto* ids = dynamic_cast<parallel::VocabParallelEmbedID*>(&part)) {
    note_slice(*ids, ids->W, 0, slices);
  }
  part.visit_functions(
      [&](const std::string&, Parameterized& inner) { add_rank_slices(inner, slices); });
}

RankSlices rank_slices_of(const Checkpoint& state) {
  RankSlices slices;
  for (const Checkpoint::Entry& entry : state.entries())
    if (entry.spread.model != nullptr) add_rank_slices(*entry.spread.model, slices);
  for (const auto& [parameter, persistent, slice] : state.declared_slices()) {
    if (parameter.defined())
      slices.parameters[parameter.state()] = slice;
    else
      slices.persistents.emplace_back(persistent, slice);
  }
  return slices;
}

// Makes a tensor of this process a slice of the whole layer's; states have the axes of their
// parameter.
void place_in_whole(TensorSlice& slice, const RankSlice& of_rank) {
  if (slice.shape.size() <= of_rank.axis) return;
  slice.begin[of_rank.axis] = of_rank.index * slice.shape[of_rank.axis];
  slice.shape[of_rank.axis] *= of_rank.count;
}

// Entries -----------------------------------------------------------------------------------------

std::string full_name(const std::string& entry, const std::string& name) {
  std::string full = name.empty() ? entry : entry + "/" + name;
  serializers::require_index_name(full);
  return full;
}

TensorParts spread_parts(const Checkpoint::Entry& entry, const RankSlices& slices) {
  TensorParts parts = entry.spread.parts();
  for (TensorPart& part : parts) {
    part.slice.name = full_name(entry.name, part.slice.name);
    if (const RankSlice* slice = slices.of(part)) place_in_whole(part.slice, *slice);
  }
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
  const RankSlices slices = rank_slices_of(state);
  TensorParts parts;
  for (const Checkpoint::Entry& entry : state.entries()) {
    if (entry.spread.parts) {
      for (TensorPart& part : spread_parts(entry, slices)) parts.push_back(std::move(part));
      if (entry.spread.values) add_values(entry.name, entry.spread.values(), parts);
    } else if (is_first) {
      add_values(entry.name, entry.save(), parts);
    }
  }
  return parts;
}

SliceCounts slices_over(const Checkpoint& state) {
  const RankSlices slices = rank_slices_of(state);
  SliceCounts counts;
  for (const auto& [parameter, slice] : slices.parameters)
    counts.parameters = std::max(counts.parameters, slice.count);
  for (const auto& [persistent, slice] : slices.persistents)
    counts.persistents = std::max(counts.persistents, slice.count);
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
  const RankSlices slices = rank_slices_of(state);
  for (const Checkpoint::Entry& entry : state.entries())
    entries_.push_back({&entry, entry.spread.parts ? spread_parts(entry, slices) : TensorParts()});
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
using parallel::pipeline::Sequence;

// Names in a pipeline of which this process has some stages.
class PipelineNames {
 public:
  explicit PipelineNames(const Pipeline& pipeline) : pipeline_(pipeline) {
    Sequence& model = pipeline.model();
    const auto& ties = model.untie();
    for (const auto& [path, parameter] : model.named_parameters()) {
      own_.try_emplace(parameter.state(), path);
      units_with_parameters_.insert(unit_of(path));
    }
    first_ = own_;
    for (const Sequence::Tie& tie : ties)
      for (const auto& [unit, copy] : tie) first_[copy.state()] = own_.at(tie[0].second.state());
    for (int s = 0; s < pipeline.schedule().stages(); ++s) {
      if (!pipeline.has_stage(s)) continue;
      const std::set<std::string> units = units_of(s);
      here_.insert(units.begin(), units.end());
    }
  }

  // Whether what has this path is in a stage of this process.
  bool is_here(const std::string& path) const { return here_.contains(unit_of(path)); }
  bool has_parameters(int stage) const {
    const std::set<std::string> units = units_of(stage);
    return std::any_of(units.begin(), units.end(), [this](const std::string& unit) {
      return units_with_parameters_.contains(unit);
    });
  }
  // The path of a parameter, and that of the one it was copied from where units share it.
  const std::string& own(const Parameter& parameter) const { return own_.at(parameter.state()); }
  const std::string& first(const Parameter& parameter) const {
    return first_.at(parameter.state());
  }

 private:
  using Paths = std::map<const ParameterState*, std::string>;
  static std::string unit_of(const std::string& path) { return path.substr(0, path.find('/')); }
  std::set<std::string> units_of(int stage) const {
    std::set<std::string> units;
    const int end = pipeline_.cut().end(stage, pipeline_.model().size());
    for (int unit = pipeline_.cut().first[size_t(stage)]; unit < end; ++unit)
      units.insert(pipeline_.model().name(size_t(unit)));
    return units;
  }

  const Pipeline& pipeline_;
  Paths own_, first_;
  std::set<std::string> here_, units_with_parameters_;
};

TensorParts model_parts(const Pipeline& pipeline) {
  TensorParts parts;
  const PipelineNames names(pipeline);
  std::set<const ParameterState*> seen;
  for (const auto& [path, parameter] : pipeline.model().named_parameters())
    if (names.is_here(path) && seen.insert(parameter.state()).second)
      parts.push_back(serializers::part_of(names.first(parameter), parameter.data(), parameter));
  for (const auto& [path, persistent] : pipeline.model().named_persistents())
    if (names.is_here(path)) parts.push_back(serializers::part_of(path, persistent));
  return parts;
}

std::vector<Optimizer*> optimizers_of(Pipeline& pipeline) {
  const PipelineNames names(pipeline);
  std::vector<Optimizer*> optimizers;
  for (int s = 0; s < pipeline.schedule().stages(); ++s)
    if (pipeline.has_stage(s) && names.has_parameters(s))
      optimizers.push_back(&pipeline.optimizer(s));
  return optimizers;
}

// "m/9/W" of a copy of "2/W" is "m/2/W".
std::string state_name(const std::string& name, const std::string& own, const std::string& first) {
  const std::string end = "/" + own;
  return name.ends_with(end) ? name.substr(0, name.size() - own.size()) + first : name;
}

TensorParts optimizer_parts(Pipeline& pipeline) {
  TensorParts parts;
  const PipelineNames names(pipeline);
  for (Optimizer* optimizer : optimizers_of(pipeline))
    for (TensorPart& part : Checkpoint::spread_of(*optimizer).parts()) {
      part.slice.name =
          state_name(part.slice.name, names.own(part.parameter), names.first(part.parameter));
      parts.push_back(std::move(part));
    }
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
                                          const auto own = optimizers_of(pipeline);
                                          return own.empty()
                                                     ? NamedArrays()
                                                     : Checkpoint::spread_of(*own[0]).values();
                                        },
                                    .load_values =
                                        [&pipeline](const std::map<std::string, Array>& values) {
                                          for (Optimizer* each : optimizers_of(pipeline))
                                            Checkpoint::spread_of(*each).load_values(values);
                                        },
                                    .check_values =
                                        [&pipeline](const SavedForms& saved) {
                                          for (Optimizer* each : optimizers_of(pipeline))
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
