#include "catena/array/random.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>

#include "array/launch_input.h"
#include "catena/array/math.h"
#include "catena/array/random_log.h"
#include "catena/array/random_source.h"
#include "catena/core/entry_scope.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/graph.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/random.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

Array run(RandomState& state, const Shape& shape, Dtype dtype, std::optional<Device> device,
          RandomCall call) {
  Array result = Array::uninitialized(shape, dtype, device.value_or(current_device()));
  if (result.size() == 0) return result;
  call.bits = state.reserve(static_cast<uint64_t>(result.size()), result.device());
  call.output = &result;
  kernels::random(result.device(), call);
  return result;
}

// The next number of type T after v, towards minus or plus infinity.
template <class T>
T neighbour(T v, bool upwards) {
  if constexpr (sizeof(T) >= 4) {
    return std::nextafter(v, upwards ? T(HUGE_VAL) : -T(HUGE_VAL));
  } else {  // of 16 bits: magnitude and sign
    const bool zero = (v.bits & 0x7fff) == 0, negative = (v.bits & 0x8000) != 0;
    if (zero)
      v.bits = upwards ? 1 : 0x8001;
    else
      v.bits = static_cast<uint16_t>(negative == upwards ? v.bits - 1 : v.bits + 1);
    return v;
  }
}

// The number next to `high` on the side of `low`, if rounding may carry a uniform number to `high`
// itself. Kernels compute low + u * (high - low) in C and round to T. Both preserve order, so it
// suffices to check the largest u. Nothing if no number of T is between.
template <class T>
std::optional<double> uniform_bound(double from, double to) {
  using C = compute_t<T>;
  const C low = C(from), range = C(to) - low;
  const C largest = C(1) - C(sizeof(C) == 8 ? 0x1p-53 : 0x1p-24);
  const auto rounded = [](double v) { return double(compute_t<T>(T(C(v)))); };
  const double first = rounded(from), limit = rounded(to), last = rounded(low + range * largest);
  const bool upwards = first < limit;
  if (first == limit || (upwards ? last < limit : last > limit)) return {};
  return double(compute_t<T>(neighbour(T(C(to)), !upwards)));
}

// Kernels compute high - low in the compute type of the dtype.
void check_range(double low, double high, Dtype dtype) {
  const bool finite = visit_float("uniform", dtype, [&](auto tag) {
    using C = compute_t<typename decltype(tag)::type>;
    return std::isfinite(C(high) - C(low));
  });
  CATENA_CHECK(ValueError, finite, "the range [", low, ", ", high,
               ") is not finite in the dtype to draw in, ", compute_dtype(dtype),
               "; expected finite bounds whose difference does not overflow");
}

// Keeps uniform numbers off `high`. It is a separate pass, used only where rounding may reach
// `high`, so that the numbers are the same on every device, and float32 and float64 of [0, 1) cost
// nothing.
void keep_below(const Array& numbers, double low, double high) {
  const std::optional<double> bound = visit_float("uniform", numbers.dtype(), [&](auto tag) {
    return uniform_bound<typename decltype(tag)::type>(low, high);
  });
  if (!bound) return;
  if (low < high)
    minimum(numbers, *bound, numbers);
  else
    maximum(numbers, *bound, numbers);
}

RandomCall call_of(RandomKind kind, double low, double high) {
  RandomCall call{};
  call.kind = kind;
  call.low = low;
  call.high = high;
  return call;
}

// Whether v is in the range of an integer dtype.
void check_bounds(int64_t low, int64_t high, Dtype dtype) {
  CATENA_CHECK(DtypeError, is_int(dtype), "expected an integer dtype, got ", dtype);
  CATENA_CHECK(ValueError, low < high, "empty range [", low, ", ", high, ")");
  CATENA_CHECK(ValueError, Scalar(low).fits(dtype) && Scalar(high - 1).fits(dtype), "[", low, ", ",
               high, ") does not fit ", dtype);
}

uint64_t entropy() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// The seed of the environment, else a random one.
uint64_t initial_seed() {
  for (const char* name : {"CATENA_SEED", "CHAINER_SEED"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    const char* end = text + std::strlen(text);
    uint64_t seed = 0;
    const auto result = std::from_chars(text, end, seed);
    CATENA_CHECK(ValueError, result.ec == std::errc() && result.ptr == end, name, "='", text,
                 "' is not a seed; expected a whole number from 0 to 18446744073709551615");
    return seed;
  }
  return entropy();
}

struct Defaults {
  ForkMutex mutex;
  uint64_t seed = initial_seed();
  std::unique_ptr<RandomState> states[kDeviceTypeCount][kMaxDevices];
};
Defaults& defaults() {
  static Defaults* d = new Defaults;
  return *d;
}

}  // namespace

// The draws of one captured graph. Its kernels read `base`, which every launch sets to the stream's
// seed and position. It advances the stream by `blocks`.
struct CapturedDraws {
  explicit CapturedDraws(Device device)
      : base(launch_input({2}, Dtype::kUInt64, device)), seed(base(0)), position(base(1)) {}

  void store(const RandomBits& bits) {
    if (stored_seed != bits.seed) {  // rarely, so that a launch writes one number
      kernels::fill(base.device(), {seed, bits.seed});
      stored_seed = bits.seed;
    }
    kernels::fill(base.device(), {position, bits.offset});
  }

  Array base, seed, position;  // the latter are views of base
  uint64_t blocks = 0;
  std::optional<uint64_t> stored_seed;
};

struct RandomState::Shared {
  // Each of several threads that draw at once gets different numbers.
  RandomBits reserve(uint64_t blocks) {
    const std::lock_guard lock(mutex_);
    const RandomBits bits{state_.seed, state_.offset, nullptr};
    state_.offset += blocks;
    return bits;
  }
  State state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  void set_state(State state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }

  // Numbers of the graph that this thread captures.
  RandomBits reserve_captured(const std::shared_ptr<Shared>& self, uint64_t blocks, Device device) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<CapturedDraws> draws = capturing_.lock();
    if (!draws || !(graph_ == cuda::capture_id())) {
      draws = std::make_shared<CapturedDraws>(device);
      graph_ = cuda::capture_id();
      capturing_ = draws;
      cuda::add_launch_hook([self, draws] { draws->store(self->reserve(draws->blocks)); });
    }
    const RandomBits bits{state_.seed, draws->blocks, &draws->base};
    draws->blocks += blocks;
    return bits;
  }

 private:
  mutable ForkMutex mutex_;
  State state_{};
  std::weak_ptr<CapturedDraws> capturing_;  // of the graph being captured
  uint64_t graph_ = 0;
};

RandomState::RandomState() : RandomState(entropy()) {}
RandomState::RandomState(uint64_t seed_value) : shared_(std::make_shared<Shared>()) {
  seed(seed_value);
}
RandomState::RandomState(const RandomState& other) : RandomState(other.state().seed) {
  set_state(other.state());
}
RandomState& RandomState::operator=(const RandomState& other) {
  set_state(other.state());
  return *this;
}
void RandomState::seed() { seed(entropy()); }
void RandomState::seed(uint64_t value) { shared_->set_state({value, 0}); }
RandomState::State RandomState::state() const { return shared_->state(); }
void RandomState::set_state(State state) { shared_->set_state(state); }

RandomBits RandomState::reserve(uint64_t blocks, Device device) {
  RandomLogScope* const scope = RandomLogScope::innermost();
  const RandomBits* repeated = scope ? scope->repeated() : nullptr;
  RandomSourceScope* const source = RandomSourceScope::innermost();
  const RandomBits bits = repeated ? *repeated
                          : source ? source->take(blocks)
                          : device.is_cuda() && cuda::is_capturing(device)
                              ? shared_->reserve_captured(shared_, blocks, device)
                              : shared_->reserve(blocks);
  if (scope != nullptr) scope->note(bits);
  return bits;
}

RandomLogScope::RandomLogScope(RandomLog& log, Mode mode)
    : log_(log), mode_(mode), outer_(std::exchange(innermost(), this)) {}
RandomLogScope::~RandomLogScope() { innermost() = outer_; }

RandomLogScope*& RandomLogScope::innermost() {
  thread_local RandomLogScope* scope = nullptr;
  return scope;
}

const RandomBits* RandomLogScope::repeated() {
  if (mode_ == Mode::kNote) return outer_ ? outer_->repeated() : nullptr;
  CATENA_CHECK(ValueError, next_ < log_.draws_.size(),
               "random numbers: the code that is repeated draws more often than the first time (",
               log_.draws_.size(), " draws); it must take the same way again");
  return &log_.draws_[next_++];
}

void RandomLogScope::note(const RandomBits& bits) {
  for (RandomLogScope* scope = this; scope && scope->mode_ == Mode::kNote; scope = scope->outer_)
    scope->log_.draws_.push_back(bits);
}

RandomSourceScope::RandomSourceScope(const RandomBits& first)
    : next_(first), outer_(std::exchange(innermost(), this)) {}
RandomSourceScope::~RandomSourceScope() { innermost() = outer_; }

RandomSourceScope*& RandomSourceScope::innermost() {
  thread_local RandomSourceScope* scope = nullptr;
  return scope;
}

RandomBits RandomSourceScope::take(uint64_t blocks) {
  const RandomBits bits = next_;
  next_.offset += blocks;
  return bits;
}

Array RandomState::uniform(const Shape& shape, double low, std::optional<double> upper,
                           const ArrayOptions& options) {
  const EntryScope call("uniform");
  const Dtype dtype = options.dtype.value_or(default_float());
  const double high = upper.value_or(1);
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype, got ", dtype);
  check_range(low, high, dtype);
  const Array result =
      run(*this, shape, dtype, options.device, call_of(RandomKind::kUniform, low, high));
  keep_below(result, low, high);
  return result;
}

Array RandomState::normal(const Shape& shape, double mean, std::optional<double> given,
                          const ArrayOptions& options) {
  const EntryScope call("normal");
  const Dtype dtype = options.dtype.value_or(default_float());
  const double deviation = given.value_or(1);
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype, got ", dtype);
  CATENA_CHECK(ValueError, deviation >= 0, "expected a deviation of at least 0, got ", deviation);
  return run(*this, shape, dtype, options.device, call_of(RandomKind::kNormal, mean, deviation));
}

Array RandomState::integers(const Shape& shape, int64_t low, int64_t high,
                            const ArrayOptions& options) {
  const EntryScope entry("integers");
  const Dtype dtype = options.dtype.value_or(Dtype::kInt64);
  check_bounds(low, high, dtype);
  RandomCall call = call_of(RandomKind::kIntegers, 0, 0);
  call.ilow = low;
  call.range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return run(*this, shape, dtype, options.device, call);
}

Array RandomState::bernoulli(const Shape& shape, double p, std::optional<Device> device) {
  const EntryScope call("bernoulli");
  CATENA_CHECK(ValueError, p >= 0 && p <= 1, "expected a probability of [0, 1], got ", p);
  return run(*this, shape, Dtype::kBool, device, call_of(RandomKind::kBernoulli, 0, p));
}

Array RandomState::permutation(int64_t n, std::optional<Device> device) {
  const EntryScope call("permutation");
  CATENA_CHECK(ValueError, n >= 0, "expected a length of at least 0, got ", n);
  Array result = Array::uninitialized({n}, Dtype::kInt64, device.value_or(current_device()));
  if (n > 0)
    kernels::permutation(result.device(),
                         {reserve(static_cast<uint64_t>(n), result.device()), result});
  return result;
}

namespace random {

RandomState& default_state(Device device) {
  Defaults& d = defaults();
  std::lock_guard lock(d.mutex);
  auto& state = d.states[static_cast<int>(device.type())][device.index()];
  if (!state) state = std::make_unique<RandomState>(d.seed);
  return *state;
}

RandomState& default_state() { return default_state(current_device()); }

RandomState& get_random_state() { return default_state(); }

void seed(uint64_t value) {
  Defaults& d = defaults();
  std::lock_guard lock(d.mutex);
  d.seed = value;
  for (auto& type : d.states) {
    for (auto& state : type) {
      if (state) state->seed(value);
    }
  }
}

void seed(uint64_t value, Device device) { default_state(device).seed(value); }
void seed() { seed(entropy()); }
void reset_states() { seed(initial_seed()); }

Array uniform(const Shape& shape, double low, std::optional<double> upper,
              const ArrayOptions& options) {
  return default_state(options.device_or_current()).uniform(shape, low, upper, options);
}
Array normal(const Shape& shape, double mean, std::optional<double> given,
             const ArrayOptions& options) {
  return default_state(options.device_or_current()).normal(shape, mean, given, options);
}
Array integers(const Shape& shape, int64_t low, int64_t high, const ArrayOptions& options) {
  return default_state(options.device_or_current()).integers(shape, low, high, options);
}
Array bernoulli(const Shape& shape, double p, std::optional<Device> device) {
  return default_state(device.value_or(current_device())).bernoulli(shape, p, device);
}
Array permutation(int64_t n, std::optional<Device> device) {
  return default_state(device.value_or(current_device())).permutation(n, device);
}

}  // namespace random

}  // namespace catena
