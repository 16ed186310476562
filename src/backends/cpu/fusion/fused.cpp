// The slot of fused chains: runs blocks on threads, and reduces what the blocks compute.
#include <atomic>
#include <cstring>
#include <optional>

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cpu/copy/copy.h"
#include "backends/cpu/elementwise/transposed.h"
#include "backends/cpu/fusion/fused_block.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/reduce/reduce_source.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/reduce.h"

namespace catena::host {

namespace {

void run_map(const FusedCall& call) {
  const size_t outputs = call.program->outputs.size();
  std::vector<Dtype> wanted;
  for (size_t k = 0; k < outputs; ++k) wanted.push_back(call.outputs[k]->dtype());
  const BlockProgram program(call, wanted);
  const int64_t n = program.size();
  parallel_ranges(
      n, program.block(), threads_for(n * program.weight()), [&](int64_t begin, int64_t end) {
        char* to[kMaxFusedOperands];
        for (size_t k = 0; k < outputs; ++k) {
          to[k] =
              static_cast<char*>(call.outputs[k]->raw_data()) + begin * call.outputs[k]->itemsize();
        }
        BlockRun(program).run(begin, end - begin, to);
      });
}

// Gives a reduction the program's values. Short consecutive ranges are served from blocks that were
// computed ahead.
class FusedSource final : public ReduceSource {
 public:
  explicit FusedSource(const BlockProgram& program) : program_(program), id_(++ids()) {}

  void read(int64_t first, char* buffer, int64_t n) override {
    Thread& t = thread();
    if (t.id != id_) {
      t.run.emplace(program_);
      t.id = id_;
      t.begin = t.end = t.next = 0;
    }
    const bool follows = first == t.next;
    t.next = first + n;
    if (!follows || n * 2 > program_.block()) {
      t.run->run(first, n, &buffer);
      return;
    }
    if (first < t.begin || first + n > t.end) {
      t.begin = first;
      t.end = std::min(program_.size(), first + program_.block());
      t.ahead.resize(size_t(program_.block() * item));
      char* to = t.ahead.data();
      t.run->run(t.begin, t.end - t.begin, &to);
    }
    std::memcpy(buffer, t.ahead.data() + (first - t.begin) * item, size_t(n * item));
  }

 private:
  struct Thread {
    uint64_t id = 0;
    std::optional<BlockRun> run;
    std::vector<char> ahead;  // elements [begin, end)
    int64_t begin = 0, end = 0, next = 0;
  };
  static Thread& thread() {
    static thread_local Thread t;
    return t;
  }
  static std::atomic<uint64_t>& ids() {
    static std::atomic<uint64_t> count{0};
    return count;
  }
  const BlockProgram& program_;
  uint64_t id_;
};

// Whether the reduced elements are short runs far from each other. Computing these one by one is
// slow, so all values are stored first.
bool is_scattered(const FusedCall& call) {
  constexpr int64_t kShort = 64;
  bool outer_reduced = false, kept_between = false;
  int64_t run = 1;
  int d = call.shape.ndim() - 1;
  for (; d >= 0 && ((call.axes >> d) & 1); --d) run *= call.shape[size_t(d)];
  if (run == 1 || run >= kShort) return false;
  for (; d >= 0; --d) {
    if (call.shape[size_t(d)] == 1) continue;
    const bool reduced = (call.axes >> d) & 1;
    outer_reduced = outer_reduced || (reduced && kept_between);
    kept_between = kept_between || !reduced;
  }
  return outer_reduced;
}

void run_reduction(const FusedCall& call) {
  ReduceCall reduction{call.reduction, nullptr, call.outputs[0], call.axes, 1, false};
  if (call.mean) reduction.divisor = double(element_count(call.shape) / call.outputs[0]->size());
  if (is_scattered(call)) {
    const Array values =
        Array::uninitialized(call.shape, call.program->output_dtype(0), call.outputs[0]->device());
    FusedCall map = call;
    map.outputs[0] = &values;
    run_map(map);
    reduction.input = &values;
    return reduce(reduction);
  }
  const BlockProgram program(call, {reduce_loop_dtype(call.reduction, call.outputs[0]->dtype())});
  FusedSource source(program);
  reduce_computed(reduction, call.shape, source);
}

constexpr int64_t kTransposedSize = 65536;  // elements from which a transposed input is copied

void fused(const FusedCall& call) {
  FusedCall changed = call;
  Array copies[kMaxFusedOperands];
  for (size_t k = 0; k < call.program->inputs.size(); ++k) {
    const Array* input = call.inputs[k];
    if (input == nullptr || input->size() < kTransposedSize || !is_transposed(*input)) continue;
    copies[k] = Array::uninitialized(input->shape(), input->dtype(), input->device());
    copy({*input, copies[k]});
    changed.inputs[k] = &copies[k];
  }
  if (call.reduces)
    run_reduction(changed);
  else
    run_map(changed);
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, fused) { kernels::fused.provide<&host::fused>(DeviceType::kCpu, "cpu"); }
