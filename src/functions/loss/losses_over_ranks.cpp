#include "functions/loss/losses_over_ranks.h"

#include <limits>

#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/kernels/loss.h"
#include "functions/common/along_axis.h"

namespace catena::functions {
namespace {

// Rows of a message. The kernel writes the first two; those from the label to the number of classes
// are known without scores; the last is sent with label smoothing alone.
constexpr int64_t kLargest = 0, kLogSum = 1, kLabel = 2, kFirst = 3, kClasses = 4, kPicked = 5,
                  kBelow = 6;

// Labels of which the kernels find no score here.
constexpr int32_t kIgnored = -1, kElsewhere = -2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t rows_of(const LinearCrossEntropyOptions& options) {
  return options.label_smoothing > 0 ? kBelow + 1 : kBelow;
}

void wait_for(const Event& event, Device device) {
  if (event) current_stream(device).wait(event);
}

// A row of all messages, (ranks, tokens).
Array row(const Array& all, int64_t i) { return all(Slice(), i); }

// The loss of each token, (tokens), of the whole rows of scores; lse as the kernel gives it.
Array losses_of(const Array& all, const Array& lse, const LinearCrossEntropyOptions& options,
                int64_t classes) {
  const double s = options.label_smoothing;
  const Array largest = lse(0), log_sum = lse(1);
  Array losses = (largest - catena::sum(row(all, kPicked), 0)) + log_sum;
  if (s > 0) {
    const Array below =
        catena::sum(row(all, kBelow) + row(all, kClasses) * (largest - row(all, kLargest)), 0);
    losses = losses * (1 - s) + below * (s / static_cast<double>(classes)) + log_sum * s;
  }
  if (options.z_loss == 0) return losses;
  const Array sum = largest + log_sum;
  return losses + sum * sum * options.z_loss;
}

// Whether a token has the same label on all ranks, and each rank's classes begin where those of the
// one before end, (tokens).
Array fits(const Array& all) {
  const Array labels = row(all, kLabel), first = row(all, kFirst), end = first + row(all, kClasses);
  const Array gap = catena::abs(first(Slice(1, none)) - end(Slice(0, -1)));
  return logical_and(equal(catena::amax(labels, 0), catena::amin(labels, 0)),
                     equal(catena::sum(gap, 0), 0.0));
}

// ValueError, on all ranks alike, where they do not fit. Waits for the messages.
void check_fit(const char* who, const Array& all) {
  const auto numbers = [&](int64_t i) {
    return row(all, i).astype(Dtype::kInt64).to_vector<int64_t>();
  };
  const std::vector<int64_t> labels = numbers(kLabel), first = numbers(kFirst),
                             classes = numbers(kClasses);
  const size_t ranks = size_t(all.shape()[0]), tokens = size_t(all.shape()[2]);
  for (size_t rank = 1; rank < ranks; ++rank) {
    const size_t own = rank * tokens, before = own - tokens;
    CATENA_CHECK(ValueError, first[own] == first[before] + classes[before], who, ": the rows of W ",
                 "do not join: rank ", rank - 1, " has the ", classes[before],
                 " classes from class ", first[before], " on, rank ", rank, " the ", classes[own],
                 " from class ", first[own], " on; make W with parallel::part_of_whole, or give ",
                 "all ranks equally many rows");
    for (size_t i = 0; i < tokens; ++i)
      CATENA_CHECK(ValueError, labels[own + i] == labels[i], who, ": token ", i, " has the label ",
                   labels[i], " on rank 0 and ", labels[own + i], " on rank ", rank,
                   "; all ranks of the communicator take the same tokens");
  }
}

}  // namespace

LossesOverRanks::LossesOverRanks(const char* who, const Matrices& m,
                                 const LinearCrossEntropyOptions& options,
                                 const ClassesOverRanks& ranks)
    : who_(who), m_(m), options_(options), ranks_(ranks) {
  const Array &t = m.t, ignored = equal(t, options.ignore_label);
  const ArrayOptions wide{m.wide(), t.device()};
  const int64_t first = ranks.first, end = first + m.classes();
  is_own_ = logical_and(logical_and(greater_equal(t, first), less(t, end)), logical_not(ignored));
  labels_ = catena::where(is_own_, t - first, catena::where(ignored, kIgnored, kElsewhere))
                .astype(Dtype::kInt32);
  const Shape each{m.tokens()};
  known_ = catena::stack({t.reshape(each).astype(m.wide()), full(each, double(first), wide),
                          full(each, double(m.classes()), wide)});
  nothing_ = full({}, 1.0, wide);
  if (options.label_smoothing == 0 && options.z_loss == 0) return;
  const double spread = options.label_smoothing / static_cast<double>(ranks.classes);
  spread_ = full({m.classes()}, spread, wide);
}

// What this rank's scores say. Sums of scores are made in float64: what they have in common may be
// much larger than what they differ by.
void LossesOverRanks::measure(const Array& z, const Slice& part, const Array& message) const {
  const int64_t count = z.shape()[0], classes = z.shape()[1];
  const Array x = z.reshape({count, classes, 1}), t = labels_(part),
              lse = message(Slice(kLargest, kLogSum + 1)).reshape({2, count, 1});
  kernels::softmax_cross_entropy(x.device(), {&x, &t, kIgnored, true, &lse, &nothing_, &nothing_});
  const Array picked = catena::where(is_own_(part), pick_along_axis(z, t, 1), 0.0);
  message(kPicked).assign(picked.reshape({count}));
  if (options_.label_smoothing == 0) return;
  const Array sums = catena::sum(z, {.axes = {1}, .dtype = Dtype::kFloat64});
  message(kBelow).assign(message(kLargest).astype(Dtype::kFloat64) * double(classes) - sums);
}

Statistics LossesOverRanks::send(const Array& z, const Slice& part) const {
  const int64_t count = z.shape()[0], rows = rows_of(options_);
  const Array own = Array::uninitialized({rows, count}, m_.wide(), z.device()),
              all = Array::uninitialized({ranks_.ranks * rows, count}, m_.wide(), z.device());
  own(Slice(kLabel, kPicked)).assign(known_(Slice(), part));
  if (m_.classes() > 0) {
    measure(z, part, own);
  } else {
    own(kLargest).fill(std::numeric_limits<float>::lowest());
    own(kLogSum).fill(-kInfinity);
    own(Slice(kPicked, rows)).fill(0);
  }
  const Event arrival = ranks_.gather(own, all);
  return {all.reshape({ranks_.ranks, rows, count}), arrival};
}

// As the kernel of the gradient takes them: of all probabilities, the label and the spread.
Array LossesOverRanks::factors_of(const Array& lse, const Array& given, int64_t count) const {
  const Array each = given.defined() ? given.reshape({count, 1})
                                     : full({count, 1}, 1.0, {m_.wide(), lse.device()});
  if (!spread_.defined()) return each.contiguous().reshape({1, count, 1});
  Array all = each;
  if (options_.z_loss != 0)
    all = each * ((lse(0) + lse(1)).reshape({count, 1}) * (2 * options_.z_loss) + 1);
  return catena::stack({all, each * (1 - options_.label_smoothing), each});
}

void LossesOverRanks::receive(const Array& z, const Slice& part, const Statistics& statistics,
                              const Array& factors, bool losses_only) {
  wait_for(statistics.arrival, z.device());
  const Array &all = statistics.all, largest = row(all, kLargest), log_sums = row(all, kLogSum);
  const Array top = catena::amax(largest, 0);
  // A rank whose classes all have the probability 0 adds nothing.
  const Array sums =
      catena::where(equal(largest, -kInfinity), 0.0, catena::exp((largest - top) + log_sums));
  const Array lse = catena::stack({top, catena::log(catena::sum(sums, 0))});
  messages_.push_back(all);
  lse_.push_back(lse);
  if (losses_only || z.size() == 0) return;
  const int64_t count = z.shape()[0];
  const Array x = z.reshape({count, m_.classes(), 1}), t = labels_(part),
              weights = factors_of(lse, factors, count);
  const CrossEntropyCall forward{&x, &t, kIgnored, true, &lse, &nothing_, &nothing_};
  kernels::softmax_cross_entropy_grad(
      x.device(), {forward, nothing_, x, &weights, spread_.defined() ? &spread_ : nullptr});
}

void LossesOverRanks::finish(const Array& losses) const {
  wait_for(sum_, losses.device());
  if (messages_.empty()) return;
  const Array all = catena::concatenate(messages_, 2), lse = catena::concatenate(lse_, 1);
  if (losses.device().is_cpu()) check_fit(who_, all);
  const Array t = m_.t.reshape({m_.tokens()}), ignored = equal(t, options_.ignore_label);
  const Array has_class =
      logical_or(ignored, logical_and(greater_equal(t, 0), less(t, ranks_.classes)));
  const Array counted = catena::where(ignored, 0.0, losses_of(all, lse, options_, ranks_.classes));
  const Array right = catena::where(logical_and(has_class, fits(all)), counted,
                                    std::numeric_limits<double>::quiet_NaN());
  losses.assign(right.reshape(losses.shape()));
}

}  // namespace catena::functions
