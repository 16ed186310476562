// Learning rates as functions of the step: optimizer.set_lr(schedule(step)) before an update.
//
// `step` counts finished updates (or epochs, or whatever the caller counts), from 0. On a GPU the
// rate is a value on the device, so that the same line works between graph replays.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace catena::optimizers {

// The learning rate at a step. What one of your own refers to must live as long as its users.
using Schedule = std::function<double(int64_t step)>;

// base * rate^step.
Schedule exponential(double base, double rate);
// base * factor^(step / every), the quotient rounded down.
Schedule step_decay(double base, double factor, int64_t every);
// base * factor^n, where n of the milestones are at or before the step: multi_step(0.1, 0.1, {30,
// 60, 80}). ValueError unless the milestones are positive and ascend.
Schedule multi_step(double base, double factor, std::vector<int64_t> milestones);
// final + (base - final) * (1 - step / total)^power; final from `total` on.
Schedule polynomial(double base, double final, int64_t total, double power = 1);
// final + (base - final) * (1 + cos(pi step / total)) / 2; final from `total` on (I. Loshchilov and
// F. Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017, one cycle).
Schedule cosine(double base, double final, int64_t total);
// then(0) * (step + 1) / warmup in the first `warmup` steps, then(step - warmup) afterwards.
Schedule linear_warmup(int64_t warmup, Schedule then);

// base * min(n / warmup, sqrt(warmup / n)) with n = step + 1: rises to base in `warmup` steps, then
// falls (A. Vaswani et al., Attention is all you need, NeurIPS 2017, where base is
// 1 / sqrt(size * warmup)).
Schedule inverse_square_root(double base, int64_t warmup);

// The numbers of one_cycle.
struct OneCycleOptions {
  double rise = 0.3;       // share of the steps until the highest rate, of (0, 1)
  double first = 1 / 25.;  // the first rate is most * first
  double last = 1e-4;      // the last one is most * first * last
};
// Half a cosine up to `most`, half a cosine down; the last rate is that of step total - 1 (L.
// Smith, N. Topin, Super-convergence: very fast training of neural networks using large learning
// rates, 2017). ValueError unless 0 < rise < 1, and rise * total is more than 1 and less than
// total.
Schedule one_cycle(double most, int64_t total, const OneCycleOptions& options = {});

// factor * then(step).
Schedule scaled(double factor, Schedule then);
// Linear scaling with a warm-up, for training on `ranks` ranks with a schedule that was made for
// one: the global batch is `ranks` times as large, and so is the rate. The first `warmup` steps
// raise the factor from 1 to `ranks`, (1 + (ranks - 1) * step / warmup) * then(step); afterwards
// ranks * then(step). Unlike linear_warmup it does not delay `then` (P. Goyal et al., Accurate,
// large minibatch SGD: training ImageNet in 1 hour, 2017; Horovod's LearningRateWarmupCallback).
// ValueError for fewer than 1 rank and a negative warmup; 0 is without.
//
//   trainer.schedule(optimizers::scaled_warmup(comm->size(), 5 * steps_of_an_epoch,
//                                              optimizers::step_decay(0.1, 0.1, ...)),
//                    {.iterations = 1});
Schedule scaled_warmup(int64_t ranks, int64_t warmup, Schedule then);
// The rate for batches of `batch` samples where `base` is good for `base_batch`: the same rule for
// one number. ValueError unless both are positive.
double linearly_scaled(double base, int64_t batch, int64_t base_batch);

}  // namespace catena::optimizers
