// One step of an LSTM and its gradient, a sequence at a time.
#include <optional>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/lstm.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/rnn.h"

namespace catena::host {
namespace {

template <class C>
const LstmLoops<C>& loops() {
  return loops_of<LstmTables, C>();
}

// Estimated, for the number of threads: five exponentials in a vector.
constexpr int64_t kNanosecondsPerCell = 6;

// Rows of an array of (rows, columns) that may be absent.
template <class C>
class Rows {
 public:
  Rows(const Array* a, int64_t columns) : columns_(columns) {
    if (a != nullptr) elements_.emplace(*a, columns);
  }
  C* read(int64_t row) {
    return elements_ ? elements_->read(row * columns_, 1, columns_) : nullptr;
  }
  C* write(int64_t row) { return elements_ ? elements_->write(row * columns_, 1) : nullptr; }
  void commit(int64_t row) {
    if (elements_) elements_->commit(row * columns_, 1, columns_);
  }

 private:
  int64_t columns_;
  std::optional<Elements<C>> elements_;
};

// Calls body(begin, end) over ranges of sequences.
template <class F>
void for_sequences(const Array& c, const F& body) {
  parallel_ranges(c.shape()[0], 1, threads_for(c.size() * kNanosecondsPerCell), body);
}

template <class C>
void step(const LstmCellCall& call) {
  const int64_t n = call.c->shape()[1];
  for_sequences(*call.c, [&](int64_t begin, int64_t end) {
    Rows<C> gates(call.gates, 4 * n), c_prev(call.c_prev, n), activated(call.activated, 4 * n),
        c(call.c, n), h(call.h, n);
    for (int64_t s = begin; s < end; ++s) {
      loops<C>().forward(
          {gates.read(s), c_prev.read(s), activated.write(s), c.write(s), h.write(s)}, n);
      activated.commit(s);
      c.commit(s);
      h.commit(s);
    }
  });
}

template <class C>
void step_back(const LstmCellGradCall& call) {
  const int64_t n = call.c->shape()[1];
  for_sequences(*call.c, [&](int64_t begin, int64_t end) {
    Rows<C> activated(call.activated, 4 * n), c_prev(call.c_prev, n), c(call.c, n), gh(call.gh, n),
        gh_next(call.gh_next, n), gc(call.gc, n), g_gates(call.g_gates, 4 * n),
        gc_prev(call.gc_prev, n);
    for (int64_t s = begin; s < end; ++s) {
      loops<C>().backward(
          {activated.read(s), c_prev.read(s), c.read(s), gh.read(s), gh_next.read(s), gc.read(s),
           g_gates.write(s), gc_prev.write(s), call.of_gates},
          n);
      g_gates.commit(s);
      gc_prev.commit(s);
    }
  });
}

void lstm_cell(const LstmCellCall& call) {
  visit_compute(call.c->dtype(), [&]<class C>(TypeTag<C>) { step<C>(call); });
}
void lstm_cell_grad(const LstmCellGradCall& call) {
  visit_compute(call.c->dtype(), [&]<class C>(TypeTag<C>) { step_back<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, rnn) {
  kernels::lstm_cell.provide<&host::lstm_cell>(DeviceType::kCpu, "cpu");
  kernels::lstm_cell_grad.provide<&host::lstm_cell_grad>(DeviceType::kCpu, "cpu");
}
