#include "parallel/gathers/units.h"

#include <algorithm>
#include <map>
#include <set>

#include "catena/core/log.h"

namespace catena::parallel {
namespace {

bool is_in_unit(const std::string& name, const std::string& unit) {
  return name.starts_with(unit) && (name.size() == unit.size() || name[unit.size()] == '/');
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The direct child of the model, and in it, as long as it has numbered parts only, the part.
std::string block_of(const std::string& name) {
  size_t end = name.find('/', 1);
  while (end != std::string::npos) {
    const size_t next = name.find('/', end + 1);
    if (next == std::string::npos || !is_number(name.substr(end + 1, next - end - 1))) break;
    end = next;
  }
  return name.substr(0, end);
}

}  // namespace

std::string unit_of(const std::string& name, const std::vector<std::string>& units) {
  std::string longest;
  for (const std::string& unit : units)
    if (is_in_unit(name, unit) && unit.size() > longest.size()) longest = unit;
  if (!longest.empty()) return longest;
  return block_of(name);
}

namespace {

struct Unit {
  std::string name;
  int64_t bytes = 0;
  std::set<std::string> layers;
};

std::vector<Unit> units_of(const Optimizer& optimizer, const std::vector<std::string>& units) {
  std::map<std::string, Unit> by_name;
  for (size_t p = 0; p < optimizer.layout().parameters().size(); ++p) {
    const std::string& name = optimizer.layout().name(p);
    const Parameter& parameter = optimizer.layout().parameters()[p];
    Unit& unit = by_name[unit_of(name, units)];
    unit.bytes += parameter.size() * int64_t(itemsize(parameter.dtype()));
    unit.layers.insert(name.substr(0, name.rfind('/')));
  }
  std::vector<Unit> result;
  for (auto& [name, unit] : by_name) {
    result.push_back(std::move(unit));
    result.back().name = name;
  }
  return result;
}

}  // namespace

void warn_of_large_units(const Optimizer& optimizer, const std::vector<std::string>& units) {
  constexpr int64_t kMost = 8;  // of the model, as a divisor
  constexpr int64_t kSmall = int64_t(16) << 20;
  const std::vector<Unit> all = units_of(optimizer, units);
  int64_t total = 0;
  for (const Unit& unit : all) total += unit.bytes;
  for (const Unit& unit : all)
    if (unit.layers.size() > 1 && unit.bytes > std::max(kSmall, total / kMost))
      logging::warning("setup: Sharding::kParameters gathers '", unit.name, "', ", unit.bytes >> 20,
                       " of the model's ", total >> 20,
                       " MiB, at once, and its gradients; name parts of it in "
                       "BucketOptions::units, such as '",
                       *unit.layers.begin(), "', to need less memory");
}

void check_units(const Optimizer& optimizer, const std::vector<std::string>& units) {
  const size_t parameters = optimizer.layout().parameters().size();
  for (const std::string& unit : units) {
    bool has_any = false;
    for (size_t p = 0; p < parameters; ++p)
      has_any = has_any || is_in_unit(optimizer.layout().name(p), unit);
    CATENA_CHECK(ValueError, has_any, "setup: BucketOptions::units has '", unit,
                 "', but no parameter is in it; expected the path of a part of the model, such as "
                 "'/body/block1', as in '",
                 parameters > 0 ? optimizer.layout().name(0) : std::string(), "'");
  }
}

}  // namespace catena::parallel
