// Local response normalization. A batch is cut into tiles of all channels by some positions, in
// which a step from channel to channel is the tile's width: then both layouts are one loop.
#include <algorithm>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/local_response.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/local_response.h"

namespace catena::host {
namespace {

template <class C>
const LocalResponseLoops<C>& loops() {
  return loops_of<LocalResponseTables, C>();
}

// The tiles of a batch: `width` adjacent positions of a sample.
class Tiles {
 public:
  explicit Tiles(const ChannelLayout& layout)
      : l_(layout),
        width_(std::clamp(kElements / l_.channels, kNarrowest, std::max(kNarrowest, l_.inner))),
        of_sample_((l_.inner + width_ - 1) / width_) {
    if (l_.inner < width_) width_ = l_.inner;
  }
  int64_t longest() const { return width_ * l_.channels; }
  int64_t channels() const { return l_.channels; }
  // Calls body(begin, end) for ranges of tiles.
  template <class F>
  void parallel(const F& body) const {
    constexpr int64_t kCost = 4;
    const int64_t count = l_.outer * of_sample_;
    parallel_ranges(count, 1, threads_for(l_.count() * l_.channels * kCost), body);
  }
  int64_t width(int64_t tile) const {
    return std::min(width_, l_.inner - tile % of_sample_ * width_);
  }
  // Calls f(position in the array, position in the tile, count) for the tile's runs.
  template <class F>
  void each_run(int64_t tile, const F& f) const {
    const int64_t first = tile / of_sample_ * l_.channels * l_.inner + tile % of_sample_ * width_;
    const int64_t n = width(tile);
    if (n == l_.inner) return f(first, int64_t{0}, n * l_.channels);
    for (int64_t c = 0; c < l_.channels; ++c) f(first + c * l_.inner, c * n, n);
  }

 private:
  static constexpr int64_t kElements = 8192, kNarrowest = 16;
  ChannelLayout l_;
  int64_t width_, of_sample_;
};

// What a thread needs for a tile: `padded` has zeros where a window leaves the channels.
template <class C>
class Workspace {
 public:
  Workspace(const Tiles& tiles, const LocalResponse& rule)
      : rule_(rule),
        half_(std::min(rule.n / 2, tiles.channels() - 1)),
        channels_(tiles.channels()),
        padded_(size_t(tiles.longest() / tiles.channels() * (channels_ + 2 * half_))),
        scale_(size_t(tiles.longest())),
        power_(scale_.size()),
        sum_(scale_.size()),
        x_(scale_.size()),
        gy_(scale_.size()) {}

  // The elements of a tile; in `memory` unless they are adjacent in the array.
  C* read(Elements<C>& from, const Tiles& tiles, int64_t tile, std::vector<C>& memory) const {
    C* direct = nullptr;
    const int64_t size = tiles.width(tile) * channels_;
    tiles.each_run(tile, [&](int64_t first, int64_t at, int64_t n) {
      C* run = from.read(first, 1, n);
      if (n == size)
        direct = run;
      else
        std::copy_n(run, n, memory.data() + at);
    });
    return direct ? direct : memory.data();
  }
  void write(Elements<C>& to, const Tiles& tiles, int64_t tile, const C* values) const {
    tiles.each_run(tile, [&](int64_t first, int64_t at, int64_t n) {
      std::copy_n(values + at, n, to.write(first, 1));
      to.commit(first, 1, n);
    });
  }

  // The scale of a tile's elements x, and its power.
  void find_scale(const C* x, int64_t width) {
    const int64_t n = width * channels_;
    loops<C>().square(x, pad(width), n);
    loops<C>().window(padded_.data(), width, 2 * half_ + 1, C(rule_.k), C(rule_.alpha),
                      scale_.data(), n);
    loops<C>().power(scale_.data(), C(rule_.beta), power_.data(), n);
  }
  void normalize(const C* x, int64_t width, C* y) {
    find_scale(x, width);
    loops<C>().multiply(x, power_.data(), y, width * channels_);
  }
  void gradient(const C* x, const C* gy, int64_t width, C* gx) {
    const int64_t n = width * channels_;
    find_scale(x, width);
    loops<C>().term(x, gy, power_.data(), scale_.data(), pad(width), n);
    loops<C>().window(padded_.data(), width, 2 * half_ + 1, C(0), C(1), sum_.data(), n);
    loops<C>().gradient(x, gy, power_.data(), sum_.data(), C(-2 * rule_.alpha * rule_.beta), gx, n);
  }

  std::vector<C>& x_memory() { return x_; }
  std::vector<C>& gy_memory() { return gy_; }
  // For results; scale_ is not needed any more when they are written.
  C* result() { return scale_.data(); }

 private:
  // Zeros before and behind the place of a tile's elements, which is returned.
  C* pad(int64_t width) {
    C* first = padded_.data();
    std::fill_n(first, half_ * width, C(0));
    std::fill_n(first + (half_ + channels_) * width, half_ * width, C(0));
    return first + half_ * width;
  }

  LocalResponse rule_;
  int64_t half_, channels_;
  std::vector<C> padded_, scale_, power_, sum_, x_, gy_;
};

template <class C>
void normalize(const LocalResponseCall& call) {
  const Tiles tiles(call.layout);
  tiles.parallel([&](int64_t begin, int64_t end) {
    Elements<C> x(*call.x, tiles.longest()), y(*call.y, tiles.longest());
    Workspace<C> w(tiles, call.rule);
    for (int64_t tile = begin; tile < end; ++tile) {
      w.normalize(w.read(x, tiles, tile, w.x_memory()), tiles.width(tile), w.result());
      w.write(y, tiles, tile, w.result());
    }
  });
}

template <class C>
void normalize_grad(const LocalResponseGradCall& call) {
  const Tiles tiles(call.layout);
  tiles.parallel([&](int64_t begin, int64_t end) {
    Elements<C> x(*call.x, tiles.longest()), gy(*call.gy, tiles.longest()),
        gx(*call.gx, tiles.longest());
    Workspace<C> w(tiles, call.rule);
    for (int64_t tile = begin; tile < end; ++tile) {
      w.gradient(w.read(x, tiles, tile, w.x_memory()), w.read(gy, tiles, tile, w.gy_memory()),
                 tiles.width(tile), w.result());
      w.write(gx, tiles, tile, w.result());
    }
  });
}

void local_response(const LocalResponseCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize<C>(call); });
}
void local_response_grad(const LocalResponseGradCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize_grad<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, local_response) {
  kernels::local_response.provide<&host::local_response>(DeviceType::kCpu, "cpu");
  kernels::local_response_grad.provide<&host::local_response_grad>(DeviceType::kCpu, "cpu");
}
