// Records of rotary_embedding.
#include "catena/array/creation.h"
#include "catena/functions/attention/rotary_embedding.h"
#include "functions/function_record.h"

namespace catena {
namespace {

namespace F = functions;

// What a record gives as options. positions: empty, of one batch entry, or of all.
struct Given {
  double base = 10000;
  int64_t rotated = 0;  // 0: all
  bool interleaved = false;
  std::vector<int32_t> positions = {};
  Shape positions_shape = {};
  int64_t start = 0;
};

FunctionRecord rotary(const char* variant, const Given& d, const Shapes& shapes) {
  FunctionRecord r;
  r.function = "rotary_embedding";
  r.variant = variant;
  for (const Shape& shape : shapes) r.shapes.push_back({shape});
  r.call = unary([=](const Variable& x) {
    F::RotaryOptions o{.base = d.base, .interleaved = d.interleaved, .start = d.start};
    if (d.rotated) o.rotated = d.rotated;
    if (!d.positions.empty()) o.positions = array(d.positions, d.positions_shape).to(x.device());
    return F::rotary_embedding(x, o);
  });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord errors() {
  FunctionRecord r = rotary("errors", {}, {{1, 2, 3, 4}});
  const auto call = [](const F::RotaryOptions& o) {
    return [=](const Draw& draw) { F::rotary_embedding(draw({2, 2, 3, 4}), o); };
  };
  const auto with_positions = [](const Shape& shape, Dtype dtype) {
    return [=](const Draw& draw) {
      F::RotaryOptions o;
      o.positions = zeros(shape, {dtype, draw.device()});
      F::rotary_embedding(draw({2, 2, 3, 4}), o);
    };
  };
  const std::string name = "RotaryEmbedding";
  r.errors = {
      integers_refused(name, {1, 1, 2, 2}),
      type_error(name, WrongInputs{{3, 4}},
                 "Expect: x.ndim == 4\nActual: 2 != 4\nInputs: x float64 (3, 4)\nExpected is x as "
                 "(batch, heads, positions, depth); arrays with positions before heads become that "
                 "by transpose({0, 2, 1, 3}), which copies nothing."),
      error<ValueError>(
          WrongInputs{{1, 2, 3, 5}},
          name + ": expected an even number of rotated numbers from 2 to the depth, 5, got 5; "
                 "options.rotated chooses fewer than all"),
      error<ValueError>(
          call({.rotated = 6}),
          name + ": expected an even number of rotated numbers from 2 to the depth, 4, got 6"),
      error<ValueError>(call({.base = 0}), name + ": expected a base above 0, got 0"),
      error<ValueError>(
          [](const Draw& draw) {
            F::rotary_embedding(draw({2, 2, 3, 4}),
                                {.llama3 = F::Llama3Scaling(), .yarn = F::YarnScaling()});
          },
          name + ": llama3 and yarn are two scalings; give one of them"),
      error<ValueError>(
          [](const Draw& draw) {
            F::rotary_embedding(draw({2, 2, 3, 4}), {.llama3 = F::Llama3Scaling{.high = 0.5}});
          },
          name + ": expected of llama3 a factor above 0, low above 0, high above low and original "
                 "positions, got factor 8, low 1, high 0.5, original 8192"),
      error<ValueError>(
          [](const Draw& draw) {
            F::rotary_embedding(draw({2, 2, 3, 4}),
                                {.base = 1, .yarn = F::YarnScaling{.original = 0}});
          },
          name + ": expected of yarn a factor above 0, slow above 0, fast above slow, original "
                 "positions and a base above 1, got factor 4, slow 1, fast 32, original 0, base 1"),
      error<ShapeError>(with_positions({4}, Dtype::kInt32),
                        name +
                            ": expected positions as (3,) or (2, 3), with 1 instead of an extent "
                            "where all are alike, got shape (4,)"),
      error<DtypeError>(with_positions({3}, Dtype::kFloat32),
                        name + ": expected positions of int32 or int64, got float32"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(rotary_embedding) {
  return {
      rotary(
          "", {},
          {{2, 3, 5, 8}, {1, 1, 1, 2}, {0, 2, 3, 4}, {2, 1, 0, 4}, {1, 2, 3, 36}, {1, 2, 3, 32}}),
      rotary("interleaved", {.base = 500, .interleaved = true, .start = 7},
             {{2, 3, 5, 8}, {1, 2, 3, 36}, {1, 2, 3, 32}}),
      rotary("part", {.rotated = 6}, {{2, 2, 4, 9}, {1, 1, 2, 6}}),
      rotary("interleaved part", {.rotated = 4, .interleaved = true}, {{2, 2, 4, 7}}),
      rotary("positions", {.positions = {4, 0, -2}, .positions_shape = {3}, .start = 1},
             {{2, 2, 3, 4}}),
      rotary("positions of each", {.positions = {4, 0, 9, 5, 5, 1}, .positions_shape = {2, 3}},
             {{2, 2, 3, 4}}),
      rotary("first positions of each", {.positions = {4, 100}, .positions_shape = {2, 1}},
             {{2, 2, 3, 4}}),
      errors()};
}

}  // namespace catena
