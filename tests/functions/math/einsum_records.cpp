// Records of einsum.
#include "catena/functions/math/einsum.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord einsum_record(const std::string& subscripts, const std::vector<Shapes>& shapes) {
  FunctionRecord r;
  r.function = "einsum";
  r.variant = subscripts;
  r.ranges.resize(shapes[0].size());
  r.shapes = shapes;
  r.call = [=](const Variables& v) { return Variables{F::einsum(subscripts, v)}; };
  return r;
}

FunctionRecord with_errors() {
  FunctionRecord r = einsum_record("ij,jk", {{{3, 4}, {4, 2}}});
  const auto call = [](const char* subscripts, Shape a, Shape b, Dtype dtype = Dtype::kFloat64) {
    return [=](const Draw& draw) { F::einsum(subscripts, draw(a), draw(b, 0, 1, 0, dtype)); };
  };
  r.errors = {
      error<ValueError>(call("ij->i", {2, 3}, {3}), "Einsum: 'ij->i': 1 terms for 2 operands"),
      error<ValueError>(call("ij,jk", {2, 3}, {3}),
                        "Einsum: 'ij,jk': 'jk' does not name the axes of an array of shape (3,)"),
      error<ValueError>(call("ij,j->k", {2, 3}, {3}),
                        "Einsum: 'ij,j->k': output axis 'k' is in no term"),
      error<ValueError>(call("ii,j->j", {2, 3}, {3}),
                        "Einsum: 'ii,j->j': axis 'i' has the extents 2 and 3"),
      error<ShapeError>(call("ij,jk->ik", {2, 3}, {4, 2}),
                        "Einsum: 'ij,jk->ik': axis 'j' has the extents 3 and 4"),
      error<ValueError>([](const Draw&) { F::einsum("->", Variables()); },
                        "Einsum: '->': expected at least one operand"),
      type_error("Einsum", call("ij,jk", {2, 3}, {3, 2}, Dtype::kInt32),
                 "Expect: operands[1].dtype.kind == f\nActual: i != f\nInputs: operands[0] float64 "
                 "(2, 3), operands[1] int32 (3, 2)\nExpected is a floating dtype: convert "
                 "operands[1] with .astype(dtype::float32)."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(einsum) {
  return {
      with_errors(),
      einsum_record("ij,jk->ki", {{{3, 4}, {4, 2}}, {{2, 0}, {0, 3}}}),
      einsum_record("bij,bjk->bik", {{{2, 3, 4}, {2, 4, 2}}, {{1, 3, 2}, {5, 2, 1}}}),
      einsum_record("bqhd,bkhd->bhqk", {{{2, 3, 2, 4}, {2, 5, 2, 4}}}),
      einsum_record("i,j->ij", {{{3}, {2}}}),
      einsum_record("ij,ij->", {{{3, 2}, {3, 2}}, {{3, 1}, {1, 2}}}),
      einsum_record("ij->ji", {{{3, 2}}}),
      einsum_record("ij->j", {{{3, 2}}, {{0, 2}}}),
      einsum_record("ii->i", {{{3, 3}}}),
      einsum_record("iji->ji", {{{2, 3, 2}}}),
      einsum_record("ii->", {{{3, 3}}}),
      einsum_record("iijj->ij", {{{2, 2, 3, 3}}}),
      einsum_record("iij,j->i", {{{2, 2, 3}, {3}}}),
      einsum_record("i,i->i", {{{3}, {3}}}),
      einsum_record("bij,bj->ib", {{{2, 3, 4}, {2, 4}}}),
      einsum_record("ij,jk,ik->", {{{2, 3}, {3, 4}, {2, 4}}}),
      einsum_record("i,j,k->kji", {{{2}, {3}, {2}}}),
      einsum_record(",ij->ji", {{{}, {2, 3}}}),
      einsum_record("ij,jk,k->i", {{{2, 3}, {3, 4}, {4}}}),
      einsum_record("i...,...->...i", {{{3, 2, 2}, {2, 2}}}),
  };
}

}  // namespace catena
