// Learning rates as functions of the step: optimizer.set_lr(schedule(step)) before an update.
//
// `step` counts finished updates (or epochs, or whatever the caller counts), from 0. On a GPU the
// rate is a value on the device, so that the same line works between graph replays.
#pragma once

#include <cstdint>
#include <functional>

namespace catena::optimizers {

// The learning rate at a step.
using Schedule = std::function<double(int64_t step)>;

// base * rate^step.
Schedule exponential(double base, double rate);
// base * factor^(step / every), the quotient rounded down.
Schedule step_decay(double base, double factor, int64_t every);
// final + (base - final) * (1 - step / total)^power; final from `total` on.
Schedule polynomial(double base, double final, int64_t total, double power = 1);
// final + (base - final) * (1 + cos(pi step / total)) / 2; final from `total` on (I. Loshchilov and
// F. Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017, one cycle).
Schedule cosine(double base, double final, int64_t total);
// (step + 1) / warmup of then(0) for the first `warmup` steps, then then(step - warmup).
Schedule linear_warmup(int64_t warmup, Schedule then);

}  // namespace catena::optimizers
