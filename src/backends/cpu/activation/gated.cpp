// Gated activations and their gradients, a piece of a row at a time.
#include <algorithm>
#include <optional>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/gated.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/gated.h"

namespace catena::host {
namespace {

constexpr int64_t kPiece = 1024;        // buffers of 16-bit floats stay in the first-level cache
constexpr int64_t kNumbersPerNano = 2;  // estimated, for the number of threads

// One operand or result, which may be absent.
template <class C>
class Numbers {
 public:
  explicit Numbers(const GatedRows& rows) : step_(rows.step) {
    if (rows.array != nullptr) elements_.emplace(*rows.array, kPiece);
  }
  C* read(int64_t row, int64_t column, int64_t n) {
    return elements_->read(row * step_ + column, 1, n);
  }
  C* write(int64_t row, int64_t column) {
    return elements_ ? elements_->write(row * step_ + column, 1) : nullptr;
  }
  void commit(int64_t row, int64_t column, int64_t n) {
    if (elements_) elements_->commit(row * step_ + column, 1, n);
  }

 private:
  int64_t step_;
  std::optional<Elements<C>> elements_;
};

// Calls make() once for each thread, and what it returns with (row, column, n) for each piece.
template <class Call, class Make>
void for_pieces(const Call& call, const Make& make) {
  const int64_t of_row = (call.columns + kPiece - 1) / kPiece;
  const int threads = threads_for(call.rows * call.columns / kNumbersPerNano);
  parallel_ranges(call.rows * of_row, 1, threads, [&](int64_t begin, int64_t end) {
    auto body = make();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % of_row * kPiece;
      body(i / of_row, column, std::min(kPiece, call.columns - column));
    }
  });
}

template <class C>
void multiply(const GatedCall& call) {
  const auto loop = loops_of<GatedTables, C>().forward[int(call.function)];
  for_pieces(call, [&] {
    return [loop, gate = Numbers<C>(call.gate), x = Numbers<C>(call.x), y = Numbers<C>(call.y)](
               int64_t row, int64_t column, int64_t n) mutable {
      loop({gate.read(row, column, n), x.read(row, column, n), y.write(row, column)}, n);
      y.commit(row, column, n);
    };
  });
}

template <class C>
void multiply_back(const GatedGradCall& call) {
  const auto loop = loops_of<GatedTables, C>().backward[int(call.function)];
  for_pieces(call, [&] {
    return [loop, gate = Numbers<C>(call.gate), x = Numbers<C>(call.x), gy = Numbers<C>(call.gy),
            g_gate = Numbers<C>(call.g_gate),
            gx = Numbers<C>(call.gx)](int64_t row, int64_t column, int64_t n) mutable {
      loop({gate.read(row, column, n), x.read(row, column, n), gy.read(row, column, n),
            g_gate.write(row, column), gx.write(row, column)},
           n);
      g_gate.commit(row, column, n);
      gx.commit(row, column, n);
    };
  });
}

void gated(const GatedCall& call) {
  visit_compute(call.gate.array->dtype(), [&]<class C>(TypeTag<C>) { multiply<C>(call); });
}
void gated_grad(const GatedGradCall& call) {
  visit_compute(call.gate.array->dtype(), [&]<class C>(TypeTag<C>) { multiply_back<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, gated) {
  kernels::gated.provide<&host::gated>(DeviceType::kCpu, "cpu");
  kernels::gated_grad.provide<&host::gated_grad>(DeviceType::kCpu, "cpu");
}
