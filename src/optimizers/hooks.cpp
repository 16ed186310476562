#include "catena/optimizers/hooks.h"

#include <cmath>
#include <memory>

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

// Zeros in what is between the parameters of a block.
void clear_gaps(const ParameterArena& arena, const Block& block) {
  for (size_t s = 0; s < arena.slots().size(); ++s) {
    const ParameterArena::Slot& slot = arena.slots()[s];
    const ElementRange gap = intersection({slot.offset + slot.size, arena.end_of(s)}, block.covers);
    if (gap.size() > 0) block.part(gap).fill(0);
  }
}

// gradient += deviation * noise. Noise is drawn for the whole arena, whatever part of it is here.
void add_noise(const ParameterArena& arena, const Array& deviation, RandomState& random) {
  const Block& gradient = arena.gradient();
  const Dtype dtype = compute_dtype(arena.dtype());
  const Array whole = random.normal({arena.size()}, 0, 1.0, {dtype, arena.device()});
  const Array noise = whole(Slice(gradient.covers.begin, gradient.covers.end));
  multiply(noise, deviation.astype(dtype, false), noise);
  add(gradient.memory, noise, gradient.memory);
  clear_gaps(arena, gradient);
}

}  // namespace

Hook GradientNoise(double eta, double gamma, uint64_t seed) {
  CATENA_CHECK(ValueError, std::isfinite(eta) && std::isfinite(gamma) && eta >= 0 && gamma >= 0,
               "GradientNoise: expected finite numbers of at least 0, got eta ", eta, " and gamma ",
               gamma);
  const auto random = std::make_shared<RandomState>(seed);
  return [eta, gamma, random](UpdateContext& update) {
    update.apply();
    const auto& arenas = update.optimizer().layout().arenas();
    for (size_t i = 0; i < arenas.size(); ++i) {
      if (arenas[i].size() == 0) continue;
      const DeviceScope scope(arenas[i].device());
      const Array steps = add(update.updates(i), 1.0);
      add_noise(arenas[i], multiply(power(steps, -gamma / 2), std::sqrt(eta)), *random);
    }
  };
}

}  // namespace catena::optimizers
