#include "catena/parallel/pipeline/sequence.h"

#include <algorithm>
#include <unordered_map>

namespace catena::parallel::pipeline {

void detail::fail_inputs(const std::string& unit, size_t given) {
  fail<ValueError>("Sequence: unit '", unit, "', which takes one variable, got ", given,
                   "; let it take Variables, or let the unit before give one");
}

const Sequence::Entry& Sequence::entry(size_t unit) const {
  CATENA_CHECK(ValueError, unit < units_.size(), "Sequence: there is no unit ", unit,
               "; the model has ", units_.size());
  return units_[unit];
}

void Sequence::insert(Entry entry) {
  CATENA_CHECK(ValueError, entry.name.find('/') == std::string::npos, "Sequence::add: the name '",
               entry.name, "' has a '/', which separates units from their parameters");
  const auto is_taken = [&](const Entry& other) { return other.name == entry.name; };
  CATENA_CHECK(ValueError, std::none_of(units_.begin(), units_.end(), is_taken),
               "Sequence::add: there is a unit '", entry.name, "' already; choose another name");
  units_.push_back(std::move(entry));
}

Variables Sequence::operator()(const Variables& xs) const {
  CATENA_CHECK(ValueError, !units_.empty(), "Sequence: there are no units; add some first");
  Variables h = xs;
  for (const Entry& unit : units_) h = unit.call(h);
  return h;
}

Variable Sequence::operator()(const Variable& x) const {
  const Variables ys = (*this)(Variables{x});
  CATENA_CHECK(ValueError, ys.size() == 1, "Sequence: the last unit gave ", ys.size(),
               " results; call the sequence with Variables to get a list");
  return ys[0];
}

void Sequence::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (const Entry& unit : units_)
    if (unit.layer) unit.layer->visit_parameters(visitor, prefix + unit.name + "/");
}

void Sequence::visit_functions(const FunctionVisitor& visitor) {
  for (const Entry& unit : units_)
    if (unit.layer) visitor(unit.name, *unit.layer);
}

// One object in two units cannot hold a copy for each.
void Sequence::check_layers() const {
  std::unordered_map<const Parameter*, std::pair<size_t, const ParameterState*>> holders;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].layer == nullptr) continue;
    units_[u].layer->visit_parameters([&](const std::string& path, Parameter& p) {
      if (!p.defined()) return;
      const auto held = holders.try_emplace(&p, u, p.state()).first->second;
      CATENA_CHECK(ValueError, held.first == u || held.second != p.state(),
                   "Sequence::untie: units ", held.first, " ('", name(held.first), "') and ", u,
                   " ('", name(u), "') are one layer object, in std::ref, or share one (parameter ",
                   path,
                   "), so that they cannot have copies of their own; make a layer for each, with "
                   "the same Parameter");
    });
  }
}

const std::vector<Sequence::Tie>& Sequence::untie() {
  struct Owner {
    size_t unit;
    Parameter parameter;
    Parameter copy;  // of the unit that is being visited
    size_t copied_for;
  };
  std::unordered_map<const ParameterState*, Owner> owners;
  std::unordered_map<const ParameterState*, size_t> tie_of;
  for (size_t k = 0; k < ties_.size(); ++k) tie_of[ties_[k][0].second.state()] = k;
  check_layers();
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].layer == nullptr) continue;
    units_[u].layer->visit_parameters([&](const std::string&, Parameter& p) {
      if (!p.defined()) return;
      Owner& owner = owners.try_emplace(p.state(), Owner{u, p, {}, u}).first->second;
      if (owner.unit == u) return;
      if (owner.copied_for != u) {
        owner.copy = p.clone();
        owner.copied_for = u;
        const auto [tie, is_new] = tie_of.try_emplace(p.state(), ties_.size());
        if (is_new) ties_.push_back({{owner.unit, owner.parameter}});
        ties_[tie->second].emplace_back(u, owner.copy);
      }
      p = owner.copy;
    });
  }
  return ties_;
}

}  // namespace catena::parallel::pipeline
