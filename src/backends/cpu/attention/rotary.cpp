// Rotary positions: the angles of a position serve all heads, and all batch entries where they have
// the same positions.
#include <algorithm>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/rotary.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/rotary.h"

namespace catena::host {
namespace {

constexpr int64_t kBlock = 16;            // angles are made in whole vectors
constexpr int64_t kNanosecondsAPair = 4;  // estimated, of a cosine and a sine

// Rows of an array of four axes.
template <class C>
class Heads {
 public:
  explicit Heads(const Array& a) : elements_(a, a.shape()[3]), depth_(a.shape()[3]) {
    for (int i = 0; i < 4; ++i) steps_[i] = a.strides()[size_t(i)] / a.itemsize();
  }
  C* read(int64_t b, int64_t h, int64_t i) {
    return elements_.read(first(b, h, i), steps_[3], depth_);
  }
  C* write(int64_t b, int64_t h, int64_t i) { return elements_.write(first(b, h, i), steps_[3]); }
  void commit(int64_t b, int64_t h, int64_t i) {
    elements_.commit(first(b, h, i), steps_[3], depth_);
  }

 private:
  int64_t first(int64_t b, int64_t h, int64_t i) const {
    return b * steps_[0] + h * steps_[1] + i * steps_[2];
  }
  Elements<C> elements_;
  int64_t depth_, steps_[4];
};

// The call's frequencies, and the angles of one position.
template <class C>
class Angles {
 public:
  explicit Angles(const RotaryCall& call)
      : call_(call),
        frequencies_((call.frequencies.size() + kBlock - 1) / kBlock * kBlock),
        cos_(frequencies_.size()),
        sin_(frequencies_.size()) {
    std::copy(call.frequencies.begin(), call.frequencies.end(), frequencies_.begin());
  }
  void make(int64_t batch, int64_t i) {
    const double sin_factor = call_.inverse ? -call_.factor : call_.factor;
    loops_of<RotaryTables, C>().angles({frequencies_.data(), double(position(batch, i)),
                                        call_.factor, sin_factor, cos_.data(), sin_.data()},
                                       int64_t(frequencies_.size()));
  }
  void rotate(const C* x, C* y) const {
    const auto& loops = loops_of<RotaryTables, C>();
    const int64_t pairs = int64_t(call_.frequencies.size()), depth = call_.x->shape()[3];
    (call_.interleaved ? loops.interleaved : loops.halves)({x, cos_.data(), sin_.data(), y}, pairs);
    std::copy(x + 2 * pairs, x + depth, y + 2 * pairs);
  }

 private:
  int64_t position(int64_t batch, int64_t i) const {
    if (call_.positions == nullptr) return call_.start + i;
    const Strides& s = call_.positions->strides();
    const char* at =
        static_cast<const char*>(call_.positions->raw_data()) + batch * s[0] + i * s[1];
    return call_.start + *reinterpret_cast<const int32_t*>(at);
  }

  const RotaryCall& call_;
  std::vector<double> frequencies_;
  std::vector<C> cos_, sin_;
};

template <class C>
void rotate(const RotaryCall& call) {
  const Shape& shape = call.x->shape();
  const int64_t batch = shape[0], heads = shape[1], positions = shape[2];
  const bool alike = call.positions == nullptr || call.positions->strides()[0] == 0 || batch == 1;
  // A thread's work is a position of all batch entries, or of one.
  const auto threads = [&](int64_t units) {
    return threads_for(call.x->size() +
                       units * int64_t(call.frequencies.size()) * kNanosecondsAPair);
  };
  const bool joined = alike && positions >= 4 * threads(positions);
  const int64_t units = joined ? positions : batch * positions;
  parallel_ranges(units, 1, threads(units), [&](int64_t begin, int64_t end) {
    Angles<C> angles(call);
    Heads<C> x(*call.x), y(*call.y);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t i = unit % positions, first = joined ? 0 : unit / positions;
      angles.make(first, i);
      for (int64_t b = first; b < (joined ? batch : first + 1); ++b)
        for (int64_t h = 0; h < heads; ++h) {
          angles.rotate(x.read(b, h, i), y.write(b, h, i));
          y.commit(b, h, i);
        }
    }
  });
}

void rotary(const RotaryCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { rotate<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, rotary) { kernels::rotary.provide<&host::rotary>(DeviceType::kCpu, "cpu"); }
