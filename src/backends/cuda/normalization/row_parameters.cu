// Gradients of gamma and beta in normalizations of rows: sums over each channel, which read x and
// the gradient once more, by the walks of batch normalization.
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

// Sums of gy (v[0]) and of gy * xhat (v[1]).
template <class T>
struct ParameterSums {
  using C = Compute<T>;
  static constexpr int kNumbers = 2;
  C n, v[kNumbers];
  __device__ void merge(const ParameterSums& other) {
    v[0] += other.v[0];
    v[1] += other.v[1];
  }
  __device__ void store(const RowParameterArgs& args, int64_t channel) const {
    set_gradient<T>(args.beta, channel, v[0]);
    set_gradient<T>(args.gamma, channel, v[1]);
  }
};

__device__ inline int64_t quotient(int64_t a, int64_t b) {
  if (b == 1) return a;
  const uint64_t both = uint64_t(a) | uint64_t(b);
  return both >> 32 ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}

template <class T, int N, int kChannels>
struct ParameterBody {
  using C = Compute<T>;
  static constexpr Order kOrder = Order::kForward;
  static constexpr int kAhead = packs_ahead(sizeof(Pack<T, N>), 2);
  const void *x, *gy;
  const C* statistics;
  int64_t row_packs, positions, groups, rows;  // row_packs: of all channels at one position
  bool centred;
  int64_t group[kChannels];
  ParameterSums<T> sums[kChannels];

  __device__ ParameterBody(const RowParameterArgs& args, int64_t first, int64_t inner, bool active)
      : x(args.x),
        gy(args.gy),
        statistics(static_cast<const C*>(args.statistics)),
        row_packs(args.channels * args.inner / N),
        positions(args.positions),
        groups(args.groups),
        rows(args.rows),
        centred(args.centred) {
    const int64_t of_group = args.channels / args.groups;
    each_channel<kChannels>(first, inner, [&](int k, int64_t c) {
      group[k] = active ? c / of_group : 0;
      sums[k] = {};
    });
  }
  template <int U>
  __device__ void visit(const int64_t (&at)[U]) {
    Pack<T, N> px[U], pgy[U];
    load_packs(x, at, px);
    load_packs(gy, at, pgy);
#pragma unroll
    for (int u = 0; u < U; ++u) {
      // A pack of one element in a walk over rows, and any other one, is at one position.
      const int64_t base = quotient(quotient(at[u], row_packs), positions) * groups;
      Row row(*this, base + group[0]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int c = k % kChannels;
        if (kChannels > 1 && c > 0 && group[c] != group[c - 1]) row = Row(*this, base + group[c]);
        const C g = widen(pgy[u].v[k]);
        const C xhat = fused(widen(px[u].v[k]) - row.mean, row.inverse, row.shift);
        sums[c].v[0] += g;
        sums[c].v[1] = fused(g, xhat, sums[c].v[1]);
      }
    }
  }
  __device__ void finish(const RowParameterArgs& args, int64_t channel, int part, int parts) {
    store_rows<C>(args, channel, part, parts, sums);
  }
  __device__ void finish(const RowParameterArgs& args, int64_t first, int part, int parts,
                         int across, bool active) {
    store_columns<C>(args, first, part, parts, across, active, sums);
  }

 private:
  struct Row {
    C inverse, mean, shift;
    __device__ Row(const ParameterBody& body, int64_t row)
        : inverse(body.statistics[row]), mean(C(0)), shift(C(0)) {
      if (!body.centred) return;
      mean = body.statistics[body.rows + row];
      shift = -body.statistics[2 * body.rows + row] * inverse;
    }
  };
};

}  // namespace

void launch_row_parameters(Float type, const RowParameterArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, (run_sums<T, ParameterBody, ParameterSums<T>>(args, launch));)
}

}  // namespace catena::gpu
