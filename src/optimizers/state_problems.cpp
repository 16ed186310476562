#include "optimizers/state_problems.h"

namespace catena::optimizers {
namespace {

constexpr const char* kLossScale = "loss_scale/value";

}  // namespace

std::string state_problems(const StateForms& expected, const StateForms& given) {
  std::string problems;
  for (const auto& [name, form] : expected) {
    const auto found = given.find(name);
    if (found == given.end())
      problems += message("\n  missing: ", name, " ", form.shape);
    else if (found->second.shape != form.shape || found->second.dtype != form.dtype)
      problems += message("\n  ", name, ": expected ", form.shape, " ", form.dtype, ", got ",
                          found->second.shape, " ", found->second.dtype);
  }
  bool other_masters = false;
  for (const auto& [name, form] : given) {
    if (expected.contains(name)) continue;
    problems += message("\n  unknown: ", name, " ", form.shape);
    other_masters = other_masters || name.starts_with("master/");
  }
  if (other_masters)
    problems += "\nMaster copies belong to 16-bit parameters; those of this model are not";
  if (given.contains(kLossScale) && !expected.contains(kLossScale))
    problems += "\nThe state was saved with a loss scale: call add_loss_scale before it is loaded";
  if (!given.contains(kLossScale) && expected.contains(kLossScale))
    problems +=
        "\nThe state was saved without a loss scale: call add_loss_scale after it is loaded";
  return problems;
}

}  // namespace catena::optimizers
