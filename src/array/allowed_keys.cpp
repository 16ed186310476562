#include "allowed_keys.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

// Offsets that do not fall and are within the axis.
Array valid_offsets(const Array& offsets, int64_t extent) {
  const Array inside = clip(offsets.astype(Dtype::kInt64), 0, extent);
  const Array lower = tri(offsets.size(), {}, 0, {Dtype::kBool, offsets.device()});
  return amax(where(lower, inside.expand_dims(0), 0), 1);
}

// The number of the document of each position, and -1 behind and before all.
Array documents_of(const Array& positions, const Array& offsets) {
  const Array begun = less_equal(offsets.expand_dims(1), positions.expand_dims(0));
  const Array count = sum(begun.astype(Dtype::kInt64), 0);
  return where(equal(count, offsets.size()), -1, count - 1);
}

// p of each query, (b or 1, 1, queries, 1), and the keys that it may attend to by documents.
struct Positions {
  Array of_queries, allowed;
};

Positions of_documents(const AttentionRules& rules, const Array& queries, const Array& keys) {
  const Array from = valid_offsets(*rules.query_documents, queries.size()),
              to = valid_offsets(*rules.key_documents, keys.size());
  const Array own = documents_of(queries, from), others = documents_of(keys, to);
  const Array end = minimum(maximum(own + 1, 0), from.size() - 1);
  const Array position = queries - take(from, end) + take(to, end);
  const Array same = equal(own.expand_dims(1), others.expand_dims(0));
  return {position.reshape({1, 1, queries.size(), 1}),
          logical_and(same, greater_equal(own, 0).expand_dims(1))
              .reshape({1, 1, queries.size(), keys.size()})};
}

Array both(const Array& a, const Array& b) { return a.defined() ? logical_and(a, b) : b; }

}  // namespace

Array allowed_keys(const AttentionCall& call) {
  const AttentionRules& rules = call.rules;
  const int64_t queries = call.q->shape()[2], keys = call.k->shape()[2];
  const ArrayOptions options{Dtype::kInt64, call.q->device()};  // wider than any position
  const Array i = arange(queries, options), j = arange(keys, options);
  Positions positions;
  if (rules.query_documents)
    positions = of_documents(rules, i, j);
  else if (rules.query_start)
    positions.of_queries =
        i.reshape({1, 1, queries, 1}) + rules.query_start->reshape({-1, 1, 1, 1});
  else
    positions.of_queries = i.reshape({1, 1, queries, 1}) + (keys - queries);
  Array allowed = positions.allowed;
  if (rules.causal) allowed = both(allowed, less_equal(j, positions.of_queries));
  if (rules.window > 0)
    allowed = both(allowed, less(absolute(positions.of_queries - j), rules.window));
  if (rules.key_lengths)
    allowed = both(allowed, less(j, rules.key_lengths->reshape({-1, 1, 1, 1})));
  if (call.mask) allowed = both(allowed, *call.mask);
  return allowed.defined() ? allowed : ones({1, 1, 1, 1}, {Dtype::kBool, call.q->device()});
}

Array keys_within_lengths(const AttentionCall& call) {
  const int64_t keys = call.k->shape()[2];
  const Array j = arange(keys, {Dtype::kInt64, call.k->device()}).reshape({1, 1, keys, 1});
  return less(j, call.rules.key_lengths->reshape({-1, 1, 1, 1}));
}

}  // namespace catena
