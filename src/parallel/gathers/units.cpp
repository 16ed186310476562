#include "parallel/gathers/units.h"

namespace catena::parallel {
namespace {

bool is_in_unit(const std::string& name, const std::string& unit) {
  return name.starts_with(unit) && (name.size() == unit.size() || name[unit.size()] == '/');
}

}  // namespace

std::string unit_of(const std::string& name, const std::vector<std::string>& units) {
  std::string longest;
  for (const std::string& unit : units)
    if (is_in_unit(name, unit) && unit.size() > longest.size()) longest = unit;
  if (!longest.empty()) return longest;
  return name.substr(0, name.find('/', 1));
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
