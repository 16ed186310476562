// Rule by which a loss scale changes after an update, compiled by g++ and nvcc alike. LossScaleCall
// (catena/kernels/optimizer.h) describes the numbers. Includes nothing; the includer defines
// CATENA_FN.
#pragma once

namespace catena {
namespace rules {

struct LossScaleState {
  double scale, inverse, good_steps, found, skipped;
};

struct LossScaleRule {
  double growth, backoff, least, most, interval;
};

CATENA_FN void advance_loss_scale(LossScaleState& s, const LossScaleRule& rule) {
  double scale = s.scale;
  s.good_steps = s.found == 0 ? s.good_steps + 1 : 0;
  if (s.found != 0) {
    scale = scale * rule.backoff;
    s.skipped = s.skipped + 1;
  } else if (s.good_steps >= rule.interval) {
    scale = scale * rule.growth;
    s.good_steps = 0;
  }
  s.scale = scale < rule.least ? rule.least : scale > rule.most ? rule.most : scale;
  s.inverse = 1 / s.scale;
  s.found = 0;
}

}  // namespace rules
}  // namespace catena
