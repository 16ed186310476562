// Attention tile by tile: the softmax of a tile of queries over tiles of keys is kept as its
// largest score and sum (Milakov and Gimelshein 2018), so that scores are in caches only.
#include <cmath>
#include <limits>

#include "backends/common/family.h"
#include "backends/cpu/attention/heads.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/runtime/parallel.h"

namespace catena::host {

namespace {

template <class C>
constexpr C kNothing = -std::numeric_limits<C>::infinity();

// What a thread needs for its tiles of queries.
template <class C>
class AttentionForward {
 public:
  AttentionForward(const AttentionCall& call, const AttentionRanges& ranges)
      : call_(call),
        e_(call),
        ranges_(ranges),
        q_(*call.q, kAttentionQueries),
        k_(*call.k, kAttentionKeys),
        v_(*call.v, kAttentionKeys),
        tile_(call, ranges),
        out_(new C[size_t(kAttentionQueries * e_.width)]) {}

  void run(int64_t head, int64_t first) {
    const int64_t batch = head / e_.heads, own = head % e_.heads, group = own / e_.heads_of_group(),
                  count = std::min(kAttentionQueries, e_.queries - first);
    std::fill_n(out_.get(), count * e_.width, C(0));
    std::fill_n(largest_, count, kNothing<C>);
    std::fill_n(sum_, count, C(0));
    const KeyRange keys = ranges_.of_tile(batch, first / kAttentionQueries);
    if (!keys.is_empty()) {
      const auto q = q_.scaled(batch, own, first, count, C(call_.scale));
      for (int64_t key = keys.begin; key < keys.end; key += kAttentionKeys)
        add({batch, own, first, count, key, std::min(kAttentionKeys, keys.end - key)}, group, q);
    }
    finish(batch, own, first, count);
  }

 private:
  void add(const typename AttentionTile<C>::Place& place, int64_t group,
           const AttentionRows<C>& q) {
    tile_.make(place, q, k_.rows(place.batch, group, place.key, place.keys));
    for (int64_t r = 0; r < place.queries; ++r) {
      exponentiate(r);
      tile_.clear_outside(r);
      tile_.drop(r, {tile_.row(r)});
    }
    const auto v = v_.rows(place.batch, group, place.key, place.keys);
    gemm(Gemm<C>{place.queries, e_.width, place.keys, tile_.scores(), kAttentionKeys, 1, v.data,
                 v.row, v.column, out_.get(), e_.width, 1, true});
  }

  // Scores become exponentials, relative to the largest so far.
  void exponentiate(int64_t r) {
    const KeyRange range = tile_.range(r);
    if (range.is_empty()) return;
    const SoftmaxLoops<C>& f = softmax_loops<C>();
    const int64_t n = range.end - range.begin;
    C* const scores = tile_.row(r) + range.begin;
    const C here = f.max(scores, n), before = largest_[r];
    const C largest = here > before || here != here ? here : before;
    if (largest == kNothing<C>) {
      std::fill_n(scores, n, C(0));
      return;
    }
    const C factor = std::exp(before - largest);
    sum_[r] = sum_[r] * factor + f.exp_shifted(scores, largest, scores, n);
    if (factor != 1) f.scale(out_.get() + r * e_.width, factor, e_.width);
    largest_[r] = largest;
  }

  void finish(int64_t batch, int64_t head, int64_t first, int64_t count) {
    C* const largest = call_.norms->data<C>() + (batch * e_.heads + head) * e_.queries + first;
    C* const rest = largest + e_.all_heads() * e_.queries;
    for (int64_t r = 0; r < count; ++r) {
      const bool is_empty = largest_[r] == kNothing<C>;
      largest[r] = largest_[r];
      rest[r] = is_empty ? C(0) : std::log(sum_[r]);
      if (!is_empty) softmax_loops<C>().scale(out_.get() + r * e_.width, 1 / sum_[r], e_.width);
    }
    write_attention_rows(out_.get(), *call_.out, batch, head, first, count);
  }

  const AttentionCall& call_;
  const AttentionExtents e_;
  const AttentionRanges& ranges_;
  AttentionReader<C> q_, k_, v_;
  AttentionTile<C> tile_;
  std::unique_ptr<C[]> out_;
  C largest_[kAttentionQueries], sum_[kAttentionQueries];
};

template <class C>
void attention_of(const AttentionCall& call) {
  const AttentionExtents e(call);
  const AttentionRanges ranges(call);
  const int64_t tiles = e.tiles(), tasks = e.all_heads() * tiles;
  const int64_t work = e.all_heads() * e.queries * e.keys * (e.depth + e.width) / 16;
  const int threads = int(std::min<int64_t>(threads_for(work), tasks));
  // With a causal rule the last tiles have most keys: each thread takes some of all kinds.
  parallel_for(threads, threads, [&](int64_t thread) {
    AttentionForward<C> forward(call, ranges);
    for (int64_t task = thread; task < tasks; task += threads)
      forward.run(task / tiles, (tiles - 1 - task % tiles) * kAttentionQueries);
  });
}

void attention(const AttentionCall& call) {
  visit_compute(call.q->dtype(),
                [&](auto tag) { attention_of<typename decltype(tag)::type>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, attention) {
  kernels::attention.provide<&host::attention>(DeviceType::kCpu, "cpu");
}
