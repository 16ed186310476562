// Records of einsum.

#include <map>
#include <sstream>

#include "catena/functions/math/einsum.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// All sums written out: letters alone, an axis of extent 1 broadcasts.
Plain summed(const std::string& inputs, const std::string& output, const Plains& operands) {
  std::vector<std::string> terms;
  std::istringstream parts(inputs);
  for (std::string term; std::getline(parts, term, ',');) terms.push_back(term);
  std::map<char, int64_t> extents;
  for (size_t k = 0; k < terms.size(); ++k)
    for (size_t i = 0; i < terms[k].size(); ++i) {
      int64_t& extent = extents.emplace(terms[k][i], 1).first->second;
      if (operands[k].shape[i] != 1) extent = operands[k].shape[i];
    }
  Shape shape, all;
  for (const char c : output) shape.push_back(extents[c]);
  for (const auto& [c, extent] : extents) all.push_back(extent);
  const auto product = [&](const std::map<char, int64_t>& at) {
    double value = 1;
    for (size_t k = 0; k < terms.size(); ++k) {
      Shape index;
      for (size_t i = 0; i < terms[k].size(); ++i)
        index.push_back(operands[k].shape[i] == 1 ? 0 : at.at(terms[k][i]));
      value *= operands[k].at(index);
    }
    return value;
  };
  return plain(shape, [&](const Shape& wanted) {
    double total = 0;
    plain(all, [&](const Shape& index) {
      std::map<char, int64_t> at;
      size_t next = 0;
      for (const auto& [c, extent] : extents) at[c] = index[next++];
      bool belongs = true;
      for (size_t i = 0; i < output.size(); ++i) belongs = belongs && at[output[i]] == wanted[i];
      if (belongs) total += product(at);
      return 0.0;
    });
    return total;
  });
}

FunctionRecord einsum_record(const std::string& subscripts, const std::vector<Shapes>& shapes,
                             const std::string& inputs, const std::string& output) {
  FunctionRecord r;
  r.function = "einsum";
  r.variant = subscripts;
  r.ranges.resize(shapes[0].size());
  r.shapes = shapes;
  r.call = [=](const Variables& v) { return Variables{F::einsum(subscripts, v)}; };
  r.reference = [=](const Plains& in) { return Plains{summed(inputs, output, in)}; };
  return r;
}

FunctionRecord einsum_record(const std::string& subscripts, const std::vector<Shapes>& shapes) {
  const size_t arrow = subscripts.find("->");
  return einsum_record(subscripts, shapes, subscripts.substr(0, arrow),
                       subscripts.substr(arrow + 2));
}

FunctionRecord with_errors() {
  FunctionRecord r = einsum_record("ij,jk", {{{3, 4}, {4, 2}}}, "ij,jk", "ik");
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
      einsum_record("i...,...->...i", {{{3, 2, 2}, {2, 2}}}, "iab,ab", "abi"),
  };
}

}  // namespace catena
