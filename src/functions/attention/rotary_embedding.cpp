// Rotary positions: a linear map, whose adjoint turns by the negative angles.
#include "catena/functions/attention/rotary_embedding.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "catena/kernels/rotary.h"
#include "functions/common/indexed_map.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr const char* kRotary = "RotaryEmbedding";

// Of one depth and one set of options, with the arrays of a call.
struct Rotation {
  static constexpr const char* kName = kRotary;
  std::shared_ptr<const std::vector<double>> frequencies;
  double factor;
  bool interleaved;
  int64_t start;
  Array positions;  // int32 (batch, positions), a view; undefined: 0, 1, ...

  Array forward(const Array& x) const { return turned(x, false); }
  Array adjoint(const Array& gy) const { return turned(gy, true); }

 private:
  Array turned(const Array& x, bool inverse) const {
    const Array y = Array::uninitialized(x.shape(), x.dtype(), x.device(), x.order());
    if (y.size() > 0)
      kernels::rotary(x.device(), {.x = &x,
                                   .frequencies = *frequencies,
                                   .factor = factor,
                                   .interleaved = interleaved,
                                   .inverse = inverse,
                                   .positions = positions.defined() ? &positions : nullptr,
                                   .start = start,
                                   .y = &y});
    return y;
  }
};

// Options ---------------------------------------------------------------------------------------

bool is_above(double x, double least) { return x > least && std::isfinite(x); }

void check_scalings(const RotaryOptions& o) {
  CATENA_CHECK(ValueError, !o.llama3 || !o.yarn, kRotary,
               ": llama3 and yarn are two scalings; give one of them");
  if (const auto& s = o.llama3)
    CATENA_CHECK(ValueError,
                 is_above(s->factor, 0) && is_above(s->low, 0) && is_above(s->high, s->low) &&
                     s->original > 0,
                 kRotary,
                 ": expected of llama3 a factor above 0, low above 0, high above low and "
                 "original positions, got factor ",
                 s->factor, ", low ", s->low, ", high ", s->high, ", original ", s->original);
  if (const auto& s = o.yarn)
    CATENA_CHECK(ValueError,
                 is_above(s->factor, 0) && is_above(s->slow, 0) && is_above(s->fast, s->slow) &&
                     s->original > 0 && o.base > 1,
                 kRotary,
                 ": expected of yarn a factor above 0, slow above 0, fast above slow, "
                 "original positions and a base above 1, got factor ",
                 s->factor, ", slow ", s->slow, ", fast ", s->fast, ", original ", s->original,
                 ", base ", o.base);
}

int64_t checked_size(int64_t depth, const RotaryOptions& o) {
  const int64_t size = o.rotated.value_or(depth);
  CATENA_CHECK(ValueError, size >= 2 && size <= depth && size % 2 == 0, kRotary,
               ": expected an even number of rotated numbers from 2 to the depth, ", depth,
               ", got ", size, o.rotated ? "" : "; options.rotated chooses fewer than all");
  CATENA_CHECK(ValueError, is_above(o.base, 0), kRotary, ": expected a base above 0, got ", o.base);
  check_scalings(o);
  return size;
}

// Frequencies -----------------------------------------------------------------------------------

double scaled(double frequency, const Llama3Scaling& s) {
  const double wavelength = 2 * std::numbers::pi / frequency, length = double(s.original);
  if (wavelength < length / s.high) return frequency;
  if (wavelength > length / s.low) return frequency / s.factor;
  const double kept = (length / wavelength - s.low) / (s.high - s.low);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

// Between which pairs frequencies change from those that stay to those that are divided.
struct Ramp {
  double low, high;

  Ramp(double size, double base, const YarnScaling& s) {
    // The pair that turns so many times within the original positions.
    const auto pair = [&](double turns) {
      return size * std::log(double(s.original) / (2 * std::numbers::pi * turns)) /
             (2 * std::log(base));
    };
    low = std::max(std::floor(pair(s.fast)), 0.0);
    high = std::min(std::ceil(pair(s.slow)), size - 1);
    if (low == high) high += 0.001;
  }
  double at(double pair) const { return std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

std::vector<double> frequencies_of(int64_t size, const RotaryOptions& o) {
  std::vector<double> result;
  for (int64_t j = 0; j < size / 2; ++j)
    result.push_back(std::pow(o.base, -2 * double(j) / double(size)));
  if (o.llama3)
    for (double& f : result) f = scaled(f, *o.llama3);
  if (o.yarn) {
    const Ramp ramp(double(size), o.base, *o.yarn);
    for (size_t j = 0; j < result.size(); ++j) {
      const double share = ramp.at(double(j));
      result[j] *= share / o.yarn->factor + (1 - share);
    }
  }
  return result;
}

// The last ones of the thread serve calls with the same options, as those of queries and keys are.
std::shared_ptr<const std::vector<double>> shared_frequencies(int64_t size,
                                                              const RotaryOptions& o) {
  struct Last {
    std::vector<double> key;
    std::shared_ptr<const std::vector<double>> frequencies;
  };
  thread_local Last last;
  std::vector<double> key{double(size), o.base};
  if (o.llama3)
    key.insert(key.end(),
               {3, o.llama3->factor, o.llama3->low, o.llama3->high, double(o.llama3->original)});
  if (o.yarn)
    key.insert(key.end(),
               {4, o.yarn->factor, o.yarn->fast, o.yarn->slow, double(o.yarn->original)});
  if (key != last.key)
    last = {key, std::make_shared<const std::vector<double>>(frequencies_of(size, o))};
  return last.frequencies;
}

double factor_of(const RotaryOptions& o) {
  if (!o.yarn) return 1;
  const double own = o.yarn->factor > 1 ? 0.1 * std::log(o.yarn->factor) + 1 : 1;
  return o.yarn->attention_factor.value_or(own);
}

// Positions -------------------------------------------------------------------------------------

void check_places(const Array& places, const Shape& x) {
  CATENA_CHECK(ValueError, places.defined(), kRotary, ": positions is an undefined array");
  CATENA_CHECK(DtypeError, places.dtype() == Dtype::kInt32 || places.dtype() == Dtype::kInt64,
               kRotary, ": expected positions of int32 or int64, got ", places.dtype());
  if (x.ndim() != 4) return;  // which is an error of its own
  bool fits = places.ndim() == 1 || places.ndim() == 2;
  for (int i = 1; fits && i <= places.ndim(); ++i) {
    const int64_t extent = places.shape()[size_t(places.ndim() - i)], wanted = i == 1 ? x[2] : x[0];
    fits = extent == 1 || extent == wanted;
  }
  CATENA_CHECK(ShapeError, fits, kRotary, ": expected positions as (", x[2], ",) or (", x[0], ", ",
               x[2], "), with 1 instead of an extent where all are alike, got shape ",
               places.shape());
}

void check_heads_of(const FunctionCall& call) {
  const TypeOf x(call[0].data(), "x");
  const Checks checks(call.named(), x);
  checks.require_float(x);
  checks
      .advised(
          "Expected is x as (batch, heads, positions, depth); arrays with positions before heads "
          "become that by transpose({0, 2, 1, 3}), which copies nothing.")
      .require(x.ndim() == 4);
}

}  // namespace

Variable rotary_embedding(const VariableOperand& operand, const RotaryOptions& o) {
  Variable places;
  if (o.positions) {
    check_places(*o.positions, operand.variable(kRotary).shape());
    places = Variable::constant(*o.positions);
  }
  FunctionCall call(kRotary, Autocast::kNone, operand, o.positions ? &places : nullptr);
  check_heads_of(call);
  call.require_one_device();
  const Shape& shape = call[0].shape();
  const int64_t size = checked_size(shape[3], o);
  Rotation rotation{shared_frequencies(size, o), factor_of(o), o.interleaved, o.start, {}};
  if (!o.positions) return linear_map(call, rotation);
  const Array narrow = Labels::as_int32(*o.positions);
  rotation.positions = narrow.broadcast_to({shape[0], shape[2]});
  return indexed_map(call, rotation, 0, 1, narrow);
}

std::vector<double> rotary_frequencies(int64_t depth, const RotaryOptions& o) {
  return frequencies_of(checked_size(depth, o), o);
}

}  // namespace catena::functions
