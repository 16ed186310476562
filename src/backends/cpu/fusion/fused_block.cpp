// See fused_block.h.
#include "backends/cpu/fusion/fused_block.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/elementwise/loop_dtype.h"

namespace catena::host {

namespace {

constexpr int64_t kCacheBytes = 32 * 1024;  // of the first-level cache, for registers
constexpr int64_t kLeastBlock = 256, kMostBlock = 4096;
constexpr int64_t kHeavy = 8;  // nanoseconds an element of an approximated function, estimated

int index_of(Dtype d) { return static_cast<int>(d); }
int64_t item_of(Dtype d) { return static_cast<int64_t>(itemsize(d)); }

}  // namespace

BlockProgram::BlockProgram(const FusedCall& call, const std::vector<Dtype>& wanted)
    : shape_(call.shape), size_(element_count(call.shape)) {
  const FusedProgram& program = *call.program;
  inputs_.reserve(program.inputs.size() + program.values.size());
  inputs_.resize(program.inputs.size());
  steps_.reserve(program.values.size());
  for (size_t k = 0; k < inputs_.size(); ++k) bind_input(call, static_cast<int>(k));
  for (size_t v = 0; v < program.values.size(); ++v) add_step(call, v);
  add_outputs(wanted, program);
  place_registers();
}

void BlockProgram::bind_input(const FusedCall& call, int k) {
  BlockInput& input = inputs_[size_t(k)];
  const Dtype dtype = call.program->inputs[size_t(k)].dtype;
  input.load = cast_of(dtype, loop_dtype(dtype));
  input.item = item_of(dtype);
  const Array* a = call.inputs[k];
  if (a == nullptr) {
    input.base = reinterpret_cast<const char*>(&call.numbers[k]);
    input.constant = true;
    return;
  }
  input.base = static_cast<const char*>(a->raw_data());
  for (int d = 0; d < a->ndim(); ++d) {
    const int64_t extent = a->shape()[size_t(d)], stride = a->strides()[size_t(d)];
    if (extent == 1) continue;
    const int last = input.ndim - 1;
    if (last >= 0 && input.strides[last] == stride * extent) {
      input.shape[last] *= extent;
      input.strides[last] = stride;
    } else {
      input.shape[input.ndim] = extent;
      input.strides[input.ndim++] = stride;
    }
  }
  input.constant =
      std::all_of(input.strides, input.strides + input.ndim, [](int64_t s) { return s == 0; });
  input.direct = input.ndim == 1 && input.strides[0] == input.item && !is_narrow_float(dtype);
}

void BlockProgram::add_step(const FusedCall& call, size_t v) {
  const FusedValue& value = call.program->values[v];
  BlockStep step;
  step.item = item_of(loop_dtype(value.dtype));
  switch (value.kind) {
    case FusedValue::kInput: step.input = value.input; break;
    case FusedValue::kNumber: {
      BlockInput number;
      number.load = cast_of(value.dtype, loop_dtype(value.dtype));
      number.constant = true;
      number.item = item_of(value.dtype);
      number.base = reinterpret_cast<const char*>(&value.bits);
      step.input = static_cast<int>(inputs_.size());
      inputs_.push_back(number);
      break;
    }
    case FusedValue::kOp: {
      const LoopEntry& entry =
          tables().loops[static_cast<int>(value.op)][index_of(loop_dtype(value.compute))];
      CATENA_CHECK(DtypeError, entry.loop != nullptr, "fuse: ", info(value.op).name,
                   " does not compute in ", value.compute, " on the CPU");
      step.loop = narrow_loop(value.op, value.compute);
      if (step.loop == nullptr) step.loop = entry.loop;
      step.takes_scalars = entry.takes_scalars;
      step.source_count = info(value.op).inputs;
      weight_ += entry.heavy ? kHeavy : 1;
      if (is_narrow_float(value.dtype)) {
        step.first = cast_of(Dtype::kFloat32, value.dtype);
        step.second = cast_of(value.dtype, Dtype::kFloat32);
        step.middle = item_of(value.dtype);
      }
      break;
    }
    case FusedValue::kCast: {
      const Dtype from = loop_dtype(call.program->values[size_t(value.source[0])].dtype);
      step.source_count = 1;
      weight_ += 1;
      step.first =
          cast_of(from, is_narrow_float(value.dtype) ? value.dtype : loop_dtype(value.dtype));
      if (is_narrow_float(value.dtype)) {
        step.second = cast_of(value.dtype, Dtype::kFloat32);
        step.middle = item_of(value.dtype);
      }
      break;
    }
  }
  for (int k = 0; k < step.source_count; ++k) {
    step.sources[k] = value.source[k];
    step.source_items[k] = steps_[size_t(value.source[k])].item;
  }
  item_ = std::max(item_, step.item);
  steps_.push_back(step);
}

void BlockProgram::add_outputs(const std::vector<Dtype>& wanted, const FusedProgram& program) {
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    const int v = program.outputs[k];
    const Dtype have = loop_dtype(program.values[size_t(v)].dtype);
    BlockStep& step = steps_[size_t(v)];
    BlockOutput output{v, cast_of(have, wanted[k]), item_of(wanted[k])};
    if (step.input < 0 && step.output < 0 && have == wanted[k]) {
      step.output = static_cast<int>(k);
      output.store = nullptr;
    }
    outputs_.push_back(output);
  }
}

// Gives every value that is not an output a register, which is reused after the value's last use.
void BlockProgram::place_registers() {
  std::vector<size_t> last(steps_.size(), 0);
  for (size_t v = 0; v < steps_.size(); ++v) {
    for (int k = 0; k < steps_[v].source_count; ++k) last[size_t(steps_[v].sources[k])] = v;
  }
  for (const BlockOutput& output : outputs_) last[size_t(output.value)] = steps_.size();
  std::vector<bool> whole(steps_.size());  // constants that some step reads element by element
  for (const BlockStep& step : steps_) {
    for (int k = 0; k < step.source_count; ++k)
      if (!step.takes_scalars) whole[size_t(step.sources[k])] = true;
  }
  for (const BlockOutput& output : outputs_) whole[size_t(output.value)] = true;
  int singles = 0;
  std::vector<int> free;
  int count = 1;  // register 0 holds the intermediate of a two-step cast
  for (size_t v = 0; v < steps_.size(); ++v) {
    BlockStep& step = steps_[v];
    const bool constant = step.input >= 0 && inputs_[size_t(step.input)].constant;
    const bool in_memory = step.input >= 0 && inputs_[size_t(step.input)].direct;
    if (constant && !whole[v]) {
      step.single = true;
      step.place = singles++;
    } else if (step.output < 0 && !in_memory) {
      if (free.empty() || constant) {
        step.place = count++;
      } else {
        step.place = free.back();
        free.pop_back();
      }
    }
    // A source's register is freed only after the result has one, so a loop never overwrites what
    // it reads.
    for (int k = 0; k < step.source_count; ++k) {
      const size_t source = size_t(step.sources[k]);
      const BlockStep& from = steps_[source];
      if (from.single) step.source_items[k] = 0;
      if (last[source] != v || from.place < 0) continue;
      if (from.input >= 0 && inputs_[size_t(from.input)].constant) continue;
      last[source] = steps_.size() + 1;  // free it once
      free.push_back(from.place);
    }
  }
  block_ = std::clamp(kCacheBytes / (count * item_) / 64 * 64, kLeastBlock, kMostBlock);
  singles_ = count * item_ * block_;
  scratch_bytes_ = size_t(singles_ + singles * 8);
}

BlockRun::BlockRun(const BlockProgram& program)
    : program_(program),
      scratch_(static_cast<char*>(::operator new[](program.scratch_bytes_, std::align_val_t{64}))),
      values_(program.steps_.size()) {
  for (size_t v = 0; v < values_.size(); ++v) {
    const BlockStep& step = program.steps_[v];
    if (step.input < 0) continue;
    const BlockInput& input = program.inputs_[size_t(step.input)];
    if (!input.constant) continue;
    values_[v] =
        step.single ? scratch_.get() + program.singles_ + 8 * step.place : place(step.place);
    input.load(input.base, 0, values_[v], step.item,
               step.single ? 1 : std::min(program.block_, program.size_));
  }
}

char* BlockRun::place(int place) const {
  return scratch_.get() + place * program_.item_ * program_.block_;
}

void BlockRun::load(const BlockStep& step, size_t v, int64_t first, int64_t n) {
  const BlockInput& input = program_.inputs_[size_t(step.input)];
  if (input.constant) return;
  if (input.direct) {
    values_[v] = const_cast<char*>(input.base) + first * input.item;
    return;
  }
  char* to = values_[v] = place(step.place);
  const int inner = input.ndim - 1;
  const int64_t extent = input.shape[inner], stride = input.strides[inner];
  int64_t column = first % extent;
  int64_t position[kMaxDims];
  const char* row = input.base;
  int64_t rest = first / extent;
  for (int d = inner - 1; d >= 0; --d) {
    position[d] = rest % input.shape[d];
    rest /= input.shape[d];
    row += position[d] * input.strides[d];
  }
  while (n > 0) {
    const int64_t count = std::min(n, extent - column);
    input.load(row + column * stride, stride, to, step.item, count);
    to += count * step.item;
    n -= count;
    column = 0;
    for (int d = inner - 1; d >= 0; --d) {
      row += input.strides[d];
      if (++position[d] < input.shape[d]) break;
      row -= input.strides[d] * input.shape[d];
      position[d] = 0;
    }
  }
}

void BlockRun::run_block(int64_t first, int64_t n, char* const* outputs) {
  char* const middle = place(0);
  for (size_t v = 0; v < values_.size(); ++v) {
    const BlockStep& step = program_.steps_[v];
    if (step.input >= 0) {
      load(step, v, first, n);
      continue;
    }
    char* const to = step.output >= 0 ? outputs[step.output] : place(step.place);
    values_[v] = to;
    if (step.loop) {
      char* pointers[4] = {to, nullptr, nullptr, nullptr};
      int64_t strides[4] = {step.item, 0, 0, 0};
      for (int k = 0; k < step.source_count; ++k) {
        pointers[k + 1] = values_[size_t(step.sources[k])];
        strides[k + 1] = step.source_items[k];
      }
      step.loop(pointers, strides, n);
      if (step.first) {
        step.first(to, step.item, middle, step.middle, n);
        step.second(middle, step.middle, to, step.item, n);
      }
    } else if (step.second) {
      step.first(values_[size_t(step.sources[0])], step.source_items[0], middle, step.middle, n);
      step.second(middle, step.middle, to, step.item, n);
    } else {
      step.first(values_[size_t(step.sources[0])], step.source_items[0], to, step.item, n);
    }
  }
  for (size_t k = 0; k < program_.outputs_.size(); ++k) {
    const BlockOutput& output = program_.outputs_[k];
    if (output.store == nullptr) continue;
    const int64_t item = program_.steps_[size_t(output.value)].item;
    output.store(values_[size_t(output.value)], item, outputs[k], output.item, n);
  }
}

void BlockRun::run(int64_t first, int64_t n, char* const* outputs) {
  char* at[kMaxFusedOperands];
  for (size_t k = 0; k < program_.outputs_.size(); ++k) at[k] = outputs[k];
  for (int64_t done = 0; done < n; done += program_.block_) {
    const int64_t count = std::min(program_.block_, n - done);
    run_block(first + done, count, at);
    for (size_t k = 0; k < program_.outputs_.size(); ++k)
      at[k] += count * program_.outputs_[k].item;
  }
}

}  // namespace catena::host
