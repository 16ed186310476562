// Caches of keys: memory of fixed size that scatter kernels write, at positions that are on the
// device, so that a captured graph appends wherever the rows have come to.
#include "catena/functions/attention/key_value_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/autograd/grad_mode.h"
#include "catena/core/graph.h"
#include "catena/kernels/index.h"

namespace catena::functions {
namespace {

constexpr const char* kKeyCache = "KeyValueCache";
using Lengths = std::vector<int64_t>;

// The number of the graph that is captured; 0: none is.
uint64_t graph_on(Device device) { return device.is_cuda() ? cuda::capture_id() : 0; }

void refuse_capture(Device device, const char* what) {
  CATENA_CHECK(Error, graph_on(device) == 0, kKeyCache, ": ", what,
               " cannot be captured; do it before the capture or between launches");
}

const KeyValueCacheOptions& checked(const KeyValueCacheOptions& o) {
  CATENA_CHECK(ValueError,
               std::min({o.layers, o.batch, o.groups, o.capacity, o.depth}) >= 1 &&
                   o.capacity <= std::numeric_limits<int32_t>::max(),
               kKeyCache,
               ": expected sizes of at least 1, and a capacity that int32 holds, got layers ",
               o.layers, ", batch ", o.batch, ", groups ", o.groups, ", capacity ", o.capacity,
               ", depth ", o.depth);
  CATENA_CHECK(DtypeError, is_float(o.dtype), kKeyCache, ": expected a floating dtype, got ",
               o.dtype);
  refuse_capture(o.device, "making a cache");
  return o;
}

// a[b, :, positions[b, i], :] = values[b, :, i, :]
void write_at(const Array& a, const Array& positions, const Array& values) {
  const Shape& shape = values.shape();
  const Array base = a.at({Slice(), Slice(), Slice(0, 1)}).broadcast_to(shape);
  const Array places = positions.reshape({shape[0], 1, shape[2], 1}).broadcast_to(shape);
  // An extent of 0: positions are within the axis, and each is there once.
  kernels::scatter(a.device(), {.values = &values,
                                .base = &base,
                                .count = 1,
                                .positions = {&places},
                                .extents = {0},
                                .strides = {a.strides()[2]},
                                .mode = uint8_t(OutOfRange::kClip)});
  a.note_write();
}

}  // namespace

// What cache, layers and captured graphs share. A room is what the last extend() added.
struct LayerCache::Shared {
  explicit Shared(const KeyValueCacheOptions& o)
      : options(checked(o)),
        starts(zeros({o.batch}, {Dtype::kInt32, o.device})),
        ends(zeros({o.batch}, {Dtype::kInt32, o.device})),
        places(arange(o.capacity, {Dtype::kInt32, o.device})),
        lengths(size_t(o.batch), 0),
        starts_on_host(lengths),
        is_written(size_t(o.layers), true) {
    const Shape shape{o.batch, o.groups, o.capacity, o.depth};
    for (int64_t i = 0; i < o.layers; ++i) {
      keys.push_back(empty(shape, {o.dtype, o.device}));
      values.push_back(empty(shape, {o.dtype, o.device}));
    }
  }

  KeyValueCacheOptions options;
  Arrays keys, values;  // of the layers
  Array starts, ends;   // of the rows' rooms, int32 on the device: lengths before and with it
  Array places;         // 0, 1, ...
  Array positions;      // of the room
  Lengths lengths, starts_on_host;
  std::vector<bool> is_written;  // by each layer, the room
  uint64_t graph = 0;            // the one in whose capture the room was made
  int64_t graph_positions = 0;   // that a launch of it adds

  void check_left(int64_t n) const {
    for (size_t b = 0; b < lengths.size(); ++b)
      CATENA_CHECK(ValueError, n <= options.capacity - lengths[b], kKeyCache, ": row ", b, " has ",
                   lengths[b], " positions of a capacity of ", options.capacity, ", asked for ", n,
                   " more; make the cache with a larger capacity, or truncate() or clear() it");
  }
  void check_written() const {
    for (size_t i = 0; i < is_written.size(); ++i)
      CATENA_CHECK(ValueError, is_written[i], kKeyCache, ": layer ", i, " of ", is_written.size(),
                   " did not write the positions of the last extend(); call all layers after it, "
                   "or truncate() to the lengths before it");
  }
  // Of rows without a room.
  void set_lengths(const Lengths& now) {
    positions = Array();
    lengths = now;
    ends.assign(array(now, cpu()).astype(Dtype::kInt32));
  }
  // On the host.
  void advance(int64_t n) {
    starts_on_host = lengths;
    for (int64_t& length : lengths) length += n;
  }
};

KeyValueCache::KeyValueCache(const KeyValueCacheOptions& options)
    : shared_(std::make_shared<LayerCache::Shared>(options)) {}

LayerCache::Shared& KeyValueCache::shared() const {
  CATENA_CHECK(ValueError, shared_, kKeyCache, ": this cache was moved from");
  return *shared_;
}

void KeyValueCache::extend(int64_t n) {
  LayerCache::Shared& s = shared();
  CATENA_CHECK(ValueError, n >= 1, kKeyCache, ": expected room for at least one position, got ", n);
  s.check_left(n);
  s.check_written();
  s.positions = s.ends.reshape({-1, 1}) + s.places(Slice(0, n));  // may find no memory
  s.starts.assign(s.ends);
  catena::add(s.ends, n, s.ends);
  s.is_written.assign(s.is_written.size(), false);
  const uint64_t graph = graph_on(s.options.device);
  if (std::exchange(s.graph, graph) != graph) s.graph_positions = 0;
  if (graph == 0) return s.advance(n);
  // Each launch makes all rooms of the step: the check before it is for all up to this one.
  s.graph_positions += n;
  s.starts_on_host = s.lengths;
  cuda::add_launch_hook(
      [shared = shared_, all = s.graph_positions] {
        shared->check_left(all);
        shared->check_written();
      },
      [shared = shared_, n] { shared->advance(n); });
}

const Array& KeyValueCache::positions() const {
  CATENA_CHECK(ValueError, shared().positions.defined(), kKeyCache,
               ": there is no room; call extend(n) first");
  return shared().positions;
}

void KeyValueCache::truncate(const Lengths& lengths) {
  LayerCache::Shared& s = shared();
  refuse_capture(s.options.device, "truncate()");
  CATENA_CHECK(ValueError, lengths.size() == s.lengths.size(), kKeyCache,
               ": expected the lengths of ", s.lengths.size(), " rows, got ", lengths.size());
  bool is_before_room = true;
  for (size_t b = 0; b < lengths.size(); ++b) {
    CATENA_CHECK(ValueError, lengths[b] >= 0 && lengths[b] <= s.lengths[b], kKeyCache, ": row ", b,
                 " has ", s.lengths[b], " positions and cannot be cut to ", lengths[b]);
    is_before_room = is_before_room && lengths[b] <= s.starts_on_host[b];
  }
  if (is_before_room) s.is_written.assign(s.is_written.size(), true);
  s.set_lengths(lengths);
}

void KeyValueCache::clear() { truncate(Lengths(shared().lengths.size(), 0)); }

void KeyValueCache::reorder(const std::vector<int64_t>& rows) {
  LayerCache::Shared& s = shared();
  refuse_capture(s.options.device, "reorder()");
  CATENA_CHECK(ValueError, rows.size() == s.lengths.size(), kKeyCache, ": expected ",
               s.lengths.size(), " rows for reorder(), got ", rows.size());
  s.check_written();
  Lengths lengths;
  for (const int64_t row : rows) {
    CATENA_CHECK(IndexError, row >= 0 && row < s.options.batch, kKeyCache, ": there are ",
                 s.options.batch, " rows, reorder() was asked for row ", row);
    lengths.push_back(s.lengths[size_t(row)]);
  }
  const Array from = array(rows, s.options.device);
  const Slice used(0, *std::max_element(lengths.begin(), lengths.end()));
  for (const Arrays* all : {&s.keys, &s.values}) {
    for (const Array& a : *all) {
      const Array part = a.at({Slice(), Slice(), used});
      part.assign(take(part, from, 0, OutOfRange::kClip));
    }
  }
  s.set_lengths(lengths);
}

LayerCache KeyValueCache::layer(int64_t i) const {
  CATENA_CHECK(IndexError, i >= 0 && i < shared().options.layers, kKeyCache, ": there are ",
               shared().options.layers, " layers, asked for layer ", i);
  return LayerCache(shared_, i);
}

const Lengths& KeyValueCache::lengths() const { return shared().lengths; }
const KeyValueCacheOptions& KeyValueCache::options() const { return shared().options; }

// Layers ------------------------------------------------------------------------------------------

LayerCache::LayerCache(std::shared_ptr<Shared> shared, int64_t layer)
    : shared_(std::move(shared)), layer_(layer) {}

namespace {

void check_cached_options(const AttentionOptions& o) {
  CATENA_CHECK(GradientError, !is_recording(), kKeyCache,
               ": keys in a cache have no gradients; open a scope, const NoBackprop scope, around "
               "generation, or call the layer without a cache");
  CATENA_CHECK(ValueError, !o.key_lengths && !o.query_start && !o.documents && !o.key_documents,
               kKeyCache,
               ": the cache has the lengths and positions of its rows; leave out key_lengths, "
               "query_start and documents");
}

// An operand of (batch, heads, n, depth).
void check_operand(const KeyValueCacheOptions& o, const Array& a, const char* name,
                   const Shape& expected) {
  CATENA_CHECK(DtypeError, a.dtype() == o.dtype, kKeyCache, ": the cache has ", o.dtype, ", ", name,
               " have ", a.dtype(), "; make it with {.dtype = dtype::", a.dtype(), "}");
  CATENA_CHECK(DeviceError, a.device() == o.device, kKeyCache, ": the cache is on ", o.device, ", ",
               name, " on ", a.device(), "; make it with {.device = model.device()}");
  CATENA_CHECK(ShapeError, a.shape() == expected, kKeyCache, ": expected ", name,
               " of shape (batch, heads, positions of the last extend(), depth) = ", expected,
               ", got ", a.shape());
}

}  // namespace

const Array& LayerCache::positions() const {
  CATENA_CHECK(ValueError, shared_->positions.defined(), kKeyCache,
               ": there is no room; call extend(n) of the cache before its layers");
  return shared_->positions;
}

void LayerCache::check(const VariableOperand& q_operand, const VariableOperand& k_operand,
                       const VariableOperand& v_operand, const AttentionOptions& given) const {
  const KeyValueCacheOptions& o = shared_->options;
  const Array &q = q_operand.variable(kKeyCache).data(), &k = k_operand.variable(kKeyCache).data(),
              &v = v_operand.variable(kKeyCache).data();
  check_cached_options(given);
  CATENA_CHECK(Error, shared_->graph == graph_on(o.device), kKeyCache,
               ": extend() and the layers that write its room are captured together, or not at "
               "all; put both into the captured step");
  const Shape rows{o.batch, o.groups, positions().shape()[1], o.depth};
  Shape of_queries = rows;
  if (q.ndim() == 4 && q.shape()[1] > 0 && q.shape()[1] % o.groups == 0)
    of_queries[1] = q.shape()[1];
  check_operand(o, q, "queries", of_queries);
  check_operand(o, k, "keys", rows);
  check_operand(o, v, "values", rows);
  CATENA_CHECK(ValueError, !shared_->is_written[size_t(layer_)], kKeyCache, ": layer ", layer_,
               " has written the positions of the last extend() before; call extend(n) once for "
               "each call of the model, and each layer with its own cache.layer(i)");
}

Variable LayerCache::attend(const VariableOperand& q, const VariableOperand& k,
                            const VariableOperand& v, const AttentionOptions& given) const {
  check(q, k, v, given);
  Shared& s = *shared_;
  const size_t i = size_t(layer_);
  write_at(s.keys[i], s.positions, k.variable(kKeyCache).data());
  write_at(s.values[i], s.positions, v.variable(kKeyCache).data());
  AttentionOptions options = given;
  options.causal = true;
  options.key_lengths = s.ends;
  options.query_start = s.starts;
  const Variable y = scaled_dot_product_attention(q, s.keys[i], s.values[i], options);
  s.is_written[i] = true;  // a call that threw may be made again
  return y;
}

}  // namespace catena::functions
