// Random arrays, permutations and dropout. See RandomCall for the numbers.
#define CATENA_FN inline
#include "device/philox.h"

#include <algorithm>
#include <memory>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/random/resolved_bits.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/random.h"

namespace catena::host {

namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kDrawCost = 8;  // nanoseconds a block, estimated

// Calls f(begin, end) over ranges of blocks of n elements.
template <class F>
void over(int64_t n, const F& f) {
  parallel_ranges(n, kBlock, threads_for(n * kDrawCost), f);
}

void bits64(const RandomCall& call, uint64_t first) {
  uint64_t* out = call.output->data<uint64_t>();
  over(call.output->size(), [&](int64_t begin, int64_t end) {
    tables().random.halves(call.bits.seed, first + uint64_t(begin / 2), out + begin, end - begin);
  });
}

// f(first block, out, n) draws numbers of type C, which are rounded to the output's dtype. Ranges
// begin at multiples of kBlock elements, so they begin with a block's first element.
template <class C, class F>
void floats(const RandomCall& call, uint64_t first, const F& f) {
  constexpr int64_t per = sizeof(C) == 8 ? 2 : 4;
  const Array& out = *call.output;
  over(out.size(), [&](int64_t begin, int64_t end) {
    if (out.dtype() == dtype_of<C>) {
      f(first + uint64_t(begin / per), out.data<C>() + begin, end - begin);
      return;
    }
    Elements<C> elements(out, kBlock);
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      f(first + uint64_t(at / per), elements.write(at, 1), n);
      elements.commit(at, 1, n);
    }
  });
}

// With the loops of a distribution for both types.
void draw(const RandomCall& c, uint64_t first, decltype(RandomLoops::uniform_float) of_float,
          decltype(RandomLoops::uniform_double) of_double) {
  const uint64_t seed = c.bits.seed;
  if (c.output->dtype() == Dtype::kFloat64) {
    floats<double>(c, first, [&](uint64_t at, double* out, int64_t n) {
      of_double(seed, at, c.low, c.high, out, n);
    });
  } else {
    floats<float>(c, first, [&](uint64_t at, float* out, int64_t n) {
      of_float(seed, at, float(c.low), float(c.high), out, n);
    });
  }
}

// Stores f(64 random bits of element i) as T.
template <class T, class F>
void from_bits(const RandomCall& call, uint64_t first, const F& f) {
  T* out = call.output->data<T>();
  over(call.output->size(), [&](int64_t begin, int64_t end) {
    uint64_t bits[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      tables().random.halves(call.bits.seed, first + uint64_t(at / 2), bits, n);
      for (int64_t i = 0; i < n; ++i) out[at + i] = f(bits[i]);
    }
  });
}

void random(const RandomCall& asked) {
  RandomCall call = asked;
  call.bits = resolved(asked.bits);
  const uint64_t first = call.bits.offset;
  const RandomLoops& loops = tables().random;
  switch (call.kind) {
    case RandomKind::kBits64: return bits64(call, first);
    case RandomKind::kUniform: return draw(call, first, loops.uniform_float, loops.uniform_double);
    case RandomKind::kNormal: return draw(call, first, loops.normal_float, loops.normal_double);
    case RandomKind::kBernoulli:
      return from_bits<bool>(call, first,
                             [&](uint64_t bits) { return philox::unit53(bits) < call.high; });
    case RandomKind::kIntegers:
      return visit_dtype(call.output->dtype(), [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_integral_v<T>) {
          from_bits<T>(call, first, [&](uint64_t bits) {
            return static_cast<T>(uint64_t(call.ilow) + philox::scaled(bits, call.range));
          });
        } else {
          fail<DtypeError>("expected an integer dtype, got ", dtype_of<T>);
        }
      });
  }
}

void permutation(const PermutationCall& call) {
  const RandomBits bits = resolved(call.bits);
  const Array& output = call.output;
  struct Key {
    uint64_t bits;
    int64_t index;
    bool operator<(const Key& other) const {
      return bits != other.bits ? bits < other.bits : index < other.index;
    }
  };
  const int64_t n = output.size();
  const std::unique_ptr<uint64_t[]> words(new uint64_t[size_t(n)]);
  const uint64_t first = bits.offset;
  over(n, [&](int64_t begin, int64_t end) {
    tables().random.bits(bits.seed, first + uint64_t(begin), words.get() + begin, end - begin);
  });
  std::vector<Key> keys(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) keys[size_t(i)] = {words[size_t(i)], i};
  std::sort(keys.begin(), keys.end());
  int64_t* out = output.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) out[i] = keys[size_t(i)].index;
}

void dropout(const DropoutCall& call) {
  const auto& [x, ratio, scale, given, y] = call;
  const RandomBits bits = resolved(given);
  const uint64_t first = bits.offset;
  const RandomLoops& f = tables().random;
  if (x.dtype() == Dtype::kFloat64) {
    over(x.size(), [&](int64_t begin, int64_t end) {
      f.dropout_double(bits.seed, first + uint64_t(begin / 4), float(ratio), scale,
                       x.data<double>() + begin, y.data<double>() + begin, end - begin);
    });
    return;
  }
  over(x.size(), [&](int64_t begin, int64_t end) {
    Elements<float> in(x, kBlock), out(y, kBlock);
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      f.dropout_float(bits.seed, first + uint64_t(at / 4), float(ratio), float(scale),
                      in.read(at, 1, n), out.write(at, 1), n);
      out.commit(at, 1, n);
    }
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, random) {
  kernels::random.provide<&host::random>(DeviceType::kCpu, "cpu");
  kernels::permutation.provide<&host::permutation>(DeviceType::kCpu, "cpu");
  kernels::dropout.provide<&host::dropout>(DeviceType::kCpu, "cpu");
}
