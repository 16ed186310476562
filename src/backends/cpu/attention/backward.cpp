// The gradient of attention: scores are made again tile by tile (Dao 2023). The keys of a head are
// cut into chunks, whatever the number of threads; each adds up gradients of queries of its own,
// which are then summed in order, so that equal calls give equal bits.
#include <cmath>
#include <limits>

#include "backends/common/family.h"
#include "backends/cpu/attention/heads.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/runtime/parallel.h"

namespace catena::host {

namespace {

// With fewer heads than this, keys are cut, so that more threads than heads have work.
constexpr int64_t kAttentionTasks = 8;

// Keys of one head of k and v: a task that threads share out.
struct AttentionChunk {
  int64_t batch, group, number;
  KeyRange keys;
};

class AttentionChunks {
 public:
  explicit AttentionChunks(const AttentionGradCall& call) : e_(call.forward), gbias_(call.gbias) {
    const int64_t tiles = (e_.keys + kAttentionKeys - 1) / kAttentionKeys;
    const int64_t heads = e_.batch * e_.groups;
    const bool may_cut = gbias_ == nullptr || gbias_->shape()[3] > 1;
    count_ =
        may_cut ? std::clamp<int64_t>(kAttentionTasks / heads, 1, std::max<int64_t>(tiles, 1)) : 1;
  }
  int64_t count() const { return count_; }

  // Lists of chunks, of which each is for one thread: those that add to the same gradient of bias
  // are in one.
  std::vector<std::vector<AttentionChunk>> lists() const {
    const bool by_batch = gbias_ == nullptr || gbias_->shape()[0] > 1,
               by_head = gbias_ == nullptr || gbias_->shape()[1] > 1;
    const int64_t tiles = (e_.keys + kAttentionKeys - 1) / kAttentionKeys;
    const int64_t batches = by_batch ? e_.batch : 1, groups = by_head ? e_.groups : 1;
    std::vector<std::vector<AttentionChunk>> result(size_t(batches * groups * count_));
    for (int64_t b = 0; b < e_.batch; ++b) {
      for (int64_t g = 0; g < e_.groups; ++g) {
        for (int64_t n = 0; n < count_; ++n) {
          const int64_t list = ((by_batch ? b : 0) * groups + (by_head ? g : 0)) * count_ + n;
          const int64_t begin = tiles * n / count_ * kAttentionKeys,
                        end = tiles * (n + 1) / count_ * kAttentionKeys;
          result[size_t(list)].push_back({b, g, n, {begin, std::min(end, e_.keys)}});
        }
      }
    }
    return result;
  }

 private:
  const AttentionExtents e_;
  const Array* gbias_;
  int64_t count_;
};

// What all threads share.
template <class C>
struct AttentionSums {
  explicit AttentionSums(const AttentionGradCall& call)
      : chunks(call),
        e(call.forward),
        rows(new C[size_t(e.all_heads() * e.queries)]),
        gq(new C[size_t(chunks.count() * e.all_heads() * e.queries * e.depth)]()) {}
  // The part of a chunk in the gradient of the queries of a head.
  C* gradient(int64_t chunk, int64_t head) const {
    return gq.get() + (chunk * e.all_heads() + head) * e.queries * e.depth;
  }

  const AttentionChunks chunks;
  const AttentionExtents e;
  std::unique_ptr<C[]> rows;  // of each query: out . gout - glog_sum
  std::unique_ptr<C[]> gq;
};

// What a thread needs for its chunks.
template <class C>
class AttentionBackward {
 public:
  AttentionBackward(const AttentionGradCall& call, const AttentionRanges& ranges,
                    const AttentionSums<C>& sums)
      : call_(call),
        forward_(call.forward),
        e_(sums.e),
        ranges_(ranges),
        sums_(sums),
        q_(*forward_.q, kAttentionQueries),
        k_(*forward_.k, kAttentionKeys),
        v_(*forward_.v, kAttentionKeys),
        gout_(*call.gout, kAttentionQueries),
        tile_(forward_, ranges),
        kept_(new C[kTile]),
        gradients_(new C[kTile]),
        gk_(new C[size_t(kAttentionKeys * e_.depth)]),
        gv_(new C[size_t(kAttentionKeys * e_.width)]) {}

  void run(const AttentionChunk& chunk) {
    for (int64_t key = chunk.keys.begin; key < chunk.keys.end; key += kAttentionKeys) {
      const int64_t count = std::min(kAttentionKeys, chunk.keys.end - key);
      std::fill_n(gk_.get(), count * e_.depth, C(0));
      std::fill_n(gv_.get(), count * e_.width, C(0));
      const int64_t read = std::clamp<int64_t>(ranges_.keys(chunk.batch) - key, 0, count);
      const auto k = k_.rows(chunk.batch, chunk.group, key, read),
                 v = v_.rows(chunk.batch, chunk.group, key, read);
      for (int64_t h = 0; h < e_.heads_of_group(); ++h) {
        const int64_t head = chunk.group * e_.heads_of_group() + h;
        for (int64_t first = 0; first < e_.queries; first += kAttentionQueries) {
          const int64_t queries = std::min(kAttentionQueries, e_.queries - first);
          const KeyRange keys =
              ranges_.of_tile(chunk.batch, first / kAttentionQueries).within(key, key + count);
          if (!keys.is_empty()) add({chunk.batch, head, first, queries, key, read}, chunk, k, v);
        }
      }
      write_attention_rows(gk_.get(), *call_.gk, chunk.batch, chunk.group, key, count);
      write_attention_rows(gv_.get(), *call_.gv, chunk.batch, chunk.group, key, count);
    }
  }

 private:
  static constexpr size_t kTile = size_t(kAttentionQueries * kAttentionKeys);
  using Place = typename AttentionTile<C>::Place;

  void add(const Place& place, const AttentionChunk& chunk, const AttentionRows<C>& k,
           const AttentionRows<C>& v) {
    const int64_t m = place.queries, n = place.keys, head = place.batch * e_.heads + place.head;
    const auto q = q_.scaled(place.batch, place.head, place.query, m, C(forward_.scale));
    const auto g = gout_.rows(place.batch, place.head, place.query, m);
    tile_.make(place, q, k);
    // The gradient of P.
    gemm(Gemm<C>{m, n, e_.width, g.data, g.row, g.column, v.data, v.column, v.row, gradients_.get(),
                 kAttentionKeys, 1, false});
    for (int64_t r = 0; r < m; ++r) make_gradients(r, n, head * e_.queries + place.query + r);
    if (call_.gbias) add_bias(place);
    for (int64_t r = 0; r < m; ++r) tile_.uncap(r, gradients_.get() + r * kAttentionKeys);
    gemm(Gemm<C>{n, e_.width, m, kept_.get(), 1, kAttentionKeys, g.data, g.row, g.column, gv_.get(),
                 e_.width, 1, true});
    gemm(Gemm<C>{n, e_.depth, m, gradients_.get(), 1, kAttentionKeys, q.data, q.row, q.column,
                 gk_.get(), e_.depth, 1, true});
    gemm(Gemm<C>{m, e_.depth, n, gradients_.get(), kAttentionKeys, 1, k.data, k.row, k.column,
                 sums_.gradient(chunk.number, head) + place.query * e_.depth, e_.depth, 1, true});
  }

  // A row of P after dropout into kept_, and the gradient of its scores into gradients_.
  void make_gradients(int64_t r, int64_t keys, int64_t query) {
    const SoftmaxLoops<C>& f = softmax_loops<C>();
    const KeyRange range = tile_.range(r);
    C* const p = tile_.row(r);
    C* const kept = kept_.get() + r * kAttentionKeys;
    C* const gradients = gradients_.get() + r * kAttentionKeys;
    const C* const norms = forward_.norms->data<C>();
    const C largest = norms[query], rest = norms[e_.all_heads() * e_.queries + query];
    const bool is_empty = range.is_empty() || largest == -std::numeric_limits<C>::infinity();
    if (is_empty) {
      std::fill_n(kept, keys, C(0));
      std::fill_n(gradients, keys, C(0));
      return;
    }
    const int64_t n = range.end - range.begin;
    f.exp_shifted(p + range.begin, largest, p + range.begin, n);
    f.scale(p + range.begin, std::exp(-rest), n);
    tile_.clear_outside(r);
    std::copy_n(p, keys, kept);
    tile_.drop(r, {kept, gradients});
    std::fill(gradients, gradients + range.begin, C(0));
    std::fill(gradients + range.end, gradients + keys, C(0));
    C* const own = gradients + range.begin;
    f.gradient(p + range.begin, own, sums_.rows[size_t(query)], own, n);
  }

  void add_bias(const Place& place) {
    const Shape& shape = call_.gbias->shape();
    const auto at = [&](int axis, int64_t i) { return shape[size_t(axis)] > 1 ? i : 0; };
    for (int64_t r = 0; r < place.queries; ++r) {
      const int64_t row =
          (at(0, place.batch) * shape[1] + at(1, place.head)) * shape[2] + at(2, place.query + r);
      C* const to = call_.gbias->data<C>() + row * shape[3];
      const C* const from = gradients_.get() + r * kAttentionKeys;
      for (int64_t j = 0; j < place.keys; ++j) to[at(3, place.key + j)] += from[j];
    }
  }

  const AttentionGradCall& call_;
  const AttentionCall& forward_;
  const AttentionExtents& e_;
  const AttentionRanges& ranges_;
  const AttentionSums<C>& sums_;
  AttentionReader<C> q_, k_, v_, gout_;
  AttentionTile<C> tile_;
  std::unique_ptr<C[]> kept_, gradients_, gk_, gv_;
};

// out . gout - glog_sum of each query.
template <class C>
void sum_rows(const AttentionGradCall& call, const AttentionSums<C>& sums, int threads) {
  const AttentionExtents& e = sums.e;
  parallel_ranges(e.all_heads(), 1, threads, [&](int64_t begin, int64_t end) {
    AttentionReader<C> out(*call.forward.out, 1), gout(*call.gout, 1);
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t i = 0; i < e.queries; ++i) {
        const int64_t row = head * e.queries + i;
        const C* const y = out.rows(head / e.heads, head % e.heads, i, 1).data;
        const C* const g = gout.rows(head / e.heads, head % e.heads, i, 1).data;
        const C own = call.glog_sum ? call.glog_sum->data<C>()[row] : C(0);
        sums.rows[size_t(row)] = softmax_loops<C>().dot(y, g, e.width) - own;
      }
    }
  });
}

template <class C>
void write_query_gradients(const AttentionGradCall& call, const AttentionSums<C>& sums,
                           int threads) {
  const AttentionExtents& e = sums.e;
  const int64_t size = e.queries * e.depth;
  parallel_for(e.all_heads(), threads, [&](int64_t head) {
    C* const total = sums.gradient(0, head);
    for (int64_t chunk = 1; chunk < sums.chunks.count(); ++chunk) {
      const C* const part = sums.gradient(chunk, head);
      for (int64_t i = 0; i < size; ++i) total[i] += part[i];
    }
    softmax_loops<C>().scale(total, C(call.forward.scale), size);
    write_attention_rows(total, *call.gq, head / e.heads, head % e.heads, 0, e.queries);
  });
}

template <class C>
void attention_grad_of(const AttentionGradCall& call) {
  const AttentionSums<C> sums(call);
  const AttentionExtents& e = sums.e;
  const AttentionRanges ranges(call.forward);
  const int64_t work = e.all_heads() * e.queries * e.keys * (e.depth + e.width) / 6;
  const int threads = threads_for(work);
  if (call.gbias) std::fill_n(call.gbias->data<C>(), call.gbias->size(), C(0));
  sum_rows(call, sums, threads);
  const auto lists = sums.chunks.lists();
  const int64_t count = int64_t(lists.size());
  const int shared = int(std::min<int64_t>(threads, count));
  parallel_for(shared, shared, [&](int64_t thread) {
    AttentionBackward<C> backward(call, ranges, sums);
    for (int64_t list = thread; list < count; list += shared)
      for (const AttentionChunk& chunk : lists[size_t(list)]) backward.run(chunk);
  });
  write_query_gradients(call, sums, threads);
}

void attention_grad(const AttentionGradCall& call) {
  visit_compute(call.forward.q->dtype(),
                [&](auto tag) { attention_grad_of<typename decltype(tag)::type>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, attention_grad) {
  kernels::attention_grad.provide<&host::attention_grad>(DeviceType::kCpu, "cpu");
}
