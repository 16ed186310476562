// Names of one library turned into those of another, and weights from elsewhere put into a model.
//
//   const auto names = NameMap().prefix("module.", "").skip(".*\\.mask").pytorch();
//   serializers::load_into(model, serializers::PytorchFile("net.pt"), names);
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catena/serializers/tensor_file.h"

namespace catena::serializers {

// Rules that turn a file's name of a tensor into a model's, "block.fc.weight" into "block/fc/W".
// They apply in the order in which they were added, each to the result of those before it. Without
// rules names stay as they are. Calls of rules return *this.
class NameMap {
 public:
  NameMap();
  ~NameMap();
  NameMap(const NameMap&);
  NameMap& operator=(const NameMap&);
  NameMap(NameMap&&) noexcept;
  NameMap& operator=(NameMap&&) noexcept;

  // This name alone; no further rule applies to it.
  NameMap& exact(const std::string& from, const std::string& to);
  // Names that begin so.
  NameMap& prefix(const std::string& from, const std::string& to);
  // Every match of an ECMAScript regular expression; `to` may have $1, $2, ... and $& (the match).
  // ValueError for what is not a regular expression.
  NameMap& regex(const std::string& pattern, const std::string& to);
  // Leaves out names that the regular expression matches as a whole.
  NameMap& skip(const std::string& pattern);
  // Names of the model, not of the file: what the regular expression matches as a whole may be
  // missing in the file, and keeps its values then. For new layers on a network that is there.
  NameMap& keep(const std::string& pattern);
  // PyTorch's names in a model of layers of catena: '.' becomes '/', and, unless the model has that
  // name, of the last part
  //   weight        W, or gamma where the model has that instead
  //   bias          b, or beta
  //   running_mean  avg_mean            running_var  avg_var            num_batches_tracked  N
  //   in_proj_weight  in_proj_W         in_proj_bias  in_proj_b
  NameMap& pytorch();
  // The opposite.
  NameMap& pytorch_reversed();

  // NameMap().pytorch() and its opposite.
  static NameMap from_pytorch();
  static NameMap to_pytorch();
  // A map from lines of text: "exact FROM TO", "prefix FROM [TO]", "regex PATTERN [TO]", "skip
  // PATTERN", "keep PATTERN", "pytorch", "to-pytorch". Words are separated by blanks; lines that
  // begin with # are comments. ValueError with `source` and the line for anything else.
  static NameMap parse(const std::string& text, const std::string& source);
  // The same from a file.
  static NameMap read(const std::string& path);

  // What a name becomes; nothing where it is left out. `targets` are the names of the model.
  // ValueError for a name of more than 2000 bytes where there are regular expressions.
  std::optional<std::string> operator()(const std::string& name,
                                        const std::set<std::string>& targets = {}) const;
  // Whether a tensor of the model may be missing in the file.
  bool keeps(const std::string& target) const;
  // All of them. ValueError for two names that become one.
  NamedArrays operator()(const NamedArrays& arrays,
                         const std::set<std::string>& targets = {}) const;

 private:
  struct Rule;
  NameMap& add(Rule rule);
  std::vector<Rule> rules_;
};

// How two lists of tensors fit.
struct TensorComparison {
  bool fits = true;
  std::string first_mismatch;  // "'fc1/W' is (16, 8) float32 in the model, ..."
  std::string table;           // both sides, a line for each tensor, mismatches marked
};
// What compare_tensors calls the two sides, and how it compares them.
struct ComparisonOptions {
  std::string left = "left", right = "right";
  NameMap names = {};            // of the right side's names
  bool converts_floats = false;  // floating dtypes fit each other
};
// Compares names, shapes and dtypes: first all of `left` in order, then what is on the right alone.
// The table has all lines up to 60; of longer ones all mismatches up to 60, and a count of the
// rest.
TensorComparison compare_tensors(const std::vector<TensorInfo>& left,
                                 const std::vector<TensorInfo>& right,
                                 const ComparisonOptions& options = {});

// Copies the tensors of a file, or arrays, into the parameters and persistent arrays of a model,
// whose names `names` makes. Floating dtypes are converted into each other. IoError that names the
// first tensor that is missing, unknown, or of another shape or dtype, and lists both sides, and
// for values too large for the model's dtype; the model is then unchanged. What the model does not
// have must be left out by a skip() rule, and what the file does not have named by a keep() rule.
void load_into(Parameterized& model, const TensorFile& file, const NameMap& names = {});
// `source` is what errors call the arrays.
void load_into(Parameterized& model, const NamedArrays& arrays, const NameMap& names = {},
               const std::string& source = "the arrays");

}  // namespace catena::serializers
