// See heads.h.
#include "backends/cpu/attention/heads.h"

#include <cmath>
#include <limits>

#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/random/resolved_bits.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena::host {

namespace {

int32_t number_at(const Array& numbers, int64_t i) { return numbers.data<int32_t>()[i]; }

// Elements of an array by an index, as (batch, head, query, key) of one that may be broadcast.
const char* element_of(const Array& a, int64_t batch, int64_t head, int64_t query, int64_t key) {
  const Strides& s = a.strides();
  return static_cast<const char*>(a.raw_data()) + batch * s[0] + head * s[1] + query * s[2] +
         key * s[3];
}

}  // namespace

AttentionExtents::AttentionExtents(const AttentionCall& call)
    : batch(call.q->shape()[0]),
      heads(call.q->shape()[1]),
      groups(call.k->shape()[1]),
      queries(call.q->shape()[2]),
      keys(call.k->shape()[2]),
      depth(call.q->shape()[3]),
      width(call.v->shape()[3]) {}

// Rules -------------------------------------------------------------------------------------------

AttentionRanges::AttentionRanges(const AttentionCall& call)
    : rules_(call.rules),
      queries_(call.q->shape()[2]),
      keys_(call.k->shape()[2]),
      count_(AttentionExtents(call).tiles()) {
  if (rules_.query_documents) read_documents(*rules_.query_documents, *rules_.key_documents);
  for (int64_t b = 0; b < call.q->shape()[0]; ++b) {
    for (int64_t first = 0; first < queries_; first += kAttentionQueries) {
      KeyRange all{keys_, 0};
      for (int64_t i = first; i < std::min(first + kAttentionQueries, queries_); ++i) {
        const KeyRange one = of(b, i);
        if (!one.is_empty()) all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
      }
      tiles_.push_back(all);
    }
  }
}

int64_t AttentionRanges::keys(int64_t batch) const {
  if (rules_.key_lengths == nullptr) return keys_;
  return std::clamp<int64_t>(number_at(*rules_.key_lengths, batch), 0, keys_);
}

void AttentionRanges::read_documents(const Array& queries, const Array& keys) {
  documents_.assign(size_t(queries_), {0, {0, 0}});
  const auto next = [](const Array& offsets, int64_t i, int64_t least, int64_t most) {
    return std::clamp<int64_t>(number_at(offsets, i), least, most);
  };
  int64_t query = next(queries, 0, 0, queries_), key = next(keys, 0, 0, keys_);
  for (int64_t n = 1; n < queries.size(); ++n) {
    const int64_t query_end = next(queries, n, query, queries_),
                  key_end = next(keys, n, key, keys_);
    for (int64_t i = query; i < query_end; ++i)
      documents_[size_t(i)] = {key_end - query_end, {key, key_end}};
    query = query_end;
    key = key_end;
  }
}

AttentionRanges::Document AttentionRanges::document_of(int64_t batch, int64_t query) const {
  if (!documents_.empty()) return documents_[size_t(query)];
  const int64_t start =
      rules_.query_start ? number_at(*rules_.query_start, batch) : keys_ - queries_;
  return {start, {0, keys_}};
}

KeyRange AttentionRanges::of(int64_t batch, int64_t query) const {
  const Document document = document_of(batch, query);
  const int64_t position = query + document.start;
  KeyRange range = document.keys;
  range.end = std::min(range.end, keys(batch));
  if (rules_.causal) range.end = std::min(range.end, position + 1);
  if (rules_.window > 0)
    range = range.within(position - rules_.window + 1, position + rules_.window);
  return range;
}

// Rows --------------------------------------------------------------------------------------------

template <class C>
AttentionReader<C>::AttentionReader(const Array& array, int64_t most_rows)
    : array_(array), columns_(array.shape()[3]), cast_(cast_of(array.dtype(), dtype_of<C>)) {
  const int64_t item = array.itemsize();
  const Strides& s = array.strides();
  const auto fits = [&](int64_t unit, int64_t other, int64_t extent) {
    return unit == item && other % item == 0 && other >= extent * item;
  };
  is_direct_ = array.dtype() == dtype_of<C> && fits(s[3], s[2], columns_);
  buffer_.reset(new C[size_t(most_rows * columns_)]);
}

template <class C>
const char* AttentionReader<C>::at(int64_t batch, int64_t head, int64_t row) const {
  return element_of(array_, batch, head, row, 0);
}

template <class C>
AttentionRows<C> AttentionReader<C>::copied(const char* from, int64_t count) {
  const Strides& s = array_.strides();
  for (int64_t r = 0; r < count; ++r)
    cast_(from + r * s[2], s[3], reinterpret_cast<char*>(buffer_.get() + r * columns_), sizeof(C),
          columns_);
  return {buffer_.get(), columns_, 1};
}

template <class C>
AttentionRows<C> AttentionReader<C>::rows(int64_t batch, int64_t head, int64_t first,
                                          int64_t count) {
  const char* from = at(batch, head, first);
  if (!is_direct_) return copied(from, count);
  return {reinterpret_cast<const C*>(from), array_.strides()[2] / int64_t(sizeof(C)), 1};
}

template <class C>
AttentionRows<C> AttentionReader<C>::scaled(int64_t batch, int64_t head, int64_t first,
                                            int64_t count, C factor) {
  const AttentionRows<C> result = copied(at(batch, head, first), count);
  softmax_loops<C>().scale(buffer_.get(), factor, count * columns_);
  return result;
}

template <class C>
void write_attention_rows(const C* rows, const Array& array, int64_t batch, int64_t head,
                          int64_t first, int64_t count) {
  const CastLoop cast = cast_of(dtype_of<C>, array.dtype());
  const int64_t columns = array.shape()[3];
  const Strides& s = array.strides();
  char* to = const_cast<char*>(element_of(array, batch, head, first, 0));
  for (int64_t r = 0; r < count; ++r)
    cast(reinterpret_cast<const char*>(rows + r * columns), sizeof(C), to + r * s[2], s[3],
         columns);
}

// Scores ------------------------------------------------------------------------------------------

template <class C>
AttentionTile<C>::AttentionTile(const AttentionCall& call, const AttentionRanges& ranges)
    : call_(call),
      ranges_(ranges),
      bits_(resolved(call.bits)),
      scores_(new C[size_t(kAttentionQueries * kAttentionKeys)]),
      ranges_of_rows_(size_t(kAttentionQueries)) {
  if (call.softcap > 0) tanh_.reset(new C[size_t(kAttentionQueries * kAttentionKeys)]);
}

template <class C>
void AttentionTile<C>::make(const Place& place, const AttentionRows<C>& q,
                            const AttentionRows<C>& k) {
  place_ = place;
  gemm(Gemm<C>{place.queries, place.keys, call_.q->shape()[3], q.data, q.row, q.column, k.data,
               k.column, k.row, scores_.get(), kAttentionKeys, 1, false});
  for (int64_t r = 0; r < place.queries; ++r) {
    const KeyRange range =
        ranges_.of(place.batch, place.query + r).within(place.key, place.key + place.keys);
    ranges_of_rows_[size_t(r)] = {range.begin - place.key, range.end - place.key};
    if (range.is_empty()) continue;
    if (call_.softcap > 0) cap(r);
    if (call_.bias) add_bias(r);
    if (call_.mask) remove_masked(r);
  }
}

template <class C>
void AttentionTile<C>::cap(int64_t r) {
  const KeyRange range = this->range(r);
  const int64_t n = range.end - range.begin;
  C* const scores = row(r) + range.begin;
  C* const tanh = tanh_.get() + r * kAttentionKeys + range.begin;
  softmax_loops<C>().scale(scores, C(1 / call_.softcap), n);
  char* pointers[] = {reinterpret_cast<char*>(tanh),
                      reinterpret_cast<char*>(scores)};  // the output first
  const int64_t strides[] = {sizeof(C), sizeof(C)};
  tables().loops[static_cast<int>(ops::tanh)][static_cast<int>(dtype_of<C>)].loop(pointers, strides,
                                                                                  n);
  for (int64_t j = 0; j < n; ++j) scores[j] = tanh[j] * C(call_.softcap);
}

template <class C>
void AttentionTile<C>::uncap(int64_t r, C* gradients) const {
  if (!tanh_) return;
  const KeyRange range = this->range(r);
  const C* const tanh = tanh_.get() + r * kAttentionKeys;
  for (int64_t j = range.begin; j < range.end; ++j) gradients[j] *= 1 - tanh[j] * tanh[j];
}

template <class C>
void AttentionTile<C>::add_bias(int64_t r) {
  const Array& bias = *call_.bias;
  const KeyRange range = this->range(r);
  C values[kAttentionKeys];
  cast_of(bias.dtype(), dtype_of<C>)(
      element_of(bias, place_.batch, place_.head, place_.query + r, place_.key + range.begin),
      bias.strides()[3], reinterpret_cast<char*>(values), sizeof(C), range.end - range.begin);
  C* const scores = row(r);
  for (int64_t j = range.begin; j < range.end; ++j) scores[j] += values[j - range.begin];
}

template <class C>
void AttentionTile<C>::remove_masked(int64_t r) {
  const KeyRange range = this->range(r);
  const char* const mask =
      element_of(*call_.mask, place_.batch, place_.head, place_.query + r, place_.key);
  const int64_t step = call_.mask->strides()[3];
  C* const scores = row(r);
  for (int64_t j = range.begin; j < range.end; ++j)
    if (mask[j * step] == 0) scores[j] = -std::numeric_limits<C>::infinity();
}

template <class C>
void AttentionTile<C>::clear_outside(int64_t r) {
  const KeyRange range = this->range(r);
  C* const scores = row(r);
  if (range.is_empty()) {
    std::fill_n(scores, place_.keys, C(0));
    return;
  }
  std::fill(scores, scores + range.begin, C(0));
  std::fill(scores + range.end, scores + place_.keys, C(0));
}

template <class C>
void AttentionTile<C>::drop(int64_t r, std::initializer_list<C*> rows) {
  if (call_.dropout == 0) return;
  const KeyRange range = this->range(r);
  if (range.is_empty()) return;
  const AttentionExtents e(call_);
  const int64_t query = (place_.batch * e.heads + place_.head) * e.queries + place_.query + r;
  const uint64_t first = uint64_t(query * e.keys + place_.key + range.begin);
  // A block of random words is of four elements, the first of which may be others.
  const int64_t before = int64_t(first % 4), n = range.end - range.begin;
  C ones[kAttentionKeys + 4], factors[kAttentionKeys + 4];
  std::fill_n(ones, before + n, C(1));
  const RandomLoops& f = tables().random;
  const float ratio = float(call_.dropout);
  const C scale = C(1 / (1 - call_.dropout));
  if constexpr (std::is_same_v<C, float>)
    f.dropout_float(bits_.seed, bits_.offset + first / 4, ratio, scale, ones, factors, before + n);
  else
    f.dropout_double(bits_.seed, bits_.offset + first / 4, ratio, scale, ones, factors, before + n);
  for (C* const values : rows)
    for (int64_t j = 0; j < n; ++j) values[range.begin + j] *= factors[before + j];
}

#define CATENA_INSTANTIATE(C)        \
  template class AttentionReader<C>; \
  template class AttentionTile<C>;   \
  template void write_attention_rows(const C*, const Array&, int64_t, int64_t, int64_t, int64_t);
CATENA_INSTANTIATE(float)
CATENA_INSTANTIATE(double)
#undef CATENA_INSTANTIATE

}  // namespace catena::host
