#include "catena/optimizers/hooks.h"

#include <cmath>
#include <memory>
#include <unordered_map>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random_state.h"
#include "core/compute_dtype.h"

namespace catena::optimizers {

Hook Lasso(double rate) {
  CATENA_CHECK(ValueError, rate >= 0, "Lasso: expected a rate of at least 0, got ", rate);
  return [rate](UpdateContext& update) { update.add_sign_decay(rate); };
}

Hook gradient_hard_clipping(double lower, double upper) {
  CATENA_CHECK(ValueError, lower <= 0 && upper >= 0 && lower < upper,
               "gradient_hard_clipping: expected bounds around 0, got ", lower, " and ", upper);
  return [lower, upper](UpdateContext& update) {
    update.apply();
    for (const ParameterArena& arena : update.optimizer().layout().arenas()) {
      const Array& gradient = arena.gradient().memory;
      if (gradient.size() == 0) continue;
      const DeviceScope scope(arena.device());
      clip(gradient, lower, upper, gradient);
    }
  };
}

namespace {

// A key for each parameter, whose generators are independent of each other (SplitMix64; Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t key_of(uint64_t seed, int64_t parameter) {
  uint64_t z = seed + (uint64_t(parameter) + 1) * 0x9e37'79b9'7f4a'7c15u;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebu;
  return z ^ (z >> 31);
}

// Normal noise of each parameter from a generator of its own, so that it depends neither on the
// layout of arenas nor on which parts of them are here.
class ParameterNoise {
 public:
  explicit ParameterNoise(uint64_t seed) : seed_(seed) {}

  // gradient += deviation * noise, of the elements that are kept here.
  void add_to(const ParameterArena& arena, const Array& deviation) {
    const Dtype dtype = compute_dtype(arena.dtype());
    const Array factor = deviation.astype(dtype, false);
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const Block& gradient = arena.gradient();
      const ElementRange all{slot.offset, slot.offset + slot.size};
      const ElementRange here = intersection(all, gradient.covers);
      if (here.size() == 0) continue;
      const Array whole = of(slot.index).normal({slot.size}, 0, 1.0, {dtype, arena.device()});
      const Array noise = whole(Slice(here.begin - all.begin, here.end - all.begin));
      const Array part = gradient.part(here);
      multiply(noise, factor, noise);
      add(part, noise, part);
    }
  }

 private:
  RandomState& of(int64_t parameter) {
    const auto [found, is_new] = generators_.try_emplace(parameter, nullptr);
    if (is_new) found->second = std::make_unique<RandomState>(key_of(seed_, parameter));
    return *found->second;
  }

  uint64_t seed_;
  std::unordered_map<int64_t, std::unique_ptr<RandomState>> generators_;  // by place in declaration
};

}  // namespace

Hook GradientNoise(double eta, double gamma, uint64_t seed) {
  CATENA_CHECK(ValueError, std::isfinite(eta) && std::isfinite(gamma) && eta >= 0 && gamma >= 0,
               "GradientNoise: expected finite numbers of at least 0, got eta ", eta, " and gamma ",
               gamma);
  const auto noise = std::make_shared<ParameterNoise>(seed);
  return [eta, gamma, noise](UpdateContext& update) {
    update.apply();
    const auto& arenas = update.optimizer().layout().arenas();
    for (size_t i = 0; i < arenas.size(); ++i) {
      if (arenas[i].size() == 0) continue;
      const DeviceScope scope(arenas[i].device());
      const Array steps = add(update.updates(i), 1.0);
      noise->add_to(arenas[i], multiply(power(steps, -gamma / 2), std::sqrt(eta)));
    }
  };
}

}  // namespace catena::optimizers
