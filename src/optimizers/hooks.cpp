#include "catena/optimizers/hooks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

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
    update.note_change({"hard clipping", {lower, upper}});
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

// A parameter of an optimizer, by its place in the order of declaration.
struct Place {
  size_t arena;
  const ParameterArena::Slot* slot;
};

std::vector<Place> by_declaration(const std::vector<ParameterArena>& arenas) {
  std::vector<Place> places;
  for (size_t a = 0; a < arenas.size(); ++a)
    for (const ParameterArena::Slot& slot : arenas[a].slots()) places.push_back({a, &slot});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.slot->index < b.slot->index; });
  return places;
}

// gradient += deviation * noise, of the elements that are kept here. All noise of the parameter is
// drawn, so that what others get depends neither on the layout nor on which parts are here.
void add_noise(const ParameterArena& arena, const ParameterArena::Slot& slot,
               const Array& deviation, RandomState& random) {
  const Array noise = random.normal({slot.size}, 0, 1.0, {deviation.dtype(), arena.device()});
  const ElementRange all{slot.offset, slot.offset + slot.size};
  const ElementRange here = intersection(all, arena.gradient().covers);
  if (here.size() == 0) return;
  const Array own = noise(Slice(here.begin - all.begin, here.end - all.begin));
  const Array gradient = arena.gradient().part(here);
  multiply(own, deviation, own);
  add(gradient, own, gradient);
}

}  // namespace

Hook GradientNoise(double eta, double gamma, uint64_t seed) {
  CATENA_CHECK(ValueError, std::isfinite(eta) && std::isfinite(gamma) && eta >= 0 && gamma >= 0,
               "GradientNoise: expected finite numbers of at least 0, got eta ", eta, " and gamma ",
               gamma);
  const auto random = std::make_shared<RandomState>(seed);
  return [eta, gamma, seed, random](UpdateContext& update) {
    update.note_change({"noise", {eta, gamma, double(seed >> 32), double(uint32_t(seed))}});
    update.apply();
    const auto& arenas = update.optimizer().layout().arenas();
    Arrays deviations;
    for (size_t i = 0; i < arenas.size(); ++i) {
      const DeviceScope scope(arenas[i].device());
      const Array steps = add(update.updates(i), 1.0);
      deviations.push_back(multiply(power(steps, -gamma / 2), std::sqrt(eta))
                               .astype(compute_dtype(arenas[i].dtype()), false));
    }
    for (const Place& place : by_declaration(arenas)) {
      const DeviceScope scope(arenas[place.arena].device());
      add_noise(arenas[place.arena], *place.slot, deviations[place.arena], *random);
    }
  };
}

}  // namespace catena::optimizers
