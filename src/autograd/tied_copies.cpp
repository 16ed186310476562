#include "autograd/tied_copies.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace catena::detail {
namespace {

using Handles = std::unordered_set<const Parameter*>;

// The members of a model are copied one by one, by constructors that know nothing of each other.
// So the thread remembers which handles of the model are tied, and what their copies are.
struct TiedCopies {
  const Parameterized* copy;
  Handles left;  // not copied yet
  std::unordered_map<const ParameterState*, Parameter> made = {};
};
thread_local std::optional<TiedCopies> t_copies;

// Different members that have one parameter.
Handles tied_handles(const Parameterized& model) {
  std::unordered_map<const ParameterState*, const Parameter*> first;
  Handles tied;
  const_cast<Parameterized&>(model).visit_parameters([&](const std::string&, Parameter& p) {
    if (!p.defined()) return;
    const Parameter* known = first.try_emplace(p.state(), &p).first->second;
    if (known != &p) tied.insert({known, &p});
  });
  return tied;
}

}  // namespace

void begin_copy(const Parameterized& copy, const Parameterized& model) {
  Handles tied = tied_handles(model);
  if (tied.empty()) return;
  const bool is_part = t_copies && std::all_of(tied.begin(), tied.end(), [](const Parameter* p) {
                         return t_copies->left.contains(p);
                       });
  if (!is_part) t_copies = TiedCopies{&copy, std::move(tied)};
}

void end_copy(const Parameterized& copy) noexcept {
  if (t_copies && t_copies->copy == &copy) t_copies.reset();
}

Parameter copy_of(const OwnedParameter& handle) {
  if (!handle.defined()) return {};
  if (!t_copies || t_copies->left.erase(&handle) == 0) return handle.clone();
  Parameter& made = t_copies->made[handle.state()];
  if (!made.defined()) made = handle.clone();
  const Parameter result = made;
  if (t_copies->left.empty()) t_copies.reset();
  return result;
}

}  // namespace catena::detail
