#include "catena/array/random.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "catena/array/slots.h"

namespace catena {
namespace {

Array run(RandomState& state, const Shape& shape, Dtype dtype, std::optional<Device> device, RandomCall call) {
  Array result = Array::uninitialized(shape, dtype, device.value_or(current_device()));
  if (result.size() == 0) return result;
  call.bits = state.reserve(static_cast<uint64_t>(result.size()));
  call.output = &result;
  kernels::random(result.device(), call);
  return result;
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
  CATENA_CHECK(DtypeError, is_int(dtype), "integers: expected an integer dtype, got ", dtype);
  CATENA_CHECK(ValueError, low < high, "integers: empty range [", low, ", ", high, ")");
  CATENA_CHECK(ValueError, Scalar(low).fits(dtype) && Scalar(high - 1).fits(dtype), "integers: [", low, ", ", high,
               ") does not fit ", dtype);
}

uint64_t initial_seed() {
  if (const char* text = std::getenv("CATENA_SEED")) return std::strtoull(text, nullptr, 10);
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) | entropy();
}

struct Defaults {
  std::mutex mutex;
  uint64_t seed = initial_seed();
  std::unique_ptr<RandomState> states[kDeviceTypeCount][kMaxDevices];
};
Defaults& defaults() {
  static Defaults* d = new Defaults;
  return *d;
}

}  // namespace

RandomState::RandomState(uint64_t seed_value) : state_{seed_value, 0} {}
void RandomState::seed(uint64_t value) { state_ = {value, 0}; }

RandomBits RandomState::reserve(uint64_t blocks) {
  const RandomBits bits{state_.seed, state_.offset, nullptr};
  state_.offset += blocks;
  return bits;
}

Array RandomState::uniform(const Shape& shape, double low, double high, Dtype dtype, std::optional<Device> device) {
  CATENA_CHECK(DtypeError, is_float(dtype), "uniform: expected a floating dtype, got ", dtype);
  return run(*this, shape, dtype, device, call_of(RandomKind::kUniform, low, high));
}

Array RandomState::normal(const Shape& shape, double mean, double deviation, Dtype dtype, std::optional<Device> device) {
  CATENA_CHECK(DtypeError, is_float(dtype), "normal: expected a floating dtype, got ", dtype);
  CATENA_CHECK(ValueError, deviation >= 0, "normal: expected a deviation of at least 0, got ", deviation);
  return run(*this, shape, dtype, device, call_of(RandomKind::kNormal, mean, deviation));
}

Array RandomState::integers(const Shape& shape, int64_t low, int64_t high, Dtype dtype, std::optional<Device> device) {
  check_bounds(low, high, dtype);
  RandomCall call = call_of(RandomKind::kIntegers, 0, 0);
  call.ilow = low;
  call.range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return run(*this, shape, dtype, device, call);
}

Array RandomState::bernoulli(const Shape& shape, double p, std::optional<Device> device) {
  CATENA_CHECK(ValueError, p >= 0 && p <= 1, "bernoulli: expected a probability of [0, 1], got ", p);
  return run(*this, shape, Dtype::kBool, device, call_of(RandomKind::kBernoulli, 0, p));
}

Array RandomState::permutation(int64_t n, std::optional<Device> device) {
  CATENA_CHECK(ValueError, n >= 0, "permutation: expected a length of at least 0, got ", n);
  Array result = Array::uninitialized({n}, Dtype::kInt64, device.value_or(current_device()));
  if (n > 0) kernels::permutation(result.device(), reserve(static_cast<uint64_t>(n)), result);
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

Array uniform(const Shape& shape, double low, double high, Dtype dtype) { return default_state().uniform(shape, low, high, dtype); }
Array normal(const Shape& shape, double mean, double deviation, Dtype dtype) {
  return default_state().normal(shape, mean, deviation, dtype);
}
Array integers(const Shape& shape, int64_t low, int64_t high, Dtype dtype) {
  return default_state().integers(shape, low, high, dtype);
}
Array bernoulli(const Shape& shape, double p) { return default_state().bernoulli(shape, p); }
Array permutation(int64_t n) { return default_state().permutation(n); }

}  // namespace random

}  // namespace catena
