#include "setup_agreement.h"

#include "catena/autograd/placement.h"

namespace catena::parallel {
namespace {

std::string list_of_units(const std::vector<std::string>& units) {
  std::string list;
  for (const std::string& unit : units) list += (list.empty() ? "" : ", ") + unit;
  return "{" + list + "}";
}

}  // namespace

void add_options(comm::Agreement& agreement, const BucketOptions& options) {
  agreement.add(".sharding", name(options.sharding))
      .add(".slices", options.slices)
      .add(".reduce_dtype", options.reduce_dtype ? message(*options.reduce_dtype) : "none")
      .add(".units", list_of_units(options.units))
      .add(".gather_ahead", options.gather_ahead ? "on" : "off")
      .add(".first_bytes", options.first_bytes)
      .add(".bucket_bytes", options.bucket_bytes)
      .add(".last_bytes", options.last_bytes);
}

void add_parameter(comm::Agreement& agreement, const std::string& path, const Parameter& p) {
  const Placement* placement = p.placement();
  const bool is_cut = placement != nullptr && placement->has_box();
  std::string text = message(is_cut ? placement->whole : p.shape(), " ", p.dtype());
  const Array& data = p.data();
  if (!data.order().is_c()) text += message(" in memory ", data.order().axes(data.ndim()));
  agreement.add(path, text);
}

void add_persistent(comm::Agreement& agreement, const std::string& path, const Persistent& p) {
  agreement.add(
      path, message(p.shape(), " ", p.dtype(), " (", catena::name(p.over_ranks()), " over ranks)"));
}

void add_numbers(comm::Agreement& agreement, const Optimizer& optimizer) {
  for (const auto& [name, value] : optimizer.hyper_parameters())
    agreement.add(message("hyper-parameter '", name, "'"), value);
  for (const auto& stage : optimizer.stages())
    for (const auto& [name, value] : stage->settings())
      agreement.add(message(stage->name(), " '", name, "'"), value);
}

void add_rule(comm::Agreement& agreement, const Optimizer& optimizer) {
  agreement.add("the stages of an update are", stages_of(optimizer));
  add_numbers(agreement, optimizer);
}

std::string stages_of(const Optimizer& optimizer) {
  std::string names;
  for (const auto& stage : optimizer.stages())
    names += message(names.empty() ? "" : ", ", stage->name());
  return names;
}

}  // namespace catena::parallel
