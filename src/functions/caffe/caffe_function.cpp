#include "catena/functions/caffe/caffe_function.h"

#include <algorithm>

#include "catena/core/device.h"
#include "functions/caffe/net.h"

namespace catena::functions {
namespace {

using caffe::Net;
using caffe::NetLayer;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

int blob_number(const Net& net, const std::string& name) {
  const auto found = std::find(net.blobs.begin(), net.blobs.end(), name);
  return found == net.blobs.end() ? -1 : int(found - net.blobs.begin());
}

// The layers that one call runs, in order, and the blobs that nobody reads after each.
struct Plan {
  struct Run {
    size_t layer;
    std::vector<int> last_uses;
  };
  std::vector<Run> runs;
};

class Planner {
 public:
  Planner(const Net& net, const std::vector<std::string>& disable)
      : net_(net), disable_(disable), known_(net.blobs.size(), false) {
    for (const std::string& name : disable)
      CATENA_CHECK(IndexError, has_layer(name), "CaffeFunction: there is no layer named '", name,
                   "' to disable");
  }
  void give(int blob) { known_[size_t(blob)] = true; }

  Plan plan(const std::vector<std::string>& outputs) {
    std::vector<size_t> possible;
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      if (!runs(i)) continue;
      possible.push_back(i);
      for (const int top : net_.layers[i].tops) give(top);
    }
    std::vector<bool> needed(net_.blobs.size(), false);
    for (const std::string& name : outputs) needed[size_t(required(name))] = true;
    Plan plan;
    for (auto i = possible.rbegin(); i != possible.rend(); ++i) add(*i, needed, plan);
    std::reverse(plan.runs.begin(), plan.runs.end());
    return plan;
  }

 private:
  bool has_layer(const std::string& name) const {
    return std::any_of(net_.described.begin(), net_.described.end(),
                       [&](const CaffeLayer& layer) { return layer.name == name; });
  }
  bool is_disabled(size_t layer) const {
    return std::find(disable_.begin(), disable_.end(), net_.described[layer].name) !=
           disable_.end();
  }
  bool runs(size_t i) const {
    const NetLayer& layer = net_.layers[i];
    return layer.step && !is_disabled(i) &&
           std::all_of(layer.bottoms.begin(), layer.bottoms.end(),
                       [&](int blob) { return known_[size_t(blob)]; });
  }
  int required(const std::string& name) const {
    const int blob = blob_number(net_, name);
    if (blob >= 0 && known_[size_t(blob)]) return blob;
    std::vector<std::string> known;
    for (size_t i = 0; i < known_.size(); ++i)
      if (known_[i]) known.push_back(net_.blobs[i]);
    fail<IndexError>("CaffeFunction: the blob '", name, "' is ",
                     blob < 0 ? "not in the model" : "not computed" + reason(blob),
                     "; known are: ", listed(known));
  }
  // Which layer would have made a blob, and what it lacks.
  std::string reason(int blob) const {
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const NetLayer& layer = net_.layers[i];
      if (std::find(layer.tops.begin(), layer.tops.end(), blob) == layer.tops.end()) continue;
      const CaffeLayer& described = net_.described[i];
      const std::string who = " by the layer '" + described.name + "', ";
      if (is_disabled(i)) return who + "which is disabled";
      if (!layer.step) return who + "whose type is not supported: " + described.type;
      for (const int bottom : layer.bottoms)
        if (!known_[size_t(bottom)])
          return who + "for the blob '" + net_.blobs[size_t(bottom)] + "' is missing";
    }
    return " by any layer";
  }
  // Backwards through the layers: one whose tops are needed is run, then its bottoms are needed.
  void add(size_t i, std::vector<bool>& needed, Plan& plan) const {
    const NetLayer& layer = net_.layers[i];
    if (std::none_of(layer.tops.begin(), layer.tops.end(),
                     [&](int blob) { return needed[size_t(blob)]; }))
      return;
    Plan::Run run{i, {}};
    for (const int bottom : layer.bottoms)
      if (!needed[size_t(bottom)]) run.last_uses.push_back(bottom);
    // What nobody reads of the tops is let go with the rest.
    for (const int top : layer.tops) {
      if (!needed[size_t(top)])
        run.last_uses.push_back(top);
      else
        std::erase(run.last_uses, top);
    }
    for (const int top : layer.tops) needed[size_t(top)] = false;
    for (const int bottom : layer.bottoms) needed[size_t(bottom)] = true;
    plan.runs.push_back(std::move(run));
  }

  const Net& net_;
  const std::vector<std::string>& disable_;
  std::vector<bool> known_;
};

}  // namespace

CaffeFunction::CaffeFunction(const std::string& path) {
  const DeviceScope on_cpu(cpu(0));
  net_ = std::make_shared<const Net>(caffe::import_net(path, fs));
}

Variables CaffeFunction::operator()(const std::map<std::string, Variable>& inputs,
                                    const std::vector<std::string>& outputs,
                                    const std::vector<std::string>& disable,
                                    std::optional<YesNo> train) const {
  CATENA_CHECK(ValueError, net_ != nullptr, "CaffeFunction: this model was moved from");
  Planner planner(*net_, disable);
  Variables blobs(net_->blobs.size());
  for (const auto& [name, variable] : inputs) {
    CATENA_CHECK(ValueError, variable.defined(), "CaffeFunction: the input '", name,
                 "' is undefined");
    const int blob = blob_number(*net_, name);
    if (blob < 0) continue;  // labels of a model without a loss, for one
    planner.give(blob);
    blobs[size_t(blob)] = variable;
  }
  const Plan plan = planner.plan(outputs);
  std::vector<const Parameterized*> functions;
  const_cast<FunctionBag&>(fs).visit_functions(
      [&](const std::string&, Parameterized& function) { functions.push_back(&function); });
  const bool training = train.value_or(this->training());
  for (const Plan::Run& run : plan.runs) {
    const NetLayer& layer = net_->layers[run.layer];
    Variables bottoms;
    for (const int blob : layer.bottoms) bottoms.push_back(blobs[size_t(blob)]);
    const Parameterized* function =
        layer.function < 0 ? nullptr : functions.at(size_t(layer.function));
    const Variables tops = layer.step({bottoms, function, training});
    for (size_t i = 0; i < layer.tops.size(); ++i) blobs[size_t(layer.tops[i])] = tops[i];
    for (const int blob : run.last_uses) blobs[size_t(blob)] = Variable();
  }
  Variables results;
  for (const std::string& name : outputs)
    results.push_back(blobs[size_t(blob_number(*net_, name))]);
  return results;
}

const std::vector<CaffeLayer>& CaffeFunction::layers() const {
  CATENA_CHECK(ValueError, net_ != nullptr, "CaffeFunction: this model was moved from");
  return net_->described;
}

std::vector<std::string> CaffeFunction::forwards() const {
  std::vector<std::string> names;
  for (const CaffeLayer& layer : layers())
    if (layer.is_supported) names.push_back(layer.name);
  return names;
}

void CaffeFunction::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  fs.visit_parameters(visitor, prefix);
}

void CaffeFunction::visit_functions(const FunctionVisitor& visitor) { fs.visit_functions(visitor); }

}  // namespace catena::functions
