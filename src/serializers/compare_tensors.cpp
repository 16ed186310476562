// Two lists of tensors side by side, and weights that go into a model only where all of them fit.
#include <algorithm>
#include <map>

#include "catena/core/printable.h"
#include "catena/serializers/name_map.h"
#include "catena/serializers/npz.h"

namespace catena::serializers {
namespace {

constexpr size_t kShownRows = 60;

// A row of the table: a tensor of either side, or of both, and what is wrong with it.
struct Row {
  const TensorInfo *left = nullptr, *right = nullptr;
  std::string mismatch;  // "shape", "" where they fit
};

std::string described(const TensorInfo& tensor) {
  return message(tensor.shape, " ",
                 tensor.dtype ? name(*tensor.dtype) : printable_line(tensor.type));
}

std::string cell(const TensorInfo* tensor) {
  return tensor ? printable_line(tensor->name) + " " + described(*tensor) : "-";
}

bool dtypes_fit(const TensorInfo& left, const TensorInfo& right, bool converts_floats) {
  if (!left.dtype || !right.dtype) return !left.dtype && !right.dtype && left.type == right.type;
  return *left.dtype == *right.dtype ||
         (converts_floats && is_float(*left.dtype) && is_float(*right.dtype));
}

std::set<std::string> names_of(const std::vector<TensorInfo>& tensors) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : tensors) names.insert(tensor.name);
  return names;
}

// The rows of a comparison: all of the left side in order, then what the right has alone.
std::vector<Row> make_rows(const std::vector<TensorInfo>& left,
                           const std::vector<TensorInfo>& right, const ComparisonOptions& options) {
  const std::set<std::string> targets = names_of(left);
  std::unordered_map<std::string, const TensorInfo*> by_name;
  std::vector<std::pair<std::string, const TensorInfo*>> renamed;
  for (const TensorInfo& tensor : right) {
    const std::optional<std::string> now = options.names(tensor.name, targets);
    if (!now) continue;
    const auto [known, is_new] = by_name.emplace(*now, &tensor);
    CATENA_CHECK(ValueError, is_new, "NameMap: '", known->second->name, "' and '", tensor.name,
                 "' both become '", *now, "'; leave one out, or give it another name");
    renamed.emplace_back(*now, &tensor);
  }
  std::vector<Row> rows;
  for (const TensorInfo& tensor : left) {
    const auto found = by_name.find(tensor.name);
    Row row{&tensor, found == by_name.end() ? nullptr : found->second, ""};
    if (!row.right) {
      row.mismatch = options.names.keeps(tensor.name) ? "" : "missing";
    } else if (row.right->shape != tensor.shape) {
      row.mismatch = "shape";
    } else if (!dtypes_fit(tensor, *row.right, options.converts_floats)) {
      row.mismatch = "dtype";
    }
    rows.push_back(row);
  }
  for (const auto& [name, tensor] : renamed)
    if (!targets.count(name)) rows.push_back({nullptr, tensor, "unknown"});
  return rows;
}

std::string sentence(const Row& row, const ComparisonOptions& options) {
  const auto side = [](const TensorInfo& tensor, const std::string& where) {
    return message(described(tensor), " in ", where);
  };
  if (!row.right)
    return message("'", row.left->name, "' is ", side(*row.left, options.left), ", missing in ",
                   options.right);
  if (!row.left)
    return message("'", row.right->name, "' is ", side(*row.right, options.right), ", unknown to ",
                   options.left);
  const bool renamed = row.left->name != row.right->name;
  return message("'", row.left->name, "' is ", side(*row.left, options.left), ", ",
                 renamed ? message("'", row.right->name, "' ") : std::string(),
                 side(*row.right, options.right));
}

std::string table_of(const std::vector<Row>& rows, const ComparisonOptions& options) {
  const bool whole = rows.size() <= kShownRows;
  std::vector<const Row*> shown;
  for (const Row& row : rows)
    if (shown.size() < kShownRows && (whole || !row.mismatch.empty())) shown.push_back(&row);
  size_t width = options.left.size();
  for (const Row* row : shown) width = std::max(width, cell(row->left).size());
  const auto padded = [](std::string text, size_t size) {
    text.resize(std::max(text.size(), size), ' ');
    return text;
  };
  std::string table = "  " + padded(options.left, width) + "  " + options.right;
  for (const Row* row : shown) {
    table += "\n  " + padded(cell(row->left), width) + "  " + cell(row->right);
    if (!row->mismatch.empty()) table += "  <- " + row->mismatch;
    if (row->mismatch.empty() && !row->right) table += "  (kept)";
  }
  if (shown.size() == rows.size()) return table;
  const auto fitting = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.mismatch.empty(); }));
  const size_t more = rows.size() - fitting - shown.size();
  table += message("\n  and ", fitting, " that fit");
  if (more > 0) table += message(", and ", more, " more that do not");
  return table;
}

// What would help: names of PyTorch, or a checkpoint's, that were taken as they are.
std::string advice(const std::vector<TensorInfo>& left, const std::vector<TensorInfo>& right,
                   const ComparisonOptions& options) {
  const auto fitting = [&](const NameMap& names) {
    ComparisonOptions other{options.left, options.right, names, options.converts_floats};
    try {
      const std::vector<Row> rows = make_rows(left, right, other);
      return std::count_if(rows.begin(), rows.end(),
                           [](const Row& row) { return row.mismatch.empty(); });
    } catch (const ValueError&) {  // two names became one
      return std::ptrdiff_t{0};
    }
  };
  if (fitting(options.names) > 0) return "";
  if (fitting(NameMap(options.names).pytorch()) > 0)
    return "\nThe names are PyTorch's: give NameMap::from_pytorch(), or add pytorch() to the rules";
  return "\nNames of the file become names of the model by the rules of a NameMap";
}

// The model's own values of what it keeps, so that all of it is given.
void add_kept(const Parameterized& model, const NameMap& names, NamedArrays& arrays) {
  std::set<std::string> given;
  for (const auto& [name, array] : arrays) given.insert(name);
  for (const auto& [name, array] : to_arrays(model))
    if (!given.count(name) && names.keeps(name)) arrays.emplace_back(name, array.copy());
}

// What the model takes from a file: a tied parameter by those of its names that the file has, or by
// the first.
std::vector<TensorInfo> infos_for(const Parameterized& model,
                                  const std::vector<TensorInfo>& tensors, const NameMap& names) {
  std::vector<TensorInfo> infos = tensor_infos(model);
  std::set<std::string> given;
  const std::set<std::string> targets = names_of(infos);
  for (const TensorInfo& tensor : tensors)
    if (const auto name = names(tensor.name, targets)) given.insert(*name);
  std::map<const ParameterState*, std::vector<std::string>> paths;
  for (const auto& [path, p] : model.named_parameters()) paths[p.state()].push_back(path);
  std::set<std::string> left_out;
  for (const auto& [state, tied] : paths) {
    const bool any = std::any_of(tied.begin(), tied.end(),
                                 [&](const std::string& path) { return given.contains(path); });
    for (const std::string& path : tied)
      if (any ? !given.contains(path) : path != tied.front()) left_out.insert(path);
  }
  std::erase_if(infos, [&](const TensorInfo& info) { return left_out.contains(info.name); });
  return infos;
}

void require_fit(const Parameterized& model, const std::vector<TensorInfo>& tensors,
                 const NameMap& names, const std::string& source) {
  const std::vector<TensorInfo> own = infos_for(model, tensors, names);
  CATENA_CHECK(ValueError, !own.empty(),
               "load_into: the model has no parameters; list its layers with CATENA_FUNCTIONS, or "
               "add them to the FunctionBag");
  const ComparisonOptions options{"the model", source, names, true};
  const TensorComparison comparison = compare_tensors(own, tensors, options);
  CATENA_CHECK(IoError, comparison.fits, "load_into: ", source,
               " does not fit the model; first mismatch: ", comparison.first_mismatch, "\n",
               comparison.table, advice(own, tensors, options));
}

}  // namespace

TensorComparison compare_tensors(const std::vector<TensorInfo>& left,
                                 const std::vector<TensorInfo>& right,
                                 const ComparisonOptions& options) {
  const std::vector<Row> rows = make_rows(left, right, options);
  TensorComparison result;
  const auto first =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.mismatch.empty(); });
  if (first != rows.end()) {
    result.fits = false;
    result.first_mismatch = sentence(*first, options);
  }
  result.table = table_of(rows, options);
  return result;
}

void load_into(Parameterized& model, const TensorFile& file, const NameMap& names) {
  const std::string source = "'" + file.path() + "'";
  require_fit(model, file.tensors(), names, source);
  const std::set<std::string> targets = names_of(tensor_infos(model));
  std::vector<std::string> wanted;
  for (const TensorInfo& tensor : file.tensors())
    if (names(tensor.name, targets)) wanted.push_back(tensor.name);
  NamedArrays arrays = names(file.read_many(wanted), targets);
  add_kept(model, names, arrays);
  from_arrays({arrays.begin(), arrays.end()}, model, source);
}

void load_into(Parameterized& model, const NamedArrays& arrays, const NameMap& names,
               const std::string& source) {
  require_fit(model, tensor_infos(arrays), names, source);
  NamedArrays renamed = names(arrays, names_of(tensor_infos(model)));
  add_kept(model, names, renamed);
  from_arrays({renamed.begin(), renamed.end()}, model, source);
}

}  // namespace catena::serializers
