// recompute: a node that keeps its inputs, and runs a separate pass over what it computes again.
#include "catena/functions/recompute.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "autograd/backward_pass.h"
#include "autograd/first_run.h"
#include "catena/array/random_log.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/mean.h"
#include "catena/autograd/parameter_state.h"
#include "catena/core/stream.h"
#include "functions/host_copies.h"
#include "functions/recompute_bytes.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "Recompute";

// Collects the parameters that f uses, in its first run, in which nothing else wants a gradient.
class UsedParameters : public FunctionHook {
 public:
  void forward_begins(const FunctionCall& call) override {
    for (const Variable* v : call.inputs())
      if (v->requires_grad()) note(call, *v);
  }
  Variables parameters;

 private:
  void note(const FunctionCall& call, const Variable& v) {
    CATENA_CHECK(GradientError, v.node()->parameter != nullptr, kName, ": ", call.label(),
                 " uses a variable of shape ", v.shape(),
                 " that wants a gradient and is not an input; give it to recompute as an input");
    const auto same = [&](const Variable& known) { return same_variable(known, v); };
    if (std::none_of(parameters.begin(), parameters.end(), same)) parameters.push_back(v);
  }
};

// Finds references to local variables of functions that have returned. The stack grows downwards,
// and a pass runs below the function that began it. So what lies between the frame of recompute and
// that function was in the frame of a caller of recompute which is gone.
class CapturedReferences {
 public:
  CapturedReferences(std::vector<const void*> captured, const void* frame) : frame_(at(frame)) {
    for (const void* word : captured)
      if (at(word) > frame_) above_.push_back(at(word));
  }
  void check() const {
    if (std::this_thread::get_id() != thread_) return;
    const uintptr_t pass = at(BackwardPass::innermost_frame());
    CATENA_CHECK(
        GradientError,
        std::none_of(above_.begin(), above_.end(), [&](uintptr_t word) { return word < pass; }),
        kName,
        ": f refers to a local variable of a function that has returned; f runs again in backward, "
        "so capture local variables by value ([this, scale]) and layers by a pointer");
  }

 private:
  static uintptr_t at(const void* address) { return reinterpret_cast<uintptr_t>(address); }
  uintptr_t frame_;
  std::vector<uintptr_t> above_;
  std::thread::id thread_ = std::this_thread::get_id();
};

// What must be the same in both runs.
struct Surroundings {
  Device device = current_device();
  Dtype low = AutocastScope::low();
};

// Results of f; one variable that it gives twice is one output.
struct Results {
  Results() = default;
  explicit Results(const Variables& ys) {
    Variables distinct;
    for (const Variable& y : ys) {
      const auto same = [&](const Variable& known) { return same_variable(known, y); };
      const auto first = std::find_if(distinct.begin(), distinct.end(), same);
      place.push_back(size_t(first - distinct.begin()));
      if (first != distinct.end()) continue;
      distinct.push_back(y);
      arrays.push_back(y.data());
      means.push_back(y.body()->node ? y.body()->node->mean : nullptr);
    }
  }
  Arrays arrays;                                // of the outputs
  std::vector<size_t> place;                    // of each result among the outputs
  std::vector<IntrusivePtr<MeanRecord>> means;  // of the outputs; null: none
};

// Where a part keeps inputs and results of its functions on the host.
struct Offloaded {
  std::shared_ptr<HostCopies> copies;  // null: nothing is on the host
  std::vector<size_t> inputs;          // which of f's, the first of the copies

  bool has(size_t input) const {
    return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
  }
};

// What is on the host, on the device for one pass.
class BroughtBack {
 public:
  BroughtBack(const Offloaded& offloaded, KeptResults& kept) : offloaded_(offloaded), kept_(kept) {
    if (!offloaded.copies) return;
    arrays_ = offloaded.copies->arrays();
    kept.take_back(std::span(arrays_).subspan(offloaded.inputs.size()));
  }
  ~BroughtBack() {
    if (!offloaded_.copies) return;
    kept_.give_away();
    arrays_.clear();
    offloaded_.copies->release();
  }
  BroughtBack(const BroughtBack&) = delete;
  BroughtBack& operator=(const BroughtBack&) = delete;
  const Array& input(size_t i) const {
    const auto& all = offloaded_.inputs;
    return arrays_[size_t(std::find(all.begin(), all.end(), i) - all.begin())];
  }

 private:
  const Offloaded& offloaded_;
  KeptResults& kept_;
  Arrays arrays_;
};

// Its inputs are those of f, and then the parameters that f uses.
class RecomputeNode final : public FunctionNode {
 public:
  RecomputeNode(RecomputedFunction f, const void* frame, RandomLog log, KeptResults kept,
                Offloaded offloaded, const Surroundings& surroundings, size_t inputs,
                std::vector<size_t> place)
      : f_(std::move(f.call)),
        references_(std::move(f.captured), frame),
        log_(std::move(log)),
        kept_(std::move(kept)),
        offloaded_(std::move(offloaded)),
        surroundings_(surroundings),
        inputs_(inputs),
        place_(std::move(place)) {}
  std::string label() const override { return kName; }
  bool is_differentiable() const override { return false; }
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    Arrays gys;
    for (size_t j = 0; j < outputs().size(); ++j) {
      const Variable gy = context.grad_output(static_cast<int>(j));
      gys.push_back(gy.defined() ? gy.data() : Array());
    }
    const BroughtBack here(offloaded_, kept_);
    prefetch_before();
    const Variables xs = roots(context, here);
    Variables ys = again(xs);
    const std::vector<bool> continued = continue_sums(xs, ys, gys);
    run_pass(ys, gys);
    for (size_t i = 0; i < xs.size(); ++i) {
      const Array g = xs[i].body()->node ? xs[i].body()->node->grad : Array();
      if (!g.defined() || is_again(i)) continue;
      if (continued[i]) inputs()[i]->grad = Array();
      context.set_grad(static_cast<int>(i), Variable::constant(g));
    }
  }

 private:
  // Whether an earlier input is the same variable.
  bool is_again(size_t i) const { return first(i) < i; }
  size_t first(size_t i) const {
    const auto begin = inputs().begin();
    return size_t(std::find(begin, begin + ptrdiff_t(i), *(begin + ptrdiff_t(i))) - begin);
  }

  // What has come to an input so far is where the sum of its gradients begins: it is made in the
  // order of a pass without recompute.
  std::vector<bool> continue_sums(const Variables& xs, Variables& ys, Arrays& gys) const {
    std::vector<bool> continued(xs.size(), false);
    for (size_t i = 0; i < xs.size(); ++i) {
      const VariableNode& v = *inputs()[i];
      if (!v.requires_grad || v.parameter || !v.grad.defined() || is_again(i)) continue;
      continued[i] = true;
      ys.push_back(xs[i]);
      gys.push_back(v.grad);
    }
    return continued;
  }

  // Copies of the parts whose results are the inputs come back while this one computes.
  void prefetch_before() const {
    if (!offloaded_.copies) return;
    for (size_t i = 0; i < inputs_; ++i) {
      const auto* before = dynamic_cast<RecomputeNode*>(inputs()[i]->creator.get());
      if (before != nullptr && before->offloaded_.copies) before->offloaded_.copies->prefetch();
    }
  }

  // The inputs at the beginning of a separate graph.
  Variables roots(BackwardContext& context, const BroughtBack& here) const {
    Variables xs;
    for (size_t i = 0; i < inputs_; ++i) {
      if (is_again(i)) {
        xs.push_back(xs[first(i)]);
        continue;
      }
      const Array x = offloaded_.has(i) ? here.input(i) : context.input(static_cast<int>(i)).data();
      xs.push_back(inputs()[i]->requires_grad ? Variable(x) : Variable::constant(x));
    }
    return xs;
  }

  Variables again(const Variables& xs) {
    references_.check();
    const ForceBackprop on;
    const DeviceScope device(surroundings_.device);
    const AutocastScope autocast(surroundings_.low);
    const RandomLogScope numbers(log_, RandomLogScope::Mode::kRepeat);
    const RepeatedForward repeated;
    const KeptResultsScope kept(kept_, KeptResultsScope::Mode::kRepeat);
    const Variables ys = f_(xs);
    kept.require_all_taken();
    CATENA_CHECK(ValueError, ys.size() == place_.size(), kName, ": f gave ", ys.size(),
                 " results when it ran again, and ", place_.size(), " at first");
    Variables distinct(outputs().size());
    for (size_t i = 0; i < ys.size(); ++i) distinct[place_[i]] = ys[i];
    return distinct;
  }

  // Over the results that gradients came to and that depend on anything.
  static void run_pass(const Variables& ys, const Arrays& gys) {
    Variables starts;
    Arrays gradients;
    for (size_t j = 0; j < ys.size(); ++j) {
      if (!gys[j].defined() || !(ys[j].creator() || ys[j].requires_grad())) continue;
      starts.push_back(ys[j]);
      gradients.push_back(gys[j]);
    }
    if (BackwardPass::outermost_is_of_a_part())
      for (const Variable& y : starts) require_countable(kName, y);
    if (!starts.empty()) catena::backward(starts, gradients);
  }

  std::function<Variables(const Variables&)> f_;
  CapturedReferences references_;
  RandomLog log_;
  KeptResults kept_;
  Offloaded offloaded_;
  Surroundings surroundings_;
  size_t inputs_;
  std::vector<size_t> place_;  // of each result of f among the outputs
};

// What of a call fits into the budget together with its results.
Keep choice_within(size_t budget, const KeptResults& kept, const Arrays& results) {
  const RecomputeBytes bytes = bytes_kept(kept, results);
  for (const Keep choice : {Keep::kProducts, Keep::kAttention, Keep::kNothing})
    if (bytes.of(choice) <= budget) return choice;
  fail<ValueError>(kName, ": the results of f alone take ", bytes.of(Keep::kNothing),
                   " bytes, the budget is ", budget, "; raise it, or take a smaller batch");
}

// Inputs that functions have computed: nobody else needs them in backward. Others, such as masks
// that all parts share, stay where they are.
Offloaded offload_inputs(const RecomputeOptions& options, const FunctionCall& call) {
  Offloaded offloaded;
  if (!options.offload || is_repeated_forward()) return offloaded;
  offloaded.copies = std::make_shared<HostCopies>();
  for (size_t i = 0; i < call.size(); ++i) {
    const VariableNode* node = call[i].body()->node.get();
    if (node == nullptr || !node->creator) continue;
    const auto is_this = [&](size_t other) { return same_variable(call[other], call[i]); };
    if (std::any_of(offloaded.inputs.begin(), offloaded.inputs.end(), is_this)) continue;
    offloaded.copies->add(call[i].data());
    offloaded.inputs.push_back(i);
  }
  return offloaded;
}

void offload_kept(const Offloaded& offloaded, KeptResults& kept) {
  if (!offloaded.copies) return;
  for (const Array& a : kept.give_away()) offloaded.copies->add(a);
  HostCopies::complete(offloaded.copies);
}

}  // namespace

void check_options(const RecomputeOptions& options) {
  if (!options.offload) return;
  CATENA_CHECK(ValueError, !options.budget, kName,
               ": a budget is for device memory, which offload does not keep; give keep instead of "
               "the budget");
  CATENA_CHECK(ValueError, options.keep != Keep::kEverything, kName,
               ": with keep = kEverything nothing is recomputed, and nothing is offloaded; take "
               "kProducts, kAttention or kNothing");
}

size_t bytes_of(const Arrays& arrays) {
  std::vector<const Storage*> storages;
  size_t bytes = 0;
  for (const Array& a : arrays) {
    const Storage* own = a.storage().get();
    if (std::find(storages.begin(), storages.end(), own) != storages.end()) continue;
    storages.push_back(own);
    bytes += own->bytes;
  }
  return bytes;
}

RecomputeBytes bytes_kept(const KeptResults& kept, const Arrays& results) {
  RecomputeBytes bytes;
  for (const Keep choice : {Keep::kNothing, Keep::kAttention, Keep::kProducts}) {
    Arrays all = kept.arrays(choice);
    all.insert(all.end(), results.begin(), results.end());
    bytes.of(choice) = bytes_of(all);
  }
  return bytes;
}

Variables recompute(RecomputedFunction f, const Variables& inputs) {
  return recompute(std::move(f), {}, inputs);
}

Variables recompute(RecomputedFunction f, const RecomputeOptions& options,
                    const Variables& inputs) {
  CATENA_CHECK(ValueError, bool(f.call), kName, ": expected a function, got an empty one");
  check_options(options);
  if (!is_recording() || (options.keep == Keep::kEverything && !options.budget))
    return f.call(inputs);
  FunctionCall call(kName, Autocast::kNone, inputs);
  RandomLog log;
  KeptResults kept(options.budget ? Keep::kProducts : options.keep);
  UsedParameters used;
  Offloaded offloaded = offload_inputs(options, call);
  const Surroundings surroundings;
  Results results;
  {
    const FirstRun not_recorded;
    const FunctionHookScope hook(used);
    const RandomLogScope numbers(log, RandomLogScope::Mode::kNote);
    const KeptResultsScope keeping(kept, KeptResultsScope::Mode::kNote);
    Variables constants;
    for (const Variable* x : call.inputs()) constants.push_back(Variable::constant(x->data()));
    results = Results(f.call(constants));
  }
  if (options.budget) kept.reduce_to(choice_within(*options.budget, kept, results.arrays));
  offload_kept(offloaded, kept);
  for (const Variable& parameter : used.parameters) call.add(parameter);
  const void* frame = __builtin_frame_address(0);
  const Variables distinct = call.record(results.arrays, [&] {
    const auto is_saved = [&, on_host = offloaded.inputs](size_t i) {
      return std::none_of(on_host.begin(), on_host.end(),
                          [&](size_t other) { return same_variable(call[other], call[i]); });
    };
    auto node =
        make_node<RecomputeNode>(std::move(f), frame, std::move(log), std::move(kept),
                                 std::move(offloaded), surroundings, inputs.size(), results.place);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (is_saved(i)) node->save_input(static_cast<int>(i), call[i]);
    return node;
  });
  for (size_t j = 0; j < distinct.size(); ++j)
    if (results.means[j]) distinct[j].node()->mean = results.means[j];
  Variables ys;
  for (const size_t j : results.place) ys.push_back(distinct[j]);
  return ys;
}

}  // namespace catena::functions
