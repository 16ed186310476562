// Function calls that somebody watches, and the errors of all of them.
#include "catena/autograd/function_call.h"

#include <vector>

#include "autograd/hooked_thread.h"
#include "autograd/parameter_uses.h"
#include "catena/autograd/linear_map.h"
#include "catena/autograd/parameter.h"

namespace catena {

// What a watched call keeps until its end.
struct FunctionCall::Watch {
  explicit Watch(const char* name) : scope(name) {}
  CallScope scope;
  std::vector<Variable> casts;
  std::optional<int64_t> work;
  bool is_told = false;    // hooks have heard of the beginning
  bool has_ended = false;  // and of the end
};

FunctionCall::FunctionCall(const char* name, Autocast row, std::span<const Variable> operands)
    : name_(name) {
  for (const Variable& v : operands) take(v);
  begin(row);
}

FunctionCall::FunctionCall(const char* name, Autocast row,
                           std::span<const Variable* const> operands)
    : name_(name) {
  for (const Variable* v : operands) take(v);
  begin(row);
}

std::string FunctionCall::label() const {
  for (const Variable* v : inputs_) {
    const VariableNode* node = v->body()->node.get();
    if (node == nullptr || node->parameter == nullptr) continue;
    const std::string path = path_of(*node->parameter);
    const size_t end = path.rfind('/');
    if (end != std::string::npos) return message(name_, " '", path.substr(0, end), "'");
  }
  return name_;
}

namespace {

// The dtype that an operand gets by the row; `widest` of the floats among all.
Dtype wanted(Autocast row, Dtype given, Dtype low, Dtype widest) {
  if (!is_float(given) || given == Dtype::kFloat64) return given;
  switch (row) {
    case Autocast::kNone: return given;
    case Autocast::kLow: return low;
    case Autocast::kFloat32: return Dtype::kFloat32;
    case Autocast::kWidest: return widest;
  }
  return given;
}

// The parameter that the variable is, or null.
ParameterState* parameter_of(const Variable& v) {
  const VariableNode* node = v.body()->node.get();
  return node == nullptr ? nullptr : node->parameter;
}

// The operand in the dtype. Parameters keep a copy in 16 bits, which their next uses share.
Variable cast_operand(const Variable& v, Dtype dtype) {
  ParameterState* parameter = is_narrow_float(dtype) ? parameter_of(v) : nullptr;
  return parameter ? detail::cast(v, dtype, parameter->low(dtype)) : detail::cast(v, dtype);
}

}  // namespace

void FunctionCall::watch(Autocast row) {
  auto watch = std::make_unique<Watch>(name_);
  if (cuda::anybody_captures())
    for (const Variable* v : inputs_)
      if (ParameterState* parameter = parameter_of(*v)) parameter->use_in_graph();
  if (detail::call_watchers.load(std::memory_order_relaxed) != 0) {
    begin_use();
    for (const Variable* v : inputs_)
      if (ParameterState* parameter = parameter_of(*v); parameter && !parameter->before_use())
        parameter->fail_absent(label());
    refuse_freed_parameters();
    if (AutocastScope::low() != Dtype::kFloat32) {
      Dtype widest = AutocastScope::low();
      for (const Variable* v : inputs_)
        if (is_float(v->dtype()) && itemsize(v->dtype()) > itemsize(widest)) widest = v->dtype();
      watch->casts.reserve(inputs_.size());
      for (const Variable*& v : inputs_) {
        const Dtype dtype = wanted(row, v->dtype(), AutocastScope::low(), widest);
        if (dtype == v->dtype()) continue;
        v = &watch->casts.emplace_back(cast_operand(*v, dtype));
      }
    }
    HookedThread::tell(&FunctionHook::forward_begins, *this);
    watch->is_told = true;
  }
  watch_ = watch.release();
}

void FunctionCall::set_work(int64_t multiply_adds) { watch_->work = multiply_adds; }

std::optional<int64_t> FunctionCall::work() const { return watch_ ? watch_->work : std::nullopt; }

void FunctionCall::tell_outputs(std::span<const Array> outputs) {
  outputs_ = outputs;
  watch_->has_ended = true;
  if (watch_->is_told) HookedThread::tell_in_reverse(&FunctionHook::forward_ends, *this);
}

void FunctionCall::end() noexcept {
  outputs_ = {};
  if (watch_->is_told && !watch_->has_ended)
    HookedThread::tell_in_reverse(&FunctionHook::forward_ends, *this);
  delete watch_;
}

bool FunctionCall::is_recorded() const {
  bool wants = false, is_volatile = false, has_root = false;
  for (const Variable* input : inputs_) {
    is_volatile |= input->is_volatile();
    wants |= input->requires_grad();
    has_root |= !input->is_volatile() && input->requires_grad() && !input->body()->node->parameter;
  }
  if (is_volatile) [[unlikely]] {
    CATENA_CHECK(GradientError, !has_root, label(),
                 ": volatile and recorded variables cannot be mixed in one call; "
                 "make all inputs volatile, or none");
    return false;
  }
  return wants && is_recording();
}

Variable FunctionCall::constant(const Array& output) const {
  Variable v = Variable::constant(output);
  for (const Variable* input : inputs_) {
    if (input->is_volatile()) v.body()->is_volatile = true;
  }
  return v;
}

// What was brought for one operand may have taken the place of another one's.
void FunctionCall::refuse_freed_parameters() const {
  for (const Variable* v : inputs_) {
    const ParameterState* parameter = parameter_of(*v);
    CATENA_CHECK(ValueError, parameter == nullptr || !parameter->data->is_absent, label(),
                 ": the values of parameter '", parameter->name,
                 "' were freed when those of later operands came: one call uses parameters of more "
                 "parts of the model than are kept at once; make fewer, larger parts "
                 "(BucketOptions::units), or split the call");
  }
}

void FunctionCall::refuse_undefined() const {
  fail<ValueError>(name_, ": got an undefined variable");
}

void FunctionCall::refuse_devices() const {
  const std::string who = label();
  for (const Variable* v : inputs_) check_same_device(who.c_str(), inputs_[0]->data(), v->data());
  __builtin_unreachable();
}

}  // namespace catena
