// Records of scaled_dot_product_attention and attention_with_statistics.
#include "catena/array/creation.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "functions/function_record.h"

namespace catena {
namespace {

namespace F = functions;
using Lengths = std::vector<int32_t>;

// What a record gives as options.
struct Given {
  bool causal = false;
  int64_t window = 1 << 20;
  double scale = 0, softcap = 0;  // 0: 1 / sqrt(depth), none
  Lengths key_lengths = {}, query_start = {}, documents = {}, key_documents = {};
  bool has_mask = false, has_bias = false;

  // Every fourth key, and none at all for the second query.
  static bool is_masked(int64_t i, int64_t j) { return i == 1 || (i + j) % 4 == 3; }
};

F::AttentionOptions options_of(const Given& d, const Variables& v) {
  const Device device = v[0].device();
  F::AttentionOptions o{.causal = d.causal};
  const auto numbers = [&](const Lengths& given, std::optional<Array>& to) {
    if (!given.empty()) to = array(given, {int64_t(given.size())}).to(device);
  };
  numbers(d.key_lengths, o.key_lengths);
  numbers(d.query_start, o.query_start);
  numbers(d.documents, o.documents);
  if (d.key_documents != d.documents) numbers(d.key_documents, o.key_documents);
  if (d.has_mask) {
    const int64_t queries = v[0].shape()[2], keys = v[1].shape()[2];
    std::vector<double> allowed;
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) allowed.push_back(!Given::is_masked(i, j));
    o.mask = array(allowed, {queries, keys}).astype(Dtype::kBool).to(device);
  }
  if (d.has_bias) o.bias = v[3];
  if (d.window < 1 << 20) o.window = d.window;
  if (d.softcap > 0) o.softcap = d.softcap;
  if (d.scale != 0) o.scale = d.scale;
  return o;
}

FunctionRecord attention(const char* variant, const Given& d, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "scaled_dot_product_attention";
  r.variant = variant;
  r.ranges = {{-2, 2}, {-2, 2}, {}, {}};
  r.shapes = std::move(shapes);
  r.call = [=](const Variables& v) {
    return Variables{F::scaled_dot_product_attention(v[0], v[1], v[2], options_of(d, v))};
  };
  // Without the arrays that options_of makes.
  const bool is_alone = !d.has_mask && d.key_lengths.empty() && d.documents.empty();
  if (is_alone) r.forward_launches = r.backward_launches = 1;
  r.error = 1e-4;
  return r;
}

// Each query attends to a key, for a logarithm of 0 has no neighbours.
FunctionRecord with_statistics() {
  const Given d{.causal = true};
  FunctionRecord r = attention("", d, {{{1, 2, 3, 4}, {1, 1, 5, 4}, {1, 1, 5, 3}}});
  r.function = "attention_with_statistics";
  r.call = [=](const Variables& v) {
    const F::AttentionResult result =
        F::attention_with_statistics(v[0], v[1], v[2], options_of(d, v));
    return Variables{result.y, F::cast(result.log_sum_exp, v[0].dtype())};
  };
  r.forward_launches = r.backward_launches = {};
  return r;
}

FunctionRecord errors() {
  FunctionRecord r = attention("errors", {}, {{{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}}});
  const std::string name = "ScaledDotProductAttention",
                    advice =
                        "\nExpected are q (batch, heads, queries, depth), k (batch, groups, keys, "
                        "depth) and v (batch, groups, keys, width), heads a multiple of groups";
  const auto call = [](const F::AttentionOptions& o) {
    return [=](const Draw& draw) {
      F::scaled_dot_product_attention(draw({2, 2, 3, 4}), draw({2, 2, 5, 4}), draw({2, 2, 5, 3}),
                                      o);
    };
  };
  const auto numbers = [](auto set, const Lengths& values) {
    return [=](const Draw& draw) {
      F::AttentionOptions o;
      set(o) = draw.labels(values, {int64_t(values.size())});
      F::scaled_dot_product_attention(draw({2, 2, 3, 4}), draw({2, 2, 5, 4}), draw({2, 2, 5, 3}),
                                      o);
    };
  };
  const auto documents = [](const Lengths& values, const Lengths& of_keys) {
    return [=](const Draw& draw) {
      F::AttentionOptions o;
      o.documents = array(values, {int64_t(values.size())});
      o.key_documents = array(of_keys, {int64_t(of_keys.size())});
      const Draw here(cpu());
      F::scaled_dot_product_attention(here({1, 2, 3, 4}), here({1, 2, 5, 4}), here({1, 2, 5, 3}),
                                      o);
    };
  };
  r.errors = {
      type_error(name, WrongInputs{{2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}},
                 "Expect: q.ndim == 4\nActual: 3 != 4\nInputs: q float64 (2, 3, 4), k float64 (1, "
                 "2, 5, 4), v float64 (1, 2, 5, 3)" +
                     advice + "."),
      type_error(
          name, WrongInputs{{1, 6, 3, 4}, {1, 4, 5, 4}, {1, 4, 5, 3}},
          "Expect: q.shape[1] % k.shape[1] == 0\nActual: 2 != 0\nInputs: q float64 (1, 6, 3, "
          "4), k float64 (1, 4, 5, 4), v float64 (1, 4, 5, 3)" +
              advice + "."),
      type_error(
          name, WrongInputs{{1, 2, 3, 4}, {1, 2, 5, 3}, {1, 2, 5, 3}},
          "Expect: k.shape[3] == q.shape[3]\nActual: 3 != 4\nInputs: q float64 (1, 2, 3, 4), "
          "k float64 (1, 2, 5, 3), v float64 (1, 2, 5, 3)" +
              advice + "."),
      type_error(
          name, WrongInputs{{1, 2, 3, 4}, {{1, 2, 5, 4}, Dtype::kFloat32}, {1, 2, 5, 3}},
          "Expect: k.dtype == q.dtype\nActual: float32 != float64\nInputs: q float64 (1, 2, "
          "3, 4), k float32 (1, 2, 5, 4), v float64 (1, 2, 5, 3)\nThe inputs are float64 and "
          "float32: convert the float64 one with .astype(dtype::float32), or make arrays of "
          "float32 by config().default_dtype = dtype::float32."),
      error<ValueError>(
          call({.window = 0}),
          name + ": expected a window of at least 1 key, that of the query itself, got 0"),
      error<ValueError>(call({.softcap = 0}), name + ": expected a softcap of (0, 1e30], got 0"),
      error<ValueError>(call({.softcap = 1e300}),
                        name + ": expected a softcap of (0, 1e30], got 1e+300"),
      error<DtypeError>(
          [](const Draw& draw) {
            F::scaled_dot_product_attention(draw({2, 2, 3, 4}), draw({2, 2, 5, 4}),
                                            draw({2, 2, 5, 3}),
                                            {.bias = draw({3, 5}).astype(Dtype::kBool)});
          },
          name + ": expected a bias of float64 or float64, got bool; is it a mask?"),
      error<ValueError>(call({.dropout = 1}), name + ": expected a dropout of [0, 1), got 1"),
      error<ShapeError>(numbers([](auto& o) -> auto& { return o.key_lengths; }, {3}),
                        name + ": expected key_lengths of shape (2,), a number for each batch "
                               "entry, got (1,)"),
      error<ValueError>(
          [](const Draw&) {
            F::check_attention_lengths(array({3, 6}), 5);
          },
          name + ": key_lengths[1] is 6, outside of [0, 5], the keys"),
      error<ShapeError>(
          [](const Draw& draw) {
            F::scaled_dot_product_attention(draw({2, 2, 3, 4}), draw({2, 2, 5, 4}),
                                            draw({2, 2, 5, 3}), {.mask = draw({3, 4})});
          },
          name + ": mask has shape (3, 4), which does not broadcast to that of the scores, (batch, "
                 "heads, queries, keys) = (2, 2, 3, 5)"),
      error<DtypeError>(numbers([](auto& o) -> auto& { return o.mask; }, {1, 0, 1, 1, 0}),
                        name + ": expected a mask of bool, true where a query may attend to a key, "
                               "or of floats, which are added to the scores; got int32; "
                               "mask.astype(dtype::bool_) makes one of numbers"),
      error<ValueError>(numbers([](auto& o) -> auto& { return o.documents; }, {0, 3}),
                        name + ": documents are side by side in one batch entry, q has 2; reshape "
                               "(batch, positions) to (1, batch * positions) first"),
      error<ValueError>(documents({0, 2}, {0, 5}),
                        name + ": documents begin at 0 and end with the axis, of 3 positions; the "
                               "offsets are from 0 to 2"),
      error<ValueError>(documents({0, 2, 1, 3}, {0, 1, 2, 5}),
                        name + ": offsets of documents do not fall; offset 1 is 2, offset 2 is 1"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(attention) {
  return {attention("", {},
                    {{{2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 6}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                     {{2, 1, 3, 4}, {2, 1, 0, 4}, {2, 1, 0, 5}},
                     {{0, 2, 3, 4}, {0, 2, 3, 4}, {0, 2, 3, 2}},
                     {{1, 2, 0, 4}, {1, 2, 3, 4}, {1, 2, 3, 2}}}),
          // Of fewer keys than queries the first queries have none.
          attention("causal, groups", {.causal = true},
                    {{{1, 4, 5, 3}, {1, 2, 7, 3}, {1, 2, 7, 2}},
                     {{2, 2, 6, 3}, {2, 1, 4, 3}, {2, 1, 4, 2}}}),
          attention("window, softcap, bias, scale",
                    {.window = 2, .scale = 0.7, .softcap = 1.5, .has_bias = true},
                    {{{2, 2, 5, 3}, {2, 2, 5, 3}, {2, 2, 5, 2}, {2, 5, 1}}}),
          attention("causal window", {.causal = true, .window = 3},
                    {{{1, 1, 7, 2}, {1, 1, 7, 2}, {1, 1, 7, 2}}}),
          attention("mask", {.has_mask = true}, {{{2, 2, 4, 3}, {2, 2, 6, 3}, {2, 2, 6, 2}}}),
          attention("key_lengths", {.key_lengths = {4, 0}},
                    {{{2, 2, 3, 3}, {2, 2, 5, 3}, {2, 2, 5, 2}}}),
          attention("query_start", {.causal = true, .query_start = {3, 0}},
                    {{{2, 1, 2, 3}, {2, 1, 6, 3}, {2, 1, 6, 2}}}),
          attention("documents",
                    {.causal = true, .documents = {0, 3, 3, 7}, .key_documents = {0, 3, 3, 7}},
                    {{{1, 2, 7, 3}, {1, 2, 7, 3}, {1, 2, 7, 2}}}),
          attention("key_documents", {.documents = {0, 1, 4}, .key_documents = {0, 4, 7}},
                    {{{1, 1, 4, 3}, {1, 1, 7, 3}, {1, 1, 7, 2}}}),
          with_statistics(), errors()};
}

}  // namespace catena
