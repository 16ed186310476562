#include "catena/training/model_summary.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include "catena/array/random.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/placement.h"
#include "catena/core/printable.h"
#include "core/readable_numbers.h"

namespace catena::training {
namespace {

// What a forward pass moves: arrays that are not trained, random states, and those of recurrent
// layers.
class MovedState {
 public:
  explicit MovedState(Parameterized& model) {
    note(current_device());
    for (const Parameter& parameter : model.parameters()) note(parameter.device());
    for (const Persistent& persistent : model.persistents()) {
      note(persistent.device());
      persistents_.push_back({persistent, persistent.data().copy(), persistent.samples()});
    }
    // Recurrent layers begin anew.
    model.visit_states(
        [this](Variable& state) { states_.emplace_back(&state, std::exchange(state, {})); });
  }
  void bring_back() const {
    for (const auto& [persistent, values, samples] : persistents_) {
      persistent.copy_from(values);
      persistent.forget_samples();
      persistent.count_samples(samples);
    }
    for (const auto& [device, state] : random_) random::default_state(device).set_state(state);
    for (const auto& [state, before] : states_) *state = before;
  }

 private:
  struct Kept {
    Persistent persistent;
    Array values;
    int64_t samples;
  };
  void note(Device device) {
    for (const auto& [known, state] : random_)
      if (known == device) return;
    random_.emplace_back(device, random::default_state(device).state());
  }
  std::vector<std::pair<Variable*, Variable>> states_;
  std::vector<Kept> persistents_;
  std::vector<std::pair<Device, RandomState::State>> random_;
};

constexpr const char* kCast = "Cast";  // also of parameters, by autocast

// The parameter that an operand is, or of which autocast has made a copy; else null.
const ParameterState* parameter_of(const Variable& v) {
  const VariableNode* node = v.body()->node.get();
  if (node == nullptr) return nullptr;
  if (node->parameter == nullptr && node->creator && node->creator->label() == kCast)
    node = node->creator->inputs()[0].get();
  return node->parameter;
}

// Notes the outermost calls of functions and layers.
class Observer : public FunctionHook {
 public:
  explicit Observer(Parameterized& model) {
    for (const auto& [path, parameter] : model.named_parameters()) {
      if (!paths_.emplace(parameter.state(), path).second) continue;  // tied
      result_.parameters += parameter.size();
      result_.parameter_bytes += parameter.size() * itemsize(parameter.dtype());
      if (const Placement* placement = parameter.placement(); placement && placement->boxes() > 1)
        result_.slices.push_back(path + ": " + placement->text(parameter.shape()));
    }
    for (const auto& [path, persistent] : model.named_persistents())
      result_.persistents += persistent.size();
  }
  void forward_begins(const FunctionCall&) override {
    if (depth_++ == 0) inner_ = 0;
  }
  void forward_ends(const FunctionCall& call) override {
    for (size_t i = 0; i < call.size(); ++i) used_.insert(parameter_of(call[i]));
    if (--depth_ == 0)
      add(call, call.work().value_or(inner_));
    else
      inner_ += call.work().value_or(0);
  }
  ModelSummary result() {
    for (const LayerSummary& layer : result_.layers) {
      result_.multiply_adds += layer.multiply_adds;
      result_.activation_bytes += layer.activation_bytes;
    }
    for (const auto& [state, path] : paths_)
      if (used_.count(state) == 0) result_.unused.push_back(path);
    std::sort(result_.unused.begin(), result_.unused.end());
    return std::move(result_);
  }

 private:
  void add(const FunctionCall& call, int64_t costs) {
    LayerSummary layer;
    layer.type = call.name();
    layer.multiply_adds = costs;
    std::vector<Array> data;
    for (size_t i = 0; i < call.size(); ++i) {
      const auto found = paths_.find(parameter_of(call[i]));
      if (found == paths_.end()) {
        layer.inputs.push_back(call[i].shape());
        data.push_back(call[i].data());
        continue;
      }
      const size_t end = found->second.rfind('/');
      if (layer.path.empty() && end != std::string::npos) layer.path = found->second.substr(0, end);
      if (layer.type != kCast && counted_.insert(found->first).second)
        layer.parameters += call[i].size();
    }
    for (const Array& y : call.outputs()) {
      layer.outputs.push_back(y.shape());
      const bool is_view = std::any_of(data.begin(), data.end(),
                                       [&](const Array& x) { return y.shares_memory_with(x); });
      if (!is_view) layer.activation_bytes += y.nbytes();
    }
    result_.layers.push_back(std::move(layer));
  }

  ModelSummary result_;
  std::map<const ParameterState*, std::string> paths_;
  std::set<const ParameterState*> used_, counted_;
  int depth_ = 0;
  int64_t inner_ = 0;  // multiply-adds of the calls in the running outermost one
};

// Text ------------------------------------------------------------------------------------------

// "" for 0.
std::string count_cell(int64_t n) { return n == 0 ? "" : grouped(n); }
std::string bytes_cell(int64_t bytes) { return bytes == 0 ? "" : bytes_text(bytes); }

// The first three, and how many more.
std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(shapes.size(), 3); ++i)
    text += message(i == 0 ? "" : " ", shapes[i]);
  return shapes.size() <= 3 ? text : message(text, " and ", shapes.size() - 3, " more");
}

using Line = std::vector<std::string>;
constexpr size_t kTextColumns = 4;  // aligned on the left; the numbers behind them on the right

std::string table(const std::vector<Line>& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const Line& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      row += (i == 0 ? "" : "  ") + (i < kTextColumns ? line[i] + space : space + line[i]);
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace

std::string ModelSummary::to_string() const {
  std::vector<Line> lines = {
      {"layer", "type", "input", "output", "parameters", "multiply-adds", "activations"}};
  for (const LayerSummary& l : layers)
    lines.push_back({printable_line(l.path), l.type, shapes_text(l.inputs), shapes_text(l.outputs),
                     count_cell(l.parameters), count_cell(l.multiply_adds),
                     bytes_cell(l.activation_bytes)});
  lines.push_back({"total", "", "", "", count_cell(parameters), count_cell(multiply_adds),
                   bytes_cell(activation_bytes)});
  std::string text = table(lines);
  if (parameters > 0) text += "parameters: " + bytes_text(parameter_bytes) + '\n';
  if (persistents > 0) text += "not trained: " + grouped(persistents) + " elements\n";
  for (const std::string& slice : slices) text += printable_line(slice) + '\n';
  for (size_t i = 0; i < unused.size(); ++i)
    text += (i == 0 ? "not used by this call: " : ", ") + printable_line(unused[i]);
  return unused.empty() ? text : text + '\n';
}

std::ostream& operator<<(std::ostream& os, const ModelSummary& summary) {
  return os << summary.to_string();
}

ModelSummary summarize(Parameterized& model, const std::function<void()>& forward) {
  const MovedState before(model);
  Observer observer(model);
  try {
    const ForceBackprop recorded;
    const FunctionHookScope scope(observer);
    forward();
  } catch (...) {
    before.bring_back();
    throw;
  }
  before.bring_back();
  return observer.result();
}

}  // namespace catena::training
